# SPDX-License-Identifier: GPL-2.0-only
"""The kernels the guests run: Debian's stock 6.1 and the newest, with checkers or in user mode.

By hand: `cd tests && /usr/bin/python3 -m lib.kernels stock|debug|kcsan|lockstat|uml`.
"""

import dataclasses
import functools
import os
import pathlib
import re
import shutil
import sys
import time

from . import apt, host

STOCK_SUITES = ("bookworm", "bookworm-security")
SOURCE_SUITES = ("trixie", "trixie-backports")
CONFIGS = host.TESTS / "kernels"
CHECKED_WITH_CLANG = ("debug",)  # make check builds the module for it with clang too
IMAGES = {"uml": "linux"}  # what make calls the image, if not bzImage
MORE = ("kcsan", "lockstat")  # of the debug kernel's release, and for x86-64, too
RECIPE = 1  # count up when the way a kernel is built changes, not only its configuration

# Of the source only what an x86-64 build reads is unpacked ...
LEFT_IN_TAR = ("*/Documentation/*.rst", "*/Documentation/*.yaml", "*/Documentation/*.txt",
               "*.dts", "*.dtsi", "*/tools/testing/*", "*/tools/perf/*", "*/sound/*.[ch]",
               "*/drivers/gpu/*.[ch]", "*/drivers/net/*/*.c", "*/drivers/media/*.[ch]",
               "*/drivers/staging/*.[ch]", "*/samples/*.[ch]")
# ... and of the build only what building a module against it reads is kept.
KEPT = ("/include", "/scripts", "/arch/x86", "/arch/um", "/tools/objtool/objtool", "/Makefile",
        "/Kbuild", "/Kconfig", "/.config", "/Module.symvers", "/modules.order", "/System.map",
        "/modules.builtin", "/modules.builtin.modinfo")


@dataclasses.dataclass(frozen=True)
class Kernel:
    """One bootable kernel and the tree that modules for it are built in."""

    name: str              # stock, debug, kcsan, lockstat, uml, server
    release: str           # uname -r
    image: pathlib.Path    # bzImage, or the program that user-mode Linux is
    modules: pathlib.Path  # its lib/modules/<release>
    kdir: pathlib.Path     # for make -C
    clang_kdir: pathlib.Path
    enter: tuple = ()      # words before a make that has to run elsewhere, see series.py

    @property
    def checkers(self):
        """Built with KUnit, KASAN, lockdep, kmemleak."""
        return self.name == "debug"

    @property
    def label(self):
        """A name for folders: kernels of one release may have trees of their own."""
        apart = self.name in (*MORE, "server")
        return f"{self.release}-{self.name}" if apart else self.release

    @property
    def slowdown(self):
        """How much longer than on the stock kernel a case may take."""
        return {"debug": 3, "kcsan": 4}.get(self.name, 1)

    @property
    def make_words(self):
        """What make needs besides KDIR to build a module for it."""
        return arch_words(self.name)


def arch_words(name):
    """The architecture of a flavour, for make."""
    return ["ARCH=um"] if name == "uml" else []


# ----------------------------------------------------------------- stock 6.1

def installed_stock():
    """The newest 6.1 that dpkg put on this machine, or None."""
    found = [path.name.partition("-")[2] for path in pathlib.Path("/boot").glob("vmlinuz-6.1.*")
             if re.fullmatch(r"vmlinuz-6\.1\.0-\d+-amd64", path.name)]
    for release in sorted(found, key=apt.version_key, reverse=True):
        modules = pathlib.Path("/lib/modules") / release
        kdir = pathlib.Path("/usr/src") / f"linux-headers-{release}"
        if modules.is_dir() and kdir.is_dir():
            return Kernel("stock", release, pathlib.Path("/boot") / f"vmlinuz-{release}",
                          modules, kdir, kdir)
    return None


def fetched_stock():
    """The same from the archive, unpacked below the cache folder."""
    root = host.cache() / "kernels" / "stock"
    done = root / "release"
    with host.locked("kernel-stock"):
        if not done.exists():
            shutil.rmtree(root, ignore_errors=True)
            root.mkdir(parents=True)
            release = fetch_stock(root)
            done.write_text(release, encoding="ascii")
    release = done.read_text(encoding="ascii")
    kdir = root / "usr/src" / f"linux-headers-{release}"
    modules = next(path for path in (root / "lib/modules" / release,
                                     root / "usr/lib/modules" / release) if path.is_dir())
    return Kernel("stock", release, root / "boot" / f"vmlinuz-{release}", modules, kdir, kdir)


