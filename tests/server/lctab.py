# SPDX-License-Identifier: GPL-2.0-only
"""Volumes that start at boot by /etc/lctab."""

from lclib import Disk, case

from .boot import UUID, come_back, fill, mounted, settled, shown, write

# What a power cut may find in a volatile cache.
DISKS = (Disk("hdd", "512M", kind="recorded"), Disk("ssd", "256M", kind="recorded"))
UNIT = "lc@music.service"


def tables(ctx, volume, mount):
    """Write a line of each table; the first one has lines that must not matter, too."""
    ctx.run(f"printf '%s\\n' '# volumes' 'music {volume}' "
            f"'gone /dev/disk/by-id/gone - nofail' 'a/b {ctx.path('ssd')}' > /etc/lctab && "
            f"sed -i '/srv.music/d' /etc/fstab && echo '{mount}' >> /etc/fstab && "
            "systemctl daemon-reload")


def messages(ctx, boot=0):
    """The journal of a boot."""
    return ctx.run(f"journalctl -b -{boot} --no-pager -o cat")


def failed(ctx):
    """The units that failed, but for the one whose disk never comes."""
    said = ctx.run("systemctl --failed --plain --no-legend")
    return {line.split()[0] for line in said.splitlines()} - {"lc@gone.service"}


def is_up(ctx):
    """The volume was started and mounted by the boot, with everything, and nothing failed."""
    settled(ctx)
    assert mounted(ctx) == "/dev/mapper/music", messages(ctx)[-4000:]
    assert ctx.run(f"systemctl is-active {UNIT} lc.target lc-watch.service").split() \
        == ["active"] * 3
    assert failed(ctx) == set()
    faults = [line for line in messages(ctx).splitlines() if any(
        word in line for word in ("ordering cycle", "cannot be delayed", "Unknown key"))]
    assert not faults, faults
    come_back(ctx, "/srv/music")


def stopped_in_order(ctx):
    """The boot before ended with a umount, and then the service stopped the volume."""
    said = messages(ctx, 1)
    places = [said.rfind(line) for line in (
        "Unmounted srv-music.mount", "Stopped target local-fs-pre", f"Stopped {UNIT}")]
    assert -1 not in places and places == sorted(places), (places, said[-4000:])
    assert "in use" not in said[places[0]:], said[-3000:]


@case(kernels=("server",), disks=DISKS, timeout=1500, module="", long=True)
def starts_at_boot(ctx):
    """A line in /etc/lctab and one in /etc/fstab, by UUID: after a reboot, and after a power cut,
    the volume is mounted with everything, no unit failed, and the shutdown stopped it cleanly.

    A bad line is told in the kernel log, one of a disk that is not there with nofail harms nobody,
    and a daemon-reload and a second start change nothing. With noauto a mount starts it.
    """
    ssd, hdd = ctx.path("ssd"), ctx.path("hdd")
    ctx.install()
    ctx.run(f"lc-format --yes -o writeback=off --backing {hdd} {ssd} && mkdir /srv/music")
    pair = ctx.run(f"udevadm settle && lsblk -dno UUID {ssd}").strip()
    # The emulator's replay is slow, and a mount by UUID does not wait for it.
    tables(ctx, f"LC={pair}", f"UUID={UUID} /srv/music ext4 x-systemd.device-timeout=10min 0 2")
    ctx.run(f"systemctl start {UNIT} && mkfs.ext4 -q -U {UUID} /dev/mapper/music && "
            "udevadm settle && mount /srv/music")
    fill(ctx, "/srv/music")
    ctx.run(f"systemctl daemon-reload && systemctl restart {UNIT} && sync")
    said = ctx.run(f"journalctl -b -u {UNIT} -o cat --no-pager")
    assert "is in use" in said and "runs already" in said, said
    ctx.reboot()
    is_up(ctx)
    stopped_in_order(ctx)
    said = ctx.run("dmesg")
    assert "/etc/lctab:4: 'a/b' is no name" in said, said
    assert "epoch 2:" in said and "replayed" not in said, said
    write(ctx, "/srv/music", "{200..203}", 1)
    ctx.run("sync")
    ctx.cut()
    ctx.start()
    is_up(ctx)
    assert "replayed" in ctx.run("dmesg") and shown(ctx)["mode"] == "rw"
    tables(ctx, f"{ssd} - noauto", "/dev/mapper/music /srv/music ext4 noauto 0 2")
    ctx.reboot()
    settled(ctx)
    stopped_in_order(ctx)
    assert mounted(ctx) == "" and "music" not in ctx.run("dmsetup ls")
    ctx.run("systemctl start srv-music.mount")
    come_back(ctx, "/srv/music")
    ctx.run(f"systemctl stop {UNIT}")
    assert mounted(ctx) == "" and "music" not in ctx.run("dmsetup ls")
    ctx.run("systemctl start srv-music.mount")
    come_back(ctx, "/srv/music")


