# SPDX-License-Identifier: GPL-2.0-only
"""Two names of one storage where LVM makes them."""

import contextlib

from lclib import Disk, case

DISKS = (Disk("hdd", "512M", bus="scsi", rotation=7200),
         Disk("ssd", "256M", bus="scsi", rotation=1))
FORCED = " ".join(f"--force={name}" for name in (
    "ssd-signature", "dirty-cache", "hdd-signature", "paired", "fs-at-end", "other-path", "roles"))


@contextlib.contextmanager
def loop(ctx, path, *options):
    """A loop device over a device of the guest."""
    over = ctx.run(f"modprobe loop && losetup --find --show {' '.join(options)} {path}").strip()
    try:
        yield over
    finally:
        ctx.run(f"losetup --detach {over}")


def short(ctx, name):
    """The kernel's name of a disk in this boot."""
    return ctx.run(f"basename $(readlink -f {ctx.path(name)})").strip()


def refused(ctx, ssd, hdd, *says, forced=FORCED):
    """lc-format refuses the pair in these words, and neither disk has seen a write."""
    stats = "udevadm settle; sync; cat " + " ".join(
        f"/sys/class/block/{short(ctx, name)}/stat" for name in ("hdd", "ssd"))
    fields = "| awk '{ print $5, $7, $12 }'"  # writes, sectors written, discards
    before = ctx.run(stats + fields)
    code, said = ctx.result(f"lc-format --yes {forced} --backing {hdd} {ssd}")
    assert code == 1, (ssd, hdd, said)
    for words in says:
        assert words in said, (ssd, hdd, words, said)
    assert ctx.run(stats + fields) == before, (ssd, hdd, said)


@case(kernels=("server",), disks=DISKS, timeout=900, module="", long=True)
def logical_volumes_are_followed(ctx):
    """A logical volume and its physical volume, loop devices over either, and what is mounted
    through the other one are refused; two of one disk are taken if that is wanted, and a pair on
    two physical volumes without being asked. The other logical volumes stay as they are.
    """
    ctx.install()
    hdd, ssd = ctx.path("hdd"), ctx.path("ssd")
    ctx.run(f"pvcreate -q {hdd} {ssd} && vgcreate -q archive {hdd} && vgcreate -q fast {ssd} && "
            "lvcreate -q -n data -L 64M archive && lvcreate -q -n more -L 128M archive && "
            "lvcreate -q -n late -L 96M archive && lvextend -q -L +32M archive/data && "
            "lvcreate -q -n cache -L 64M fast && "
            "mkfs.ext4 -q /dev/archive/data 96M && mkdir /srv/music")
    disk = short(ctx, "hdd")
    data, more = "/dev/archive/data", "/dev/archive/more"
    chain = f"archive-data on {disk}"
    refused(ctx, data, hdd, f"{hdd}: in use: held by archive-")
    refused(ctx, hdd, data, f"{hdd}: in use: held by archive-")
    refused(ctx, data, more, f"is on the same disk as the backing device: {chain}, archive-more on "
            f"{disk}", "--force=same-disk")
    everything = f"{FORCED} --force=same-disk"
    # Where LVM put the second piece of data, behind the others.
    start = int(ctx.run("dmsetup table archive-data | awk 'NR == 2 { print $5 }'"))
    with loop(ctx, hdd, "--offset", str(start << 9), "--sizelimit", "32M") as over:
        name = over.removeprefix("/dev/")
        refused(ctx, over, data, f"is on the same storage as the backing device: {name} on {disk}, "
                f"{chain}", "cannot be forced", forced=everything)
        ctx.run(f"mount -o ro,noload {data} /srv/music")
        refused(ctx, ssd, over, f"{ssd}: in use: held by fast-cache", forced=everything)
        refused(ctx, "/dev/fast/cache", over, f"{over}: is in use through another name: {name} on "
                f"{disk}, and {chain} is in use: mounted on /srv/music", "cannot be forced",
                forced=everything)
    with loop(ctx, data) as over:
        refused(ctx, over, hdd, f"{hdd}: in use: held by archive-", forced=everything)
    before = ctx.run(f"sha256sum {data}")
    ctx.run(f"lc-format --yes --backing {more} /dev/fast/cache && "
            "lc-resume music /dev/fast/cache && mkfs.ext4 -q /dev/mapper/music && "
            "lc-flush music && lc-remove music", limit=300)
    ctx.run("lc-format --yes --force=same-disk --force=paired --force=hdd-signature "
            f"--backing {more} /dev/archive/late")
    assert ctx.run(f"sha256sum {data}") == before
    ctx.run(f"umount /srv/music && fsck.ext4 -fn {data} && vgchange -an archive")
    # Nobody holds the physical volume any more.
    refused(ctx, "/dev/fast/cache", hdd, "holds LVM2_member", "--force=hdd-signature", forced="")
