# SPDX-License-Identifier: GPL-2.0-only
"""One fault each, where it strikes and what must come of it; see the table in docs/coverage.rst."""

import errno

from lclib import case, dm, kmsg, sh, wait
from lclib.disk import MIB, drop_caches
from lclib.faulty import (
    BLOCK,
    Breakable,
    around,
    check,
    check_hdd,
    content,
    fill,
    listed,
    rot,
    said,
    slot_sector,
    unreadable,
)
from lclib.lc import LcStack
from lclib.registry import Disk

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
# A segment of 1 MiB and more: what was written before it has left the memory.
ANOTHER_SEGMENT = 300


def with_hole(path, first, count):
    """A linear device of which some sectors fail every access."""
    return around(path, first, dm.error(count))


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("SSD", "read error, one dirty block",
             "an error when it is read; lost after half a minute of tries; all others drained"),
      sampled=3)
def unreadable_dirty_slot_is_lost(ctx):
    """A dirty slot that the SSD does not deliver is given up alone."""
    with (Breakable("ssd1", ctx.ssd) as ssd, LcStack(ctx.hdd, ssd.path, writeback="off") as lc,
          lc.open() as raw):
        fill(raw, 0, 16, "dirty")
        fill(raw, 1000, ANOTHER_SEGMENT, "more")
        raw.flush()
        ssd.swap(*with_hole(ctx.ssd, slot_sector(ctx.ssd, b"dirty 5\n"), 8))
        assert unreadable(raw, 5)
        assert raw.read(6 * BLOCK, BLOCK) == content(6, "dirty")
        lc.message("writeback")
        fields = lc.wait(lambda fields: fields["lost"] == 1, 120, "the block to be lost")
        assert fields["mode"] == "rw", fields
        assert listed(lc, "lost") == set(range(40, 48))
        ssd.heal()
        lc.drain()
        assert unreadable(raw, 5)
    check_hdd(ctx, (*range(5), *range(6, 16)), "dirty")


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("SSD", "read error for a while, dirty block", "the read waits and succeeds"))
def read_waits_for_the_ssd(ctx):
    """A read that the SSD fails is repeated, and succeeds when the SSD works again."""
    with (Breakable("ssd1", ctx.ssd) as ssd, LcStack(ctx.hdd, ssd.path, writeback="off") as lc,
          lc.open() as raw):
        fill(raw, 0, 4, "dirty")
        fill(raw, 1000, ANOTHER_SEGMENT, "more")
        raw.flush()
        log = kmsg.Log()
        log.fresh()
        ssd.fail()
        ssd.prepare_to_heal()
        reader = sh.start("dd", f"if={lc.path}", "of=/tmp/read", "bs=4096", "count=4",
                          "iflag=direct")
        wait.until(lambda: any("failed a read, trying again" in line for line in log.fresh()),
                   60, "a failed read")
        # The read is given up after four seconds.
        ssd.heal_at_once()
        sh.finish(reader, 60)
        with open("/tmp/read", "rb") as got:
            assert got.read() == b"".join(content(block, "dirty") for block in range(4))


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("SSD", "bit flip, dirty block that is written in part",
             "its other sectors are lost, never laundered with a fresh checksum (C3)"), sampled=3)
def rot_is_not_merged(ctx):
    """A partial write over a rotten slot keeps nothing of it."""
    with LcStack(ctx.hdd, ctx.ssd, writeback="off") as lc, lc.open() as raw:
        fill(raw, 0, 4, "rotting")
        fill(raw, 1000, ANOTHER_SEGMENT, "more")
        raw.flush()
        rot(ctx.ssd, b"rotting 2\n")
        raw.write(2 * BLOCK + 1024, b"n" * 512)
        assert raw.read(2 * BLOCK + 1024, 512) == b"n" * 512
        assert unreadable(raw, 2)
        assert listed(lc, "lost") == {16, 17, 19, 20, 21, 22, 23}
        lc.drain()
        assert raw.read(2 * BLOCK + 1024, 512) == b"n" * 512
        assert unreadable(raw, 2)
    with dm.Raw(ctx.hdd) as hdd:
        data = hdd.read(MIB + 2 * BLOCK, BLOCK)
        assert data[1024:1536] == b"n" * 512 and b"otting" not in data


