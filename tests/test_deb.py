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
# What the scripts ask of dkms and of the kernel. What dkms installs is in updates/dkms; it calls a
# kernel with another copy installed, too, and cannot build for 6.99.
STANDINS = {"uname": "echo $RUNNING", "common.postinst": "exit $COMMON", "dkms": """
for kernel; do :; done
folder=/lib/modules/$kernel
case $1 in
status)
	[ -z "$(find $folder -name dm-lc.ko)" ] || echo "dm-lc/1, $kernel, x86_64: installed"
	;;
install)
	case $kernel in 5.*) exit 77 ;; 6.99.*) exit 10 ;; esac
	[ -z "$(find $folder -name dm-lc.ko)" ] || exit 0
	mkdir -p $folder/updates/dkms
	: > $folder/updates/dkms/dm-lc.ko
	;;
esac
"""}
# A build that leaves the name of its version and what it was given.
BUILDER = """#!/bin/sh
head -n 1 debian/changelog
env
version=$(sed -n '1s/.*(\\(.*\\)).*/\\1/p' debian/changelog)
[ -z "$(grep -l fail Kbuild)" ] || exit 9
: > "../dm-lc_${version}_all.deb"
"""

# A line of a script that stops no unit.
RELOAD = r"^\s*systemctl --system daemon-reload \|\| true$"

pytestmark = pytest.mark.skipif(not (host.TOP / ".git").exists(), reason="needs a clone")


def status():
    """What git has to say of the tree."""
    return debs.git("status", "--porcelain", "--untracked-files=all", "--", *debs.PARTS)


def may_unshare():
    """Whether this user may have mounts and networks of its own."""
    return not subprocess.run(["unshare", "--mount", "--net", "true"], check=False,
                              stderr=subprocess.DEVNULL).returncode


@pytest.fixture(name="made", scope="module")
def fixture_made(tmp_path_factory):
    """Where `make deb` has left everything, in a tree that is as clean as before.

    What it is given besides is for other builds.
    """
    folder = tmp_path_factory.mktemp("made")
    with host.locked("deb", host.run_folder().parent):
        before = status()
        host.run("make", "-s", "-C", host.TOP, "deb", f"DEBS={folder}/deb", "SAN=1", "CFLAGS=-O0",
                 "SBINDIR=/opt", log=folder / "log", env=debs.environment())
        assert status() == before
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
    """dm-lc holds what `make install` installs beside the module; the manual is compressed.

    The empty table of volumes is the package's: what a person has written there stays.
    """
    with host.locked("build", host.run_folder().parent):
        host.run("make", "-s", "-C", host.TOP / "userland", "install", "PREFIX=/usr",
                 f"DESTDIR={tmp_path}")
    assert contents(unpacked["dm-lc"], packed=True) == contents(tmp_path) | {"etc/lctab": 0o644}
    assert (unpacked["dm-lc"] / "DEBIAN/conffiles").read_text("ascii") == "/etc/lctab\n"
    table = (unpacked["dm-lc"] / "etc/lctab").read_text("ascii")
    assert list((unpacked["dm-lc"] / "etc/lc").rglob("*")) == [unpacked["dm-lc"] / "etc/lc/hooks.d"]
    assert not [line for line in table.splitlines() if not line.startswith("#")]
    assert all(path.suffix == ".gz" for path in (unpacked["dm-lc"] / "usr/share/man").rglob("*.*"))


def test_module_is_the_trees(unpacked):
    """dm-lc-dkms holds what is tracked of the module, the same bytes, without its tests."""
    folder, = unpacked["dm-lc-dkms"].glob("usr/src/*")
    version = folder.name.removeprefix("dm-lc-")
    assert re.fullmatch(re.escape(debs.project_version()) + r"\+git\d{14}\.[0-9a-f]{12,}", version)
    found = {str(path.relative_to(folder)): path.read_bytes()
             for path in folder.rglob("*") if path.is_file()}
    config = found.pop("dkms.conf").decode()
    assert '\nPOST_INSTALL="dkms-post-install $kernelver"\n' in config
    assert found.pop("dkms-post-install") and os.access(folder / "dkms-post-install", os.X_OK)
    assert f'\nPACKAGE_VERSION="{version}"\n' in config
    listing = debs.git("ls-files", "--cached", "--others", "--exclude-standard", "--", "Kbuild",
                       "dm-lc").splitlines()
    assert found == {name: (host.TOP / name).read_bytes() for name in listing
                     if not name.startswith("dm-lc/tests/") and (host.TOP / name).is_file()}
    assert {path.parts[-4] for path in unpacked["dm-lc-dkms"].glob("usr/src/*/dm-lc/*/*.c")} \
        == {folder.name}
    forced = unpacked["dm-lc-dkms"] / "usr/share/dkms/modules_to_force_install/dm-lc-dkms"
    assert forced.read_text("ascii") == "dm-lc_version-override\n"


