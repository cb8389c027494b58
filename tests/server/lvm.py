# SPDX-License-Identifier: GPL-2.0-only
"""What the guide says of LVM, typed: a volume as physical volume, and a pair of logical volumes."""

from lclib import Disk, case

from .boot import come_back, guide, ignore_notes, shown, write
from .lctab import UNIT
from .stacks import PATIENT, all_up, is_clean, line_of

DISKS = (Disk("hdd", "512M", bus="scsi", rotation=7200),
         Disk("ssd", "256M", bus="scsi", rotation=1),
         Disk("other", "512M", bus="scsi", rotation=7200))
MUSIC = "/dev/mapper/music"
# Writes blocks and syncs them, all the time.
USER = """
cd /srv/music
n=0
while dd if=/dev/urandom of=beat bs=64k count=4 conv=fsync status=none; do
	n=$((n + 1))
	echo $n > /run/beats
done
"""


# Leaves of a volume group what an initramfs does that ends before LVM has activated it.
CUT_SHORT = """
[Unit]
DefaultDependencies=no
After=systemd-udevd.service
Before=systemd-udev-trigger.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=vgchange -an archive
ExecStart=mkdir -p /run/lvm/vgs_online
ExecStart=touch /run/lvm/vgs_online/archive
[Install]
WantedBy=sysinit.target
"""


def real(ctx, *names):
    """The kernel's names of devices."""
    return {ctx.run(f"readlink -f {name}").strip() for name in names}


def physical(ctx, *names):
    """LVM finds these physical volumes, each by one name, and warns of nothing."""
    said = ctx.run("pvs --noheadings -o pv_name 2>&1")
    assert real(ctx, *said.split()) == real(ctx, *names), said
    assert len(said.split()) == len(names), said
    said = ctx.run("pvs -a -o pv_name,pv_size 2>&1 > /dev/null; vgs 2>&1 > /dev/null; vgck 2>&1")
    assert not said.strip(), said


def while_written(ctx, command):
    """Run a command while a program writes and syncs on the file system; it must go on."""
    ctx.run(f"cat > /root/user << 'END_OF_SCRIPT'{USER}END_OF_SCRIPT\n"
            "rm -f /run/beats; systemd-run --quiet --unit=user sh /root/user && "
            "while [ ! -e /run/beats ]; do sleep 0.1; done")
    said = ctx.run(command, limit=300)
    ctx.run("n=$(cat /run/beats); while [ $(cat /run/beats) = $n ]; do sleep 0.1; done; "
            "systemctl stop user")
    assert shown(ctx)["mode"] == "rw", shown(ctx)
    return said


def mounted_by_boot(ctx, device):
    """A line in /etc/fstab, mounted now."""
    ctx.run(f"mkdir -p /srv/music && echo {device} /srv/music ext4 {PATIENT} 0 2 >> /etc/fstab && "
            "systemctl daemon-reload && mount /srv/music")


def snapshot_is_of_before(ctx):
    """The snapshot has the files of its moment, also after what came later."""
    ctx.run("mount -o ro,noload /dev/data/db-before /mnt && cd /mnt && "
            "sha256sum --quiet -c /root/before && test ! -e /mnt/200 && cd / && umount /mnt")


@case(kernels=("server",), disks=DISKS, timeout=2400, module="", long=True)
def group_moves_onto_a_volume(ctx):
    """The guide's commands for LVM on a volume: a volume group that is in use moves onto it, has a
    snapshot, and is up after a boot, the last one with a devices file.
    """
    names = {"/dev/sdc": ctx.path("other"), "100G": "200M", "10G": "100M"}
    above = guide("pvcreate /dev/mapper/music", names).splitlines()
    ctx.install()
    ctx.run(f"lc-format --yes -o writeback=off --backing {ctx.path('hdd')} {ctx.path('ssd')} && "
            "udevadm settle")
    line_of(ctx, f"LC={ctx.run('lsblk -dno UUID ' + ctx.path('ssd')).strip()}")
    # The first three lines, on the disk that is to be replaced.
    ctx.run(" && ".join(above).replace(MUSIC, ctx.path("other"))
            + " && mkfs.ext4 -q /dev/data/db")
    mounted_by_boot(ctx, "/dev/data/db")
    write(ctx, "/srv/music", "{100..107}", 4)
    moving = guide("pvcreate /dev/mapper/music\n   vgextend data /dev/mapper/music", names)
    while_written(ctx, f"set -e\n{moving}")
    physical(ctx, MUSIC)
    come_back(ctx, "/srv/music")
    ctx.run("cp /root/sums /root/before && " + guide("lvcreate -s -L 10G -n db-before data/db",
                                                     names))
    write(ctx, "/srv/music", "{100..103}", 4)
    write(ctx, "/srv/music", "{200..201}", 4)
    snapshot_is_of_before(ctx)
    ctx.reboot()
    all_up(ctx, {"/srv/music": "/dev/mapper/data-db"})
    is_clean(ctx)
    physical(ctx, MUSIC)
    snapshot_is_of_before(ctx)
    ctx.run("lvremove -q -y data/db-before && "
            "printf 'devices {\\n\\tuse_devicesfile = 1\\n}\\n' > /etc/lvm/lvmlocal.conf")
    said = ctx.run(f"set -e\n{guide('lvm lvmdevices --adddev /dev/mapper/music')}")
    assert MUSIC in said, said
    ctx.reboot()
    all_up(ctx, {"/srv/music": "/dev/mapper/data-db"})
    is_clean(ctx)
    physical(ctx, MUSIC)
    ctx.run(f"umount /srv/music && vgchange -an data && systemctl stop {UNIT}")
    assert "music" not in ctx.run("dmsetup ls")


