# SPDX-License-Identifier: GPL-2.0-only
"""The guests' roots: each a squashfs of this machine's own Debian suite, built once.

The suite is the host's, so that tools built on the host find their libraries in
the guest; the kernel is independent of it.
"""

import os
import shutil

from . import apt, host

RECIPE = 1  # count up when the way the image is made changes

# package: why the guest has it
PACKAGES = {
    "python3": "runs the cases",
    "kmod": "modprobe, rmmod",
    "dmsetup": "the tests' own view of device mapper, beside the tools' view",
    "util-linux": "mount, losetup, blkdiscard, blockdev, wipefs",
    "mount": "mount",
    "fdisk": "makes the partition tables that lc-format must refuse",
    "procps": "ps in hang reports",
    "fio": "verified load",
    "stress-ng": "file-system load (Debian has no fsstress)",
    "e2fsprogs": "ext4",
    "xfsprogs": "xfs",
    "strace": "proves what the tools do not write",
    "blktrace": "counts the commands that leave for a disk",
    "libjson-c5": "linked by lc",
    "libblkid1": "linked by lc",
    "libdevmapper1.02.1": "linked by lc",
}

# Nothing in a guest reads these.
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")


def image(name="guest", packages=None):
    """The path of the squashfs with these packages, made if it is not there."""
    suite = host.codename()
    packages = packages or PACKAGES
    key = host.digest(suite, " ".join(packages), " ".join(LEFT_OUT), RECIPE)
    path = host.cache() / f"{name}-{suite}-{key}.squashfs"
    with host.locked(f"{name}-root"):
        if not path.exists():
            make(name, suite, packages, path)
        host.keep(path, f"{name}-*.squashfs")
    return path


def make(name, suite, packages, path):
    """mmdebstrap into a folder (as root, or with fakechroot rights), then mksquashfs."""
    log = host.cache() / f"{name}-root.log"
    work = host.cache() / f".work-{name}-root"
    tar = work.with_suffix(".tar")
    shutil.rmtree(work, ignore_errors=True)
    host.say(f"{name} root: Debian {suite}, {len(packages)} packages; log in {log}")
    mirror = f"deb [signed-by={apt.KEYRING}] {apt.mirror()} {suite} main"
    mode = "root" if os.geteuid() == 0 else "unshare"
    options = [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]
    host.run("mmdebstrap", f"--mode={mode}", "--variant=minbase", *options,
             f"--include={','.join(packages)}", suite, tar, mirror, log=log)
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    # Not compressed: an emulated CPU unpacks slower than the host reads.
    with open(tar, "rb") as stream:
        host.run("sqfstar", "-noI", "-noD", "-noF", "-noX", "-quiet", "-no-progress", fresh,
                 log=log, stdin=stream)
    tar.unlink()
    fresh.rename(path)


if __name__ == "__main__":
    print(image())
