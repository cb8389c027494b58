# SPDX-License-Identifier: GPL-2.0-only
"""Debian's own kernels, of each series it offers now, and what builds modules for each.

A kernel comes with its suite's compiler and headers: a root of that suite, in which only make runs.
By hand: `cd tests && /usr/bin/python3 -m lib.series [SUITE]`.
"""

import dataclasses
import functools
import os
import pathlib
import re
import shutil
import sys

from . import apt, host, kernels

# Where a kernel may be newer than in the one before. What they have is asked for.
SUITES = {
    "bookworm": ("bookworm", "bookworm-security"),
    "bookworm-backports": ("bookworm", "bookworm-backports"),
    "trixie": ("trixie", "trixie-security"),
    "trixie-backports": ("trixie", "trixie-backports"),
    "sid": ("sid",),
}
# Headers need the compiler alone.
NEEDED = ("make", "gcc", "binutils")
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*")
# $1: the root, $2: the sources, which have the same path inside; then a command.
INSIDE = """root=$1 top=$2
shift 2
mkdir -p "$root$top"
mount --bind "$top" "$root$top"
mount -t proc proc "$root/proc"
exec chroot "$root" "$@"
"""


@functools.lru_cache
def offered(suite):
    """The release that linux-image-amd64 stands for in a suite, or None."""
    source = apt.PrivateApt(f"series-{suite}", SUITES[suite][-1:] if "backports" in suite
                            else SUITES[suite])
    source.update()
    return source.depends("linux-image-amd64", r"linux-image-(\d\S*)")


def offers():
    """{suite: release}: of each series the newest, in the order of the releases."""
    series = {}
    for suite in SUITES:
        release = offered(suite)
        if not release:
            continue
        name = re.match(r"\d+\.\d+", release)[0]
        if name not in series or apt.version_key(release) > apt.version_key(series[name][1]):
            series[name] = (suite, release)
    return dict(sorted(series.values(), key=lambda offer: apt.version_key(offer[1])))


def newer(suite, release):
    """(suite, release) of the kernel that a machine of a suite with that release can be upgraded
    to, or None; the one of backports before the suite's own.
    """
    for name in (f"{suite}-backports", suite):
        found = offered(name) if name in SUITES else None
        if found and apt.version_key(found) > apt.version_key(release):
            return name, found
    return None


def upgrade(suite, name, release, status):
    """The packages that give a machine of a suite, with this dpkg status, kernel and headers of
    newer(), as paths.
    """
    home = host.cache() / f"upgrade-{release}-{host.digest(status)}"
    with host.locked(f"upgrade-{release}"):
        if not home.exists():
            host.say(f"{name}: fetching {release} and its headers for an upgrade")
            source = apt.PrivateApt(f"upgrade-{name}",
                                    dict.fromkeys((*SUITES[suite], *SUITES[name])))
            source.update()
            work = home.with_name(f".work-{home.name}")
            shutil.rmtree(work, ignore_errors=True)
            source.download(work, status, SUITES[name][-1],
                            "linux-image-amd64", "linux-headers-amd64")
            work.rename(home)
        host.keep(home, "upgrade-*")
    return sorted(home.glob("*.deb"))


def kernel(suite):
    """The kernels.Kernel that a suite offers; it takes the place of the stock kernel."""
    if os.geteuid():
        raise RuntimeError("a root of another suite is made and entered by root only")
    release = offered(suite)
    if not release:
        raise RuntimeError(f"{suite} offers no linux-image-amd64")
    key = host.digest(*NEEDED, *LEFT_OUT)
    home = host.cache() / f"series-{suite}-{release}-{key}"
    with host.locked(f"series-{suite}"):
        if not (home / "whole").exists():
            make(suite, release, home)
        host.keep(home, f"series-{suite}-[0-9]*")
    kdir = f"/usr/src/linux-headers-{release}"
    tree = modules(home / "image", release)
    image = next(path for path in (home / "image/boot" / f"vmlinuz-{release}", tree / "vmlinuz")
                 if path.exists())
    return kernels.Kernel("stock", release, image, tree, kdir, kdir,
                          inside(home / "root"))


def kunit(suite):
    """A kernel of a suite's series, built here with KUnit, which Debian's own lack; it takes the
    place of the debug kernel.
    """
    name = re.match(r"\d+\.\d+", offered(suite))[0]
    built = kernels.build(f"kunit-{name}", "kunit", SUITES[suite], f"linux-source-{name}")
    return dataclasses.replace(built, name="debug")


def inside(root):
    """Words before a command that runs in a root, on these sources."""
    return ("unshare", "--mount", "sh", "-ec", INSIDE, "inside", str(root), str(host.TOP))


def modules(image, release):
    """Where the kernel's package has put them."""
    return next(path for path in (image / "usr/lib/modules" / release,
                                  image / "lib/modules" / release) if path.is_dir())


def make(suite, release, home):
    """The kernel's package, unpacked, and a root with headers, compiler and make."""
    host.say(f"{suite}: fetching {release}, its headers and its compiler, some minutes")
    log = host.cache() / f"series-{suite}.log"
    log.write_bytes(b"")
    shutil.rmtree(home, ignore_errors=True)
    (home / "image").mkdir(parents=True)
    source = apt.PrivateApt(f"series-{suite}", SUITES[suite])
    source.update()
    # Since 7.3 what is in it is in packages that it depends on.
    for package in source.names(rf"linux-(image|binary|modules|base)-{re.escape(release)}"):
        source.unpack(package, home / "image")
    host.run("depmod", "-b", modules(home / "image", release).parents[2], release, log=log)
    make_root(suite, (*NEEDED, f"linux-headers-{release}"), home / "root", source.lines, log)
    (home / "whole").touch()


def make_root(suite, packages, root, lines, log):
    """A root of a suite with packages, from these lines of sources.list."""
    # A mirror may lag behind; signatures are checked all the same.
    host.run("mmdebstrap", "--mode=root", "--variant=minbase",
             '--aptopt=Acquire::Check-Valid-Until "false"',
             *(f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT),
             f"--include={','.join(packages)}", SUITES[suite][0], root, *lines, log=log)


def compiler(made):
    """What a kernel, and so its modules, is compiled with."""
    root = pathlib.Path(made.enter[-2])
    config = (root / made.kdir.lstrip("/") / ".config").read_text(encoding="utf-8")
    return re.search(r'^CONFIG_CC_VERSION_TEXT="(?:\S*-)?(gcc-\d+)', config, re.M)[1]


if __name__ == "__main__":
    print(*(offers().items() if len(sys.argv) < 2 else [kernel(sys.argv[1])]), sep="\n")