def intact(raw):
    """Blocks 0 to 15 are read as they were written; 20, among dirty ones, not at all."""
    clean = [content(block, "clean") for block in range(16)]
    assert raw.read(3 * BLOCK, BLOCK) == clean[3]
    assert raw.read(0, 16 * BLOCK) == b"".join(clean)
    assert raw.read(3 * BLOCK + 512, 1024) == clean[3][512:1536]
    assert raw.read(2 * BLOCK + 3584, 1024) == clean[2][3584:] + clean[3][:512]
    for at, length in ((20 * BLOCK, BLOCK), (16 * BLOCK, 16 * BLOCK), (20 * BLOCK + 512, 512)):
        try:
            raw.read(at, length)
        except OSError as error:
            assert error.errno == errno.EIO, error
        else:
            raise AssertionError(f"{length} bytes at {at} were read")
    for first, end in ((16, 20), (21, 32)):
        wanted = b"".join(content(block, "dirty") for block in range(first, end))
        assert raw.read(first * BLOCK, len(wanted)) == wanted


@case(disks=PAIR, timeout=180,
      fault=("SSD", "bit flip, verify_reads on",
             "a clean block comes from the HDD, a dirty one is an error until overwritten; what "
             "rotted is never returned"))
def rot_is_never_returned(ctx):
    """With verify_reads, no read gives what rotted, of whatever size, in whatever life."""
    lc = LcStack(ctx.hdd, ctx.ssd, writeback="off", verify_reads="on").start()
    with lc.open() as raw:
        fill(raw, 0, 16, "clean")
        lc.drain()
        fill(raw, 16, 16, "dirty")
        fill(raw, 1000, ANOTHER_SEGMENT, "more")
        raw.flush()
        for text in (b"clean 3\n", b"dirty 20\n"):
            rot(ctx.ssd, text)
        intact(raw)
    # The sums are not known at first: after a clean stop, and after a replay.
    lc.remove()
    lc.activate()
    with lc.open() as raw:
        intact(raw)
        lc.message("verify_reads", "off")
        assert raw.read(3 * BLOCK, BLOCK) not in (content(3, "clean"), bytes(BLOCK))
        lc.message("verify_reads", "on")
        intact(raw)
        raw.write(50 * BLOCK, content(50, "later"))
        raw.flush()
    lc.suspend()
    lc.remove()
    with lc, lc.open() as raw:
        intact(raw)
        raw.write(20 * BLOCK, content(20, "anew"))
        assert raw.read(20 * BLOCK, BLOCK) == content(20, "anew")


@case(kernels=("stock",), disks=PAIR, timeout=180,
      fault=("SSD", "read error, header of a record, verify_reads on",
             "its blocks are errors for as long, all others are read"))
