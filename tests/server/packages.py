# SPDX-License-Identifier: GPL-2.0-only
"""The Debian packages on an ordinary Debian: from the first installation to purge."""

import re
import shutil

from lclib import Disk, case, wait
from lib import debs, host, serverroot

DISKS = (Disk("hdd", "512M", bus="scsi", rotation=7200),
         Disk("ssd", "256M", bus="scsi", rotation=1), Disk("copies", "512M"))
DEBS = "~admin/dm-lc/build/deb"     # where README.md's line finds them
PACKAGES = ("dm-lc", "dm-lc-dkms")
NEW = "99.0.0"
BUILDING = 1500     # seconds for a command in which dkms builds the module
# dkms strips what the compiler writes for debuggers; without it an emulated compiler is faster.
QUICK = "export KCFLAGS=-g0; "
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
    ctx.run(f"{QUICK}dpkg --configure -a", limit=BUILDING)


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
    status = ctx.run(f"dkms status dm-lc -k {release}").splitlines()
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
    said = ctx.run(f"{QUICK}apt-get install -y /root/new/*.deb", limit=BUILDING)
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
