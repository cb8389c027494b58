# SPDX-License-Identifier: GPL-2.0-only
"""What udev, and those who ask it, are told about the halves of a pair."""

import contextlib
import pathlib

from lclib import Disk, case
from lclib.registry import size_bytes
from lib import oldlayout

DISKS = (Disk("hdd", "256M", bus="scsi", rotation=7200),
         Disk("ssd", "128M", bus="scsi", rotation=1))
UUID = "7c8e2b54-0f0c-4d0b-9f67-3f5f6b8f4a10"
BY_UUID = f"/dev/disk/by-uuid/{UUID}"
KIB = size_bytes("256M") // 1024 - 1024
FORMAT = "lc-format --yes --in-place --checksum=crc32c"


def settle(ctx):
    """Wait for the events of what was just closed: inotify tells udev, which is not at once."""
    ctx.run("udevadm trigger --settle --subsystem-match=block --action=change && udevadm settle")


def listed(ctx, name):
    """FSTYPE and UUID in lsblk."""
    return ctx.run(f"lsblk --noheadings --nodeps -o FSTYPE,UUID {ctx.path(name)}").split()


def leads_to(ctx, link):
    """The device behind a link, or nothing."""
    return ctx.result(f"test -L {link} && readlink -f {link}")[1].strip()


def device(ctx, name):
    """Of a disk in this boot."""
    return ctx.run(f"readlink -f {ctx.path(name)}").strip()


def pair_of(ctx):
    """The pair's UUID, from the SSD."""
    return ctx.run(f"lc-dump {ctx.path('ssd')} | grep -oE '[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-"
                   "[0-9a-f]{12}' | head -n 1").strip()


def known(ctx):
    """Both halves are shown and linked as what they are, and nothing else leads to them."""
    pair = pair_of(ctx)
    assert listed(ctx, "ssd") == ["lc_cache", pair]
    assert listed(ctx, "hdd") == ["lc_backing", pair]
    for half, name in (("cache", "ssd"), ("backing", "hdd")):
        assert leads_to(ctx, f"/dev/disk/by-lc/{pair}.{half}") == device(ctx, name)
    assert leads_to(ctx, f"/dev/disk/by-uuid/{pair}") == device(ctx, "ssd")
    assert leads_to(ctx, BY_UUID) == "", "the bare disk passes for its volume"
    ready = ctx.run(f"udevadm info --query=property --property=SYSTEMD_READY {ctx.path('hdd')}")
    assert "0" not in ready, "a unit of the volume could not wait for its disk"
    return pair


def unknown(ctx, pair):
    """Neither half is one."""
    assert listed(ctx, "ssd") == []
    for half in ("cache", "backing"):
        assert leads_to(ctx, f"/dev/disk/by-lc/{pair}.{half}") == ""


def to_older_layout(ctx):
    """What older tools would have written, while the machine is off."""
    images = (pathlib.Path(ctx.folder, f"{ctx.disk(name).serial}.img") for name in ("ssd", "hdd"))
    oldlayout.make_older(*images)


def suspended(ctx, pair):
    """A mapped device over the disk is the half then, and stays it while it cannot be read."""
    link = f"/dev/disk/by-lc/{pair}.backing"
    ctx.run(f"echo 0 {size_bytes('256M') // 512} linear {ctx.path('hdd')} 0 | dmsetup create over")
    try:
        ctx.run("udevadm settle && dmsetup suspend over && "
                "udevadm trigger --settle --action=change $(readlink -f /dev/mapper/over)")
        said = ctx.run("udevadm info --query=property /dev/mapper/over")
        assert "ID_FS_TYPE=lc_backing" in said and link in said, said
    finally:
        ctx.run("dmsetup resume over && dmsetup remove over && udevadm settle")
    assert leads_to(ctx, link) == device(ctx, "hdd")


@contextlib.contextmanager
def running(ctx):
    """Started, the volume is what the file system's UUID leads to; stopped, nothing is."""
    ctx.run(f"lc-resume music {ctx.path('ssd')} && udevadm settle")
    assert leads_to(ctx, BY_UUID) == ctx.run("readlink -f /dev/mapper/music").strip()
    ctx.run(f"mkdir -p /mnt/music && mount UUID={UUID} /mnt/music")
    try:
        yield
    finally:
        ctx.run("sync; umount /mnt/music; udevadm settle; lc-flush music && lc-remove music && "
                "udevadm settle", limit=300)
    known(ctx)


