# SPDX-License-Identifier: GPL-2.0-only
"""What starts and stops the machine, with a volume on its disks."""

import json

from lclib import Disk, case

DISKS = (Disk("hdd", "512M", bus="scsi", rotation=7200),
         Disk("ssd", "256M", bus="scsi", rotation=1))
DIRTY_MIB = 136


def shown(ctx, name="music"):
    """lc-status of one volume: its status."""
    return json.loads(ctx.run(f"lc-status --json {name}"))[0]["status"]


def settled(ctx):
    """Wait until systemd has nothing left to do; what it thinks of the outcome."""
    ctx.run("udevadm settle")
    return ctx.result("systemctl is-system-running --wait")[1].strip()


def format_and_start(ctx, *options):
    """A volume named music, whose data stays in the cache."""
    ctx.run(f"lc-format --yes {' '.join(options)} -o writeback=off --backing {ctx.path('hdd')} "
            f"{ctx.path('ssd')} && lc-resume music {ctx.path('ssd')}")


def fill(ctx, where):
    """Synced files, all of them only in the cache; their sums are on the root."""
    ctx.run(f"for i in $(seq {DIRTY_MIB // 8}); do dd if=/dev/urandom of={where}/$i bs=1M count=8"
            f" conv=fsync status=none || exit; done; cd {where}; sync; "
            "sha256sum [0-9]* > /root/sums", limit=300)
    dirty = shown(ctx)["dirty"]
    assert dirty * 4096 > DIRTY_MIB << 20, dirty


def come_back(ctx, where):
    """All files are there."""
    ctx.run(f"cd {where} && sha256sum --quiet -c /root/sums", limit=300)


def untouched(ctx, digest):
    """The hard disk holds what it held before the boot."""
    settled(ctx)
    assert not ctx.run("dmsetup ls --target lc").strip().startswith("music")
    assert ctx.digest("hdd") == digest, "something wrote to the bare hard disk"


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
    ctx.run(f"modprobe dm-lc && lc-resume music {ctx.path('ssd')} && fsck.ext4 -fn "
            "/dev/mapper/music && mount /dev/mapper/music /srv/music")
    started = ctx.run("journalctl -b -k --no-pager -o cat | grep device-mapper:")
    assert "epoch 2:" in started and "replayed" not in started, started
    come_back(ctx, "/srv/music")
    ctx.run("lc-flush music && umount /srv/music && lc-remove music", limit=300)
