# SPDX-License-Identifier: GPL-2.0-only
"""The shape of I/O: what reaches map() and what leaves for the SSD, traced by the kernel."""

import contextlib
import os
import pathlib
import re

from lclib import case, dm, kmsg, sh
from lclib.disk import commands
from lclib.lc import LcStack, check_log, crash_with_log
from lclib.registry import Disk
from lclib.scatter import Scatter, queue

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
TRACE = pathlib.Path("/sys/kernel/tracing")
MIB = 1 << 20


@contextlib.contextmanager
def traced(*events):
    """The lines of these block events, complete after the block."""
    if not (TRACE / "trace").exists():
        sh.run("mount", "-t", "tracefs", "tracefs", TRACE)
    lines = []
    (TRACE / "trace").write_text("", encoding="ascii")
    for event in events:
        (TRACE / f"events/block/{event}/enable").write_text("1", encoding="ascii")
    try:
        yield lines
    finally:
        for event in events:
            (TRACE / f"events/block/{event}/enable").write_text("0", encoding="ascii")
        lines += (TRACE / "trace").read_text(encoding="ascii").splitlines()


def number(path):
    """major,minor as the trace prints it."""
    words = sh.run("lsblk", "-dno", "MAJ:MIN", path).strip()
    return words.replace(":", ",")


def bios(lines, event, device):
    """(kind, sector, count) of each event on a device."""
    found = re.compile(rf"{event}: {device} (\w+) .*?(\d+) \+ (\d+)")
    return [(m[1], int(m[2]), int(m[3])) for line in lines if (m := found.search(line))]


@case(kernels=("stock",), disks=PAIR)
def one_mib_is_one_bio(ctx):
    """A 1 MiB write and a 1 MiB read reach map() as one bio each, wherever the data is."""
    with LcStack(ctx.hdd, ctx.ssd, writeback="off") as lc, lc.open() as raw:
        device = number(lc.path)
        with traced("block_bio_queue", "block_split") as lines:
            raw.write(4 * MIB, b"x" * MIB)
            raw.read(4 * MIB, MIB)
            raw.read(32 * MIB, MIB)
        queued = bios(lines, "block_bio_queue", device)
        assert [entry[2] for entry in queued] == [2048, 2048, 2048], queued
        assert not bios(lines, "block_split", device), lines