def fetch_stock(root):
    """Download image, headers and build scripts of the newest 6.1; return its release."""
    source = apt.PrivateApt("stock", STOCK_SUITES)
    source.update()
    images = source.names(r"linux-image-6\.1\.0-\d+-amd64")
    if not images:
        raise RuntimeError("no linux-image-6.1.0-*-amd64 on offer in " + " ".join(STOCK_SUITES))
    release = images[-1].removeprefix("linux-image-")
    host.say(f"stock kernel: fetching {release}")
    common = release.replace("-amd64", "-common")
    for package in (images[-1], f"linux-headers-{release}", f"linux-headers-{common}",
                    "linux-kbuild-6.1"):
        source.unpack(package, root)
    host.run("depmod", "-b", root, release)
    relocate_headers(root, root)
    return release


def relocate_headers(root, home):
    """Debian's header packages name each other by absolute path: let those in root name home."""
    for tree in (root / "usr/src").glob("linux-headers-*"):
        makefile = tree / "Makefile"
        text = makefile.read_text(encoding="utf-8")
        makefile.write_text(text.replace("/usr/src/", f"{home}/usr/src/"), encoding="utf-8")
        for link in (tree / "scripts", tree / "tools"):
            if link.is_symlink():
                inside = os.readlink(link).partition("/linux-kbuild-")[2]
                link.unlink()
                link.symlink_to(home / "usr/lib" / f"linux-kbuild-{inside}")


# ------------------------------------------------------- built from source

def build(name, config=None, suites=SOURCE_SUITES, package=r"linux-source-\d+\.\d+"):
    """The newest kernel source of that name on offer with base.config and <config>.config, which
    is <name>.config if not given.
    """
    fragments = [CONFIGS / "base.config", CONFIGS / f"{config or name}.config"]
    key = host.digest(*fragments, RECIPE, host.codename(), newest_clang())
    top = host.cache() / "kernels"

    def built():
        if os.environ.get("LC_REFRESH"):
            return []
        return sorted(top.glob(f"{name}-*-{key}/kernel-release"), key=os.path.getmtime)

    done = built()
    if not done:
        with host.locked(f"kernel-{name}"):
            done = built() or [build_newest(name, key, fragments, suites, package)]
    tree = done[-1].parent
    host.keep(tree, f"{name}-*")
    release = done[-1].read_text(encoding="ascii").strip()
    return Kernel(name, release, tree / IMAGES.get(name, "bzImage"), tree / "lib/modules" / release,
                  tree / "gcc", tree / "clang")


def build_newest(name, key, fragments, suites, package):
    """Fetch, configure and build; returns the file that says it is whole."""
    source = apt.PrivateApt("source" if suites is SOURCE_SUITES else f"source-{name}", suites)
    source.update()
    offers = source.names(package)
    if not offers:
        raise RuntimeError(f"no {package} on offer in " + " ".join(suites))
    package = offers[-1]
    version = source.candidate(package)
    final = host.cache() / "kernels" / f"{name}-{version.replace('/', '_').replace('~', '-')}-{key}"
    if (final / "kernel-release").exists():
        return final / "kernel-release"
    work = host.cache() / "kernels" / f".work-{name}"
    shutil.rmtree(work, ignore_errors=True)
    (work / "out").mkdir(parents=True)
    host.say(f"{name} kernel: fetching {package} {version}")
    source.unpack(package, work)
    tree = unpack_source(work, package)
    started = time.monotonic()
    log = host.cache() / f"kernel-{name}.log"
    log.write_bytes(b"")
    host.say(f"{name} kernel: building, several minutes; log in {log}")
    release = compile_tree(name, tree, work / "out", fragments, log)
    host.say(f"{name} kernel: {release} built in {time.monotonic() - started:.0f} s")
    (work / "out" / "kernel-release").write_text(release, encoding="ascii")
    (work / "out").rename(final)
    shutil.rmtree(work, ignore_errors=True)
    return final / "kernel-release"


def unpack_source(work, package):
    """The part of the source tree that this build needs."""
    tarball = next((work / "usr/src").glob(f"{package}.tar.*"))
    host.run("tar", "-x", "-f", tarball, "-C", work,
             *(f"--exclude={pattern}" for pattern in LEFT_IN_TAR))
    tarball.unlink()
    return work / package


