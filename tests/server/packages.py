# SPDX-License-Identifier: GPL-2.0-only
"""The Debian packages on an ordinary Debian: from the first installation to purge, and new kernels.
"""

import re
import shutil

from lclib import Disk, case, wait
from lib import debs, host, promtool, series, serverroot

from .boot import UUID, come_back, fill, mounted, settled, shown, write
from .lctab import UNIT, is_up, stopped_in_order, tables

DISKS = (Disk("hdd", "512M", bus="scsi", rotation=7200),
         Disk("ssd", "256M", bus="scsi", rotation=1), Disk("copies", "512M"))
# What a power cut may find in a volatile cache.
RECORDED = (Disk("hdd", "512M", kind="recorded"), Disk("ssd", "256M", kind="recorded"),
            Disk("copies", "64M"))
DEBS = "~admin/dm-lc/build/deb"     # where README.md's line finds them
PACKAGES = ("dm-lc", "dm-lc-dkms")
NEW = "99.0.0"
METRICS = "/var/lib/prometheus/node-exporter"
BUILDING = 1500     # seconds for a command in which dkms builds the module
# dkms strips what the compiler writes for debuggers; an emulated one is faster with less of it.
# Without any there are no types for pahole, and the build for newer headers fails.
QUICK = "export KCFLAGS=-g1; "
# A program that uses the volume all the time.
USER = """
cd /srv/music
n=0
while echo $n >> beats && sync beats; do
	n=$((n + 1))
	sleep 1
done
"""


def built(ctx, version=None):
    """Build the packages of this version; their paths."""
    tree = debs.sources(ctx.folder / f"source-{version}", version)
    found = debs.build(tree, ctx.folder / f"deb-{version}", enter=ctx.kernel.enter)
    shutil.rmtree(tree)
    return [found[name] for name in PACKAGES]


def readme_line():
    """README.md's line that installs the packages."""
    line, = re.findall(r"^sudo apt install \./.*$", serverroot.readme_parts()["As Debian packages"],
                       re.M)
    return line


def loaded(ctx):
    """The loaded module: its folder is another one after it was loaded again."""
    return ctx.run("stat -c %i /sys/module/dm_lc").strip()


def beats(ctx):
    """How often the program has written."""
    return int(ctx.run("wc -l < /srv/music/beats"))


class Music:
    """The mounted volume with its user: what must not change."""

    def __init__(self, ctx):
        self.ctx = ctx
        ctx.run(f"modprobe dm-lc && lc-format --yes -o writeback=off --backing {ctx.path('hdd')} "
                f"{ctx.path('ssd')} && lc-resume music {ctx.path('ssd')} && "
                "mkfs.ext4 -q /dev/mapper/music && mkdir /srv/music && "
                "mount /dev/mapper/music /srv/music && cd /srv/music && "
                "dd if=/dev/urandom of=data bs=1M count=32 conv=fsync status=none && "
                "sha256sum data > /root/sums && cp /usr/sbin/lc /root/lc")
        ctx.run(f"cat > /root/user << 'END_OF_SCRIPT'{USER}END_OF_SCRIPT\n"
                "systemd-run --quiet --unit=user sh /root/user")
        self.module = loaded(ctx)

    def check(self):
        """The volume is the same, its data too, and its user goes on."""
        ctx = self.ctx
        assert loaded(ctx) == self.module
        ctx.run("systemctl is-active user && echo 3 > /proc/sys/vm/drop_caches && "
                "cd /srv/music && sha256sum --quiet -c /root/sums")
        before = beats(ctx)
        wait.until(lambda: beats(ctx) > before, 100 * ctx.scale, "the next write")

    def stop(self):
        """End its user and the volume, without the tools."""
        self.ctx.run("systemctl stop user && umount /srv/music && udevadm settle && "
                     "dmsetup remove music")


def few_modules(ctx):
    """The initramfs has what this machine boots with and dm-lc, and no more: it is made quickly."""
    ctx.run("echo MODULES=list > /etc/initramfs-tools/conf.d/few && "
            "printf '%s\\n' virtio_pci virtio_blk ext4 dm-lc > /etc/initramfs-tools/modules")


