# SPDX-License-Identifier: GPL-2.0-only
"""What the project's own Makefile builds, as far as its sources exist."""

import dataclasses
import pathlib

from . import host

# Folders of tests/meta, and what is built there, for the kernels that can see the bug.
BROKEN = {"debug": ("leak", "leak.ko"), "kcsan": ("race", "dm-lc-race.ko")}


@dataclasses.dataclass(frozen=True)
class Products:
    """Paths of what was built, or None for what does not exist yet."""

    module: pathlib.Path | None
    kunit_module: pathlib.Path | None
    tools: pathlib.Path | None
    broken: pathlib.Path | None      # the meta tests' module with a bug, named <bug>.ko
    programs: tuple                  # the cases' own C programs
    scatter: pathlib.Path | None     # a target for tests, see tests/guest/scatter
    load: pathlib.Path | None        # the in-kernel load generator, see tests/bench/module


def make(kernel, *words, log):
    """Run make where modules of that kernel are built."""
    host.run(*kernel.enter, "make", "-s", "-C", *words, *kernel.make_words, log=log)


def build_module(kernel, kunit=False):
    """make module for one kernel; the path of dm-lc.ko, or None without sources."""
    if not (host.TOP / "Kbuild").exists() or not (host.TOP / "dm-lc/Kbuild").exists():
        return None
    words = [f"KDIR={kernel.kdir}", f"KREL={kernel.label}"]
    if kunit:
        words.append("LC_KUNIT=y")
    log = host.BUILD / f"module-{kernel.name}{'-kunit' if kunit else ''}.log"
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"")
    make(kernel, host.TOP, "module", *words, log=log)
    return host.BUILD / f"{kernel.label}{'-kunit' if kunit else ''}" / "dm-lc/dm-lc.ko"


def build_tree(kernel, tree, kunit, log):
    """The module from sources elsewhere (Kbuild, dm-lc/), built there; the path of dm-lc.ko."""
    words = ["LC_KUNIT=y"] if kunit else []
    make(kernel, kernel.kdir, f"M={tree}", "modules", *words, log=log)
    return tree / "dm-lc/dm-lc.ko"


def build_tools():
    """make tools; the path of the binary, or None without sources."""
    if not (host.TOP / "userland/Makefile").exists():
        return None
    log = host.BUILD / "tools.log"
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"")
    host.run("make", "-s", "-C", host.TOP, "tools", log=log)
    return host.TOP / "userland/build/lc"


def build_broken(kernel):
    """The meta tests' module whose bug this kernel can see."""
    if kernel.name not in BROKEN:
        return None
    name, module = BROKEN[kernel.name]
    folder = host.BUILD / f"{name}-{kernel.label}"
    folder.mkdir(parents=True, exist_ok=True)
    host.run("cp", "-u", *(host.TESTS / "meta" / name).iterdir(), folder)
    make(kernel, kernel.kdir, f"M={folder}", "modules", log=host.BUILD / f"{name}.log")
    return folder / module


def build_scatter(kernel):
    """The device-mapper target of the cases' own."""
    folder = host.BUILD / f"scatter-{kernel.label}"
    folder.mkdir(parents=True, exist_ok=True)
    host.run("cp", "-u", *(host.TESTS / "guest/scatter").iterdir(), folder)
    make(kernel, kernel.kdir, f"M={folder}", "modules", log=host.BUILD / "scatter.log")
    return folder / "dm-scatter.ko"


def build_load(kernel):
    """The load generator and the profiler for that kernel."""
    folder = host.BUILD / f"lcload-{kernel.label}"
    folder.mkdir(parents=True, exist_ok=True)
    host.run("cp", "-u", *(host.TESTS / "bench/module").iterdir(), folder)
    make(kernel, kernel.kdir, f"M={folder}", "modules", log=host.BUILD / "lcload.log")
    names = ("lcload.ko",) if kernel.name == "uml" else ("lcload.ko", "lcprof.ko")
    return [folder / name for name in names]


def build_programs():
    """Each tests/guest/src/*.c is a program of its own in the guest's /opt/dm-lc/bin.

    Besides, what makes hostile images (tests/fuzz).
    """
    folder = host.BUILD / "programs"
    folder.mkdir(parents=True, exist_ok=True)
    programs = []
    headers = [path.stat().st_mtime for path in (host.TESTS / "guest/src").glob("*.h")]
    for source in sorted((host.TESTS / "guest/src").glob("*.c")):
        program = folder / source.stem
        newest = max(source.stat().st_mtime, *headers)
        if not program.exists() or program.stat().st_mtime < newest:
            host.run("gcc", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread",
                     "-o", program, source)
        programs.append(program)
    fuzz = host.BUILD / "fuzz"
    host.run("make", "-s", "-C", host.TESTS / "fuzz", "mkimages", f"O={fuzz}")
    return (*programs, fuzz / "mkimages")


def build(kernel):
    """All a guest of this kernel can be given."""
    return Products(build_module(kernel),
                    build_module(kernel, kunit=True) if kernel.checkers else None,
                    build_tools(), build_broken(kernel), build_programs(), build_scatter(kernel),
                    build_load(kernel)[0])
