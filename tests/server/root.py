# SPDX-License-Identifier: GPL-2.0-only
"""The root file system on a volume, which the initramfs starts."""

import re
import textwrap

from lclib import Disk, case, wait
from lib import apt, debs

from .packages import installed, module_is_from_dkms, new_kernel, next_kernel, runs_its_module
from .stacks import LUKS

DISKS = (Disk("hdd", "1536M", kind="recorded"), Disk("ssd", "512M", kind="recorded"),
         Disk("copies", "128M"))
UUID = "2f8c6f0e-93a4-4d0b-8f5e-1f2d7a5b9c33"
VOLUME = "/dev/mapper/root"
SYNCED = re.compile(r"synced (\d+) ([0-9a-f]{64}) \.")
WRITTEN = 40  # files that are synced before the power goes
# What the machine needs no more once its module and tools are installed.
LEFT_OUT = """
    boot/initrd* boot/vmlinuz* mnt/* opt/dm-lc/* tmp/* var/tmp/* var/cache/* var/lib/apt var/log/*
    usr/lib/llvm-* usr/lib/postgresql usr/lib/x86_64-linux-gnu/*.a
    usr/lib/x86_64-linux-gnu/libLLVM* usr/lib/x86_64-linux-gnu/libclang*
    usr/share/doc usr/share/locale usr/share/postgresql
    usr/lib/modules/*/kernel/sound usr/lib/modules/*/kernel/net
    usr/lib/modules/*/kernel/drivers/[adefghijklnopqrstuwx]*
    usr/lib/modules/*/kernel/drivers/m[efimt]* usr/lib/modules/*/kernel/fs/[bfgjnoqrx]*fs*
"""
# ... and once it is not to be built again.
COMPILER = """
    usr/bin/x86_64-linux-gnu-* usr/include usr/lib/gcc usr/lib/linux-kbuild-* usr/libexec/gcc
    usr/src
"""
# A hook that is run by hand lacks this: mkinitramfs of Debian 13 has names of modules put there.
BY_MKINITRAMFS = "__MODULES_TO_ADD=/run/modules-to-add"
# With "late" on the kernel's command line the driver finds the SSD after a start was tried without.
LATE = """\
#!/bin/sh
[ "$1" != prereqs ] || exit 0
case $(cat /proc/cmdline) in *" late "*) ;; *) exit 0 ;; esac
modprobe virtio_blk
udevadm settle
driver=/sys/bus/virtio/drivers/virtio_blk
for device in $driver/virtio*; do
	[ "$(cat $device/block/*/serial)" = ssd ] || continue
	echo ${device##*/} > $driver/unbind
	{
		while [ ! -e /run/dm-lc/root ]; do sleep 1; done
		echo "the SSD is late" > /dev/kmsg
		echo ${device##*/} > $driver/bind
	} < /dev/null > /dev/null 2>&1 &
done
"""


def copied(ctx, left_out=LEFT_OUT + COMPILER, device=VOLUME):
    """A copy of the running system on a device, mounted on /mnt with what a chroot needs.

    Services whose programs or drivers are left out are masked.
    """
    excluded = " ".join(f"--exclude='./{name}'" for name in left_out.split())
    ctx.run(f"mkfs.ext4 -q -U {UUID} {device} && mount {device} /mnt && "
            f"tar -C / --one-file-system {excluded} -c . | tar -C /mnt -x && "
            "mkdir -p /mnt/var/lib/apt /mnt/var/log/journal && "
            "for i in dev proc sys run; do mount --bind /$i /mnt/$i; done && "
            "chroot /mnt depmod && "
            "chroot /mnt systemctl -q mask postgresql.service nvmf-autoconnect.service", limit=1200)


def configured(ctx):
    """fstab, lctab and an initramfs with few modules, so that it is made in little time."""
    tab = f"root {ctx.path('ssd')} {ctx.path('hdd')} x-initrd.attach,verify_reads=on"
    ctx.run(textwrap.dedent(f"""\
        set -e
        cd /mnt/etc
        echo 'UUID={UUID} / ext4 errors=remount-ro 0 1' > fstab
        printf '# The root.\\n\\n{tab}\\narchive /dev/vdz /dev/vdy noauto\\n' > lctab
        echo MODULES=list > initramfs-tools/conf.d/few
        printf 'virtio_pci\\nvirtio_blk\\next4\\n' >> initramfs-tools/modules
        cat > initramfs-tools/scripts/init-premount/late << 'END_OF_SCRIPT'
        """) + LATE + "END_OF_SCRIPT\nchmod +x initramfs-tools/scripts/init-premount/late\n")