def configure(tree, fragments, make, log):
    """allnoconfig plus the fragments; every line asked for must have survived."""
    wanted = merged("".join(path.read_text(encoding="ascii") for path in fragments))
    asked = tree / ".asked.config"
    asked.write_text("".join(f"{line}\n" for line in wanted), encoding="ascii")
    host.run(*make, f"KCONFIG_ALLCONFIG={asked}", "allnoconfig", log=log)
    got = set((tree / ".config").read_text(encoding="ascii").splitlines())
    lost = [line for line in wanted if line.startswith("CONFIG_") and line not in got]
    if lost:
        raise RuntimeError("the kernel does not take: " + " ".join(lost))


def merged(fragments):
    """The lines of fragments, of each symbol the last one."""
    lines = {}
    for line in fragments.splitlines():
        symbol = re.match(r"(?:# )?(CONFIG_\w+)(?:=| is not set$)", line)
        if symbol:
            lines[symbol.group(1)] = line
    return list(lines.values())


def compile_tree(name, tree, out, fragments, log):
    """Build image and modules into out; keep a tree for outside modules per compiler."""
    # Of the same source there may be a Debian kernel beside it.
    local = "-kunit" if name.startswith("kunit-") else ""
    make = ["nice", "make", "-C", tree, "-s", f"-j{host.jobs()}", f"LOCALVERSION={local}",
            *arch_words(name)]
    image = IMAGES.get(name, "bzImage")
    configure(tree, fragments, make, log)
    host.run(*make, image, "modules", log=log)
    release = host.run(*make, "kernelrelease").split()[-1]
    host.run(*make, f"INSTALL_MOD_PATH={out}", "modules_install", log=log)
    shutil.copy(tree / image if name in IMAGES else tree / "arch/x86/boot" / image, out / image)
    shutil.copy(tree / "System.map", out / "System.map")
    keep_tree(tree, out / "gcc")
    for link in ("build", "source"):
        (out / "lib/modules" / release / link).unlink(missing_ok=True)
    # The same configuration prepared for clang: its flags differ, its symbols do not.
    clang = newest_clang()
    if clang and name in CHECKED_WITH_CLANG:
        llvm = [*make, f"LLVM={clang}"]
        symvers = (tree / "Module.symvers").read_bytes()
        configure_clang(tree, fragments, llvm, log)
        (tree / "Module.symvers").write_bytes(symvers)
        keep_tree(tree, out / "clang")
    return release


def configure_clang(tree, fragments, make, log):
    """As configure(), but gcc's choices may go; then the headers and host tools."""
    asked = tree / ".asked.config"
    asked.write_text("".join(path.read_text(encoding="ascii") for path in fragments),
                     encoding="ascii")
    host.run(*make, f"KCONFIG_ALLCONFIG={asked}", "allnoconfig", log=log)
    host.run(*make, "modules_prepare", log=log)


def keep_tree(tree, dest):
    """Copy what building outside modules reads."""
    dest.mkdir()
    names = [name.lstrip("/") for name in KEPT if (tree / name.lstrip("/")).exists()]
    host.run("rsync", "-aR", "--exclude=*.o", "--exclude=*.a", "--exclude=/arch/x86/*/*.c",
             "--exclude=vmlinux*", "--exclude=bzImage", *names, f"{dest}/", cwd=tree)


@functools.lru_cache
def newest_clang():
    """The suffix LLVM= takes ("-19"), for the newest whole clang here, or ""."""
    found = [path.name.removeprefix("clang") for path in pathlib.Path("/usr/bin").glob("clang-*")
             if re.fullmatch(r"clang-\d+", path.name)]
    for suffix in sorted(found, key=apt.version_key, reverse=True):
        if all(shutil.which(f"{tool}{suffix}") for tool in ("ld.lld", "llvm-ar", "llvm-nm")):
            return suffix
    return ""


@functools.lru_cache
def get(name):
    """The kernel of that name, fetched or built if it is not there yet."""
    if name in ("stock", "debug") and os.environ.get("LC_SUITE"):
        from . import series  # pylint: disable=import-outside-toplevel,cyclic-import
        return (series.kernel if name == "stock" else series.kunit)(os.environ["LC_SUITE"])
    if name == "stock":
        return installed_stock() or fetched_stock()
    return build(name)


if __name__ == "__main__":
    print(get(sys.argv[1]))
