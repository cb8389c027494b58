# SPDX-License-Identifier: GPL-2.0-only
"""Volumes of /etc/lctab whose disks are not there, come late, go, or are others."""

import shutil

from lclib import Disk, case
from lclib.registry import size_bytes
from lib.tools import Image, say_newer

from .boot import DISKS, UUID, come_back, fill, mounted, shown, write
from .lctab import UNIT, failed, is_up, tables

MOUNT = "/dev/mapper/music /srv/music ext4 {} 0 2"
NOFAIL = "nofail,x-systemd.device-timeout=20s"
# What a boot with a disk that is waited for shows from the 30th second on.
LATE = r"\brunning \((?:[3-8]\ds|\d+min)"

# lc-watch(8).
MODE_CHANGED = "7d1c2b6f0a6e4c0c9f5f3b8f6f0d2a41"
HOOKS = "/etc/lc/hooks.d"
HOOK = """\
#!/bin/sh
echo $LC_VOLUME $LC_EVENT $LC_MODE $LC_LOST >> /run/told
"""


def at_rest(ctx):
    """Wait until systemd has nothing left to do; returns what it says of the unit."""
    ctx.run("udevadm settle; systemctl is-system-running --wait || true", limit=300)
    return ctx.result(f"systemctl status --no-pager --full {UNIT}")[1]


def is_told(ctx, digest, *says):
    """Nothing was started nor mounted, the machine is up, and the unit's status tells why."""
    status = at_rest(ctx)
    assert "Active: failed" in status, status
    missing = [text for text in says if text not in status]
    assert not missing, f"not told: {missing}\n{status}"
    assert mounted(ctx) == "", f"the bare disk is mounted: {mounted(ctx)}"
    assert "music" not in ctx.run("dmsetup ls")
    assert failed(ctx) == {UNIT}
    if digest:
        assert ctx.digest("hdd") == digest, "something wrote to the bare hard disk"


def is_started(ctx):
    """By the disk that was plugged in, and by nothing else; all files are there."""
    ctx.run(f"udevadm wait --timeout={100 * ctx.scale:.0f} /dev/mapper/music")
    assert "Active: active" in at_rest(ctx)
    ctx.run("systemctl start srv-music.mount")
    assert mounted(ctx) == "/dev/mapper/music"
    come_back(ctx, "/srv/music")


def prepare(ctx, line, mount):
    """A volume with files that are only on its SSD; returns the pair's UUID."""
    ctx.install()
    ctx.run(f"lc-format --yes -o writeback=off --backing {ctx.path('hdd')} {ctx.path('ssd')} && "
            "mkdir /srv/music && udevadm settle")
    pair = ctx.run(f"lsblk -dno UUID {ctx.path('ssd')}").strip()
    tables(ctx, line.format(pair=pair), MOUNT.format(mount))
    ctx.run(f"systemctl start {UNIT} && mkfs.ext4 -q /dev/mapper/music && udevadm settle && "
            "mount /srv/music")
    fill(ctx, "/srv/music")
    return pair


@case(kernels=("server",), disks=DISKS, timeout=2400, module="", long=True)
def missing_disks_are_told(ctx):
    """A boot without one of the disks comes up with nofail; `systemctl status` tells which disk is
    not there and the three ways out, and the disk starts the volume once it is plugged in. A
    hard disk that goes stops the volume, and starts it when it is back; an SSD that goes leaves it
    running, which the journal and a hook are told.
    """
    pair = prepare(ctx, f"LC={{pair}} - {NOFAIL}", "nofail")
    ctx.stop()
    digest = ctx.digest("hdd")
    by_lc = f"/dev/disk/by-lc/{pair}"
    ways = ("three ways out", "1. attach", "2. if it has another name")

    ctx.absent = {"ssd"}
    ctx.start()
    is_told(ctx, digest, f"{by_lc}.cache: the SSD of volume music is not there", *ways,
            f"lc-detach --force=cache-missing --backing {by_lc}.backing")
    ctx.plug("ssd")
    is_started(ctx)
    ctx.stop()

    ctx.absent = {"hdd"}
    ctx.start()
    is_told(ctx, None, f"{by_lc}.backing: the hard disk of volume music is not there", *ways,
            "lc-dump --extract")
    ctx.plug("hdd")
    is_started(ctx)

    ctx.unplug("hdd")
    ctx.run(f"udevadm settle; while systemctl is-active {UNIT}; do sleep 1; done; "
            "while dmsetup ls | grep music; do sleep 1; done", limit=300)
    assert mounted(ctx) == ""
    ctx.plug("hdd")
    is_started(ctx)

    ctx.run("lc-flush music && sync", limit=300)
    ctx.run(f"mkdir -p {HOOKS} && cat > {HOOKS}/tell << 'END_OF_SCRIPT'\n{HOOK}END_OF_SCRIPT\n"
            f"chmod +x {HOOKS}/tell && systemctl is-active lc-watch.service")
    ctx.unplug("ssd")
    ctx.run("while ! dd if=/dev/zero of=/srv/music/late bs=1M count=1 conv=fsync status=none; do "
            "sleep 1; done; rm /srv/music/late; sync")
    come_back(ctx, "/srv/music")
    assert shown(ctx)["mode"] == "degraded" and "Active: active" in at_rest(ctx)
    ctx.run("while ! grep -q saved /run/told; do sleep 1; done", limit=300)
    assert ctx.run("cat /run/told").splitlines()[:1] == ["music mode degraded 0"]
    said = ctx.run(f"journalctl -b --no-pager -o cat MESSAGE_ID={MODE_CHANGED}")
    assert said.startswith("music: mode degraded, was rw:"), said


