# SPDX-License-Identifier: GPL-2.0-only
"""make install, over an overlay of this machine's /lib/modules that nobody else sees."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from lib import host, kernels

MODULES = pathlib.Path("/lib/modules").resolve()
INFO = pathlib.Path("/var/lib/dpkg/info")
# $1: what is written below MODULES, $2: overlay's own; the rest: make's words.
SCRIPT = """
set -e
upper=$1 work=$2 release=$3
shift 3
mount -t overlay -o lowerdir="$MODULES",upperdir="$upper",workdir="$work" overlay "$MODULES"
make -s "$@"
eval "$AFTER"
echo "found $(modinfo -k "$release" -F filename dm-lc)"
modprobe -S "$release" -n dm-lc
"""


def elsewhere(folder):
    """What make install takes for folders of the system that are below this one."""
    return [f"PREFIX={folder}/usr", *(f"{name}DIR={folder}/{name.lower()}" for name in (
        "UDEV", "SYSTEMD", "INITRAMFS", "DRACUT"))]


@pytest.fixture(name="place")
def fixture_place(tmp_path):
    """Folders for an overlay over /lib/modules, if one can be mounted here."""
    kernel = kernels.get("stock")
    if os.geteuid() or not (MODULES / kernel.release).is_dir():
        pytest.skip("needs root, and the stock kernel's package on this machine")
    upper, work = tmp_path / "upper", tmp_path / "work"
    for folder in (upper, work):
        folder.mkdir()
    return kernel, upper, work


def install(place, tmp_path, *words, after=""):
    """(exit code, output) of `make install`, some lines, and a look for the module afterwards."""
    kernel, upper, work = place
    words = ["-C", host.TOP, "install", f"KDIR={kernel.kdir}", f"KREL={kernel.label}", *words]
    if not any(word.startswith("DESTDIR=") for word in words[4:]):
        words += elsewhere(tmp_path)
    with host.locked("build", host.run_folder().parent):
        done = subprocess.run(["unshare", "--mount", "sh", "-c", SCRIPT, "install", upper, work,
                               kernel.release, *map(str, words)], text=True, check=False,
                              env={**os.environ, "MODULES": str(MODULES), "AFTER": after},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def test_module_is_found(place, tmp_path):
    """After `make install` modprobe finds the module, though headers have no System.map."""
    code, text = install(place, tmp_path)
    assert code == 0 and "dm-lc.ko" in text.partition("found ")[2], text
    assert (tmp_path / "usr/sbin/lc").exists()


def test_module_outlives_an_upgrade_of_the_kernel(place, tmp_path):
    """A package of the same release is unpacked over the old one, and makes the index anew.

    It has no file where the module is, and its own depmod finds the module there.
    """
    release = place[0].release
    postinst, listed = (INFO / f"linux-image-{release}.{kind}" for kind in ("postinst", "list"))
    if not postinst.exists():
        pytest.skip("the stock kernel of this machine is no package")
    depmod = re.search(r"^depmod .*$", postinst.read_text(encoding="utf-8"), re.M)[0]
    code, text = install(place, tmp_path, after=f"""
        cd "$MODULES/$release"
        rm modules.dep modules.*.bin
        if modprobe -S "$release" -n dm-lc; then exit 3; fi
        version=$release
        {depmod}
        cd /
        """)
    found = re.search(r"^found .*/lib(/modules/.*/dm-lc\.ko)$", text, re.M)
    assert code == 0 and found, text
    folder = f"/lib{pathlib.Path(found[1]).parent}"
    assert folder not in listed.read_text(encoding="utf-8").splitlines(), folder


def test_destdir_takes_all(place, tmp_path):
    """DESTDIR holds the module, too; /lib/modules is left alone, and so is its index."""
    kernel, upper, _ = place
    stage = tmp_path / "stage"
    code, text = install(place, tmp_path, f"DESTDIR={stage}")
    assert code, f"found where nothing was installed: {text}"
    assert not [path for path in upper.rglob("*") if path.is_file()], text
    staged = {str(path.relative_to(stage)) for path in stage.rglob("*") if path.is_file()}
    assert [name for name in staged if name.startswith(f"lib/modules/{kernel.release}/")
            and name.endswith("/dm-lc.ko")], staged
    assert "usr/local/sbin/lc" in staged
    assert not [name for name in staged if "modules.dep" in name], staged


def test_uninstall_takes_all_back(place, tmp_path):
    """`make uninstall` removes what was installed, and modprobe finds nothing any more."""
    words = " ".join(elsewhere(tmp_path))
    code, text = install(place, tmp_path, after=f"make -s -C {host.TOP} uninstall {words}")
    assert code and re.search("^found $", text, re.M), text
    assert not [path for folder in ("usr", "udev", "systemd", "initramfs", "dracut")
                for path in (tmp_path / folder).rglob("*") if not path.is_dir()]


def test_uninstall_of_a_stage(tmp_path):
    """With DESTDIR only what is below it is removed, of each kernel, and nothing of dkms's."""
    stage = tmp_path / "stage"
    kept, *gone = (stage / "lib/modules" / name for name in (
        "1/updates/dkms/dm-lc.ko", "1/extra/dm-lc/dm-lc.ko", "2/updates/dm-lc/dm-lc.ko.xz"))
    for path in (kept, *gone):
        path.parent.mkdir(parents=True)
        path.write_text("", encoding="ascii")
    host.run("make", "-s", "-C", host.TOP, "uninstall", f"DESTDIR={stage}", "DEPMOD=false")
    assert [path for path in stage.rglob("*") if path.is_file()] == [kept]


def test_uninstall_leaves_files_of_packages(tmp_path):
    """A file that dpkg knows stays: the udev rule of `make install` and the package is one file."""
    query = tmp_path / "dpkg-query"
    query.write_text('#!/bin/sh\ncase $2 in */90-dm-lc.rules) ;; *) exit 1 ;; esac\n',
                     encoding="ascii")
    query.chmod(0o755)
    for name in ("usr/sbin/lc", "udev/90-dm-lc.rules"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("", encoding="ascii")
    host.run("make", "-s", "-C", host.TOP / "userland", "uninstall", *elsewhere(tmp_path),
             env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert not (tmp_path / "usr/sbin/lc").exists() and (tmp_path / "udev/90-dm-lc.rules").exists()


def test_install_beside_the_package_warns(place, tmp_path):
    """Of two modules modprobe takes one, and it may be dkms's."""
    other = place[1] / place[0].release / "updates/dkms/dm-lc.ko.standin"
    other.parent.mkdir(parents=True)
    other.write_text("", encoding="ascii")
    code, text = install(place, tmp_path)
    assert code == 0 and "of the package dm-lc-dkms instead" in text, text


def test_sources_that_are_gone_are_not_built(tmp_path):
    """What an update renames or removes does not stay where the module is built."""
    (tmp_path / "Makefile").write_text("modules:\n", encoding="ascii")
    folder = host.TOP / f"build/{tmp_path.name}/dm-lc"
    (folder / "tests").mkdir(parents=True)
    kept = folder / "dm-lc.mod.c"
    try:
        for path in (folder / "old.c", folder / "tests/old_kunit.c", folder / "old.h", kept):
            path.write_text("#error old\n", encoding="ascii")
        host.run("make", "-C", host.TOP, "module", f"KDIR={tmp_path}", f"KREL={tmp_path.name}")
        assert kept.exists() and (folder / "life/volume.c").exists()
        assert not list(folder.rglob("old*"))
    finally:
        shutil.rmtree(folder.parent)
