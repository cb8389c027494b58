# SPDX-License-Identifier: GPL-2.0-only
"""The server guest's disk: an ordinary Debian of this machine's suite, or LC_SUITE's, built once.

systemd, udev and LVM as a server has them, the suite's own kernel with its headers, and what
README.md tells people to install. The kernel, its initramfs and a copy of the headers lie beside
the disk's image, so that QEMU boots the one and the host builds the module with the other; and
dpkg's list of what is installed. What another suite's guest is given is built in a root of that
suite, which lies there as well: with its compiler, headers and libraries.

By hand: `cd tests && /usr/bin/python3 -m lib.serverroot`.
"""

import os
import re
import shutil

from . import apt, guestroot, host, kernels, series

RECIPE = 2  # count up when the way the image is made changes
UNIT = host.TESTS / "server/guest/dm-lc-agent.service"
SIZE = "6G"  # of the file system; the file is sparse

# package: why the guest has it
PACKAGES = {
    "systemd-sysv": "starts and stops the machine",
    "udev": "probes and names the disks",
    "dbus": "systemctl and journalctl as on a server",
    "lvm2": "volume groups below and above the volume, blkdeactivate",
    "mdadm": "arrays below the volume",
    "cryptsetup": "encrypted disks below and above the volume",
    "dmsetup": "the tests' own view of device mapper",
    "linux-image-amd64": "the stock kernel",
    "initramfs-tools": "finds the root as on a server",
    "zstd": "compresses the initramfs",
    "e2fsprogs": "ext4",
    "fdisk": "partitions that are halves of a pair",
    "xfsprogs": "xfs",
    "sudo": "README.md's commands use it",
    "python3": "runs the agent",
    "procps": "ps in reports",
    "bpftrace": "what lc-latency is a program for",
    "dkms": "builds the module of the packages",
    "drbd-utils": "two machines keep one disk",
    "nvme-cli": "disks of another machine",
    "postgresql": "a database that knows when its disk lied",
}

HOOKS = (
    # No database on the root: the cases make one on the volume.
    ("essential", 'mkdir -p "$1/etc/postgresql-common"'),
    ("essential", 'echo create_main_cluster=false > "$1/etc/postgresql-common/createcluster.conf"'),
    ("customize", 'chroot "$1" useradd --create-home --shell /bin/bash admin'),
    ("customize", 'echo "admin ALL=(ALL) NOPASSWD: ALL" > "$1/etc/sudoers.d/admin"'),
    ("customize", 'echo server > "$1/etc/hostname"'),
    ("customize", 'echo "127.0.0.1 localhost server" > "$1/etc/hosts"'),
    ("customize", 'echo "LABEL=rootfs / ext4 errors=remount-ro 0 1" > "$1/etc/fstab"'),
    ("customize", 'mkdir -p "$1/var/log/journal" "$1/opt/dm-lc"'),
    ("customize", "copy-in UNIT /etc/systemd/system"),
    ("customize", 'chroot "$1" systemctl enable dm-lc-agent.service'),
    # Each of them would read or write the disks at a time of its own.
    ("customize", 'chroot "$1" systemctl mask apt-daily.timer apt-daily-upgrade.timer '
                  "e2scrub_all.timer e2scrub_reap.service fstrim.timer dpkg-db-backup.timer"),
)


def readme_parts():
    """{title: text} of README.md's section "On real hardware"."""
    text = (host.TOP / "README.md").read_text(encoding="utf-8")
    section = text.partition("\n## On real hardware\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^### ([^\n]+)\n(.*?)(?=^### |\Z)", section, re.M | re.S))


def readme_section():
    """What that section says of a machine without the Debian packages, from `make` on."""
    parts = readme_parts()
    return parts["From the sources"] + parts["A volume"]


def readme_packages():
    """What README.md says to install for `make`."""
    return re.search(r"`apt install ([^`]*)`", readme_section()).group(1).split()


def build_packages():
    """What README.md says to install for `make` and for `make deb`."""
    line = re.search(r"^sudo apt install (build-essential .*)$",
                     readme_parts()["As Debian packages"], re.M).group(1)
    return sorted({*readme_packages(), *line.split()})


