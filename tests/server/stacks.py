# SPDX-License-Identifier: GPL-2.0-only
"""What else a server has on a volume or below one, brought up by the boot."""

from lclib import Disk, case

from .boot import come_back, ignore_notes, settled, shown, write
from .lctab import UNIT, failed, messages

# What a power cut may find in a volatile cache.
DISKS = (Disk("hdd", "1G", kind="recorded"), Disk("ssd", "256M", kind="recorded"))
LUKS = "--batch-mode --key-file /root/key --pbkdf pbkdf2 --pbkdf-force-iterations 1000"
MIRRORED = tuple(Disk(f"{kind}{leg}", size, bus="scsi", rotation=rotation)
                 for kind, size, rotation in (("hdd", "512M", 7200), ("ssd", "256M", 1))
                 for leg in (0, 1))
# What a unit that is slower than usual may take, as the guide says for a replay.
PATIENT = "x-systemd.device-timeout=10min"

GROUP = f"""
set -e
pvcreate -q /dev/mapper/music
vgcreate -q archive /dev/mapper/music
for lv in var:400M data:200M swap:64M secret:64M; do
	lvcreate -q -n ${{lv%:*}} -L ${{lv#*:}} archive
done
mkfs.ext4 -q /dev/archive/var
mkfs.ext4 -q /dev/archive/data
mkswap /dev/archive/swap
head -c 64 /dev/urandom > /root/key
cryptsetup luksFormat {LUKS} /dev/archive/secret
cryptsetup open --key-file /root/key /dev/archive/secret secret
mkfs.ext4 -q /dev/mapper/secret
udevadm settle
echo secret /dev/archive/secret /root/key luks > /etc/crypttab
add() {{
	echo "$1" "$2" "$3" "$4" 0 0 >> /etc/fstab
}}
uuid_of() {{
	echo UUID=$(blkid -s UUID -o value /dev/archive/$1)
}}
add $(uuid_of var) /var ext4 {PATIENT}
add $(uuid_of data) /srv/music ext4 {PATIENT}
add $(uuid_of swap) none swap sw
add /dev/mapper/secret /srv/secret ext4 {PATIENT}
mkdir -p /srv/music /srv/secret
mount /dev/archive/var /mnt
cp -a /var/. /mnt
umount /mnt
systemctl daemon-reload
mount /srv/music
mount /srv/secret
"""


def is_clean(ctx):
    """The volume started from its checkpoint."""
    said = ctx.run("dmesg")
    assert "replayed" not in said and shown(ctx)["mode"] == "rw", said[-3000:]


def all_up(ctx, mounts):
    """The boot has mounted all of them, and nothing failed."""
    settled(ctx)
    assert ctx.run(f"systemctl is-active {UNIT}").strip() == "active", messages(ctx)[-4000:]
    assert failed(ctx) == set()
    for folder, source in mounts.items():
        found = ctx.result(f"findmnt --noheadings --output SOURCE {folder}")[1].strip()
        assert found == source, (folder, found, messages(ctx)[-4000:])
    come_back(ctx, "/srv/music")


def line_of(ctx, volume):
    """Write the volume's line, and start it."""
    ctx.run(f"echo 'music {volume}' > /etc/lctab && systemctl daemon-reload && "
            f"systemctl start {UNIT}")


def in_fstab(ctx, options=PATIENT):
    """Make a file system on the volume, mounted now and by each boot."""
    ctx.run("mkfs.ext4 -q /dev/mapper/music && mkdir -p /srv/music && "
            f"echo /dev/mapper/music /srv/music ext4 {options} 0 2 >> /etc/fstab && "
            "systemctl daemon-reload && mount /srv/music")


