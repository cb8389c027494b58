# SPDX-License-Identifier: GPL-2.0-only
"""Prometheus and its checker, promtool: out of Debian's package, which is not installed."""

import shutil
import subprocess

from . import apt, host


def get():
    """The program, fetched once."""
    home = host.cache() / f"promtool-{host.codename()}"
    with host.locked("promtool"):
        if not (home / "prometheus").exists():
            private = apt.PrivateApt("promtool", [host.codename()])
            private.update()
            work = host.cache() / ".work-promtool"
            shutil.rmtree(work, ignore_errors=True)
            private.unpack("prometheus", work)
            home.mkdir(exist_ok=True)
            for name in ("promtool", "prometheus"):
                (work / "usr/bin" / name).rename(home / name)
            shutil.rmtree(work)
    return home / "promtool"


def server():
    """The path of Prometheus itself."""
    return get().with_name("prometheus")


def check(text):
    """(exit code, what it says) of its check of metrics."""
    done = subprocess.run([get(), "check", "metrics"], input=text, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout
