# SPDX-License-Identifier: GPL-2.0-only
"""What starts and stops the machine, with a volume on its disks."""

import json
import re
import textwrap

from lclib import Disk, case
from lclib.registry import size_bytes
from lib import host

DISKS = (Disk("hdd", "512M", bus="scsi", rotation=7200),
         Disk("ssd", "256M", bus="scsi", rotation=1))
DIRTY_MIB = 136
UUID = "5c1e0b8e-7d0f-4f43-9d7e-6a6f1d7c4a51"


def shown(ctx, name="music"):
    """lc-status of one volume: its status."""
    return json.loads(ctx.run(f"lc-status --json {name}"))[0]["status"]


def settled(ctx):
    """Wait until udev has probed all disks and systemd has nothing left to do.

    A job that waits for a device udev did not find would wait for minutes: it is ended.
    """
    ctx.run("udevadm settle")
    ctx.run("for job in $(systemctl list-jobs --plain --no-legend | awk '$2 ~ /[.]device$/ "
            "{ print $1 }'); do systemctl cancel $job; done; "
            "systemctl is-system-running --wait || true")


def resume(ctx):
    """Start the volume after a boot."""
    ctx.run(f"modprobe dm-lc && lc-resume music {ctx.path('ssd')}")


def format_and_start(ctx, *options):
    """A volume named music, whose data stays in the cache."""
    ctx.run(f"lc-format --yes {' '.join(options)} -o writeback=off --backing {ctx.path('hdd')} "
            f"{ctx.path('ssd')} && lc-resume music {ctx.path('ssd')}")


def write(ctx, where, names, mib):
    """Synced files of random bytes; the sums of all that is there are on the root."""
    ctx.run(f"cd {where} && for i in {names}; do dd if=/dev/urandom of=$i bs=1M count={mib}"
            " conv=fsync status=none || exit; done; sync; "
            "sha256sum [0-9]* > /root/sums", limit=300)


def fill(ctx, where):
    """Synced files, all of them only in the cache."""
    write(ctx, where, f"$(seq {DIRTY_MIB // 8})", 8)
    dirty = shown(ctx)["dirty"]
    assert dirty * 4096 > DIRTY_MIB << 20, dirty


def come_back(ctx, where):
    """All files are there."""
    ctx.run(f"cd {where} && sha256sum --quiet -c /root/sums", limit=300)


def mounted(ctx):
    """What is mounted on /srv/music, or nothing."""
    return ctx.result("findmnt --noheadings --output SOURCE /srv/music")[1].strip()


def untouched(ctx, digest):
    """Nothing was mounted or started, and the hard disk holds what it held before the boot."""
    settled(ctx)
    assert mounted(ctx) == "", f"the bare disk is mounted: {mounted(ctx)}"
    assert "music" not in ctx.run("dmsetup ls")
    assert ctx.digest("hdd") == digest, "something wrote to the bare hard disk"


def group_on(ctx, device, align="1M", extents="100%FREE"):
    """A volume group with one file system, mounted."""
    ctx.run(f"pvcreate -q --dataalignment {align} {device} && vgcreate -q archive {device} && "
            f"lvcreate -q -n data -l {extents} archive && mkfs.ext4 -q /dev/archive/data && "
            "mkdir /srv/music && mount /dev/archive/data /srv/music")


def guide(first, names=()):
    """The commands of the guide's block that begins with this line, with other words in place of
    those in {word: other word}.
    """
    text = (host.TOP / "docs/dm-lc.rst").read_text(encoding="utf-8")
    block = re.search(rf"^   {re.escape(first)}\n(?:   .+\n)*", text, re.M)[0]
    for word, other in dict(names).items():
        block = re.sub(rf"(?<![\w/]){re.escape(word)}(?!\w)", other, block)
    return textwrap.dedent(block)


def ignore_notes(ctx):
    """What the guide says to type for volume groups below a volume."""
    ctx.run("set -e\n" + guide("mkdir -p /etc/systemd/system/systemd-udev-trigger.service.d"))


def documented(ctx):
    """What the guide says to type for a physical volume in place, with this machine's disks."""
    first = "vgchange -an archive"
    page = (host.TOP / "userland/man/lc-format.8").read_text(encoding="utf-8")
    assert guide(first) in page.replace("\\-", "-"), "the man page says something else"
    disks = {"/dev/sdb": ctx.path("hdd"), "/dev/nvme0n1": ctx.path("ssd")}
    return guide(first, disks).splitlines()


def group_comes_up(ctx):
    """Start the volume, and do nothing for the group on it; all files are there."""
    resume(ctx)
    ctx.run(f"udevadm wait --timeout={100 * ctx.scale:.0f} /dev/archive/data && "
            "mount /dev/archive/data /srv/music")
    come_back(ctx, "/srv/music")


@case(kernels=("server",), disks=DISKS, timeout=900, module="", long=True)
def mounted_volume_survives_a_restart(ctx):
    """A restart with the volume mounted stops it cleanly, as the journal tells, and it starts
    from its checkpoint with everything there.
    """
    ctx.install()
    format_and_start(ctx)
    ctx.run("mkfs.ext4 -q /dev/mapper/music && mkdir /srv/music && "
            "mount /dev/mapper/music /srv/music")
    fill(ctx, "/srv/music")
    ctx.stop("reboot")
    digest = ctx.digest("hdd")
    ctx.start()
    settled(ctx)
    stopped = ctx.run("journalctl -b -1 --no-pager -o cat")
    for line in ("Unmounted srv-music.mount", "Reached target umount.target"):
        assert line in stopped, stopped[-3000:]
    assert "no clean stop" not in ctx.console(0).read_text("utf-8", "replace")
    untouched(ctx, digest)
    checked = ctx.run(f"lc-check {ctx.path('ssd')}")
    assert "Stopped cleanly" in checked, checked
    resume(ctx)
    ctx.run("fsck.ext4 -fn /dev/mapper/music && mount /dev/mapper/music /srv/music")
    started = ctx.run("journalctl -b -k --no-pager -o cat | grep device-mapper:")
    assert "epoch 2:" in started and "replayed" not in started, started
    come_back(ctx, "/srv/music")
    ctx.run("lc-flush music && umount /srv/music && udevadm settle && lc-remove music", limit=300)


@case(kernels=("server",), disks=DISKS, timeout=900, module="")
def in_place_disk_is_not_mounted(ctx):
    """A disk in /etc/fstab that is cached in place is not mounted, nor written to, by a boot that
    does not start its volume; started, the volume is mounted by the same line, with everything.
    """
    hdd = ctx.path("hdd")
    ctx.install()
    ctx.run(f"mkfs.ext4 -q -U {UUID} {hdd} {size_bytes(ctx.disk('hdd').size) // 1024 - 1024}K && "
            "mkdir /srv/music && "
            f"echo 'UUID={UUID} /srv/music ext4 nofail 0 2' >> /etc/fstab && "
            "systemctl daemon-reload && mount /srv/music")
    assert mounted(ctx) == ctx.run(f"readlink -f {hdd}").strip()
    write(ctx, "/srv/music", "{100..103}", 1)
    ctx.run("umount /srv/music")
    format_and_start(ctx, "--in-place")
    ctx.run("udevadm settle && mount /srv/music")
    assert mounted(ctx) == "/dev/mapper/music"
    fill(ctx, "/srv/music")
    ctx.stop("reboot")
    digest = ctx.digest("hdd")
    ctx.start()
    untouched(ctx, digest)
    code, said = ctx.result(f"findfs UUID={UUID}")
    assert code, f"the file system is found on {said}"
    ctx.run("mount /srv/music")  # no error, with nofail
    assert mounted(ctx) == ""
    assert ctx.digest("hdd") == digest
    resume(ctx)
    ctx.run("systemctl start srv-music.mount")
    assert mounted(ctx) == "/dev/mapper/music"
    come_back(ctx, "/srv/music")


@case(kernels=("server",), disks=DISKS, timeout=900, module="", long=True)
def in_place_pv_is_not_activated(ctx):
    """LVM finds nothing on a physical volume that is cached in place, and a boot without its volume
    writes nothing to it; started, its volume group comes up with everything.
    """
    hdd = ctx.path("hdd")
    ctx.install()
    # 127 extents of 4 MiB, which end where the disk does, the last one free.
    group_on(ctx, hdd, "4M", "126")
    assert ctx.run("vgs --noheadings -o vg_extent_count,vg_free_count archive").split() \
        == ["127", "1"]
    write(ctx, "/srv/music", "{100..103}", 1)
    ctx.run("umount /srv/music && udevadm settle")
    lines = documented(ctx)
    code, said = ctx.result(f"vgchange -an archive && lc-format --in-place --backing {hdd} "
                            f"{ctx.path('ssd')}")
    assert code == 1 and "how far its LVM2_member reaches cannot be told" in said, said
    assert "--force=fs-at-end" in said, said
    code, said = ctx.result(f"lvcreate -q -n last -l 100%FREE archive && vgchange -an archive && "
                            f"{{ {lines[1]}; }}")
    assert code and "cannot resize" in said, said
    ctx.run("lvremove -q -y archive/last")
    said = "".join(ctx.run(line) for line in lines)
    assert "WARNING" not in ctx.run("pvs 2>&1; vgck archive 2>&1"), said
    assert ctx.run("vgs --noheadings -o vg_extent_count,vg_free_count archive").split() \
        == ["126", "0"]
    ctx.run("dmsetup message music 0 writeback off && mount /dev/archive/data /srv/music")
    come_back(ctx, "/srv/music")
    fill(ctx, "/srv/music")
    ctx.stop("reboot")
    digest = ctx.digest("hdd")
    ctx.start()
    untouched(ctx, digest)
    assert ctx.run("pvs --noheadings; vgs --noheadings; vgchange -ay; dmsetup ls").strip() \
        == "No devices found"
    assert ctx.digest("hdd") == digest
    group_comes_up(ctx)


@case(kernels=("server",), disks=DISKS, timeout=900, module="", long=True)
def volume_group_comes_up_by_itself(ctx):
    """A volume group on the volume: a restart stops both cleanly, and once the volume is started,
    udev and LVM bring the group up without being asked.
    """
    ctx.install()
    format_and_start(ctx)
    group_on(ctx, "/dev/mapper/music")
    fill(ctx, "/srv/music")
    ctx.stop("reboot")
    digest = ctx.digest("hdd")
    ctx.start()
    untouched(ctx, digest)
    checked = ctx.run(f"lc-check {ctx.path('ssd')}")
    assert "Stopped cleanly" in checked, checked
    group_comes_up(ctx)
    ctx.run("umount /srv/music && udevadm settle && vgchange -an archive && lc-remove music",
            limit=300)
