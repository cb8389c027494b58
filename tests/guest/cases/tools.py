# SPDX-License-Identifier: GPL-2.0-only
"""The tools with the module: found by identity, dirty caches refused, damage cut out."""

import errno
import json
import os
import pathlib

from lclib import case, dm, sh
from lclib.disk import MIB, Device
from lclib.lc import LcStack
from lclib.registry import Disk

PAIR = (Disk("ssd", "64M"), Disk("hdd", "256M"))


def shown(name):
    """lc-status of one volume."""
    return json.loads(sh.run("lc-status", "--json", name))[0]


@case(kernels=("stock",), disks=PAIR, timeout=60)
def empty_log_is_called_empty(ctx):
    """A first start has nothing to replay and says so, not "0 records, 1 to 0"."""
    begin = f"empty_log_is_called_empty {ctx.seed}"
    pathlib.Path("/dev/kmsg").write_text(begin, encoding="ascii")
    with LcStack(ctx.hdd, ctx.ssd):
        said = sh.run("dmesg").rpartition(begin)[2].splitlines()
    assert any("the log is empty, nothing to replay" in line for line in said), said
    assert not any("replayed" in line for line in said), said


@case(kernels=("stock",), disks=PAIR, timeout=60)
def unprivileged_status_asks_for_root(ctx):
    """Without the permission lc-status says that, and does not suspect a missing module."""
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    with LcStack(ctx.hdd, ctx.ssd) as lc:
        for words in (("lc-status",), ("lc-status", lc.name)):
            code, text = sh.result(*words, **nobody)
            assert code == 1 and "run as root" in text and "dm-mod" not in text, (words, text)


@case(disks=PAIR, timeout=60)
def tools_over_a_life(ctx):
    """Format, find, refuse doubles, stop dirty, check, refuse to format, break, repair, resume."""
    stack = LcStack(ctx.hdd, ctx.ssd, writeback="off")
    stack.format()
    stack.activate(find=True)
    code, text = sh.result("lc-resume", "lc0", ctx.ssd, ctx.hdd)
    assert code == 1 and "name is taken" in text, text
    code, text = sh.result("lc-resume", "lc1", ctx.ssd, ctx.hdd)
    assert code == 1 and "held by lc0" in text, text
    code, text = sh.result("lc-check", ctx.ssd)
    assert code == 8 and "held by lc0" in text, text
    code, text = sh.result("lc-resume", "-o", "buffers=0", "lc1", ctx.hdd)
    assert code == 1, text
    with Device(stack.path) as volume:
        for at in range(64):
            volume.write(at * 3 * 4096, bytes([at + 1]) * 4096)
        code, text = sh.result("lc-remove", "lc0")
        assert code == 1 and "in use" in text, text
    sh.run("lc-flush", "--buffers", "lc0")
    status = shown("lc0")["status"]
    assert status["dirty"] == 64 and status["writeback"] == "off", status
    print(sh.run("lc-status"), sh.run("lc-status", "lc0"))
    sh.run("lc-remove", "--no-drain", "lc0")
    text = sh.run("lc-check", ctx.ssd)
    assert "Stopped cleanly: 64 blocks" in text and "mark" not in text, text
    code, text = sh.result("lc-format", "--backing", ctx.hdd, ctx.ssd, "--force=paired")
    assert code == 1 and "--force=dirty-cache" in text, text
    # Stopped while suspended: unclean, so that the next start replays.
    stack.activate(find=True)
    with Device(stack.path) as volume:
        volume.write(0, b"\xee" * 4096)
        volume.flush()
    sh.run("dmsetup", "suspend", "lc0")
    sh.run("lc-remove", "--no-drain", "lc0")
    dump = json.loads(sh.run("lc-dump", "--json", "--entries", ctx.ssd))
    assert dump["log"]["verdict"] == "unbroken" and not dump["superblock"]["clean"], dump["log"]
    print(sh.run("lc-check", ctx.ssd))
    where = [(r, i) for r in dump["records"] for i, e in enumerate(r["entry_list"])
             if e["block"] == 30]
    record, index = where[-1]
    position = record["segment"] % dump["superblock"]["nr_segments"]
    with Device(ctx.ssd) as raw:
        raw.write(MIB + position * MIB + (record["slot"] + 1 + index) * 4096, b"rot!" * 128)
    code, text = sh.result("lc-check", ctx.ssd)
    assert code == 4 and "sectors 240-247" in text, text
    code, text = sh.result("lc-check", "--repair", ctx.ssd)
    assert code == 1, text
    sh.run("lc-check", ctx.ssd)
    stack.activate(find=True)
    with Device(stack.path) as volume:
        assert volume.read(0, 4096) == b"\xee" * 4096
        assert volume.read(3 * 4096, 4096) == b"\x02" * 4096
        try:
            volume.read(30 * 4096, 4096)
            raise AssertionError("a lost block was read")
        except OSError as error:
            assert error.errno == errno.EIO, error
    sh.run("lc-flush", "lc0")
    sh.run("lc-remove", "lc0")
    print(sh.run("lc-check", ctx.ssd))