def building(ctx, command):
    """Run a command in which dkms builds the module; the log of a build that fails is shown."""
    return ctx.run(f"{QUICK}{command} || {{ code=$?; "
                   "tail -n 30 /var/lib/dkms/dm-lc/*/build/make.log; exit $code; }",
                   limit=BUILDING)


def missing_headers_are_an_error(ctx, release):
    """Without headers apt fails and names the package; once they are there, dpkg goes on."""
    build = f"/lib/modules/{release}/build"
    ctx.run(f"mv {build} {build}.away")
    code, said = ctx.result(f"cd dm-lc && {readme_line()}", user="admin", limit=BUILDING)
    assert code and f"apt install linux-headers-{release}" in said, said
    assert "dpkg --configure -a" in said, said
    assert "half-configured" in ctx.run("dpkg-query -W -f '${Status}' dm-lc-dkms")
    assert ctx.result("modinfo dm-lc")[0]
    ctx.run(f"mv {build}.away {build}")
    building(ctx, "dpkg --configure -a")


def module_is_from_dkms(ctx, release, version):
    """modprobe finds the module that dkms built of this version and signed with its own key, no
    other is known for this kernel, and the initramfs was made afterwards.
    """
    module = ctx.run(f"modinfo -k {release} -F filename dm-lc").strip()
    assert module.startswith(f"/lib/modules/{release}/updates/dkms/dm-lc.ko"), module
    assert "DKMS module signing key" in ctx.run(f"modinfo -k {release} -F signer dm-lc")
    initrd = f"/boot/initrd.img-{release}"
    listed = ctx.run(f"test {initrd} -nt {module} && lsinitramfs {initrd}")
    assert "/updates/dkms/dm-lc.ko" in listed, listed
    # It also tells what readelf says of a module without a compiler's name in it.
    status = [line for line in ctx.run(f"dkms status dm-lc -k {release}").splitlines()
              if line.startswith("dm-lc/")]
    assert len(status) == 1 and f"dm-lc/{version}, {release}" in status[0] \
        and "installed" in status[0], status


def nothing_is_left(ctx, release):
    """Neither files of the packages nor dkms' own."""
    # Of one that dpkg has forgotten it prints nothing.
    assert "dm-lc" not in ctx.run("dpkg-query -W")
    left = ctx.run("ls -d /usr/src/dm-lc* /var/lib/dkms/dm-lc /usr/share/doc/dm-lc* /usr/sbin/lc* "
                   f"/lib/modules/{release}/updates/dkms/dm-lc* 2> /dev/null || true")
    assert not left, left


@case(kernels=("server",), disks=DISKS, timeout=3600, module="", memory="2G", long=True)
def packages_from_install_to_purge(ctx):
    """README.md's line installs the packages, or says what is missing; upgrade, removal and purge
    stop no volume that is mounted, and its data stays.
    """
    release = ctx.kernel.release
    ctx.put(DEBS, *built(ctx))
    ctx.put("/root/new", *built(ctx, NEW))
    ctx.put("/root", host.TOP / "debian/tests/volume")
    few_modules(ctx)
    missing_headers_are_an_error(ctx, release)
    module_is_from_dkms(ctx, release, debs.project_version())
    hooks = ctx.run("run-parts --test /etc/kernel/postinst.d")
    assert hooks.index("/dkms") < hooks.index("/initramfs-tools"), hooks
    music = Music(ctx)
    ctx.run("sh /root/volume", limit=300)
    music.check()
    said = building(ctx, "apt-get install -y /root/new/*.deb")
    assert "the loaded module stays" in said, said
    module_is_from_dkms(ctx, release, NEW)
    assert NEW in ctx.run("lc-status --version")
    music.check()
    said = ctx.run(f"apt-get remove -y {' '.join(PACKAGES)}", limit=BUILDING)
    for line in ("these volumes go on without the tools: music",
                 "the loaded module stays, and these volumes go on: music"):
        assert line in said, said
    music.check()
    ctx.run(f"apt-get purge -y {' '.join(PACKAGES)}", limit=BUILDING)
    nothing_is_left(ctx, release)
    music.check()
    music.stop()
    checked = ctx.run(f"/root/lc check {ctx.path('ssd')}")
    assert "Stopped cleanly" in checked, checked
    ctx.run(f"/root/lc resume music {ctx.path('ssd')} && mount /dev/mapper/music /srv/music && "
            "cd /srv/music && sha256sum --quiet -c /root/sums && cd / && umount /srv/music && "
            "udevadm settle && dmsetup remove music && rmmod dm_lc")
    assert ctx.result("modprobe dm-lc")[0], "the module is still there"