def guest_suite():
    """LC_SUITE, or this machine's own."""
    return os.environ.get("LC_SUITE") or host.codename()


def image():
    """The kernels.Kernel of the server guest; its `home` folder holds root.img and initrd."""
    suite = guest_suite()
    foreign = suite != host.codename()
    if suite not in series.SUITES or "backports" in suite:
        raise RuntimeError(f"LC_SUITE={suite}: no suite that a server guest can be of")
    if foreign and os.geteuid():
        raise RuntimeError("a root of another suite is made and entered by root only")
    packages = [*PACKAGES, *readme_packages()]
    builders = build_packages() if foreign else []
    key = host.digest(suite, " ".join(packages), " ".join(guestroot.LEFT_OUT), repr(HOOKS), UNIT,
                      SIZE, RECIPE, *builders)
    home = host.cache() / f"server-{suite}-{key}"
    with host.locked("server-root"):
        if not (home / "kernel-release").exists():
            make(suite, packages, builders, home)
        host.keep(home, "server-*-*")
    release = (home / "kernel-release").read_text(encoding="ascii")
    if foreign:
        kdir, enter = f"/usr/src/linux-headers-{release}", series.inside(home / "builder")
    else:
        kdir, enter = home / "tree/usr/src" / f"linux-headers-{release}", ()
    return kernels.Kernel("server", release, home / "vmlinuz", home / "tree/usr/lib/modules",
                          kdir, kdir, enter)


def make(suite, packages, builders, home):
    """mmdebstrap into a tar file, then a folder, then mkfs.ext4; and a root with the builders."""
    log = host.cache() / "server-root.log"
    log.write_bytes(b"")
    work = host.cache() / ".work-server-root"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    host.say(f"server root: Debian {suite}, several minutes; log in {log}")
    sources = apt.PrivateApt(f"server-{suite}", series.SUITES[suite]).lines
    mode = "root" if os.geteuid() == 0 else "unshare"
    options = [f"--dpkgopt=path-exclude={pattern}" for pattern in guestroot.LEFT_OUT]
    options += [f"--{kind}-hook={command.replace('UNIT', str(UNIT))}"
                for kind, command in HOOKS]
    host.run("mmdebstrap", f"--mode={mode}", "--variant=minbase", *options,
             f"--include={','.join(packages)}", suite, work / "root.tar", *sources, log=log)
    as_root = [] if mode == "root" else ["fakeroot"]
    host.run(*as_root, "sh", "-ec", PACK, "pack", work, SIZE, log=log)
    (work / "root.tar").unlink()
    release = next((work / "boot").glob("vmlinuz-*")).name.removeprefix("vmlinuz-")
    (work / "boot" / f"vmlinuz-{release}").rename(work / "vmlinuz")
    (work / "boot" / f"initrd.img-{release}").rename(work / "initrd")
    (work / "boot").rmdir()
    if builders:
        series.make_root(suite, builders, work / "builder", sources, log)
        if not (work / "builder/usr/src" / f"linux-headers-{release}").exists():
            raise RuntimeError(f"{suite} changed meanwhile, there are no headers of {release}")
    kernels.relocate_headers(work / "tree", home / "tree")
    (work / "kernel-release").write_text(release, encoding="ascii")
    shutil.rmtree(home, ignore_errors=True)
    work.rename(home)


# $1: the work folder, $2: the size. Ownership must survive, so it is one process.
PACK = """
mkdir "$1/root" "$1/boot" "$1/tree"
tar -x -C "$1/root" -f "$1/root.tar"
truncate -s "$2" "$1/root.img"
mkfs.ext4 -q -L rootfs -d "$1/root" "$1/root.img"
cp "$1"/root/boot/vmlinuz-* "$1"/root/boot/initrd.img-* "$1/boot"
mkdir -p "$1/tree/usr/src" "$1/tree/usr/lib"
cp "$1/root/var/lib/dpkg/status" "$1/dpkg-status"
cp -a "$1"/root/usr/src/linux-headers-* "$1/tree/usr/src"
cp -a "$1"/root/usr/lib/linux-kbuild-* "$1/tree/usr/lib"
rm -rf "$1/root"
"""


if __name__ == "__main__":
    print(image())