def statistics_stay(ctx):
    """The rule switches I/O statistics off when the table is exchanged, unless they are wanted."""
    knob = "/sys/block/$(basename $(readlink -f /dev/mapper/music))/queue/iostats"
    exchange = ("dmsetup table music | dmsetup reload music && dmsetup suspend --noflush music && "
                f"echo 1 > {knob}; dmsetup resume music && udevadm settle && cat {knob}")
    for option, left in (("", "0"), ("--iostats", "1"), ("", "0")):
        ctx.run(f"lc-resume {option} music {ctx.path('ssd')} && udevadm settle")
        assert ctx.run(exchange).strip() == left, option
        ctx.run("lc-remove --no-drain music && udevadm settle")


@case(kernels=("server",), disks=DISKS, timeout=900, module="", long=True)
def pair_is_known_to_udev(ctx):
    """lsblk shows what the halves are. The UUID of the file system leads to the volume only, even
    if the disk, cached in place by an older version, shows the same file system; taken apart, the
    disk is known by it at once.
    """
    hdd, ssd = ctx.path("hdd"), ctx.path("ssd")
    ctx.install()
    ctx.run("udevadm control --reload; rules=/usr/lib/udev/rules.d; "
            "! udevadm verify --help > /dev/null 2>&1 || udevadm verify $rules/*-dm-lc.rules")
    ctx.run(f"mkfs.ext4 -q -U {UUID} {hdd} {KIB}K && udevadm settle")
    assert listed(ctx, "hdd") == ["ext4", UUID] and leads_to(ctx, BY_UUID) == device(ctx, "hdd")
    ctx.run(f"{FORMAT} --backing {hdd} {ssd} && udevadm settle")
    pair = known(ctx)
    suspended(ctx, pair)
    statistics_stay(ctx)
    with running(ctx):
        ctx.run("date > /mnt/music/file")
    ctx.stop("reboot")
    to_older_layout(ctx)
    ctx.start()
    ctx.run("udevadm settle")
    assert UUID in ctx.run(f"blkid -p {hdd}"), "the disk does not show its file system"
    known(ctx)
    ctx.run("modprobe dm-lc")
    with running(ctx):
        ctx.run("cat /mnt/music/file")
    settle(ctx)
    known(ctx)
    ctx.run(f"lc-detach --backing {hdd} {ssd} && udevadm settle")
    unknown(ctx, pair)
    assert listed(ctx, "hdd") == ["ext4", UUID] and leads_to(ctx, BY_UUID) == device(ctx, "hdd")
    ctx.run(f"mount UUID={UUID} /mnt/music && cat /mnt/music/file && umount /mnt/music")


@case(kernels=("server",), disks=DISKS, timeout=900, module="", long=True)
def older_disk_is_not_activated(ctx):
    """udev does not have the volume group activated on a disk that was cached in place by an older
    version, though LVM can read it there; without the rules it does. Once the volume runs, the
    physical volume is known there.
    """
    hdd, ssd = ctx.path("hdd"), ctx.path("ssd")
    ctx.install()
    ctx.run(f"pvcreate -q --setphysicalvolumesize {KIB}k -y {hdd} && vgcreate -q archive {hdd} && "
            "lvcreate -q -n data -l 100%FREE archive && mkfs.ext4 -q /dev/archive/data && "
            "udevadm settle && vgchange -q -an archive && udevadm settle && "
            f"{FORMAT} --force=fs-at-end --backing {hdd} {ssd}")
    ctx.stop()
    to_older_layout(ctx)
    ctx.start()
    # The initramfs, which was made before there were rules, has activated it.
    ctx.run("udevadm settle; vgchange -q -an archive; udevadm settle")
    known(ctx)
    physical = ctx.run(f"blkid -p -s UUID -o value {hdd}").strip()
    link = f"/dev/disk/by-id/lvm-pv-uuid-{physical}"
    added = f"udevadm trigger --settle --action=add {device(ctx, 'hdd')}; dmsetup ls"
    assert "archive" not in ctx.run(added) and leads_to(ctx, link) == ""
    masked = "/etc/udev/rules.d/59-dm-lc.rules"
    ctx.run(f"touch {masked} && udevadm control --reload")
    ctx.run(f"{added}; udevadm wait --timeout={100 * ctx.scale:.0f} /dev/archive/data")
    ctx.run(f"rm {masked} && udevadm control --reload && udevadm settle && "
            "vgchange -q -an archive && udevadm settle")
    assert "archive" not in ctx.run(added) and leads_to(ctx, link) == ""
    ctx.run(f"modprobe dm-lc && lc-resume music {ssd} && udevadm settle")
    assert leads_to(ctx, link) == ctx.run("readlink -f /dev/mapper/music").strip()
    ctx.run("vgchange -q -an archive; lc-remove --no-drain music", limit=300)