def installed(ctx, version):
    """The packages. The running kernel's module is the host's, which saves the guest a build."""
    ctx.put("/root/dm-lc", *built(ctx))
    few_modules(ctx)
    ctx.run("touch /etc/dkms/no-autoinstall && apt-get install -y /root/dm-lc/*.deb && "
            "rm /etc/dkms/no-autoinstall && "
            f"{{ dkms status dm-lc | grep -q added || dkms add dm-lc/{version}; }} && "
            "tar -C /opt/dm-lc/stage -c lib/modules | tar -C / -x --keep-directory-symlink && "
            "depmod", limit=300)


def exported(ctx):
    """The timer writes what Prometheus' own checker takes, of a volume that runs; a line of
    `lc-status --watch` has its figures.
    """
    ctx.run(f"mkdir -p {METRICS} && systemctl enable -q --now lc-metrics.timer && "
            f"while [ ! -s {METRICS}/lc.prom ]; do sleep 1; done")
    text = ctx.run(f"cat {METRICS}/lc.prom")
    samples = {f"{name}{{{labels}}}" for name, labels in re.findall(r"^(\w+)\{(.*)\} \S+$", text,
                                                                   re.M)}
    assert len(samples) > 30 and all('volume="music"' in sample for sample in samples), text
    checked = promtool.check(text)
    assert checked == (0, ""), checked
    head, line = ctx.run("lc-status --watch=1 --count=1 music").strip().splitlines()[-2:]
    # "180 MiB" is one word.
    words = re.split(r" {2,}", line)
    assert words[0] == "music" and len(words) == len(head.split()), (head, line)


def mount_by_tables(ctx, source):
    """A new volume of a line in /etc/lctab, mounted by one in /etc/fstab."""
    hdd, ssd = ctx.path("hdd"), ctx.path("ssd")
    ctx.run(f"modprobe dm-lc && lc-format --yes -o writeback=off --backing {hdd} {ssd} && "
            "mkdir /srv/music && udevadm settle")
    tables(ctx, f"LC={ctx.run(f'lsblk -dno UUID {ssd}').strip()} -",
           f"{source} /srv/music ext4 x-systemd.device-timeout=10min 0 2")
    ctx.run(f"systemctl start {UNIT} && mkfs.ext4 -q -U {UUID} /dev/mapper/music && "
            "udevadm settle && mount /srv/music")


@case(kernels=("server",), disks=RECORDED, timeout=1500, module="", memory="1G")
def installed_volume_survives_each_boot(ctx):
    """Once the packages are installed, a line in /etc/lctab and one in /etc/fstab mount the volume
    with everything after a reboot, which stops it cleanly, and after a power cut; no unit fails.
    """
    installed(ctx, debs.project_version())
    mount_by_tables(ctx, f"UUID={UUID}")
    fill(ctx, "/srv/music")
    ctx.reboot()
    is_up(ctx)
    stopped_in_order(ctx)
    said = ctx.run("dmesg")
    assert "epoch 2:" in said and "replayed" not in said, said
    write(ctx, "/srv/music", "{200..203}", 1)
    ctx.run("sync")     # the sums
    ctx.cut()
    ctx.start()
    is_up(ctx)
    assert "replayed" in ctx.run("dmesg") and shown(ctx)["mode"] == "rw"
    exported(ctx)