def test_module_builds(unpacked, tmp_path):
    """The sources build as dkms does it, with the release on the command line, and no warning."""
    kernel = kernels.get("stock")
    folder, = unpacked["dm-lc-dkms"].glob("usr/src/*")
    # With the dates of now: make warns of files from a time after this machine's.
    source = shutil.copytree(folder, tmp_path / "build", copy_function=shutil.copyfile)
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
    done = subprocess.run(["lintian", "--no-cfg", "--allow-root", "--fail-on", "error,warning",
                           *made.glob("*.changes"), *tmp_path.glob("*.dsc")], text=True,
                          check=False, capture_output=True, env=debs.environment(LC_ALL="C.UTF-8"))
    assert done.returncode == 0 and not done.stdout.strip(), done.stdout + done.stderr


def test_packages_are_reproducible(made, tmp_path):
    """Built elsewhere, from files of another date, by another user's habits, without a network:
    the same bytes.
    """
    tree = debs.sources(tmp_path / "a folder with a longer name/dm-lc")
    # No clone: the commit is in the changelog already.
    version = debs.found(made)["dm-lc"].name.split("_")[1]
    changelog = tree / "debian/changelog"
    changelog.write_text(re.sub(r"\(.*?\)", f"({version})", changelog.read_text("utf-8"), count=1),
                         "utf-8")
    for path in tree.rglob("*"):
        os.utime(path, (1e9, 1e9))
    again = debs.build(tree, tmp_path / "out", alone=may_unshare(), umask=0o077,
                       TZ="Asia/Tokyo", LC_ALL="C.UTF-8")
    assert {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in again.items()} \
        == {name: hashlib.sha256(path.read_bytes()).hexdigest()
            for name, path in debs.found(made).items()}


def test_there_is_one_version(tmp_path):
    """Changelog and manual have the version of the tools, and another one is not built."""
    version = debs.project_version()
    changelog = (host.TOP / "debian/changelog").read_text("utf-8")
    assert changelog.startswith(f"dm-lc ({version}) ")
    pages = list((host.TOP / "userland/man").glob("*.[58]"))
    assert pages and not [page.name for page in pages
                          if f'"dm-lc {version}"' not in page.read_text("utf-8")]
    tree = debs.sources(tmp_path, "7.8.10")
    shutil.copy(host.TOP / "userland/util.h", tree / "userland")
    rule = ["make", "-f", "debian/rules", "execute_before_dh_auto_configure"]
    done = subprocess.run(rule, cwd=tree, text=True, capture_output=True, check=False)
    assert done.returncode and f"about 7.8.10, userland/util.h about {version}" in done.stderr
    debs.renumber(tree, "7.8.11")
    subprocess.run(rule, cwd=tree, check=True)


@pytest.fixture(name="tree")
def fixture_tree(tmp_path):
    """(folder, make-deb): a copy of the sources, and its make-deb with a build that is none."""
    tree = debs.sources(tmp_path / "tree")
    builder = tmp_path / "bin/dpkg-buildpackage"
    builder.parent.mkdir()
    builder.write_text(BUILDER, "ascii")
    builder.chmod(0o755)

    def make_deb(*words, **variables):
        path = f"{builder.parent}:{os.environ['PATH']}"
        return subprocess.run([tree / "debian/make-deb", *words], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=debs.environment(PATH=path, **variables))
    return tree, make_deb


def commit(tree, date):
    """Commit all of a tree, at that time."""
    who = ("-c", "user.name=T", "-c", "user.email=t@dm-lc.example", "-c", "commit.gpgsign=false")
    host.run("git", *who, "commit", "--quiet", "--allow-empty", "--no-verify", "--message=test",
             cwd=tree, env={**os.environ, "GIT_COMMITTER_DATE": date})


def test_later_commits_are_newer(tree):
    """The version names a clone's commit and its time, and the packages before are kept apart."""
    folder, make_deb = tree
    plain = debs.project_version()
    assert f"dm-lc ({plain}) " in make_deb().stdout
    host.run("git", "init", "--quiet", folder)
    assert f"dm-lc ({plain}) " in make_deb().stdout, "no commit yet"
    versions = [plain]
    for date in ("26T23:30:00+0000", "27T00:30:01+0100", "27T00:00:00+0000"):
        commit(folder, f"2026-11-{date}")
        here, there = (re.search(r"^dm-lc \((.*?)\)", make_deb(TZ=zone).stdout, re.M)[1]
                       for zone in ("UTC", "Asia/Tokyo"))
        assert here == there
        versions.append(here)
    for old, new in zip(versions, versions[1:]):
        host.run("dpkg", "--compare-versions", old, "lt", new)
    out = folder / "build/deb"
    assert [path.name for path in out.glob("*.deb")] == [f"dm-lc_{versions[-1]}_all.deb"]
    assert {path.name for path in (out / "old").iterdir()} >= {f"dm-lc_{versions[-2]}_all.deb"}


def test_build_is_given_nothing_of_makes(tree):
    """Variables of make and of the environment are for other builds; dpkg's own are not."""
    done = tree[1](SAN="1", CFLAGS="-O0", out="/nowhere", LC_KUNIT="1", MAKEFLAGS="k -- SAN=1",
                   DEB_BUILD_OPTIONS="nocheck")
    names = set(re.findall(r"^(\w+)=", done.stdout, re.M))
    assert not done.returncode and {"PATH", "DEB_BUILD_OPTIONS"} <= names, done.stdout
    assert not names & {"SAN", "CFLAGS", "out", "LC_KUNIT", "MAKEFLAGS"}, names


def test_failed_build_keeps_packages(tree):
    """What was built before is still there; a folder with spaces is refused."""
    folder, make_deb = tree
    assert not make_deb().returncode
    before = debs.found(folder / "build/deb")
    (folder / "Kbuild").write_text("fail\n", "ascii")
    assert make_deb().returncode == 9
    (folder / "Kbuild").unlink()
    assert make_deb().returncode
    assert before and debs.found(folder / "build/deb") == before
    done = make_deb(folder / "a b")
    assert done.returncode and "has spaces: make deb DEBS=FOLDER" in done.stdout


def test_leftovers_are_not_packed(tree):
    """What editors and a build in the tree leave is not in the packages; dates are set anyway."""
    folder, make_deb = tree
    packed = "dm-lc/a.c~", "dm-lc/a.c.orig", "dm-lc/modules.order", "debian/files", \
        "debian/dm-lc/left", "debian/dm-lc.substvars"
    for name in packed:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("", "ascii")
    # Alone, as a build of the packages for one architecture has it.
    host.run("make", "-f", "debian/rules", "execute_before_dh_builddeb", cwd=folder)
    (folder / "Kbuild").write_text("fail\n", "ascii")
    assert make_deb().returncode == 9
    copy = folder / "build/deb/.build/dm-lc"
    assert (copy / "debian/dm-lc.docs").exists() and (copy / "dm-lc/Kbuild").exists()
    assert not [name for name in packed if (copy / name).exists()]


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
        == {"dm-lc.prerm", "dm-lc.postinst", "dm-lc.postrm", "dm-lc-dkms.prerm",
            "dm-lc-dkms.postinst"}


def test_scripts_stop_nothing(unpacked):
    """No maintainer script unloads a module or removes a device; what they say is no call."""
    for name in NAMES - {"dm-lc-dbgsym"}:
        for path in (unpacked[name] / "DEBIAN").glob("p*"):
            # To read the units anew stops none of them.
            code = re.sub(rf"^\s*(say|echo) .*$|#.*$|{RELOAD}", "", path.read_text("utf-8"),
                          flags=re.M)
            assert not re.search(r"\b(rmmod|modprobe|dmsetup|systemctl)\b", code), code


