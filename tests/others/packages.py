# SPDX-License-Identifier: GPL-2.0-only
"""What the root of these guests holds beyond that of the others."""

from lib import guestroot

# package: why
MORE = {
    "acl": "setfacl, getfacl",
    "attr": "setfattr, getfattr",
    "bc": "arithmetic of both suites",
    "blktrace": "blkparse, btt",
    "bsdextrautils": "hexdump and column, both in blktests",
    "dbench": "load of a file server",
    "file": "says what an image holds",
    "gawk": "both suites are written in it, in part",
    "hostname": "names the host in reports",
    "jq": "blktests reads fio's reports with it",
    "keyutils": "keyctl",
    "libaio1": "linked by the aio tests",
    "libcap2-bin": "setcap, capsh",
    "libgdbm6": "linked by dbtest",
    "libgdbm-compat4": "linked by dbtest",
    "liburing2": "linked by fsx and fsstress",
    "parted": "partition tables",
    "perl": "scripts of xfstests",
    "psmisc": "killall, fuser",
    "quota": "quota tools",
    "sqlite3": "a database as a load",
    "thin-provisioning-tools": "thin_check",
    "udev": "device links as on an ordinary machine",
    "uuid-runtime": "uuidgen",
    "xfsdump": "dumps of xfs",
    "xz-utils": "unpacks images",
}


def image():
    """The root's squashfs."""
    return guestroot.image("others", {**guestroot.PACKAGES, **MORE})


if __name__ == "__main__":
    print(image())
