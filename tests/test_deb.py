# SPDX-License-Identifier: GPL-2.0-only
"""The Debian packages: what `make deb` builds, and what their scripts decide."""

import hashlib
import os
import pathlib
import re
import shutil
import stat
import subprocess

import pytest

from lib import debs, host, kernels, serverroot

NAMES = {"dm-lc", "dm-lc-dkms", "dm-lc-dbgsym"}
GENERATED = re.compile(r"^# Automatically added by .*?^# End automatically added section$",
                       re.M | re.S)
# $1: a folder that is to be /lib/modules; the rest: a maintainer script and its words.
SCRIPT = """
mount --bind "$1" "$(realpath /lib/modules)"
shift
exec "$@"
"""
# What the scripts ask of dkms and of the kernel, with one file for each module that it has built.
STANDINS = {"uname": "echo $RUNNING", "dkms": """
for kernel; do :; done
case $1 in
status) [ ! -e "$STATE/$kernel" ] || echo "dm-lc/1, $kernel, x86_64: installed" ;;
install) case $kernel in 5.*) exit 77 ;; *) : > "$STATE/$kernel" ;; esac ;;
esac
"""}


def status():
    """What git has to say of the tree."""
    return host.run("git", "-C", host.TOP, "status", "--porcelain", "--untracked-files=all")


@pytest.fixture(name="made", scope="module")
def fixture_made(tmp_path_factory):
    """Where `make deb` has left everything, in a tree that is as clean as before."""
    folder = tmp_path_factory.mktemp("made")
    with host.locked("deb", host.run_folder().parent):
        before = status()
        host.run("make", "-s", "-C", host.TOP, "deb", log=folder / "log")
        assert status() == before
        shutil.copytree(host.BUILD / "deb", folder / "deb")
    assert set(debs.found(folder / "deb")) == NAMES
    return folder / "deb"


@pytest.fixture(name="unpacked", scope="module")
def fixture_unpacked(made, tmp_path_factory):
    """{package: folder} with what each installs, and its scripts in DEBIAN."""
    found = {}
    for name, path in debs.found(made).items():
        found[name] = tmp_path_factory.mktemp(name)
        host.run("dpkg-deb", "--raw-extract", path, found[name])
    return found


def contents(folder, packed=False):
    """{path: mode, or where a link leads} of the files, without what only packages have."""
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_file() and not name.startswith(("DEBIAN/", "usr/share/doc/")):
            gz = name.endswith(".gz") and packed
            found[name.removesuffix(".gz") if gz else name] = stat.S_IMODE(path.stat().st_mode)
    return found


def test_tools_are_those_of_make_install(unpacked, tmp_path):
    """dm-lc holds what `make install` installs beside the module; the manual is compressed."""
    with host.locked("build", host.run_folder().parent):
        host.run("make", "-s", "-C", host.TOP / "userland", "install", "PREFIX=/usr",
                 f"DESTDIR={tmp_path}")
    assert contents(unpacked["dm-lc"], packed=True) == contents(tmp_path)
    assert all(path.suffix == ".gz" for path in (unpacked["dm-lc"] / "usr/share/man").rglob("*.*"))


def test_module_is_the_trees(unpacked):
    """dm-lc-dkms holds what is tracked of the module, the same bytes, without its tests."""
    folder = unpacked["dm-lc-dkms"] / f"usr/src/dm-lc-{debs.project_version()}"
    found = {str(path.relative_to(folder)): path.read_bytes()
             for path in folder.rglob("*") if path.is_file()}
    config = found.pop("dkms.conf").decode()
    assert f'\nPACKAGE_VERSION="{debs.project_version()}"\n' in config
    listing = host.run("git", "-C", host.TOP, "ls-files", "--cached", "--others",
                       "--exclude-standard", "--", "Kbuild", "dm-lc").splitlines()
    assert found == {name: (host.TOP / name).read_bytes() for name in listing
                     if not name.startswith("dm-lc/tests/") and (host.TOP / name).is_file()}
    assert {path.parts[-4] for path in unpacked["dm-lc-dkms"].glob("usr/src/*/dm-lc/*/*.c")} \
        == {folder.name}