def initramfs_ends_early(ctx):
    """The next boot finds the group of the hard disk noted as activated, and inactive."""
    ctx.run(f"cat > /etc/systemd/system/cut-short.service << 'END_OF_UNIT'{CUT_SHORT}END_OF_UNIT\n"
            "systemctl -q enable cut-short")


@case(kernels=("server",), disks=DISKS, timeout=2400, module="", long=True)
def pair_of_logical_volumes_moves(ctx):
    """The guide's commands for a pair of logical volumes, with a volume group on the volume: halves
    are moved and renamed under load, and all is up after each boot, by the line with LC=, also
    when the initramfs ends between LVM's note of a group and its activation.
    """
    names = {"/dev/sdb": ctx.path("hdd"), "/dev/sdd": ctx.path("other"), "200G": "200M",
             "4T": "400M", "lc-format": "lc-format --yes -o writeback=off"}
    ctx.install()
    ctx.run(f"pvcreate -q {ctx.path('ssd')} {ctx.path('hdd')} {ctx.path('other')} && "
            f"vgcreate -q fast {ctx.path('ssd')} && "
            f"vgcreate -q archive {ctx.path('hdd')}")
    ctx.run("set -e\n" + guide("lvcreate -L 200G -n cache fast", names), limit=300)
    ctx.run("udevadm settle")
    line_of(ctx, f"LC={ctx.run('lsblk -dno UUID /dev/fast/cache').strip()}")
    ctx.run(f"pvcreate -q {MUSIC} && vgcreate -q top {MUSIC} && lvcreate -q -n db -L 300M top && "
            "mkfs.ext4 -q /dev/top/db")
    mounted_by_boot(ctx, "/dev/top/db")
    write(ctx, "/srv/music", "{100..107}", 4)
    mounts = {"/srv/music": "/dev/mapper/top-db"}
    four = [MUSIC, *map(ctx.path, ("ssd", "hdd", "other"))]
    physical(ctx, *four)
    ignore_notes(ctx)
    initramfs_ends_early(ctx)
    ctx.reboot()
    all_up(ctx, mounts)
    is_clean(ctx)
    assert ctx.run("systemctl is-active cut-short").strip() == "active"
    ctx.run("systemctl -q disable cut-short")
    physical(ctx, *four)
    ctx.run(f"vgextend -q archive {ctx.path('other')}")
    while_written(ctx, "set -e\n" + guide("pvmove /dev/sdb /dev/sdd", names))
    ctx.run(f"vgreduce -q archive {ctx.path('hdd')} && pvremove -q {ctx.path('hdd')} && "
            f"vgextend -q fast {ctx.path('hdd')}")
    while_written(ctx, f"pvmove {ctx.path('ssd')} {ctx.path('hdd')}")
    while_written(ctx, "lvrename fast cache log")
    come_back(ctx, "/srv/music")
    assert {"archive-disks", "fast-log"} <= set(
        ctx.run("lsblk --noheadings --inverse --list -o NAME /dev/mapper/music").split())
    ctx.reboot()
    all_up(ctx, mounts)
    is_clean(ctx)
    physical(ctx, *four)
    write(ctx, "/srv/music", "{200..203}", 4)
    ctx.run("sync")
    ctx.kill()
    ctx.start()
    all_up(ctx, mounts)
    assert "replayed" in ctx.run("dmesg")