def hook_alone(ctx, root, release):
    """What the hook puts into an image for a kernel: its files, and what it says."""
    return ctx.run(f"chroot {root} sh -c 'mkdir -p /root/image && cd /root/image && "
                   "mkdir -p conf/conf.d usr/lib usr/sbin && ln -s usr/lib usr/sbin . && "
                   f"{BY_MKINITRAMFS} DESTDIR=/root/image version={release} verbose=n "
                   "/usr/share/initramfs-tools/hooks/dm-lc 2>&1 && find . -type f && "
                   "{ cat etc/lctab 2> /dev/null; rm -r /root/image; }'")


def image_is_kept(ctx, release, module):
    """Does the hook fail without a module if there is an image that has this one?"""
    image = f"/mnt/boot/initrd.img-{release}"
    code, said = ctx.result(
        f"mkdir -p /run/old/lib/modules/{release} /mnt/root/image/etc && cd /run/old && "
        f"touch lib/modules/{release}/{module} && find . | cpio -o -H newc --quiet > {image} && "
        f"cd / && chroot /mnt sh -c 'cd /root/image && mkdir -p conf/conf.d usr/lib usr/sbin && "
        f"ln -s usr/lib usr/sbin . && {BY_MKINITRAMFS} DESTDIR=/root/image "
        f"version={release} verbose=n /usr/share/initramfs-tools/hooks/dm-lc 2>&1'")
    ctx.run(f"rm -r /run/old {image} /mnt/root/image")
    kept = "The image that is there has it, and is kept" in said
    assert code == (1 if kept else 0), (code, said)
    return kept


def handed_over(ctx, image, end="true"):
    """An initramfs that was made in the chroot is that of the next boot, copied to the host. `end`
    stops what lies on the volume.
    """
    ctx.initrd = ctx.folder / "initrd.img"
    ctx.figure("initrd_bytes", ctx.take(f"/mnt{image}", ctx.initrd))
    ctx.run(f"umount -R /mnt && {end} && udevadm settle && lc-remove root", limit=300)


def on_the_volume(ctx, life, replayed, device=VOLUME):
    """The root is the volume or lies on it, in that life of it; nothing failed."""
    assert ctx.run("findmnt --noheadings --output SOURCE /").strip() == device
    started = ctx.run("journalctl -b -k --no-pager -o cat | grep device-mapper:")
    assert f"epoch {life}:" in started, started
    assert ("replayed" in started) == replayed, started
    assert ctx.run("dmsetup table root").split()[2] == "lc"
    assert not ctx.run("systemctl --failed --plain --no-legend").strip()


def write_until_the_power_goes(ctx):
    """Synced files on the root; returns {file: sum} of those whose sync came back."""
    ctx.run("mkdir /srv/synced && sync / && cat > /run/writer << 'END_OF_SCRIPT'\n"
            "for i in $(seq 100000); do\n"
            "dd if=/dev/urandom of=/srv/synced/$i bs=4k count=$((i % 50 + 1)) conv=fsync "
            "2> /dev/null\n"
            "sync /srv/synced\n"
            "sum=$(sha256sum < /srv/synced/$i)\n"
            "echo \"synced $i ${sum%% *} .\" > /dev/console\n"
            "done\n"
            "END_OF_SCRIPT\n"
            "setsid sh /run/writer < /dev/null > /dev/null 2>&1 &")

    def told():
        return SYNCED.findall(ctx.console().read_text("utf-8", "replace"))

    wait.until(lambda: len(told()) >= WRITTEN, 300 * ctx.scale, f"{WRITTEN} synced files")
    ctx.cut()
    return dict(told())


def nothing_is_lost(ctx, synced):
    """All of {file: sum} are there; returns the sums of all files, as sha256sum prints them."""
    sums = ctx.run("cd /srv/synced && sha256sum *", limit=300)
    found = {name: total for total, name in map(str.split, sums.splitlines())}
    lost = {name: total for name, total in synced.items() if found.get(name) != total}
    assert not lost, f"synced, but not there: {lost}"
    return sums