def test_autopkgtest_is_whole():
    """The tests that are named exist, and one of them loads the module."""
    folder = host.TOP / "debian/tests"
    control = (folder / "control").read_text("utf-8")
    named = " ".join(re.findall(r"^Tests: (.*)$", control, re.M)).split()
    assert named == ["volume"] and os.access(folder / "volume", os.X_OK)
    assert "modprobe dm-lc" in (folder / "volume").read_text("utf-8")
    assert re.search(r"^Test-Command: .*/dkms-autopkgtest$", control, re.M)


def configured(unpacked, tmp_path, having, running, copies=(), common=0):
    """(exit code, output, kernels with a module) of the postinst on a machine with the kernels.

    `having` says of each kernel whether its headers are there; None is of headers alone. `copies`
    are kernels for which make install has installed a module, `common` is how dkms's own part ends.
    """
    modules, bin_ = (tmp_path / name for name in ("modules", "bin"))
    for folder in (modules, bin_):
        folder.mkdir()
    for kernel, headers in having.items():
        if headers is not None:
            (modules / kernel / "kernel").mkdir(parents=True)
        if headers is not False:
            (modules / kernel / "build/include").mkdir(parents=True)
    for name, text in STANDINS.items():
        (bin_ / name).write_text(f"#!/bin/sh\n{text}\n", "ascii")
        (bin_ / name).chmod(0o755)
    for kernel in copies:
        (modules / kernel / "extra/dm-lc").mkdir(parents=True)
        (modules / kernel / "extra/dm-lc/dm-lc.ko").write_text("", "ascii")
    text = (unpacked["dm-lc-dkms"] / "DEBIAN/postinst").read_text("utf-8")
    assert "/usr/lib/dkms/common.postinst" in text
    script = tmp_path / "postinst"
    script.write_text(text.replace("/usr/lib/dkms/", f"{bin_}/"), "utf-8")
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-ec", SCRIPT, "postinst", modules, "sh", script, "configure",
         ""], text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}", "COMMON": str(common),
             "RUNNING": running})
    return done.returncode, done.stdout, sorted(
        path.parts[-4] for path in modules.glob("*/updates/dkms/dm-lc.ko"))


def may_mount_modules():
    """Skip where a folder cannot be mounted over /lib/modules."""
    if os.geteuid() or not pathlib.Path("/lib/modules").is_dir() or not may_unshare():
        pytest.skip("needs root and /lib/modules to mount over")


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
    may_mount_modules()
    got = configured(unpacked, tmp_path, having, running)
    assert (got[0], got[2]) == (code, built), got
    assert says in got[1] if says else "no module" not in got[1], got


def test_failed_build_is_explained(unpacked, tmp_path):
    """dkms's own part fails as soon as one build does: what goes on and what does not is said."""
    may_mount_modules()
    having = {FIVE: True, "6.99.0": True}
    code, text, built = configured(unpacked, tmp_path, having, FIVE, common=10)
    assert (code, built) == (10, []) and f"without a module: {FIVE} 6.99.0\n" in text, text
    assert re.search("volumes go on.*make.log.*--allow-downgrades", text, re.S), text


def test_failed_build_of_one(unpacked, tmp_path):
    """dkms may fail for a kernel that is not in use."""
    may_mount_modules()
    code, text, built = configured(unpacked, tmp_path, {FIVE: True, "6.99.0": True}, FIVE)
    assert (code, built) == (0, [FIVE]), text
    assert "no module for 6.99.0: dkms install ended with 10" in text


def test_copies_are_named(unpacked, tmp_path):
    """A copy by make install is no module of the package, whatever dkms says, and is named."""
    may_mount_modules()
    code, text, built = configured(unpacked, tmp_path, {FIVE: True}, FIVE, copies=[FIVE])
    assert (code, built) == (1, []) and f"/lib/modules/{FIVE}/extra/dm-lc/dm-lc.ko" in text, text
    assert "make uninstall" in text
