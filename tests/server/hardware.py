# SPDX-License-Identifier: GPL-2.0-only
"""What README.md tells people to type, typed on an ordinary Debian."""

import re
import shlex
import time

from lclib import Disk, case
from lib import serverroot

DISKS = (Disk("hdd", "512M", bus="scsi", rotation=7200), Disk("ssd", "256M", bus="nvme"))
PLACEHOLDERS = {"/dev/sdb": "hdd", "/dev/nvme0n1": "ssd"}
# Two of the guest's processors compile; nothing else is told to make.
ENVIRONMENT = "export MAKEFLAGS=-j2"
BUILDING = 1000  # seconds for a line that compiles


def lines_of(text):
    """The lines of its blocks of commands, as they stand there."""
    blocks = re.findall(r"^```\n(.*?)^```$", text, re.M | re.S)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def with_devices(ctx, line):
    """The line with this machine's disks in place of those of the example."""
    for name, disk in PLACEHOLDERS.items():
        line = re.sub(rf"{name}\b", ctx.path(disk), line)
    return line


def typed(ctx, line):
    """A person with sudo types one line, in the folder of the sources, and says yes if asked."""
    started = time.monotonic()
    asks = re.search(r"#.*\basks\b", line)
    printed = ctx.run(f"{ENVIRONMENT}\ncd dm-lc && {{\n{line}\n}}", user="admin", limit=BUILDING,
                      answers="yes\n" if asks else None)
    ctx.figures.setdefault("line_seconds", {})[line] = round(time.monotonic() - started, 1)
    return printed


@case(kernels=("server",), disks=DISKS, timeout=1500, module="", memory="2G", long=True)
def readme_from_make_to_mount(ctx):
    """Every line of README.md's section "On real hardware" does what it says, from the packages
    and `make` to a mounted volume, on a machine that had neither module nor tools.
    """
    text = serverroot.readme_section()
    lines = lines_of(text)
    for name in PLACEHOLDERS:
        assert any(re.search(rf"{name}\b", line) for line in lines), f"no line names {name}"
    # The compiler's many small files are not what is on trial.
    ctx.run("mkdir ~admin/dm-lc && mount -t tmpfs -o size=512M,uid=admin,mode=755 sources "
            "~admin/dm-lc")
    ctx.run("cp -r /opt/dm-lc/source/. dm-lc", user="admin")
    assert ctx.result("modinfo dm-lc")[0] and ctx.result("which lc-format")[0]
    packages = shlex.join(serverroot.readme_packages())
    assert " 0 newly installed" in ctx.run(f"sudo apt install {packages}", user="admin")
    for line in lines:
        printed = typed(ctx, with_devices(ctx, line))
        if " lc-format " in line:
            for shown in (ctx.path("hdd"), ctx.path("ssd"), "Type 'yes' to go on"):
                assert shown in printed, printed
    mounted = ctx.run("findmnt --noheadings --output SOURCE,FSTYPE,OPTIONS /mnt").split()
    assert mounted[:2] == ["/dev/mapper/music", "ext4"] and "rw" in mounted[2].split(","), mounted
    # What the section says besides of a volume that runs.
    ctx.run("echo heard > /mnt/it && sync /mnt/it")
    commands = re.findall(r"`(lc-\w+ music)`", text)
    assert [command.split()[0] for command in commands] == ["lc-status", "lc-flush", "lc-remove"]
    for command in commands:
        if command.startswith("lc-remove"):
            ctx.run("umount /mnt && udevadm settle")
        typed(ctx, f"sudo {command}")
    assert "music" not in ctx.run("dmsetup ls --target lc")
