# SPDX-License-Identifier: GPL-2.0-only
"""File systems on the volume, then on the HDD alone."""

import contextlib
import pathlib

from lclib import case, sh
from lclib.lc import LcStack, bare_volume
from lclib.registry import Disk

PAIR = (Disk("ssd", "48M"), Disk("hdd", "512M"))
MOUNT = pathlib.Path("/tmp/mount")


@contextlib.contextmanager
def mounted(device, kind, *options):
    """The file system mounted inside the block."""
    MOUNT.mkdir(exist_ok=True)
    sh.run("mount", "-t", kind, *options, device, MOUNT)
    try:
        yield MOUNT
    finally:
        sh.run("umount", MOUNT)


def churn(root, seed):
    """fsstress-like: many files made, grown, cut, renamed, linked, synced and removed."""
    sh.run("python3", pathlib.Path(__file__).parent.parent / "churn.py", root, seed, "1500")


def sums(root):
    """A digest of every file's path, size and bytes."""
    return sh.run("sh", "-c", f"cd {root} && find . -type f -print0 | sort -z | xargs -0 sha1sum")


def check(device, kind):
    """fsck must find nothing."""
    if kind == "ext4":
        sh.run("e2fsck", "-f", "-n", device)
    else:
        sh.run("xfs_repair", "-n", device)


def make(device, kind):
    """A small file system of that kind."""
    if kind == "ext4":
        sh.run("mkfs.ext4", "-q", "-F", device)
    else:
        sh.run("mkfs.xfs", "-q", "-f", device)


@contextlib.contextmanager
def bare(hdd, in_place):
    """The volume on the HDD itself."""
    if in_place:
        yield hdd
        return
    with bare_volume(hdd, in_place) as device:
        yield device.path


def file_system(ctx, kind, in_place):
    """Churn on the volume, again after a restart; then fsck and compare on the HDD."""
    stack = LcStack(ctx.hdd, ctx.ssd, format=("--in-place",) if in_place else ())
    with stack as lc:
        make(lc.path, kind)
        with mounted(lc.path, kind) as root:
            churn(root, ctx.seed)
            first = sums(root)
    with stack as lc:
        with mounted(lc.path, kind) as root:
            assert sums(root) == first, "files changed over a restart"
            churn(root, ctx.seed + 1)
            wanted = sums(root)
        check(lc.path, kind)
        lc.drain()
    if in_place:
        assert not sh.run("wipefs", "--noheadings", ctx.hdd).strip()
        sh.run("lc-detach", "--backing", ctx.hdd, ctx.ssd)
    with bare(ctx.hdd, in_place) as device:
        check(device, kind)
        with mounted(device, kind, "-o", "ro") as root:
            assert sums(root) == wanted, "files differ on the HDD itself"
    ctx.figure("files", len(wanted.splitlines()))


@case(kernels=("stock",), disks=PAIR, timeout=300, sampled=3)
def ext4(ctx):
    """ext4: clean and every file equal on the HDD itself, volume behind the mark."""
    file_system(ctx, "ext4", in_place=False)


@case(kernels=("stock",), disks=PAIR, timeout=300, sampled=3)
def xfs(ctx):
    """xfs: clean and every file equal on the HDD itself, in place: the bare disk mounts."""
    file_system(ctx, "xfs", in_place=True)


@case(kernels=("stock",), disks=PAIR, timeout=300, sampled=3)
def ext4_in_place(ctx):
    """ext4 in place: the bare disk mounts."""
    file_system(ctx, "ext4", in_place=True)