def prepared(ctx):
    """The packages are installed, the initramfs needs nothing of them yet, and a volume runs."""
    installed(ctx, debs.project_version())
    ctx.run("sed -i /dm-lc/d /etc/initramfs-tools/modules && modprobe dm-lc")
    assert hook_alone(ctx, "/", ctx.kernel.release) == "", \
        "an image that needs no volume has something of it"
    ctx.run(f"lc-format --yes --backing {ctx.path('hdd')} {ctx.path('ssd')} && "
            f"lc-resume root {ctx.path('ssd')}")


@case(kernels=("server",), disks=DISKS, timeout=2400, module="", memory="1G", long=True)
def root_on_a_volume(ctx):
    """A copy of the system, with the packages, on a volume boots from it by initramfs-tools' hook;
    a power cut under synced writes loses none of them; a restart stops the volume cleanly; an SSD
    that is not there when the volume is first to start is waited for.
    """
    release = ctx.kernel.release
    prepared(ctx)
    copied(ctx)
    said = hook_alone(ctx, "/mnt", release)
    assert "which has no line in /etc/lctab" in said and "./etc/lctab" in said, said
    configured(ctx)
    said = hook_alone(ctx, "/mnt", "9.9")
    assert "there is no module dm-lc for that kernel" in said and "linux-headers-9.9" in said, said
    assert image_is_kept(ctx, "9.9", "dm-lc.ko")
    assert not image_is_kept(ctx, "9.9", "dm-mod.ko")
    assert f"root {ctx.path('ssd')} {ctx.path('hdd')} x-initrd.attach,verify_reads=on" in said, said
    assert "archive" not in said, said
    said = ctx.run("chroot /mnt update-initramfs -c -k $(uname -r) 2>&1", limit=900)
    assert "dm-lc" not in said, said
    assert ctx.run("chroot /mnt sh -c 'lsinitramfs /boot/initrd.img-* | grep -c /dm-lc.ko'").strip()
    handed_over(ctx, f"/boot/initrd.img-{release}")
    ctx.stop()
    ctx.root = "root=/dev/mapper/root"
    ctx.start()
    on_the_volume(ctx, 2, replayed=False)
    assert ctx.run("dmsetup table root | grep -c 'verify_reads on'").strip() == "1"
    synced = write_until_the_power_goes(ctx)
    ctx.root = f"root=UUID={UUID} fsck.mode=force"
    ctx.start()
    on_the_volume(ctx, 3, replayed=True)
    checked = ctx.run("cat /run/initramfs/fsck.log")
    assert "files" in checked and "FIXED" not in checked and "WARNING" not in checked, checked
    sums = nothing_is_lost(ctx, synced)
    ctx.figure("synced_files", len(synced))
    ctx.stop("reboot")
    ctx.root = "root=/dev/mapper/root late"
    ctx.start()
    assert "the SSD is late" in ctx.console().read_text("utf-8", "replace")
    on_the_volume(ctx, 4, replayed=False)
    ctx.run("cd /srv/synced && sha256sum --quiet -c /dev/stdin << 'END_OF_SUMS'\n"
            f"{sums}END_OF_SUMS", limit=300)


@case(kernels=("server",), disks=(Disk("hdd", "4G"), Disk("ssd", "512M"), Disk("copies", "512M")),
      timeout=5400, module="", memory="2G", long=True)
def root_gets_a_new_kernel(ctx):
    """The root is on a volume: an upgrade of the kernel builds the module and makes an initramfs
    that has it, and the new kernel boots from the volume, after a crash, too.
    """
    version = debs.project_version()
    prepared(ctx)
    copied(ctx, LEFT_OUT)
    configured(ctx)
    ctx.run("chroot /mnt update-initramfs -c -k $(uname -r) 2>&1", limit=900)
    handed_over(ctx, f"/boot/initrd.img-{ctx.kernel.release}")
    ctx.stop()
    ctx.root = "root=/dev/mapper/root"
    ctx.start()
    on_the_volume(ctx, 2, replayed=False)
    new, _ = new_kernel(ctx)
    ctx.figure("kernels", [ctx.kernel.release, new])
    module_is_from_dkms(ctx, new, version)
    next_kernel(ctx, new)
    ctx.reboot()
    on_the_volume(ctx, 3, replayed=False)
    runs_its_module(ctx, new)
    ctx.run("echo heard > /srv/word && sync")
    ctx.kill()
    ctx.start()
    on_the_volume(ctx, 4, replayed=True)
    assert ctx.run("cat /srv/word").strip() == "heard"