def unreadable_header_hides_only_its_own(ctx):
    """Sums that are not known yet are found behind a header that cannot be read."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        # Each four blocks are one record: an idle moment between them must not close it.
        with (LcStack(ctx.hdd, ssd.path, writeback="off", verify_reads="on", idle_seal_ms=0) as lc,
              lc.open() as raw):
            for first in (0, 8):
                fill(raw, first, 4, "dirty")
                raw.flush()
        lc.activate()
        ssd.swap(*with_hole(ctx.ssd, slot_sector(ctx.ssd, b"dirty 0\n") - 8, 8))
        with lc.open() as raw:
            assert raw.read(9 * BLOCK, BLOCK) == content(9, "dirty")
            assert unreadable(raw, 1)
            ssd.heal()
            assert raw.read(BLOCK, BLOCK) == content(1, "dirty")
            assert lc.fields()["mode"] == "rw" and not lc.fields()["lost"]
        lc.remove()


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("SSD", "one superblock copy unreadable at start", "the other one is used"))
def superblock_copy_unreadable(ctx):
    """Either front copy of the superblock is enough to start."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        lc = LcStack(ctx.hdd, ssd.path)
        lc.format()
        with lc, lc.open() as raw:
            fill(raw, 0, 4, "kept")
        for first in (0, 1024):
            bad = first, 8
            table = dm.table(*with_hole(ctx.ssd, *bad)) if first else dm.table(
                dm.error(8), dm.linear(ctx.ssd, dm.sectors(ctx.ssd) - 8, 8))
            ssd.remove()
            sh.run("dmsetup", "create", ssd.name, input=table)
            # Nothing can be written to that copy, so the start must be refused, after reading.
            code, text = sh.result("lc-resume", "lc0", ssd.path, ctx.hdd)
            assert code == 1 and "superblock" in text, (code, text)
            ssd.heal()
            with lc, lc.open() as raw:
                assert raw.read(0, BLOCK) == content(0, "kept")


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("SSD", "slow", "slow is not failed: everything goes on"))
def slow_ssd_is_not_failed(ctx):
    """An SSD that takes 300 ms for each command, with less patience than that."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        lc = LcStack(ctx.hdd, ssd.path, ssd_patience_ms=0)
        lc.format()
        lc.activate()
        with lc.open() as raw:
            ssd.swap(dm.delay(ctx.ssd, 300))
            for turn in range(4):
                fill(raw, 0, 8, turn)
                raw.flush()
            ssd.heal()
            assert raw.read(0, BLOCK) == content(0, 3)
            assert lc.fields()["mode"] == "rw"
        lc.remove()


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("SSD", "hung", "flushes wait; writes go on until half of the buffers are full; "
             "then all is well"))
def hung_ssd_is_waited_for(ctx):
    """An SSD that answers nothing for a while, and then everything."""
    hang(ctx, "ssd")


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("HDD", "hung", "writes, flushes and reads of cached blocks go on"))
def hung_hdd_is_waited_for(ctx):
    """A HDD that answers nothing for a while, and then everything."""
    hang(ctx, "hdd")


def hang(ctx, which):
    """Load over a device that hangs in the middle of it."""
    with Breakable("slow1", getattr(ctx, which)) as under:
        paths = {"hdd": ctx.hdd, "ssd": ctx.ssd, which: under.path}
        # An idle drain before it hangs would leave the first blocks on the SSD only.
        lc = LcStack(paths["hdd"], paths["ssd"], ssd_patience_ms=0, writeback="off").start()
        with lc.open() as raw:
            fill(raw, 0, 64, "before")
            raw.flush()
            with under.paused("--noflush", "--nolockfs"):
                fill(raw, 64, 64, "during")
                flusher = sh.start("dmsetup", "message", lc.name, "0", "flush")
                drain = sh.start("dmsetup", "message", lc.name, "0", "writeback")
                if which == "hdd":
                    sh.finish(flusher, 60)
                    raw.flush()
                for block in range(128):
                    assert raw.read(block * BLOCK, BLOCK)[:6] in (b"before", b"during")
            if which == "ssd":
                sh.finish(flusher, 60)
            sh.finish(drain, 60)
            raw.flush()
            assert lc.fields()["mode"] == "rw"
            lc.drain()
        lc.remove()
    with dm.Raw(ctx.hdd) as hdd:
        assert hdd.read(MIB + 100 * BLOCK, BLOCK) == content(100, "during")


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("SSD", "write error, one region, for good",
             "given up as a whole: RAM and what can be read is saved, nothing lost"))
def bad_region_costs_nothing(ctx):
    """Every write to one segment fails, all reads succeed: degraded, but no block is lost."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        lc = LcStack(ctx.hdd, ssd.path, ssd_patience_ms=500, writeback="off")
        lc.format()
        lc.activate()
        with lc.open() as raw:
            fill(raw, 0, 500, "first")
            raw.flush()
            size = dm.sectors(ctx.ssd)
            ssd.swap(dm.flakey(ctx.ssd, 0, 3600, "error_writes", length=size))
            fill(raw, 300, 300, "second")
            raw.flush()
            fields = lc.wait(lambda fields: fields["mode"] == "degraded", what="mode degraded")
            assert fields["lost"] == 0, fields
            for block in range(600):
                tag = "second" if block >= 300 else "first"
                assert raw.read(block * BLOCK, BLOCK) == content(block, tag)
        lc.remove()
        ssd.heal()


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("HDD", "write errors for a while", "writeback waits and goes on; nothing lost"))
def hdd_that_recovers(ctx):
    """The HDD refuses all writes for some seconds."""
    with Breakable("hdd1", ctx.hdd) as hdd:
        lc = LcStack(hdd.path, ctx.ssd, writeback="off")
        lc.format()
        lc.activate()
        with lc.open() as raw:
            fill(raw, 0, 500, "mine")
            raw.flush()
            tries = sh.run("dmesg").count("writeback failed with error")
            size = dm.sectors(ctx.hdd)
            hdd.swap(dm.flakey(ctx.hdd, 0, 3600, "error_writes", length=size))
            lc.message("writeback")
            wait.until(lambda: sh.run("dmesg").count("writeback failed with error") > tries, 60,
                       "a failed batch")
            hdd.heal()
            lc.drain()
            fields = lc.fields()
            assert fields["mode"] == "rw" and not fields["dirty"], fields
        lc.remove()
    with dm.Raw(ctx.hdd) as raw:
        for block in range(500):
            assert raw.read(MIB + block * BLOCK, BLOCK) == content(block, "mine")


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("HDD", "read error", "an error for blocks that are not cached; cached ones are read"))
def hdd_read_error(ctx):
    """A sector of the HDD cannot be read: only uncached reads notice, and a write heals it."""
    with Breakable("hdd1", ctx.hdd) as hdd, LcStack(hdd.path, ctx.ssd) as lc, lc.open() as raw:
        hdd.swap(*with_hole(ctx.hdd, 2048 + 80, 8))
        assert unreadable(raw, 10)
        raw.write(10 * BLOCK, content(10, "new"))
        drop_caches()
        assert raw.read(10 * BLOCK, BLOCK) == content(10, "new")
        hdd.heal()
        lc.drain()


