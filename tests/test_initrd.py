# SPDX-License-Identifier: GPL-2.0-only
"""The dracut module, with Debian's dracut over an overlay of this machine's /usr and /etc; and what
dkms does about an initramfs.
"""

import os
import subprocess

import pytest

from lib import apt, host, kernels

LINE = "root LC=5c1e0b8e-7d0f-4f43-9d7e-6a6f1d7c4a51 - "
# Big, and nothing of it is on trial.
LEFT_OUT = "kernel-modules kernel-modules-extra qemu crypt plymouth network nvdimm virtiofs i18n"
# $1: the folder, $2: the kernel. What is written below /usr and /etc stays in the folder.
SCRIPT = """
set -e
cd "$1"
for i in usr etc; do
	mkdir -p upper/$i work/$i
	mount -t overlay -o lowerdir=/$i,upperdir=upper/$i,workdir=work/$i overlay /$i
	cp -a dracut/$i/. /$i
done
cp -a dracut/lib/. /usr/lib
cp -a stage/usr/. /usr
cp lctab /etc/lctab
depmod "$2"
mkdir -p tmp
dracut --force --no-compress --no-early-microcode --omit "$LEFT_OUT" --tmpdir tmp image "$2" 2>&1
mkdir tree
cd tree
cpio -i --quiet --no-absolute-filenames < ../image 2>&1
"""


def made(tmp_path, lctab, module=True):
    """An image of dracut's as a folder, and what dracut said."""
    kernel = kernels.get("stock")
    if os.geteuid() or not os.path.isdir(f"/usr/lib/modules/{kernel.release}"):
        pytest.skip("needs root, and the stock kernel's package on this machine")
    state = apt.PrivateApt("initrd", [host.codename()])
    state.update()
    state.unpack("dracut-core", tmp_path / "dracut")
    stage = tmp_path / "stage"
    host.run("make", "-s", "-C", host.TOP / "userland", "install", "PREFIX=/usr",
             f"DESTDIR={stage}")
    if module:
        # dracut asks for its name only.
        folder = stage / "usr/lib/modules" / kernel.release / "updates"
        folder.mkdir(parents=True)
        host.run("cp", next(kernel.modules.rglob("dm-mod.ko*")), folder / "dm-lc.ko")
    (tmp_path / "lctab").write_text(lctab, encoding="ascii")
    done = subprocess.run(["unshare", "--mount", "sh", "-c", SCRIPT, "made", tmp_path,
                           kernel.release], check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={**os.environ, "LEFT_OUT": LEFT_OUT})
    assert done.returncode == 0, done.stdout[-5000:]
    return tmp_path / "tree", done.stdout


def test_dracut_takes_what_is_needed(tmp_path):
    """The module, what starts the volumes, the lines that count; and a shutdown through the image
    if a volume runs.
    """
    tree, said = made(tmp_path, f"{LINE}x-initrd.attach,noauto\nother /dev/sdz /dev/sdy\n")
    assert (tree / "etc/lctab").read_text(encoding="ascii") == f"{LINE}x-initrd.attach\n"
    assert list((tree / "usr/lib/modules").rglob("dm-lc.ko")), said
    for name in ("sbin/lc", "sbin/lc-resume", "sbin/lc-remove", "lib/udev/rules.d/90-dm-lc.rules",
                 "lib/udev/rules.d/60-persistent-storage-dm.rules"):
        assert (tree / "usr" / name).exists(), name
    hooks = tree / "usr/lib/dracut/hooks"
    assert list(hooks.glob("cleanup/*need-shutdown.sh")), list(hooks.rglob("*"))
    assert list(hooks.glob("shutdown/*dm-shutdown.sh")), list(hooks.rglob("*"))


def test_dracut_leaves_other_images_alone(tmp_path):
    """Without a volume that is needed nothing of it is there."""
    tree, said = made(tmp_path, "other /dev/sdz /dev/sdy\n")
    assert "Including module: dm-lc" not in said
    assert not [path for path in tree.rglob("*") if path.name in ("lc", "lctab", "dm-lc.ko")]


def test_dracut_tells_that_the_module_is_missing(tmp_path):
    """The image is made, for the person may still add the module."""
    tree, said = made(tmp_path, f"{LINE}x-initrd.attach\n", module=False)
    assert "THIS IMAGE CANNOT START" in said and "dkms autoinstall" in said, said[-3000:]
    assert (tree / "usr/sbin/lc").exists()


# $1: dkms' script; $2: the lines that an initramfs needs; $3: what tells what is run.
DKMS = """
set -e
mount -t tmpfs tmpfs /boot
mount -t tmpfs tmpfs /usr/local/lib
mkdir /usr/local/lib/dm-lc
printf '#!/bin/sh\\nprintf "%s"\\n' "$2" > /usr/local/lib/dm-lc/initrd-lines
chmod +x /usr/local/lib/dm-lc/initrd-lines
touch /boot/initrd.img-6.1
PATH=$3:$PATH
for kernel in 6.1 6.2; do
	"$1" $kernel 2>&1
done
"""


def after_module(tmp_path, lines, code=0):
    """What the script that dkms runs does for a kernel with an initramfs, and one without."""
    if os.geteuid():
        pytest.skip("mounts")
    for name in ("depmod", "update-initramfs"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@"\nexit {code}\n',
                                     encoding="ascii")
        (tmp_path / name).chmod(0o755)
    return host.run("unshare", "--mount", "sh", "-c", DKMS, "dkms",
                    host.TOP / "debian/dkms-post-install", lines, tmp_path)


def test_module_brings_the_initramfs_up_to_date(tmp_path):
    """Of its own kernel, if it needs a volume; and what fails is told and fails nothing."""
    done = after_module(tmp_path, f"{LINE}x-initrd.attach")
    assert "depmod 6.1\n" in done and "update-initramfs -u -k 6.1\n" in done and "6.2" not in done
    assert after_module(tmp_path, "") == ""
    assert "was not made anew" in after_module(tmp_path, LINE, code=1)