def downloaded(ctx, package):
    """Install a package of the suite in the copy."""
    source = apt.PrivateApt(f"{package}-{ctx.suite}", [ctx.suite])
    source.update()
    folder = ctx.folder / package
    source.download(folder, ctx.payload.root.with_name("dpkg-status"), ctx.suite, package)
    ctx.put("/mnt/root/downloaded", *folder.glob("*.deb"))
    ctx.run("chroot /mnt sh -c 'apt-get install -y /root/downloaded/*.deb'", limit=900)


def with_dracut(ctx):
    """dracut takes the place of initramfs-tools in the copy; returns the image that it makes."""
    downloaded(ctx, "dracut")
    # Under this name the shutdown finds it again.
    image = f"/boot/initrd.img-{ctx.kernel.release}"
    said = ctx.run(f"chroot /mnt dracut --force {image} {ctx.kernel.release} 2>&1", limit=1200)
    assert "dm-lc" in ctx.run(f"chroot /mnt lsinitrd -m {image}"), said
    return image


@case(kernels=("server",), disks=DISKS, timeout=2400, module="", memory="1G", long=True)
def root_on_a_volume_by_dracut(ctx):
    """The system boots from a volume by dracut's module; a shutdown goes back into the image and
    stops the volume cleanly; a power cut is a replay.
    """
    ctx.install()
    ctx.run(f"lc-format --yes --backing {ctx.path('hdd')} {ctx.path('ssd')} && "
            f"lc-resume root {ctx.path('ssd')}")
    copied(ctx)
    configured(ctx)
    handed_over(ctx, with_dracut(ctx))
    ctx.stop()
    ctx.root = "root=/dev/mapper/root"
    ctx.start()
    on_the_volume(ctx, 2, replayed=False)
    ctx.reboot()
    on_the_volume(ctx, 3, replayed=False)
    synced = write_until_the_power_goes(ctx)
    ctx.start()
    on_the_volume(ctx, 4, replayed=True)
    nothing_is_lost(ctx, synced)


# Encrypted and divided by LVM, as by Debian's installer. The key is in the initramfs.
ENCRYPTED = f"""
set -e
mkdir -m 0700 /etc/keys
head -c 64 /dev/urandom > /etc/keys/root.key
ln -s /etc/keys/root.key /root/key
cryptsetup luksFormat {LUKS} {VOLUME}
cryptsetup open --key-file /root/key {VOLUME} secret
pvcreate -q /dev/mapper/secret
vgcreate -q data /dev/mapper/secret
lvcreate -q -n root -l 100%FREE data
"""
OPENED = f"""
set -e
cd /mnt/etc
echo 'secret {VOLUME} /etc/keys/root.key luks,initramfs,x-initrd.attach' >> crypttab
echo 'KEYFILE_PATTERN=/etc/keys/*.key' >> cryptsetup-initramfs/conf-hook
echo UMASK=0077 >> initramfs-tools/initramfs.conf
"""
LOGICAL = "/dev/mapper/data-root"


@case(kernels=("server",), disks=DISKS, timeout=2400, module="", memory="1G", long=True)
def root_below_luks_and_lvm(ctx):
    """The volume is encrypted, and the root a logical volume on that: the hook finds the volume
    below it, the system boots from it, stops it cleanly, and replays it after a power cut.
    """
    ctx.install()
    ctx.run(f"lc-format --yes --backing {ctx.path('hdd')} {ctx.path('ssd')} && "
            f"lc-resume root {ctx.path('ssd')}")
    ctx.run(ENCRYPTED, limit=300)
    copied(ctx, device="/dev/data/root")
    downloaded(ctx, "cryptsetup-initramfs")
    said = hook_alone(ctx, "/mnt", ctx.kernel.release)
    assert "lies on root, which has no line in /etc/lctab" in said, said
    configured(ctx)
    ctx.run(OPENED)
    ctx.run("chroot /mnt update-initramfs -c -k $(uname -r) 2>&1", limit=900)
    handed_over(ctx, f"/boot/initrd.img-{ctx.kernel.release}",
                "vgchange -an data && cryptsetup close secret")
    ctx.stop()
    ctx.root = f"root={LOGICAL}"
    ctx.start()
    on_the_volume(ctx, 2, replayed=False, device=LOGICAL)
    ctx.reboot()
    on_the_volume(ctx, 3, replayed=False, device=LOGICAL)
    synced = write_until_the_power_goes(ctx)
    ctx.start()
    on_the_volume(ctx, 4, replayed=True, device=LOGICAL)
    nothing_is_lost(ctx, synced)
