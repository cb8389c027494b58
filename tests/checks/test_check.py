# SPDX-License-Identifier: GPL-2.0-only
"""make check: each check is an item; one with nothing to look at is skipped."""

import itertools
import pathlib
import re
import shutil
import subprocess

import pytest

from lib import circles, host, kernels

LICENCE = "SPDX-License-Identifier: GPL-2.0-only"
MOST_FUNCTION_LINES = 100
MOST_FILE_LINES = 800
VERSION_TEST = re.compile(r"LINUX_VERSION_CODE|KERNEL_VERSION\s*\(|RHEL_RELEASE|UTS_RELEASE")
# Debian prepares its headers for gcc: what in that configuration stands for gcc only.
GCC_CONFIG_FOR_CLANG = (
    "CONFIG_CC_IS_GCC=", "CONFIG_GCC_VERSION=0", "CONFIG_CC_IS_CLANG=y",
    "CONFIG_CLANG_VERSION=190000", "CONFIG_FTRACE_MCOUNT_USE_CC=",
    "CONFIG_CC_IMPLICIT_FALLTHROUGH=-Wimplicit-fallthrough")
SPARSE = ("C=2", "CF=-D__CHECK_ENDIAN__", f"CHECK={host.TESTS / 'checks/sparse'}")
# Text that carries no line of ours, by others or of a form without comments, and what is not text.
NO_LICENCE_LINE = re.compile(r"(^|/)(COPYING|LICENSE)$|^debian/(changelog|source/format)$"
                             r"|\.(xz|gz|zst|png|img|bin|json)$")


def sources(*patterns):
    """Files of the tree (tracked, or new and not ignored) that match, as paths."""
    listing = host.run("git", "-C", host.TOP, "ls-files", "--cached", "--others",
                       "--exclude-standard", "--", *patterns)
    return [host.TOP / name for name in listing.splitlines() if (host.TOP / name).is_file()]


def some(*patterns):
    """As sources(), but nothing to check is a skip with that reason."""
    found = sources(*patterns)
    if not found:
        pytest.skip(f"nothing to check yet: no {' '.join(patterns)}")
    return found


def name_of(path):
    """As a person at the top of the tree would type it."""
    return str(path.relative_to(host.TOP))


def report(problems):
    """Fail with the list, if it is not empty."""
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def output_of(*argv, **kwargs):
    """What a checker prints, when its exit code says it complains."""
    argv = [str(arg) for arg in argv]
    done = subprocess.run(argv, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **kwargs)
    return done.stdout if done.returncode else ""


def test_spdx():
    """Every file says its licence within its first lines."""
    problems = []
    for path in sources():
        if NO_LICENCE_LINE.search(name_of(path)) or not path.stat().st_size:
            continue
        head = path.read_text(encoding="utf-8", errors="replace").splitlines()[:5]
        if not any(LICENCE in line for line in head):
            problems.append(f"{name_of(path)}: no line '{LICENCE}'")
    report(problems)