@case(kernels=("server",), disks=DISKS, timeout=2400, module="", long=True)
def volume_group_with_var_swap_and_luks(ctx):
    """A volume group on a volume, with /var, swap, a file system and an encrypted one: all are
    there after a reboot, which needs no replay, and after a power cut.
    """
    hdd, ssd = ctx.path("hdd"), ctx.path("ssd")
    mounts = {"/var": "/dev/mapper/archive-var", "/srv/music": "/dev/mapper/archive-data",
              "/srv/secret": "/dev/mapper/secret"}
    ctx.install()
    ctx.run(f"lc-format --yes -o writeback=off --backing {hdd} {ssd} && udevadm settle")
    line_of(ctx, f"LC={ctx.run(f'lsblk -dno UUID {ssd}').strip()}")
    ctx.run(GROUP, limit=300)
    write(ctx, "/srv/music", "{100..115}", 4)
    ctx.run("echo heard > /srv/secret/word && sync")
    ctx.reboot()
    all_up(ctx, mounts)
    is_clean(ctx)
    assert "/dev/dm-" in ctx.run("swapon --noheadings --show=NAME")
    assert ctx.run("cat /srv/secret/word").strip() == "heard"
    write(ctx, "/srv/music", "{200..203}", 4)
    ctx.cut()
    ctx.start()
    all_up(ctx, mounts)
    assert "replayed" in ctx.run("dmesg") and shown(ctx)["mode"] == "rw"
    assert ctx.run("cat /srv/secret/word").strip() == "heard"
    ctx.reboot()
    all_up(ctx, mounts)
    is_clean(ctx)


@case(kernels=("server",), disks=DISKS, timeout=2400, module="", long=True)
def pair_of_a_logical_volume_and_luks(ctx):
    """The SSD is a logical volume and the hard disk an encrypted one that crypttab opens: the boot
    starts the volume when both are there, and the shutdown stops it before it takes them away.
    """
    ctx.install()
    ignore_notes(ctx)
    ctx.run(f"pvcreate -q {ctx.path('ssd')} && vgcreate -q fast {ctx.path('ssd')} && "
            "lvcreate -q -n cache -L 200M fast && head -c 64 /dev/urandom > /root/key && "
            f"cryptsetup luksFormat {LUKS} {ctx.path('hdd')} && "
            f"echo vault {ctx.path('hdd')} /root/key luks > /etc/crypttab && "
            f"cryptsetup open --key-file /root/key {ctx.path('hdd')} vault && "
            "lc-format --yes -o writeback=off --backing /dev/mapper/vault /dev/fast/cache && "
            "udevadm settle", limit=300)
    line_of(ctx, "/dev/fast/cache /dev/mapper/vault")
    in_fstab(ctx)
    write(ctx, "/srv/music", "{100..115}", 4)
    for _ in range(2):
        ctx.reboot()
        all_up(ctx, {"/srv/music": "/dev/mapper/music"})
        is_clean(ctx)
    ctx.cut()
    ctx.start()
    all_up(ctx, {"/srv/music": "/dev/mapper/music"})


@case(kernels=("server",), disks=MIRRORED, timeout=2400, module="", long=True)
def pair_of_md_arrays(ctx):
    """SSD and hard disk are RAID1 arrays: the volume is up after a reboot, after a crash, when a
    disk of each was pulled out, and after a boot without these two.
    """
    ctx.install()
    for kind in ("ssd", "hdd"):
        ctx.run(f"mdadm --create /dev/md/{kind} --run --level=1 --raid-devices=2 --assume-clean "
                f"{ctx.path(kind + '0')} {ctx.path(kind + '1')}")
    ctx.run("mdadm --detail --scan >> /etc/mdadm/mdadm.conf && lc-format --yes -o writeback=off "
            "--backing /dev/md/hdd /dev/md/ssd && udevadm settle")
    line_of(ctx, f"LC={ctx.run('lsblk -dno UUID /dev/md/ssd').strip()}")
    in_fstab(ctx)
    write(ctx, "/srv/music", "{100..107}", 4)
    ctx.reboot()
    all_up(ctx, {"/srv/music": "/dev/mapper/music"})
    is_clean(ctx)
    write(ctx, "/srv/music", "{200..203}", 4)
    ctx.kill()
    ctx.start()
    all_up(ctx, {"/srv/music": "/dev/mapper/music"})
    assert "replayed" in ctx.run("dmesg")
    for kind in ("ssd0", "hdd0"):
        ctx.unplug(kind)
    write(ctx, "/srv/music", "{300..303}", 4)
    assert shown(ctx)["mode"] == "rw", shown(ctx)
    ctx.reboot()
    all_up(ctx, {"/srv/music": "/dev/mapper/music"})
    is_clean(ctx)