@case(kernels=("server",), disks=RECORDED, timeout=2400, module="", memory="1G", long=True)
def volume_outlives_its_packages(ctx):
    """The packages go, and the volume of a line in /etc/lctab stays mounted, also when udev next
    looks at its disks; installed again, they find the pair; purged, they leave nothing behind.
    """
    links = "ls /dev/disk/by-lc"
    installed(ctx, debs.project_version())
    mount_by_tables(ctx, "/dev/mapper/music")
    write(ctx, "/srv/music", "{200..203}", 1)
    exported(ctx)
    assert len(ctx.run(links).split()) == 2
    ctx.run("apt-get remove -y dm-lc", limit=300)
    ctx.run("udevadm trigger --settle --subsystem-match=block")
    assert ctx.result(links)[0] and ctx.result(f"ls {METRICS}/lc.prom")[0]
    settled(ctx)
    assert mounted(ctx) == "/dev/mapper/music"
    write(ctx, "/srv/music", "{300..301}", 1)
    ctx.run("apt-get install -y /root/dm-lc/*.deb && udevadm settle", limit=300)
    assert len(ctx.run(links).split()) == 2
    ctx.run("apt-get purge -y dm-lc", limit=300)
    ctx.run("udevadm trigger --settle --subsystem-match=block")
    settled(ctx)
    assert mounted(ctx) == "/dev/mapper/music"
    come_back(ctx, "/srv/music")
    left = ctx.run(f"ls {METRICS}/lc.prom /etc/systemd/system/*.wants/lc-* /etc/lctab 2> /dev/null "
                   "|| true")
    assert not left, left


def new_kernel(ctx):
    """Upgrade kernel and headers; returns the new release and what apt and the hooks said."""
    found = series.newer(ctx.suite, ctx.kernel.release)
    if not found:
        ctx.skip(f"{ctx.suite} offers no kernel newer than {ctx.kernel.release}")
    name, new = found
    ctx.put("/root/kernel", *series.upgrade(ctx.suite, name, new,
                                            ctx.payload.root.with_name("dpkg-status")))
    return new, building(ctx, "apt-get install -y /root/kernel/*.deb")


def next_kernel(ctx, release):
    """The next boot is of that kernel, as the guest has it: QEMU is its boot loader."""
    ctx.vmlinuz, ctx.initrd = ctx.folder / "vmlinuz", ctx.folder / "initrd.img"
    ctx.take(f"/boot/vmlinuz-{release}", ctx.vmlinuz)
    ctx.take(f"/boot/initrd.img-{release}", ctx.initrd)


def runs_its_module(ctx, release):
    """That kernel runs, and the loaded module is the file that modprobe finds for it: they have the
    same build ID.
    """
    assert ctx.run("uname -r").strip() == release
    module = ctx.run("modinfo -F filename dm-lc").strip()
    unpack = {".xz": "xz -dc", ".zst": "zstd -dc"}.get(module[module.rindex("."):], "cat")
    ctx.run(f"{unpack} {module} > /run/dm-lc.ko && objcopy -O binary -j .note.gnu.build-id "
            "/run/dm-lc.ko /run/id && test -s /run/id && "
            "cmp /run/id /sys/module/dm_lc/notes/.note.gnu.build-id")


@case(kernels=("server",), disks=DISKS, timeout=3600, module="", memory="2G", long=True)
def kernel_is_upgraded(ctx):
    """An upgrade of the kernel gets its module from dkms before its initramfs is made, and stops
    nothing; the new kernel starts the volume of /etc/lctab, with everything.
    """
    version = debs.project_version()
    installed(ctx, version)
    music = Music(ctx)
    ctx.run(f"echo 'music {ctx.path('ssd')} {ctx.path('hdd')}' >> /etc/lctab && "
            "echo '/dev/mapper/music /srv/music ext4 defaults 0 2' >> /etc/fstab && "
            "systemctl daemon-reload && systemctl start lc@music.service")
    new, said = new_kernel(ctx)
    ctx.figure("kernels", [ctx.kernel.release, new])
    order = [said.find(text) for text in (f"/{new}/updates/dkms/",
                                          f"Generating /boot/initrd.img-{new}")]
    assert -1 not in order and order == sorted(order), said
    module_is_from_dkms(ctx, new, version)
    music.check()
    next_kernel(ctx, new)
    ctx.reboot()
    settled(ctx)
    runs_its_module(ctx, new)
    assert mounted(ctx) == "/dev/mapper/music"
    ctx.run("cd /srv/music && sha256sum --quiet -c /root/sums && lc-status music")
    assert not ctx.run("systemctl --failed --plain --no-legend").strip()