@case(kernels=("server",), disks=DISKS, timeout=1500, module="", long=True)
def disk_in_place_waits_for_its_ssd(ctx):
    """The hard disk of a volume in place holds a file system that is out of date: a boot without
    the SSD does not mount it by its UUID, and the SSD starts the volume once it is plugged in.
    """
    hdd, ssd = ctx.path("hdd"), ctx.path("ssd")
    ctx.install()
    ctx.run(f"mkfs.ext4 -q -U {UUID} {hdd} {size_bytes(ctx.disk('hdd').size) // 1024 - 1024}K && "
            f"lc-format --yes --in-place -o writeback=off --backing {hdd} {ssd} && "
            "mkdir /srv/music && udevadm settle")
    pair = ctx.run(f"lsblk -dno UUID {ssd}").strip()
    tables(ctx, f"LC={pair} - {NOFAIL}", f"UUID={UUID} /srv/music ext4 {NOFAIL} 0 2")
    ctx.run(f"systemctl start {UNIT} && udevadm settle && mount /srv/music")
    fill(ctx, "/srv/music")
    ctx.stop()
    digest = ctx.digest("hdd")
    ctx.absent = {"ssd"}
    ctx.start()
    is_told(ctx, digest, f"{pair}.cache: the SSD of volume music is not there", "three ways out")
    code, said = ctx.result(f"findfs UUID={UUID}")
    assert code, f"the file system is found on {said}"
    ctx.plug("ssd")
    is_started(ctx)


@case(kernels=("server",), disks=DISKS, timeout=1500, module="", long=True)
def late_ssd_is_waited_for(ctx):
    """An SSD that appears 30 seconds into the boot: mounts wait for the volume, nothing fails."""
    prepare(ctx, "LC={pair}", "defaults")
    ctx.stop()
    ctx.absent = {"ssd"}

    def appear():
        # Otherwise the machine did not come so far, which start() tells.
        if ctx.await_console(LATE):
            ctx.plug("ssd")
    ctx.start(appear)
    is_up(ctx)


def runs_on(ctx, name):
    """The volume has this disk, not a copy of it."""
    below = ctx.run("lsblk --noheadings --inverse --list -o PATH /dev/mapper/music").split()
    assert ctx.run(f"readlink -f {ctx.path(name)}").strip() in below, below


# Another pair, whose hard disk is taken for ours, and an old copy of our SSD.
OTHERS = (Disk("other_hdd", DISKS[0].size, bus="scsi", rotation=7200),
          Disk("other_ssd", "64M", bus="scsi", rotation=1),
          Disk("copy", DISKS[1].size, bus="scsi", rotation=1),
          Disk("clone", DISKS[0].size, bus="scsi", rotation=7200))


@case(kernels=("server",), disks=DISKS + OTHERS, timeout=2400, module="", long=True)
def wrong_disks_are_told(ctx):
    """A boot with the hard disk of another pair, with an old copy of the SSD, or with an SSD of a
    newer version: nothing is started, nothing written, and `systemctl status` tells reason and
    remedy. With an old copy of the SSD or a copy of the hard disk in the machine as well, the
    volume is started with the right ones; with a copy of the SSD that is not older, not at all.
    """
    ctx.absent = {"copy", "clone"}
    pair = prepare(ctx, f"LC={{pair}} - {NOFAIL}", "nofail")
    ctx.run(f"lc-format --yes --backing {ctx.path('other_hdd')} {ctx.path('other_ssd')}")
    ctx.stop()
    shutil.copy(ctx.image("ssd"), ctx.image("copy"))
    ctx.start()
    ctx.run("systemctl start srv-music.mount")
    write(ctx, "/srv/music", "{300..303}", 1)
    tables(ctx, f"LC={pair} {ctx.path('other_hdd')} {NOFAIL}", MOUNT.format("nofail"))
    ctx.stop()
    digest = ctx.digest("hdd")
    ctx.start()
    is_told(ctx, digest, f"{ctx.path('other_hdd')}: belongs to cache", "name the right disk")
    tables(ctx, f"LC={pair} - {NOFAIL}", MOUNT.format("nofail"))
    ctx.stop()

    ctx.absent = {"ssd", "clone"}
    ctx.start()
    is_told(ctx, digest, "the cache device is an old copy or lost its superblock", "find the right")
    ctx.stop()

    ctx.absent = {"clone"}
    ctx.start()
    is_started(ctx)
    runs_on(ctx, "ssd")
    ctx.run(f"umount /srv/music && systemctl restart {UNIT} && systemctl stop {UNIT}")
    ctx.stop()

    shutil.copy(ctx.image("hdd"), ctx.image("clone"))
    digest = ctx.digest("clone")
    ctx.absent = {"copy"}
    ctx.start()
    is_started(ctx)
    runs_on(ctx, "hdd")
    ctx.run(f"umount /srv/music && systemctl restart {UNIT} && systemctl stop {UNIT}")
    ctx.stop()
    assert ctx.digest("clone") == digest, "something wrote to the copy"
    digest = ctx.digest("hdd")

    shutil.copy(ctx.image("ssd"), ctx.image("copy"))
    ctx.absent = {"clone"}
    ctx.start()
    is_told(ctx, digest, "holds the same cache as", "take it away")
    ctx.stop()

    say_newer(Image(ctx.image("copy")))
    ctx.absent = {"ssd", "clone"}
    ctx.start()
    is_told(ctx, digest, "formatted by a newer dm-lc", "use that version's")