@case(kernels=("stock",), disks=PAIR)
def full_segment_is_few_commands(ctx):
    """A full segment leaves as the fewest commands that the queue's limits allow."""
    limit = int((pathlib.Path("/sys/block") / pathlib.Path(ctx.ssd).name /
                 "queue/max_sectors_kb").read_text(encoding="ascii")) * 2
    fewest = -(-2048 // limit)
    with LcStack(ctx.hdd, ctx.ssd, writeback="off", idle_seal_ms=0) as lc, lc.open() as raw:
        raw.flush()
        with traced("block_rq_issue") as lines:
            for block in range(8 * 255):
                raw.write(block * 8192, block.to_bytes(4, "little") * 1024)
            sh.run("dmsetup", "message", lc.name, 0, "flush")
        writes = [entry for entry in bios(lines, "block_rq_issue", number(ctx.ssd))
                  if "W" in entry[0] and entry[2]]
        full = [entry for entry in writes if entry[2] >= min(limit, 2048)]
        ctx.figure("commands", len(writes))
        ctx.figure("fewest", 8 * fewest)
        assert len(full) >= 7 and len(writes) <= 9 * fewest + 1, writes


@case(kernels=("stock",), disks=PAIR)
def fsync_costs_two_slots(ctx):
    """A lone fsynced 4 KiB write costs 8 KiB on the SSD and nothing on the HDD."""
    with LcStack(ctx.hdd, ctx.ssd, writeback="off", idle_seal_ms=0) as lc, lc.open() as raw:
        raw.write(0, b"a" * 4096)
        raw.flush()
        with traced("block_rq_issue") as lines:
            for block in range(50):
                raw.write(block * 65536, block.to_bytes(4, "little") * 1024)
                raw.flush()
        ssd = bios(lines, "block_rq_issue", number(ctx.ssd))
        sectors = sum(entry[2] for entry in ssd)
        ctx.figure("ssd_bytes_per_write", sectors * 512 / 50)
        ctx.figure("ssd_commands_per_write", len(ssd) / 50)
        assert sectors == 50 * 16, ssd
        assert not bios(lines, "block_rq_issue", number(ctx.hdd))


@case(disks=PAIR)
def commits_are_not_throttled(ctx):
    """All that goes to the log and the superblock has the flags that blk-wbt lets pass."""
    with Scatter(ctx.ssd, name="count", pieces=0) as ssd:
        lc = LcStack(ctx.hdd, ssd.path).start()
        before = ssd.counts()
        with lc.open() as raw:
            # Records that a worker sends, and one that is sent by who waits.
            raw.write(0, b"x" * (4 * MIB))
            raw.flush()
            raw.write(0, b"y" * 4096, fua=True)
            raw.write(4096, b"y" * 4096)
            raw.flush()
        # Superblocks.
        lc.drain()
        counts = {key: value - before[key] for key, value in ssd.counts().items()}
        ctx.figure("counts", counts)
        assert counts["writes"] >= 8 and counts["writes_idle"] == counts["writes"], counts
        lc.remove()


@case(kernels=("stock",), disks=PAIR)
def hot_blocks_use_no_slots(ctx):
    """Four jobs overwrite eight blocks, which are in an open record: no slot is used up."""
    with LcStack(ctx.hdd, ctx.ssd, writeback="off", idle_seal_ms=0) as lc, lc.open() as raw:
        for block in range(8):
            raw.write(block * 4096, bytes([block + 1]) * 4096)
        before = commands(ctx.ssd)["sectors"]
        sh.run("fio", "--name=hot", f"--filename={lc.path}", "--rw=randwrite", "--bs=4k",
               "--size=32k", "--io_size=8m", "--numjobs=4", "--direct=1", "--ioengine=psync",
               "--norandommap", f"--randseed={ctx.seed}")
        raw.flush()
        written = commands(ctx.ssd)["sectors"] - before
        ctx.figure("overwrites", 4 * 2048)
        ctx.figure("slots", written / 8)
        # The header and eight blocks; fio's own look at the device may have closed it before.
        assert written <= 8 * 3 * 9, f"{written // 8} slots"


@case(kernels=("stock",), disks=PAIR)
def raid_geometry_is_passed_up(ctx):
    """Chunk and stripe of a striped HDD are the volume's minimum and optimal I/O sizes."""
    chunk, third = 128 << 10, (dm.sectors(ctx.hdd) // 3) // 256 * 256
    stripes = dm.Target("striped", 3 * third, 3, chunk // 512, ctx.hdd, 0, ctx.hdd, third,
                        ctx.hdd, 2 * third)
    with dm.Device("striped", stripes) as hdd, \
            LcStack(hdd.path, ctx.ssd, format=("--segment-size=256K",)) as lc:
        sizes = [queue(lc.path, name) for name in ("minimum_io_size", "optimal_io_size")]
    ctx.figure("minimum and optimal", sizes)
    assert sizes == [chunk, 3 * chunk], sizes


@contextlib.contextmanager
def raid5(path, chunk):
    """A RAID 5 of four pieces of a disk, and the pieces."""
    piece = dm.sectors(path) // 4 * 512 // chunk * chunk // 512
    with contextlib.ExitStack() as stack:
        pieces = [stack.enter_context(dm.Device(f"piece{i}", dm.linear(path, piece, i * piece)))
                  for i in range(4)]
        devices = [word for one in pieces for word in ("-", one.path)]
        yield stack.enter_context(dm.Device("raid", dm.Target(
            "raid", 3 * piece, "raid5_ls", 2, chunk // 512, "nosync", 4, *devices))), pieces


def sectors_read(devices):
    """How many so far from all of these mapped devices."""
    total = 0
    for device in devices:
        number = os.stat(device.path).st_rdev
        stat = pathlib.Path("/sys/dev/block", f"{os.major(number)}:{os.minor(number)}", "stat")
        total += int(stat.read_text("ascii").split()[2])
    return total


@case(kernels=("stock",), disks=PAIR, timeout=120)
def raid5_gets_whole_stripes(ctx):
    """A RAID 5 need not read for its parity when whole stripes are drained, of any length (RS1).

    One run at a time, so that the pieces of a stripe that is cut never meet.
    """
    most, counts = 0, {}
    for chunk, layout, start in ((64 << 10, (), MIB), (512 << 10, ("--in-place",), 0)):
        stripe = 3 * chunk
        first = 2 * stripe - start
        length = 6 * MIB // stripe * stripe
        with raid5(ctx.hdd, chunk) as (hdd, pieces), \
                LcStack(hdd.path, ctx.ssd, format=layout, writeback="off",
                        writeback_depth=1) as lc, \
                lc.open() as raw:
            while first < MIB:      # not in the head, which is elsewhere
                first += stripe
            for at in range(first, first + length, 64 << 10):
                raw.write(at, at.to_bytes(8, "little") * (8 << 10))
            raw.flush()
            before = sectors_read(pieces)
            lc.drain()
            read = sectors_read(pieces) - before
            with hdd.open() as bare:
                for at in range(first, first + length, 64 << 10):
                    assert bare.read(start + at, 64 << 10) == \
                        at.to_bytes(8, "little") * (8 << 10), at
        counts[f"stripes of {stripe >> 10} KiB"] = read
        most = max(most, read)
    ctx.figure("sectors read to write 6 MiB", counts)
    assert most <= 6 * MIB // 512 // 20, counts


@case(kernels=("stock",), disks=PAIR)
def stripe_is_sent_in_one_go(ctx):
    """Writes of a long stripe reach the disks as the fewest commands (RS2)."""
    chunk, third = 512 << 10, dm.sectors(ctx.hdd) // 3 // 1024 * 1024
    stripes = dm.Target("striped", 3 * third, 3, chunk // 512, ctx.hdd, 0, ctx.hdd, third,
                        ctx.hdd, 2 * third)
    first = 3 * chunk - MIB         # where a stripe begins
    with dm.Device("striped", stripes) as hdd, \
            LcStack(hdd.path, ctx.ssd, writeback="off") as lc, lc.open() as raw:
        assert queue(ctx.hdd, "max_sectors_kb") << 10 >= chunk
        raw.write(first, b"x" * (4 * 3 * chunk))
        raw.flush()
        with traced("block_rq_issue") as lines:
            lc.drain()
        writes = [count for kind, _, count in bios(lines, "block_rq_issue", number(ctx.hdd))
                  if "W" in kind and count]
    ctx.figure("sectors of each command", writes)
    assert sum(writes) == 4 * 3 * chunk // 512 and len(writes) <= 18, writes


def most_in_flight(lines, device):
    """Of the reads of places that were read before: how many were in flight at once."""
    event = re.compile(rf"block_rq_(issue|complete): {device} (R\w*) .*?(\d+) \+ (\d+)")
    seen, flying, most = set(), set(), 0
    for match in filter(None, map(event.search, lines)):
        sector = int(match[3])
        if match[1] == "complete":
            flying.discard(sector)
        elif sector in seen:
            flying.add(sector)
            most = max(most, len(flying))
        else:
            seen.add(sector)
    return most


@case(kernels=("stock",), disks=(Disk("ssd", "8M"), Disk("hdd", "32M")))
def headers_are_fetched_together(ctx):
    """A start after a crash reads the headers of many records at a time, also those of fsync."""
    with LcStack(ctx.hdd, ctx.ssd, format=("--segment-size=64K",), writeback="off",
                 idle_seal_ms=0) as lc:
        crash_with_log(lc, 200)
        log = kmsg.Log()
        log.fresh()
        with traced("block_rq_issue", "block_rq_complete") as lines:
            lc.activate()
        most = most_in_flight(lines, number(ctx.ssd))
        ctx.figure("headers in flight", most)
        said = log.fresh()
        assert any("replayed" in line for line in said), said
        check_log(lc, 200)
    assert most >= 8, most


def bytes_of_a_start(ctx, records, blocks):
    """What a start after a crash reads of the SSD: the log has so many records of fsync."""
    with LcStack(ctx.hdd, ctx.ssd, format=("--segment-size=64K",), writeback="off",
                 idle_seal_ms=0) as lc:
        crash_with_log(lc, records, blocks)
        log = kmsg.Log()
        log.fresh()
        before = commands(ctx.ssd)["sectors_read"]
        lc.activate()
        read = (commands(ctx.ssd)["sectors_read"] - before) * 512
        said = log.fresh()
        assert any(f"replayed {records} records" in line for line in said), said
    return read


@case(kernels=("stock",), disks=(Disk("ssd", "96M"), Disk("hdd", "128M")), timeout=240)
def start_reads_headers(ctx):
    """What a start after a crash reads grows by two slots for each record, whatever its data."""
    # Of the larger ones less than the log holds before it must be drained. On a busy machine what
    # one start reads beside that differs by up to 0.6 MB: few against that are too few.
    few, many = 100, 1300
    for blocks in (1, 7):
        first = bytes_of_a_start(ctx, few, blocks)
        more = bytes_of_a_start(ctx, many, blocks) - first
        each = more / (many - few)
        ctx.figure(f"bytes a record of {blocks}", each)
        ctx.figure(f"bytes for {few} records of {blocks}", first)
        # A record of 7 has 28 KiB of data.  A few slots more: where the segments end.
        assert 4096 <= each <= 2.25 * 4096, each