def test_module_builds(unpacked, tmp_path):
    """The sources build as dkms does it, with the release on the command line, and no warning."""
    kernel = kernels.get("stock")
    source = shutil.copytree(
        unpacked["dm-lc-dkms"] / f"usr/src/dm-lc-{debs.project_version()}", tmp_path / "build")
    log = tmp_path / "make.log"
    host.run("make", f"-j{host.jobs()}", f"KERNELRELEASE={kernel.release}", "-C", kernel.kdir,
             f"M={source}", log=log)
    config = (source / "dkms.conf").read_text("utf-8")
    place, name = (re.search(rf'^BUILT_MODULE_{word}\[0\]="(.*)"$', config, re.M)[1]
                   for word in ("LOCATION", "NAME"))
    module = source / place / f"{name}.ko"
    assert host.run("/sbin/modinfo", "-F", "vermagic", module).split()[0] == kernel.release
    assert not re.search(r"\b(warning|WARNING|error)\b", log.read_text("utf-8", "replace"))


def test_lintian(made, tmp_path):
    """lintian has nothing to say of the packages and of their source."""
    if not shutil.which("lintian"):
        pytest.skip("lintian is not installed: tests/setup does it")
    debs.sources(tmp_path / "dm-lc")
    host.run("dpkg-source", "--build", "dm-lc", cwd=tmp_path)
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning",
                           *made.glob("*.changes"), *tmp_path.glob("*.dsc")], text=True,
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0 and not done.stdout.strip(), done.stdout


def test_packages_are_reproducible(made, tmp_path):
    """Built elsewhere, from files of another date, by another user's habits, without a network:
    the same bytes.
    """
    tree = debs.sources(tmp_path / "a folder with a longer name/dm-lc")
    for path in tree.rglob("*"):
        os.utime(path, (1e9, 1e9))
    again = debs.build(tree, tmp_path / "out", alone=os.geteuid() == 0, umask=0o077,
                       TZ="Asia/Tokyo", LC_ALL="C.UTF-8")
    assert {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in again.items()} \
        == {name: hashlib.sha256(path.read_bytes()).hexdigest()
            for name, path in debs.found(made).items()}


def test_there_is_one_version(tmp_path):
    """Changelog and manual have the version of the tools, and another one is not built."""
    version = debs.project_version()
    changelog = (host.TOP / "debian/changelog").read_text("utf-8")
    assert changelog.startswith(f"dm-lc ({version}) ")
    pages = list((host.TOP / "userland/man").glob("*.8"))
    assert pages and not [page.name for page in pages
                          if f'"dm-lc {version}"' not in page.read_text("utf-8")]
    tree = debs.sources(tmp_path, "7.8.10")
    shutil.copy(host.TOP / "userland/util.h", tree / "userland")
    rule = ["make", "-f", "debian/rules", "execute_before_dh_auto_configure"]
    done = subprocess.run(rule, cwd=tree, text=True, capture_output=True, check=False)
    assert done.returncode and f"about 7.8.10, userland/util.h about {version}" in done.stderr
    debs.renumber(tree, "7.8.11")
    subprocess.run(rule, cwd=tree, check=True)


def test_missing_packages_are_named(tmp_path):
    """Before anything is built or removed."""
    tree = debs.sources(tmp_path / "tree")
    control = tree / "debian/control"
    control.write_text(control.read_text("utf-8").replace(
        "\n debhelper-compat (= 13),\n",
        "\n debhelper-compat (= 99),\n no-such-tool (>= 2),\n no-such-library,\n"), "utf-8")
    (tmp_path / "out").mkdir()
    kept = tmp_path / "out/dm-lc_0_amd64.deb"
    kept.write_text("", "ascii")
    done = subprocess.run([tree / "debian/make-deb", tmp_path / "out"], text=True,
                          capture_output=True, check=False)
    assert done.returncode
    assert done.stderr == ("make deb: packages are missing. Install them: "
                           "apt install debhelper no-such-tool no-such-library\n")
    assert kept.exists()


def test_readme_names_what_is_needed():
    """README.md's line installs what the build asks for, and tests/setup installs it, too."""
    text = serverroot.readme_parts()["As Debian packages"]
    line, = re.findall(r"^sudo apt install (?!\./)(.*)$", text, re.M)
    control = (host.TOP / "debian/control").read_text("utf-8")
    field = re.search(r"^Build-Depends:\n((?: .*\n)+)", control, re.M)[1]
    needed = {re.sub(r"[ ,].*", "", name.strip()) for name in field.splitlines()}
    needed = {re.sub("^dh-sequence-", "dh-", name.replace("debhelper-compat", "debhelper"))
              for name in needed}
    assert set(line.split()) == needed | {"build-essential"}
    setup = (host.TESTS / "setup").read_text("utf-8")
    assert not [name for name in line.split() if f"\n{name}: " not in setup]
    assert "\nmake deb\n" in text


