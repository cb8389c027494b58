# SPDX-License-Identifier: GPL-2.0-only
"""Which lines of /etc/lctab an initramfs needs, with a /sys and an fstab that are made up."""

import os
import subprocess

import pytest

from lib import host

SCRIPT = host.TOP / "userland/initrd/initrd-lines"
TAB = """\
# comment

root  LC=5c1e0b8e-7d0f-4f43-9d7e-6a6f1d7c4a51
data  /dev/nvme0n1 /dev/sdb noauto,buffers=32
early /dev/nvme1n1 - nofail,x-initrd.attach,noauto
other /dev/nvme2n1 /dev/sdc nofail
"""
EARLY = "early /dev/nvme1n1 - nofail,x-initrd.attach\n"
# $MOUNTED and $FSTAB: what has / there.
FINDMNT = """#!/bin/sh
case "$*" in
*UUID*|*/usr) ;;
*--fstab*) echo "$FSTAB" ;;
*) echo "$MOUNTED" ;;
esac
"""
MAJOR = 253  # of the device nodes, which nothing opens


class Machine:
    """Block devices as /sys shows them, and the mount of /."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}",
                            "LCTAB": str(folder / "lctab"), "LC_SYSFS": str(folder / "sys"),
                            "MOUNTED": "", "FSTAB": ""}
        for name, text in (("findmnt", FINDMNT), ("findfs", '#!/bin/sh\necho "$1"\n')):
            (folder / "bin").mkdir(exist_ok=True)
            (folder / "bin" / name).write_text(text, encoding="ascii")
            (folder / "bin" / name).chmod(0o755)
        (folder / "lctab").write_text(TAB, encoding="ascii")
        for part in ("sys/dev/block", "sys/block", "dev"):
            (folder / part).mkdir(parents=True)

    def device(self, number, *slaves, name="", uuid="", partition_of=None):
        """A node for a device; slaves are numbers."""
        home = self.folder / "sys/block" / f"dm-{number}"
        if partition_of is not None:
            home = self.folder / "sys/block" / f"dm-{partition_of}" / f"part{number}"
        (home / "slaves").mkdir(parents=True)
        if partition_of is not None:
            (home / "partition").write_text("1\n", encoding="ascii")
        for slave in slaves:
            (home / "slaves" / str(slave)).symlink_to(self.folder / "sys/block" / f"dm-{slave}")
        if uuid:
            (home / "dm").mkdir()
            (home / "dm/uuid").write_text(uuid + "\n", encoding="ascii")
            (home / "dm/name").write_text(name + "\n", encoding="ascii")
        (self.folder / f"sys/dev/block/{MAJOR}:{number}").symlink_to(home)
        node = self.folder / f"dev/{number}"
        os.mknod(node, 0o600 | 0o060000, os.makedev(MAJOR, number))
        return str(node)

    def lines(self, *devices, **mounts):
        """(what is printed, what is said)."""
        done = subprocess.run([SCRIPT, *devices], env={**self.environment, **mounts}, check=True,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return done.stdout, done.stderr


@pytest.fixture(name="machine")
def fixture_machine(tmp_path):
    """One without devices."""
    if os.geteuid():
        pytest.skip("makes device nodes")
    return Machine(tmp_path)


def test_only_what_is_asked_for(machine):
    """The root is on a bare disk: only the line that asks for it, and without a table none."""
    disk = machine.device(1)
    assert machine.lines(MOUNTED=disk, FSTAB="UUID=1") == (EARLY, "")
    (machine.folder / "lctab").unlink()
    assert machine.lines(MOUNTED=disk) == ("", "")


def test_below_other_devices(machine):
    """/ lies on a partition of a mapping of two devices, one of which is a volume."""
    machine.device(1)
    machine.device(2, 1, name="data", uuid="LC-2")
    machine.device(3, 1, 2, name="group-root", uuid="LVM-x")
    part = machine.device(4, partition_of=3)
    out, said = machine.lines(MOUNTED=part)
    # Nothing would start it there with noauto.
    assert out == "data /dev/nvme0n1 /dev/sdb x-initrd.attach,buffers=32\n" + EARLY
    assert "lies on data: add x-initrd.attach to its options" in said, said


def test_of_fstab_and_of_the_command_line(machine):
    """A name in fstab counts before the volume is there; so do devices that are named."""
    assert machine.lines(FSTAB="/dev/mapper/root")[0].startswith(
        "root LC=5c1e0b8e-7d0f-4f43-9d7e-6a6f1d7c4a51 - x-initrd.attach\n" + EARLY)
    swap = machine.device(2, name="other", uuid="LC-2")
    out, said = machine.lines(swap)
    assert out == EARLY + "other /dev/nvme2n1 /dev/sdc x-initrd.attach,nofail\n"
    assert "swap lies on other" in said and "RESUME=none" in said and "root" not in said, said
    out, said = machine.lines(swap, MOUNTED=swap)
    assert "root file system lies on other: add x-initrd.attach" in said and "RESUME" not in said


def test_volume_without_a_line(machine):
    """The image gets a line, and the person is told to keep it."""
    volume = machine.device(2, name="new", uuid="LC-0b5d")
    out, said = machine.lines(MOUNTED=volume)
    assert out == EARLY + "new LC=0b5d - x-initrd.attach\n"
    assert "new, which has no line in" in said and "    new LC=0b5d - x-initrd.attach\n" in said


def test_lines_are_printed_as_they_are(machine):
    """Escapes stay escapes, and the last line counts without its end."""
    (machine.folder / "lctab").write_text(r"a LABEL=my\040ssd - x-initrd.attach" "\n"
                                          "b /dev/sda - x-initrd.attach", encoding="ascii")
    assert machine.lines() == (r"a LABEL=my\040ssd - x-initrd.attach" "\n"
                               "b /dev/sda - x-initrd.attach\n", "")