@case(disks=(Disk("ssd", "16M"), Disk("hdd", "32M")), timeout=180,
      fault=("SSD", "read error, what a power cut tore",
             "torn, as if its checksum did not fit: the log ends before it, and says so"))
def torn_write_that_is_an_error(ctx):
    """Data and header of the last record, not known to be durable, cannot be read: it is torn."""
    with Breakable("ssd1", ctx.ssd) as ssd:
        with (LcStack(ctx.hdd, ssd.path, format=("--segment-size=64K",), writeback="off",
                      idle_seal_ms=0) as lc, lc.open() as raw):
            fill(raw, 0, 32, "durable")
            raw.flush()
            fill(raw, 100, 1, "known")
            raw.flush()
            fill(raw, 200, 1, "torn")
            raw.flush()
            with dm.Raw(ctx.ssd) as disk:
                crash = [disk.read(at, MIB) for at in range(0, disk.size, MIB)]
        with dm.Raw(ctx.hdd) as disk:
            marks = disk.read(0, MIB)
        for name, back in (("data", 0), ("header", 8)):
            with dm.Raw(ctx.ssd) as disk:
                for i, data in enumerate(crash):
                    disk.write(i * MIB, data)
                disk.flush()
            # As it was in the life that crashed.
            with dm.Raw(ctx.hdd) as disk:
                disk.write(0, marks)
                disk.flush()
            ssd.swap(*with_hole(ctx.ssd, slot_sector(ctx.ssd, b"torn 200\n") - back, 8))
            told = said("taken as torn by the crash")
            lc.activate()
            assert said("taken as torn by the crash") > told, name
            ssd.heal()
            with lc.open() as raw:
                check(raw, range(32), "durable")
                assert raw.read(100 * BLOCK, BLOCK) == content(100, "known"), name
                assert raw.read(200 * BLOCK, BLOCK) == bytes(BLOCK), name
            lc.remove()