@case(kernels=("server",), disks=DISKS, timeout=1500, module="", long=True)
def partitions_and_labels(ctx):
    """Halves that are partitions, named by PARTUUID, PARTLABEL and LABEL; swap is on the volume."""
    hdd, ssd = ctx.path("hdd"), ctx.path("ssd")
    ctx.install()
    for disk in (hdd, ssd):
        ctx.run("printf 'label: gpt\\nsize=32M, name=first\\nname=%s\\n' "
                f"{'slow' if disk == hdd else 'fast'} | sfdisk -q --wipe always {disk} && "
                "udevadm settle")
    ctx.run(f"lc-format --yes --label=logs -o writeback=off --backing {hdd}-part2 {ssd}-part2 && "
            "udevadm settle")
    ids = [ctx.run(f"lsblk -dno PARTUUID {disk}-part2").strip() for disk in (ssd, hdd)]
    mount = "/dev/mapper/music none swap sw 0 0"
    for line in ("PARTUUID={} PARTUUID={}".format(*ids), "LABEL=logs PARTLABEL=slow"):
        ctx.run(f"echo 'music {line}' > /etc/lctab && sed -i '/music/d' /etc/fstab && "
                f"echo '{mount}' >> /etc/fstab && systemctl daemon-reload && "
                f"systemctl start {UNIT} && mkswap /dev/mapper/music && udevadm settle")
        ctx.reboot()
        settled(ctx)
        assert failed(ctx) == set(), messages(ctx)[-4000:]
        swap = ctx.run("swapon --noheadings --show=NAME").strip()
        assert swap == ctx.run("readlink -f /dev/mapper/music").strip(), swap
        assert "replayed" not in ctx.run("dmesg")
        ctx.run(f"swapoff -a && systemctl stop {UNIT}")
        assert "music" not in ctx.run("dmsetup ls")


# What systemd shows, by its version, with colours in between.
STOPS = r"(for dm-lc volume music|Job lc@music.service/stop) .*\(\d+s / 5min"


@case(kernels=("server",), disks=DISKS, timeout=1500, module="", long=True)
def slow_stop_is_shown(ctx):
    """A stop that takes long because the SSD is slow is shown on the console, and is clean.

    On a server with LVM blk-availability.service may stop a volume that is not in use first.
    """
    ctx.install()
    ctx.run("systemctl mask --now blk-availability.service")
    ctx.run(f"lc-format --yes -o writeback=off --backing {ctx.path('hdd')} {ctx.path('ssd')}")
    ctx.run(f"echo 'music {ctx.path('ssd')}' > /etc/lctab && systemctl daemon-reload && "
            f"systemctl start {UNIT} && mkfs.ext4 -q /dev/mapper/music && mkdir /srv/music && "
            "mount /dev/mapper/music /srv/music")
    fill(ctx, "/srv/music")
    ctx.run("umount /srv/music && udevadm settle")
    control = ctx.recorder.control
    control.request("fault", disk="ssd", op="write", errno=0, delay_ms=600_000)

    def shown_at_last():
        assert ctx.await_console(STOPS), "the console shows nothing"
        control.request("fault-clear")
    ctx.stop("poweroff", shown_at_last)
    ctx.start()
    settled(ctx)
    ctx.run("mount /dev/mapper/music /srv/music")
    come_back(ctx, "/srv/music")
    said = ctx.run("dmesg")
    assert "epoch 2:" in said and "replayed" not in said, said