@case(disks=PAIR, timeout=60)
def tools_say_the_kernels_reason(ctx):
    """A value the kernel refuses comes back in its words; a missing header stops the start."""
    stack = LcStack(ctx.hdd, ctx.ssd, writeback="off")
    stack.format()
    code, text = sh.result("lc-resume", "-o", "buffers=1", "lc0", ctx.ssd)
    assert code == 1 and "buffers must be" in text, text
    stack.activate()
    with Device(stack.path) as volume:
        for at in range(8):
            volume.write(at * 4096, bytes([at + 1]) * 4096)
            volume.flush()
    sh.run("dmsetup", "suspend", "lc0")
    sh.run("lc-remove", "--no-drain", "lc0")
    dump = json.loads(sh.run("lc-dump", "--json", "--records", ctx.ssd))
    record = dump["records"][3]
    with Device(ctx.ssd) as raw:
        raw.write(MIB + record["segment"] * MIB + record["slot"] * 4096, b"rot!" * 128)
    before = sh.result("lc-check", ctx.ssd)
    code, text = sh.result("lc-resume", "lc0", ctx.ssd)
    assert code == 1 and "kernel says" in text, (code, text, record, before)
    code, text = sh.result("lc-check", ctx.ssd)
    assert code == 4 and "is missing" in text, text
    code, text = sh.result("lc-check", "--repair", ctx.ssd)
    assert code == 1, text
    print(text)
    stack.activate()
    with Device(stack.path) as volume:
        assert volume.read(7 * 4096, 4096) == b"\x08" * 4096
        assert volume.read(4096, 4096) == b"\x02" * 4096
    assert os.path.exists(stack.path)
    sh.run("lc-remove", "lc0")


@case(disks=PAIR, timeout=60)
def no_mark_old_superblock(ctx):
    """Without a mark the log itself tells that a clean superblock is of an earlier life."""
    stack = LcStack(ctx.hdd, ctx.ssd, format=("--in-place", "--no-mark"), writeback="off")
    stack.format()
    saved = None
    for life in range(2):
        stack.activate()
        with Device(stack.path) as volume:
            volume.write(0, bytes([life + 1]) * 4096)
        sh.run("lc-remove", "--no-drain", "lc0")
        with Device(ctx.ssd) as raw:
            if not saved:
                saved = raw.read(0, MIB)
            newest = raw.read(0, MIB)
            raw.write(0, saved)
            raw.flush()
        if life:
            code, text = sh.result("lc-resume", "lc0", ctx.ssd, ctx.hdd)
            assert code == 1 and "old superblock" in text, (code, text)
    with Device(ctx.ssd) as raw:
        raw.write(0, newest)
    stack.activate()
    with Device(stack.path) as volume:
        assert volume.read(0, 4096) == b"\x02" * 4096
    stack.remove()


def statistics(name):
    """Does the kernel keep I/O statistics of a mapped device?"""
    number = os.stat(f"/dev/mapper/{name}").st_rdev
    path = f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/queue/iostats"
    return pathlib.Path(path).read_text(encoding="ascii").strip()


@case(disks=PAIR, timeout=60)
def statistics_are_off(ctx):
    """lc-resume switches the volume's I/O statistics off, or leaves them if told to."""
    with dm.Device("plain", dm.linear(ctx.hdd)):
        usual = statistics("plain")  # 0 on Linux 6.1: off for all of device mapper
    ctx.figure("usual", usual)
    LcStack(ctx.hdd, ctx.ssd).start()
    assert statistics("lc0") == "0"
    sh.run("lc-remove", "lc0")
    sh.run("lc-resume", "--iostats", "lc0", ctx.ssd, ctx.hdd)
    assert statistics("lc0") == usual
    sh.run("lc-remove", "lc0")
