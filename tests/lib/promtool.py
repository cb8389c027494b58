# SPDX-License-Identifier: GPL-2.0-only
"""promtool, the checker of Prometheus' own: out of Debian's package, which is not installed."""

import shutil

from . import apt, host


def get():
    """The program, fetched once."""
    home = host.cache() / f"promtool-{host.codename()}"
    with host.locked("promtool"):
        if not (home / "promtool").exists():
            private = apt.PrivateApt("promtool", [host.codename()])
            private.update()
            work = host.cache() / ".work-promtool"
            shutil.rmtree(work, ignore_errors=True)
            private.unpack("prometheus", work)
            home.mkdir(exist_ok=True)
            (work / "usr/bin/promtool").rename(home / "promtool")
            shutil.rmtree(work)
    return home / "promtool"