def functions(text):
    """(line number, lines) of each function of a C file in kernel style."""
    start = None
    for number, line in enumerate(text.splitlines(), 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            yield start, number - start - 1
            start = None


def test_lengths():
    """No C file and no function is longer than a person can hold in mind."""
    problems = []
    for path in some("*.c"):
        text = path.read_text(encoding="utf-8")
        lines = text.count("\n")
        if lines > MOST_FILE_LINES:
            problems.append(f"{name_of(path)}: {lines} lines, at most {MOST_FILE_LINES}")
        for start, length in functions(text):
            if length > MOST_FUNCTION_LINES:
                problems.append(f"{name_of(path)}:{start}: a function of {length} lines, "
                                f"at most {MOST_FUNCTION_LINES}")
    report(problems)


def test_version_tests_only_in_compat():
    """What differs between kernels is in one file."""
    problems = []
    for path in some("dm-lc/*.c", "dm-lc/*.h"):
        if path.name == "compat.h":
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if VERSION_TEST.search(line):
                problems.append(f"{name_of(path)}:{number}: {line.strip()}")
    report(problems)


def tools():
    """{name: text} of the tools' sources."""
    return {path.name: path.read_text(encoding="utf-8")
            for path in some("userland/*.c", "userland/*.h") if path.parent.name == "userland"}


def test_tools_form_no_circle():
    """A file of the tools can be read, tested and replaced with those below it alone."""
    report(circles.climbing(tools()))
    found = circles.circle(circles.uses(tools()))
    report([" uses ".join(found)] if found else [])


# The folders of the module, from the lowest.  Those of one rank do not know each other.
FOLDERS = (("format",), ("store",), ("log",), ("bio", "writeback"), ("life",), ("",))


def module():
    """{path below dm-lc/: text} of the module's sources, but for the suites."""
    return {str(path.relative_to(host.TOP / "dm-lc")): path.read_text(encoding="utf-8")
            for path in some("dm-lc/*.[ch]")
            if "tests" not in path.relative_to(host.TOP / "dm-lc").parts}


def test_module_uses_lower_folders_only():
    """A folder can be linked with those below it, and read without those above."""
    report(circles.upward(module(), FOLDERS))


def test_module_forms_no_circle():
    """Nor do its files, wherever they are."""
    found = circles.circle(circles.uses(module()))
    report([" uses ".join(found)] if found else [])


def test_tools_see_only_the_format():
    """Of the module the tools compile and include what is on the media, and nothing else."""
    makefile = (host.TOP / "userland/Makefile").read_text(encoding="utf-8")
    problems = [line.strip() for line in makefile.splitlines()
                if "../dm-lc" in line and not line.startswith("#")
                and "KERNEL_SRC := $(SRC)../dm-lc/format" not in line]
    format_headers = {path.name for path in some("dm-lc/format/*.h")}
    other_headers = {path.name for path in some("dm-lc/*.h")} - format_headers
    own = set(tools())
    for name, text in sorted(tools().items()):
        problems += [f"userland/{name} includes {header}"
                     for header in re.findall(r'#include "(?:[\w./]*/)?([\w-]+\.h)"', text)
                     if header in other_headers and header not in own]
    report(problems)


def test_headers_of_tools_are_named_after_their_source():
    """Where a function is declared says where it is."""
    kernels_headers = "".join(path.read_text(encoding="utf-8")
                              for path in sources("userland/kernel/*.h"))
    report(circles.misplaced(tools(), kernels_headers))


def test_ruff():
    """Python."""
    ruff = shutil.which("ruff") or host.cache() / "venv/bin/ruff"
    if not pathlib.Path(ruff).exists():
        pytest.skip("ruff is not installed and could not be fetched")
    files = some("*.py") + [path for path in sources() if not path.suffix
                            and re.match(rb"#!.*\bpython", path.read_bytes()[:64])]
    report([text for text in (output_of(ruff, "check", "--no-cache", "--quiet",
                                        "--config", host.TESTS / "ruff.toml", *files),) if text])


def test_shellcheck():
    """Every script that a shell runs."""
    scripts = [path for path in sources() if path.suffix not in (".py", ".c", ".h", ".rst", ".md")
               and re.match(rb"#!.*\bsh\b", path.read_bytes()[:64])]
    text = output_of("shellcheck", *scripts)
    report([text] if text else [])


def checkpatch():
    """The script from the newest kernel tree there is."""
    for name in ("debug", "stock"):
        tree = kernels.get(name).kdir
        for path in (tree / "scripts/checkpatch.pl", *pathlib.Path("/usr/src").glob(
                "linux-headers-*-common/scripts/checkpatch.pl")):
            if path.exists():
                return path
    raise AssertionError("no checkpatch.pl in any kernel tree")


def test_checkpatch():
    """Kernel style, strict."""
    files = some("dm-lc/*.c", "dm-lc/*.h")
    # The one place for version tests is the one place where they are in order.
    # Tracepoints are laid out in their own way, as in the kernel.
    special = {"compat.h": "LINUX_VERSION_CODE,CONSTANT_COMPARISON,MACRO_ARG_REUSE,"
                           "MACRO_ARG_PRECEDENCE",
               "trace.h": "OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT"}
    texts = [output_of("perl", checkpatch(), "--file",
                       *[path for path in files if path.name not in special], cwd=host.TOP)]
    for name, ignored in special.items():
        texts.append(output_of("perl", checkpatch(), "--ignore", ignored, "--file",
                               *[path for path in files if path.name == name], cwd=host.TOP))
    report([text for text in texts if text])


def build_clean(kernel, compiler, *words):
    """Build the module from scratch; any warning that is not the kernel's own fails."""
    if not (host.TOP / "dm-lc/Kbuild").exists():
        pytest.skip("dm-lc/Kbuild is not there yet")
    variant = f"check-{compiler}"
    kunit = "LC_KUNIT=y" in words
    folder = host.BUILD / f"{kernel.release}{'-kunit' if kunit else ''}-{variant}"
    if compiler == "clang":
        clang = kernels.newest_clang()
        if not clang:
            pytest.skip("no clang here")
        words += (f"LLVM={clang}",) if kernel.name != "stock" else (
            f"CC=clang{clang}", f"LD=ld.lld{clang}", *GCC_CONFIG_FOR_CLANG)
    kdir = kernel.clang_kdir if compiler == "clang" else kernel.kdir
    with host.locked("check", host.run_folder().parent):
        done = make_clean(folder, kdir, kernel, variant, words)
    (host.BUILD / f"check-{kernel.name}-{compiler}.log").write_text(done.stdout, encoding="utf-8")
    assert "sparse is not available" not in done.stdout, "kbuild did not run sparse"
    lines = done.stdout.splitlines()
    ours = [line for line in lines if re.search(r"warning|error|WARNING|ERROR", line)
            and re.search(r"dm-lc|modpost|undefined", line)]
    if done.returncode:
        report(ours or lines[-20:])
    report(ours)


def make_clean(folder, kdir, kernel, variant, words):
    """make module in an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    return subprocess.run(
        ["make", "-C", host.TOP, f"-j{host.jobs()}", "module", f"KDIR={kdir}",
         f"KREL={kernel.release}", f"VARIANT={variant}", "W=1", *words],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


@pytest.mark.parametrize("name,compiler", itertools.product(("stock", "debug"), ("gcc", "clang")))
def test_module_builds_without_warning(name, compiler):
    """W=1 with both compilers; sparse (C=2) beside gcc."""
    build_clean(kernels.get(name), compiler, *(SPARSE if compiler == "gcc" else ()))


def test_kunit_builds_without_warning():
    """The same with the suites in the module."""
    if not sources("dm-lc/tests/*.c"):
        pytest.skip("nothing to check yet: no dm-lc/tests/*.c")
    build_clean(kernels.get("debug"), "gcc", "LC_KUNIT=y", *SPARSE)


@pytest.mark.parametrize("compiler", ("gcc", "clang"))
def test_tools_build_without_warning(compiler):
    """The tools and their test helpers."""
    if not (host.TOP / "userland/Makefile").exists():
        pytest.skip("userland/Makefile is not there yet")
    folder = host.BUILD / f"userland-check-{compiler}"
    shutil.rmtree(folder, ignore_errors=True)
    command = compiler + (kernels.newest_clang() if compiler == "clang" else "")
    text = output_of("make", "-C", host.TOP / "userland", f"-j{host.jobs()}", f"CC={command}",
                     f"O={folder}", "CFLAGS=-O2 -g -Werror", "all", "helpers")
    report([text] if text else [])