@case(disks=PAIR, timeout=180,
      fault=("HDD", "read error, some of the sampled blocks, at the start after a clean stop",
             "named and left out; refused if more than half of them are"))
def unreadable_sample_is_left_out(ctx):
    """A sampled block that cannot be read is named; the others tell if the disk was changed."""
    with Breakable("hdd1", ctx.hdd) as hdd:
        with LcStack(hdd.path, ctx.ssd, writeback="off") as lc, lc.open() as raw:
            fill(raw, 0, 64, "clean")
            lc.drain()
            fill(raw, 1000, 16, "dirty")

        def start():
            return sh.result("lc-resume", "-o", "writeback=off", lc.name, lc.cache, lc.backing)

        # Blocks 0 to 15 are samples; block 3 is at sector 2072 of the disk.
        hdd.swap(*with_hole(ctx.hdd, 2072, 8))
        with dm.Raw(ctx.hdd) as disk:
            was = disk.read(MIB, BLOCK)
            disk.write(MIB, b"changed".ljust(BLOCK, b"-"))
            disk.flush()
        told = said("was changed while the cache was detached")
        code, text = start()
        assert code, "a disk that was changed is taken"
        assert said("was changed while the cache was detached") > told, text
        with dm.Raw(ctx.hdd) as disk:
            disk.write(MIB, was)
            disk.flush()
        # 47 of 64 are too many.
        end = dm.sectors(ctx.hdd)
        hdd.swap(dm.linear(ctx.hdd, 2048 + 128 * 8), dm.error(end - 2048 - 128 * 8))
        code, text = start()
        assert code and "sampled blocks cannot be read" in sh.run("dmesg"), (code, text)
        hdd.swap(*with_hole(ctx.hdd, 2072, 8))
        left_out = "block 3 of the volume, at sector 2072 of the device, cannot be read"
        code, text = start()
        assert not code, (text, sh.run("dmesg")[-1000:])
        assert left_out in sh.run("dmesg")
        with lc.open() as raw:
            check(raw, (0, 4, 63), "clean")
            check(raw, range(1000, 1016), "dirty")
        # Stopped cleanly with it, and started when it can be read again.
        lc.remove()
        hdd.heal()
        lc.activate()
        assert lc.fields()["dirty"] == 16, lc.status()
        lc.remove()


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("HDD", "one mark copy unusable at start", "refused until it works again"))
def mark_copy_unreadable(ctx):
    """A mark of which one copy cannot be written cannot open a life."""
    with Breakable("hdd1", ctx.hdd) as hdd:
        lc = LcStack(hdd.path, ctx.ssd)
        lc.format()
        with lc, lc.open() as raw:
            fill(raw, 0, 4, "kept")
        hdd.remove()
        sh.run("dmsetup", "create", hdd.name, input=dm.table(*with_hole(ctx.hdd, 1024, 8)))
        code, text = sh.result("lc-resume", "lc0", ctx.ssd, hdd.path)
        assert code == 1, text
        hdd.heal()
        with lc, lc.open() as raw:
            assert raw.read(3 * BLOCK, BLOCK) == content(3, "kept")


@case(disks=PAIR, timeout=180, long=("debug",),
      fault=("SSD", "log full, writeback off", "writeback yields, suspend ends (D2)"))
def full_log_does_not_hang_suspend(ctx):
    """Four times the SSD is written with writeback off; suspend and remove still end."""
    lc = LcStack(ctx.hdd, ctx.ssd, writeback="off", buffers=8).start()
    # The writer is stopped by the suspend, wherever it is then.
    with lc.open() as raw:
        for turn in range(4):
            for at in range(0, 64 * MIB, 4 * MIB):
                raw.write(at, bytes([turn + 1]) * (4 * MIB))
            with lc.paused():
                pass
        assert lc.fields()["mode"] == "rw"
        assert raw.read(5 * MIB, BLOCK) == b"\x04" * BLOCK
    lc.remove()
