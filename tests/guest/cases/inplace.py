# SPDX-License-Identifier: GPL-2.0-only
"""In place: the first MiB of the volume lives in the last MiB of the disk while it has a cache.

Whatever is read, written, discarded, copied, bypassed or saved around 1 MiB, the seam, goes to
both places; the bare disk is not recognised meanwhile and mounts afterwards.
"""

import random
import struct

from lclib import case, dm, ondisk, sh
from lclib.disk import Device as Raw
from lclib.faulty import BLOCK, Breakable, check, fill, unreadable
from lclib.lc import LcStack, bare_volume
from lclib.registry import Disk

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
IN_PLACE = ("--in-place", "--segment-size=64K", "--checksum=crc32c")
MIB = 1 << 20
SEAM = MIB
SPAN = 2 * MIB


class Around:
    """What the first two MiB of the volume have to be, and random changes of them."""

    def __init__(self, seed, start=bytes(SPAN)):
        self.rng = random.Random(seed)
        self.data = bytearray(start)

    def change(self, raw, number):
        """Random writes, most of them over the seam, some with FUA or a FLUSH behind them."""
        for _ in range(number):
            length = 512 * self.rng.choice((1, 3, 8, 16, 64, 256, 700))
            at = SEAM - 512 * self.rng.randrange(0, min(length // 512 + 8, 1024))
            data = self.rng.randbytes(length)
            raw.write(at, data, fua=not self.rng.randrange(8))
            self.data[at:at + length] = data
            if not self.rng.randrange(8):
                raw.flush()

    def check(self, raw):
        """All of it, in pieces of odd sizes and at once."""
        assert raw.read(0, SPAN) == self.data, "read at once"
        for _ in range(20):
            length = 512 * self.rng.choice((1, 2, 9, 17, 300))
            at = SEAM - 512 * self.rng.randrange(0, length // 512 + 1)
            assert raw.read(at, length) == self.data[at:at + length], (at, length)


def start_of(hdd):
    """The first MiB of the disk: nothing but the mark."""
    with Raw(hdd) as raw:
        return raw.read(0, MIB)


def expect_hidden(hdd):
    """The bare disk shows nothing to those who probe it."""
    found = start_of(hdd)
    for at in range(0, MIB, BLOCK):
        block = found[at:at + BLOCK]
        assert block.startswith(b"dmlc-mk\n") if at in (0, MIB // 2) else not any(block), at
    assert not sh.run("wipefs", "--noheadings", hdd).strip()


@case(disks=PAIR, timeout=240)
def seam(ctx):
    """Writes, reads, discards and writeback over the seam; three lives; then the bare disk."""
    with Raw(ctx.hdd) as raw:
        raw.wipe()
        raw.write(0, random.Random(ctx.seed).randbytes(SPAN))
        around = Around(ctx.seed, raw.read(0, SPAN))
    with Raw(ctx.ssd) as raw:
        raw.wipe()
    lc = LcStack(ctx.hdd, ctx.ssd, format=IN_PLACE, buffers=8)
    lc.format(wipe=False)
    expect_hidden(ctx.hdd)
    for life in range(3):
        with lc, lc.open() as raw:
            around.check(raw)
            around.change(raw, 60)
            around.check(raw)
            if life == 1:
                lc.drain()
                around.check(raw)
                around.change(raw, 30)
            # The disk may zero what is discarded, or not: it is written again.
            raw.discard(SEAM - 16 * BLOCK, 32 * BLOCK)
            data = around.rng.randbytes(32 * BLOCK)
            raw.write(SEAM - 16 * BLOCK, data)
            around.data[SEAM - 16 * BLOCK:SEAM + 16 * BLOCK] = data
            around.check(raw)
        expect_hidden(ctx.hdd)
    with lc:
        lc.drain()
    with bare_volume(ctx.hdd, True) as bare, Raw(bare.path) as raw:
        around.check(raw)
    sh.run("lc-detach", "--backing", ctx.hdd, ctx.ssd)
    with Raw(ctx.hdd) as raw:
        around.check(raw)


@case(disks=PAIR, timeout=240)
def degraded(ctx):
    """The SSD dies: what is in RAM, saved, bypassed and discarded goes over the seam too."""
    first = SEAM // BLOCK - 40
    with Breakable("ssd1", ctx.ssd) as ssd:
        # The seal of an idle moment would take what is to be in RAM to the SSD.
        with (LcStack(ctx.hdd, ssd.path, format=IN_PLACE, ssd_patience_ms=500, writeback="off",
                      idle_seal_ms=0) as lc, lc.open() as raw):
            fill(raw, first, 80, "in RAM")
            ssd.fail()
            raw.flush()
            lc.wait(lambda fields: fields["mode"] == "degraded" and not fields["dirty"],
                    what="degraded, and nothing left to save")
            lost = [block for block in range(first, first + 80) if unreadable(raw, block)]
            assert not lost, lost
            with bare_volume(ctx.hdd, True) as bare, Raw(bare.path) as places:
                check(places, range(first, first + 80), "in RAM")
            around = Around(ctx.seed, raw.read(0, SPAN))
            around.change(raw, 60)
            around.check(raw)
            raw.discard(SEAM - 8 * BLOCK, 16 * BLOCK)
            data = around.rng.randbytes(16 * BLOCK)
            raw.write(SEAM - 8 * BLOCK, data)
            around.data[SEAM - 8 * BLOCK:SEAM + 8 * BLOCK] = data
            around.check(raw)
            raw.flush()
        expect_hidden(ctx.hdd)
        # Without the SSD, which may be gone: the mark knows that nothing is missing.
        sh.run("lc-detach", "--backing", ctx.hdd)
        with Raw(ctx.hdd) as raw:
            around.check(raw)


@case(disks=PAIR, timeout=240)
def remove_detach(ctx):
    """lc-remove --detach of a running volume: the file system mounts from the bare disk."""
    with Raw(ctx.hdd) as raw:
        raw.wipe()
    sh.run("mkfs.ext4", "-q", "-F", ctx.hdd, "100M")
    lc = LcStack(ctx.hdd, ctx.ssd, format=IN_PLACE)
    with Raw(ctx.ssd) as raw:
        raw.wipe()
    lc.format(wipe=False)
    expect_hidden(ctx.hdd)
    lc.activate()
    sh.run("mount", lc.path, "/mnt")
    sh.run("sh", "-c", "seq 100000 > /mnt/numbers")
    code, text = sh.result("lc-remove", "--detach", lc.name)
    assert code == 1 and "in use" in text, text
    sh.run("umount", "/mnt")
    sh.run("lc-remove", "--detach", lc.name)
    sh.run("e2fsck", "-fn", ctx.hdd)
    sh.run("mount", "-o", "ro", ctx.hdd, "/mnt")
    try:
        assert sh.run("cat", "/mnt/numbers").split()[-1] == "100000"
    finally:
        sh.run("umount", "/mnt")
    code, text = sh.result("lc-resume", "lc0", ctx.ssd, ctx.hdd)
    assert code == 1, text


def older_layout(ctx):
    """What lc-format --in-place left before there was a moved head: the mark at the end."""
    lc = LcStack(ctx.hdd, ctx.ssd, format=IN_PLACE, buffers=8)
    lc.format()
    end = dm.sectors(ctx.hdd) * 512 - MIB
    with Raw(ctx.ssd) as ssd:
        for at in (0, MIB // 2, ssd.size - MIB):
            ssd.write(at, ondisk.older_superblock(ssd.read(at, 4096), end))
        ssd.flush()
    with Raw(ctx.hdd) as hdd:
        for at in (0, MIB // 2):
            hdd.write(end + at, ondisk.older_mark(hdd.read(at, 4096), end + at))
            hdd.write(at, bytes(4096))
        hdd.flush()
    return lc, end


@case(disks=PAIR, timeout=240)
def older_layout_goes_on(ctx):
    """A pair of before, its mark at the end: starts, drains, and its bare disk is the volume."""
    lc, end = older_layout(ctx)
    with Raw(ctx.hdd) as raw:
        around = Around(ctx.seed, raw.read(0, SPAN))
    for _ in range(2):
        with lc, lc.open() as raw:
            around.check(raw)
            around.change(raw, 40)
            around.check(raw)
    sh.run("lc-check", "--backing", ctx.hdd, ctx.ssd)
    with lc:
        lc.drain()
    with Raw(ctx.hdd) as raw:
        around.check(raw)
        assert raw.read(end, 512)[:8] == b"dmlc-mk\n"
    sh.run("lc-detach", "--backing", ctx.hdd, ctx.ssd)
    with Raw(ctx.hdd) as raw:
        around.check(raw)
        assert raw.read(end, 512) == bytes(512)


@case(disks=PAIR, timeout=120)
def interrupted_is_refused(ctx):
    """A mark that says the head is on its way: no start, nothing written; the remedy is told."""
    lc = LcStack(ctx.hdd, ctx.ssd, format=IN_PLACE)
    lc.format()
    table = f"0 {dm.sectors(ctx.hdd) - 2048} lc {ctx.hdd} {ctx.ssd}"
    for state, tool in ((3, "lc-format"), (4, "lc-detach")):
        with Raw(ctx.hdd) as hdd:
            for at in (0, MIB // 2):
                block = bytearray(hdd.read(at, 4096))
                struct.pack_into("<I", block, 76, state)
                hdd.write(at, ondisk.sealed(block))
            hdd.flush()
            before = hdd.read(0, SPAN)
        code, text = sh.result("dmsetup", "create", "lc0", "--table", table)
        assert code, text
        sh.result("dmsetup", "remove", "lc0")
        assert f"{tool} of" in sh.run("dmesg") and "lc-check --repair" in sh.run("dmesg")
        code, text = sh.result("lc-resume", "lc0", ctx.ssd, ctx.hdd)
        assert code == 1 and "was interrupted here" in text, text
        with Raw(ctx.hdd) as hdd:
            assert hdd.read(0, SPAN) == before
