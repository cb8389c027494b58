# SPDX-License-Identifier: GPL-2.0-only
"""The Debian packages, built as `make deb` does."""

import os
import re
import shutil

from . import host

PARTS = (".gitignore", "COPYING", "Kbuild", "Makefile", "debian", "dm-lc", "docs", "userland")


def git(*words, top=host.TOP):
    """What git says of a clone, whose owner may be another user."""
    return host.run("git", "-c", f"safe.directory={top}", "-C", top, *words)


def environment(**more):
    """This one without what changes packages on purpose."""
    return {name: value for name, value in os.environ.items() if not name.startswith("DEB_")} | more


def sources(folder, version=None):
    """Copy what a clone has that the packages need, by default as the version that it is."""
    listing = git("ls-files", "--cached", "--others", "--exclude-standard", "--", *PARTS)
    for name in listing.splitlines():
        if (host.TOP / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(host.TOP / name, folder / name)
    if version:
        renumber(folder, version)
    return folder


def project_version(folder=host.TOP):
    """The version that the tools print."""
    text = (folder / "userland/util.h").read_text(encoding="utf-8")
    return ".".join(re.search(rf"^#define LC_VERSION_{part}\s+(\d+)$", text, re.M)[1]
                    for part in ("MAJOR", "MINOR", "PATCH"))


def renumber(folder, version):
    """Make copied sources those of another version."""
    header = folder / "userland/util.h"
    text = header.read_text(encoding="utf-8")
    for part, number in zip(("MAJOR", "MINOR", "PATCH"), version.split(".")):
        text = re.sub(rf"^(#define LC_VERSION_{part}\s+)\d+$", rf"\g<1>{number}", text, flags=re.M)
    header.write_text(text, encoding="utf-8")
    changelog = folder / "debian/changelog"
    text = changelog.read_text(encoding="utf-8")
    entry = text.partition("\n\n")[2].partition("\n -- ")
    changelog.write_text(f"dm-lc ({version}) unstable; urgency=medium\n\n  * Test.\n\n -- "
                         f"{entry[2].partition(chr(10))[0]}\n\n{text}", encoding="utf-8")


def build(tree, out, alone=False, enter=(), umask=-1, **variables):
    """Build the packages of a tree into a folder, if alone then without a network.

    `enter` are words before a command that has to run elsewhere. Returns {package: path}.
    """
    log = out.parent / f"{out.name}.log"
    log.write_bytes(b"")
    host.run(*enter, *(["unshare", "--net"] if alone else []), tree / "debian/make-deb", out,
             log=log, umask=umask, env=environment(**variables))
    return found(out)


def found(out):
    """{package: path} of a folder."""
    return {path.name.partition("_")[0]: path for path in sorted(out.glob("*.deb"))}