def test_scripts_are_clean(unpacked, tmp_path):
    """shellcheck says nothing of the maintainer scripts; of what debhelper adds, no error."""
    for name in NAMES - {"dm-lc-dbgsym"}:
        for path in (unpacked[name] / "DEBIAN").iterdir():
            text = path.read_text("utf-8")
            if not text.startswith("#!"):
                continue
            host.run("shellcheck", "--severity=error", path)
            own = tmp_path / f"{name}.{path.name}"
            own.write_text(GENERATED.sub("", text), encoding="utf-8")
            host.run("shellcheck", own)
    assert {path.name for path in tmp_path.iterdir()} \
        == {"dm-lc.prerm", "dm-lc-dkms.prerm", "dm-lc-dkms.postinst"}


def test_autopkgtest_is_whole():
    """The tests that are named exist, and one of them loads the module."""
    folder = host.TOP / "debian/tests"
    control = (folder / "control").read_text("utf-8")
    named = " ".join(re.findall(r"^Tests: (.*)$", control, re.M)).split()
    assert named == ["volume"] and os.access(folder / "volume", os.X_OK)
    assert "modprobe dm-lc" in (folder / "volume").read_text("utf-8")
    assert re.search(r"^Test-Command: .*/dkms-autopkgtest$", control, re.M)


def configured(unpacked, tmp_path, having, running):
    """(exit code, output, kernels with a module) of the postinst on a machine with the kernels.

    `having` says of each kernel whether its headers are there; None is of headers alone.
    """
    modules, state, bin_ = (tmp_path / name for name in ("modules", "state", "bin"))
    for folder in (modules, state, bin_):
        folder.mkdir()
    for kernel, headers in having.items():
        if headers is not None:
            (modules / kernel / "kernel").mkdir(parents=True)
        if headers is not False:
            (modules / kernel / "build/include").mkdir(parents=True)
    for name, text in STANDINS.items():
        (bin_ / name).write_text(f"#!/bin/sh\n{text}\n", "ascii")
        (bin_ / name).chmod(0o755)
    script = tmp_path / "postinst"
    script.write_text(GENERATED.sub("", (unpacked["dm-lc-dkms"] / "DEBIAN/postinst")
                                    .read_text("utf-8")), "utf-8")
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-ec", SCRIPT, "postinst", modules, "sh", script, "configure",
         ""], text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}", "STATE": str(state),
             "RUNNING": running})
    return done.returncode, done.stdout, sorted(path.name for path in state.iterdir())


OLD, FIVE, TEN = "5.10.0-1-amd64", "6.1.0-5-amd64", "6.1.0-10-amd64"


@pytest.mark.parametrize("having,running,code,built,says", (
    ({FIVE: True, TEN: True}, FIVE, 0, [TEN, FIVE], ""),
    ({FIVE: False}, FIVE, 1, [], f"apt install linux-headers-{FIVE}\n"),
    ({FIVE: True, TEN: False}, FIVE, 0, [FIVE], f"no module for {TEN}: its headers are missing"),
    ({FIVE: False, TEN: True}, FIVE, 0, [TEN], f"no module for {FIVE}: its headers are missing"),
    ({FIVE: False, TEN: False}, FIVE, 1, [], f"apt install linux-headers-{FIVE}\n"),
    ({FIVE: True, TEN: False}, "7.0", 1, [FIVE], f"apt install linux-headers-{TEN}\n"),
    ({FIVE: False, TEN: True}, "7.0", 0, [TEN], f"no module for {FIVE}: its headers are missing"),
    ({OLD: True}, OLD, 1, [], f"no module for {OLD}: Linux 6.1 or newer is needed"),
    ({OLD: True, FIVE: True}, OLD, 0, [FIVE], "Linux 6.1 or newer is needed"),
    ({TEN: None}, FIVE, 0, [], "no kernel is installed here"),
    ({}, FIVE, 0, [], "no kernel is installed here"),
), ids=("both", "no headers", "newest without", "running without", "none with", "chroot without",
        "chroot with", "too old", "one too old", "headers alone", "nothing"))
def test_module_or_error(unpacked, tmp_path, having, running, code, built, says):
    """A module for the running or the newest kernel, or an error that says what to install."""
    if os.geteuid() or not pathlib.Path("/lib/modules").is_dir():
        pytest.skip("needs root and /lib/modules to mount over")
    got = configured(unpacked, tmp_path, having, running)
    assert (got[0], got[2]) == (code, built), got
    assert says in got[1] if says else not got[1], got
