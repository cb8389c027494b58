# SPDX-License-Identifier: GPL-2.0-only
"""A volume that is renamed while it lives: kernel log, status and tools follow the name."""

import json
import os
import pathlib
import threading

from lclib import case, dm, sh, wait
from lclib.faulty import BLOCK, Breakable, content, fill
from lclib.lc import LcStack
from lclib.registry import Disk
from lclib.setting import setting

PAIR = (Disk("ssd", "64M"), Disk("hdd", "256M"))


def said(*words):
    """Lines of the kernel log that have all the words."""
    return [line for line in sh.run("dmesg").splitlines() if all(word in line for word in words)]


def number(path):
    """Major and minor number of a node, as device mapper writes them."""
    rdev = os.stat(path).st_rdev
    return f"{os.major(rdev)}:{os.minor(rdev)}"


def rename(stack, name):
    """dmsetup rename."""
    sh.run("dmsetup", "rename", stack.name, name)
    stack.name, stack.path = name, f"/dev/mapper/{name}"


def busy(stack):
    """The kernel was told to drain."""
    stack.wait(lambda fields: fields["writeback"] == "draining", what="a drain")


@case(kernels=("stock", "debug"), disks=PAIR, timeout=120)
def log_follows(ctx):
    """Each line of the kernel log has the name of its moment, or the next one has both (U1)."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        stack = LcStack(ctx.hdd, ssd.path, name="music", ssd_patience_ms=600000, writeback="off",
                        idle_seal_ms=100).start()
        volume = number(stack.path)
        assert said(f"lc: {volume} (music): epoch 1"), said("lc: ")
        # By who may sleep.
        rename(stack, "jazz")
        code, _ = sh.result("dmsetup", "message", "jazz", 0, "nonsense")
        assert code and said(f"lc: {volume} (jazz): unknown message nonsense"), said("lc: ")
        assert said(f"lc: {volume} (jazz): renamed, the name was music"), said("lc: ")
        # By who may not: at the end of a write of the log that has failed.
        rename(stack, "blues")
        with stack.open() as raw:
            ssd.refuse_writes()
            raw.write(0, content(0, "kept"))
            wait.until(lambda: said("fails writes or flushes"), 60, "a write that fails")
            wait.until(lambda: said(f"lc: {volume} (blues): renamed, the name was jazz"), 60,
                       "a line with the new name")
            ssd.heal()
            wait.until(lambda: said(f"lc: {volume} (blues): ", "takes writes again"), 60,
                       "a write that ends well")
            assert raw.read(0, BLOCK) == content(0, "kept")
        assert stack.fields()["former_names"] == "jazz,music", stack.status()
        rename(stack, "music")
        assert stack.fields()["former_names"] == "blues,jazz", stack.status()
        stack.remove()
        assert said(f"lc: {volume} (music): renamed, the name was blues"), said("lc: ")


def refused(tool, name, now, *more):
    """A tool that is given an old name says what the new one is."""
    code, text = sh.result(tool, *more, name)
    assert code == 1 and f"renamed to {now}" in text, (tool, code, text)


@case(disks=PAIR, timeout=120)
def tools_follow(ctx):
    """Each tool works under the new name, and says what it is when it is given an old one."""
    stack = LcStack(ctx.hdd, ctx.ssd, name="music", writeback="off").start()
    with stack.open() as raw:
        fill(raw, 0, 64, "one")
        raw.flush()
    rename(stack, "odd name,7")
    assert json.loads(sh.run("lc-status", "--json", stack.name))[0]["name"] == stack.name
    refused("lc-status", "music", stack.name)
    rename(stack, "7")
    for name in ("music", "odd name,7"):
        for tool in ("lc-status", "lc-flush", "lc-remove"):
            refused(tool, name, "7")
    refused("lc-flush", "music", "7", "--buffers")
    refused("lc-remove", "music", "7", "--no-drain")
    code, text = sh.result("lc-status", "waltz")
    assert code == 1 and "no such device; 'lc-status' lists" in text, text
    rows = sh.run("lc-status")
    assert "\n7 " in rows and "music" not in rows, rows
    shown = json.loads(sh.run("lc-status", "--json", "7"))[0]
    assert shown["name"] == "7" and shown["status"]["dirty"] == 64, shown
    assert shown["status"]["former_names"].endswith(",music"), shown
    assert stack.fields()["former_names"] == "odd\\x20name\\x2c7,music", stack.status()
    for tool in (("lc-resume", "music"), ("lc-check",)):
        code, text = sh.result(*tool, ctx.ssd)
        assert code and "held by 7" in text, text
    text = sh.run("lc-flush", "7")
    assert text.startswith("7: ") and stack.fields()["dirty"] == 0, text
    sh.run("lc-remove", "7")
    assert not stack.exists() and not os.path.lexists("/dev/mapper/7")
    sh.run("lc-resume", "music", ctx.ssd)
    sh.run("lc-remove", "music")


@case(disks=PAIR, timeout=120)
def renamed_while_it_is_removed(ctx):
    """lc-flush and lc-remove go on with their volume, and leave one alone that took its name."""
    with Breakable("hdd1", ctx.hdd) as hdd:
        stack = LcStack(hdd.path, ctx.ssd, name="music", writeback="off").start()
        with stack.open() as raw:
            fill(raw, 0, 64, "one")
            raw.flush()
        for tool, name in (("lc-flush", "jazz"), ("lc-remove", "blues")):
            with stack.open() as raw:
                raw.write(BLOCK, content(1, tool))
                raw.flush()
            hdd.suspend()
            running = sh.start(tool, stack.name)
            busy(stack)
            before = stack.name
            rename(stack, name)
            with dm.Device(before, dm.zero(2048)) as decoy:
                hdd.resume()
                text = sh.finish(running, 60)
                assert f"renamed meanwhile, the name was {before}" in text, text
                assert f"{name}: " in text, text
                assert decoy.exists(), text
            assert stack.exists() == (tool == "lc-flush"), text
        assert not os.path.lexists("/dev/mapper/blues")


@case(disks=PAIR, timeout=120)
def reasons_are_of_the_volume(ctx):
    """A tool tells the kernel's reasons of its own volume, not what another one says meanwhile."""
    stack = LcStack(ctx.hdd, ctx.ssd, name="music")
    stack.format()
    stop = threading.Event()

    def chatter():
        with open("/dev/kmsg", "wb", buffering=0) as log:
            while not stop.wait(0.01):
                log.write(b"<6>device-mapper: lc: 253:99 (other): something else")

    noise = threading.Thread(target=chatter)
    noise.start()
    try:
        with setting("/proc/sys/kernel/printk_devkmsg", "on"):
            wait.until(lambda: said("(other): something else"), 60, "another volume's lines")
            for _ in range(50):
                code, text = sh.result("strace", "-o", "/tmp/trace", "-e", "read", "-s", "200",
                                       "lc-resume", "-o", "lanes=2", "music", ctx.ssd, ctx.hdd)
                if "(other): something" in pathlib.Path("/tmp/trace").read_text(encoding="ascii"):
                    break
            else:
                raise AssertionError("lc-resume never read a line of another volume")
    finally:
        stop.set()
        noise.join()
    assert code == 1 and "Option lanes" in text and "(other)" not in text, text
