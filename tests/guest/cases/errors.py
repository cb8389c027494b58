# SPDX-License-Identifier: GPL-2.0-only
"""Devices that fail: nothing is lost in silence, nothing hangs, remove always ends."""

from lclib import case, dm, sh
from lclib.lc import LcStack
from lclib.registry import Disk

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
BLOCK = 4096


class Breakable(dm.Device):
    """A linear device that can be made to fail and to heal."""

    def __init__(self, name, path):
        super().__init__(name, dm.linear(path))
        self.under = path

    def swap(self, target):
        """Another target in place of the live one, without waiting for I/O in flight."""
        sh.run("dmsetup", "load", self.name, input=dm.table(target))
        sh.run("dmsetup", "suspend", "--noflush", "--nolockfs", self.name)
        sh.run("dmsetup", "resume", self.name)

    def fail(self):
        """Every access is an error from now on."""
        self.swap(dm.error(dm.sectors(self.under)))

    def heal(self):
        """As it was."""
        self.swap(dm.linear(self.under))


def write_fails(raw, at):
    """Whether a write, or the flush that should make it durable, reports an error."""
    try:
        raw.write(at, b"z" * BLOCK)
        raw.flush()
    except OSError:
        return True
    return False


@case(disks=PAIR, timeout=180)
def dead_ssd_is_told(ctx):
    """The SSD dies: the next FLUSH fails, and every later one; mode fail; remove ends."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        lc = LcStack(ctx.hdd, ssd.path)
        lc.format()
        lc.activate()
        with lc.open() as raw:
            raw.write(0, b"a" * BLOCK)
            raw.flush()
            events = sh.run("dmsetup", "info", "-c", "--noheadings", "-o", "events", lc.name)
            ssd.fail()
            assert write_fails(raw, BLOCK)
            assert write_fails(raw, 2 * BLOCK)
            lc.wait(lambda fields: fields["mode"] == "fail", what="mode fail")
            after = sh.run("dmsetup", "info", "-c", "--noheadings", "-o", "events", lc.name)
            assert int(after) > int(events)
        lc.remove()
        ssd.heal()
        # What was flushed is there, after a replay.
        lc.activate()
        with lc.open() as raw:
            assert raw.read(0, BLOCK) == b"a" * BLOCK
        lc.remove()


@case(disks=PAIR, timeout=180)
def dead_hdd_keeps_the_cache(ctx):
    """The HDD dies: writes go on into the cache until writeback gives up; nothing is lost."""
    with Breakable("hdd1", ctx.hdd) as hdd:
        lc = LcStack(hdd.path, ctx.ssd)
        lc.format()
        lc.activate()
        with lc.open() as raw:
            for block in range(64):
                raw.write(block * BLOCK, bytes([block]) * BLOCK)
            raw.flush()
            hdd.fail()
            sh.run("dmsetup", "message", lc.name, 0, "writeback")
            lc.wait(lambda fields: fields["mode"] == "fail", what="mode fail")
            for block in range(64):
                assert raw.read(block * BLOCK, BLOCK) == bytes([block]) * BLOCK
        lc.remove()
        hdd.heal()
        lc.activate()
        lc.drain()
        with lc.open() as raw:
            for block in range(64):
                assert raw.read(block * BLOCK, BLOCK) == bytes([block]) * BLOCK
        lc.remove()


@case(disks=PAIR, timeout=180)
def clean_block_is_read_from_the_hdd(ctx):
    """A clean block that the SSD cannot deliver comes from the HDD."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        lc = LcStack(ctx.hdd, ssd.path, idle_seal_ms=0)
        lc.format()
        lc.activate()
        with lc.open() as raw:
            for block in range(16):
                raw.write(block * BLOCK, bytes([block + 1]) * BLOCK)
            lc.drain()
            assert lc.fields()["cached"] == 16, lc.fields()
            ssd.fail()
            for block in range(16):
                assert raw.read(block * BLOCK, BLOCK) == bytes([block + 1]) * BLOCK
        ssd.heal()
        lc.remove()


@case(disks=PAIR, timeout=180)
def damaged_dirty_slot_is_not_drained(ctx):
    """A flipped bit in a dirty slot: writeback refuses it, the HDD never sees it."""
    lc = LcStack(ctx.hdd, ctx.ssd, writeback="off", idle_seal_ms=0)
    lc.format()
    with dm.Raw(ctx.hdd) as hdd:
        before = hdd.read(1 << 20, BLOCK)
    lc.activate()
    with lc.open() as raw:
        raw.write(0, b"precious".ljust(BLOCK, b"!"))
        sh.run("dmsetup", "message", lc.name, 0, "flush")
    sh.run("dmsetup", "message", lc.name, 0, "writeback", "off")
    with dm.Raw(ctx.ssd) as ssd:
        # The first record of the first segment used: header, then the slot.
        at = next(offset for offset in range(1 << 20, ssd.size, BLOCK)
                  if ssd.read(offset, BLOCK).startswith(b"precious"))
        ssd.write(at, b"Precious".ljust(BLOCK, b"!"))
    sh.run("dmsetup", "message", lc.name, 0, "writeback")
    lc.wait(lambda fields: fields["mode"] == "fail", what="mode fail")
    lc.remove()
    with dm.Raw(ctx.hdd) as hdd:
        assert hdd.read(1 << 20, BLOCK) == before


@case(disks=PAIR, timeout=180)
def changed_hdd_is_refused(ctx):
    """A HDD written to while the cache was detached is refused; put back, it starts."""
    stack = LcStack(ctx.hdd, ctx.ssd)
    with stack as lc, lc.open() as raw:
        raw.write(0, b"a" * BLOCK)
    with dm.Raw(ctx.hdd) as hdd:
        old = hdd.read(1 << 20, BLOCK)
        hdd.write(1 << 20, b"mounted behind your back".ljust(BLOCK, b"."))
    code, output = sh.result("lc-resume", "lc0", ctx.ssd, ctx.hdd)
    assert code != 0, output
    with dm.Raw(ctx.hdd) as hdd:
        hdd.write(1 << 20, old)
    with stack as lc, lc.open() as raw:
        assert raw.read(0, BLOCK) == b"a" * BLOCK
