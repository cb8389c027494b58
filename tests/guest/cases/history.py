# SPDX-License-Identifier: GPL-2.0-only
"""Old copies of one of the two devices: histories are never mixed without a word (S7)."""

from lclib import case, dm, sh
from lclib.disk import MIB, image, put
from lclib.faulty import BLOCK, check, fill, said
from lclib.lc import LcStack
from lclib.registry import Disk

PAIR = (Disk("ssd", "8M"), Disk("hdd", "32M"))
THREE = (*PAIR, Disk("other", "32M"))
SMALL = ("--segment-size=64K",)
IN_PLACE = ("--in-place", *SMALL)


def stack(ctx, layout, **options):
    """A formatted volume that is not started yet."""
    lc = LcStack(ctx.hdd, ctx.ssd, format=layout, writeback="off", **options)
    lc.format()
    return lc


def life_one(lc):
    """Written, drained and stopped."""
    lc.activate()
    with lc.open() as raw:
        fill(raw, 0, 200, "one")
    lc.drain()
    lc.remove()


def life_two(lc, crash):
    """0 to 99 are drained, the log wraps, 100 to 149 stay dirty; returns the SSD of a crash."""
    lc.activate()
    cut = None
    with lc.open() as raw:
        fill(raw, 0, 100, "two")
        lc.drain()
        # The SSD holds 96 segments of 15 blocks.
        for turn in range(4):
            fill(raw, 1000, 500, f"wrap {turn}")
            lc.drain()
        fill(raw, 100, 50, "two")
        raw.flush()
        if crash:
            cut = image(lc.cache)
    lc.remove()
    return cut


def length(lc):
    """Sectors of the volume."""
    return dm.sectors(lc.backing) - 2048


def refused(lc, says="is an old copy"):
    """By the kernel, and by lc-resume; nothing is written."""
    before = image(lc.cache), image(lc.backing)
    told = said(says)
    code, text = sh.result("dmsetup", "create", lc.name,
                           input=dm.table(dm.lc(lc.backing, lc.cache, length(lc))))
    sh.result("dmsetup", "remove", lc.name)
    assert code, f"the kernel started it: {text}"
    assert said(says) > told, sh.run("dmesg", "-T")[-2000:]
    code, text = sh.result("lc-resume", lc.name, lc.cache, lc.backing)
    assert code == 1, (code, text)
    assert (image(lc.cache), image(lc.backing)) == before, "a refused start wrote"
    return text


def is_second_life(lc):
    """With the right disk all that life two wrote is there."""
    lc.activate()
    with lc.open() as raw:
        check(raw, range(150), "two")
        check(raw, range(150, 200), "one")
    lc.remove()


def put_back(ctx, layout, crash):
    """The sequence: life one, a copy of the disk, life two, and the copy is put back."""
    lc = stack(ctx, layout)
    life_one(lc)
    copy = image(ctx.hdd)
    cut = life_two(lc, crash)
    if crash:
        put(ctx.ssd, cut)
    right = image(ctx.hdd)
    put(ctx.hdd, copy)
    text = refused(lc)
    put(ctx.hdd, right)
    if not crash:
        is_second_life(lc)
    return text


@case(disks=PAIR, timeout=200)
def old_disk_is_refused(ctx):
    """An old copy of the disk is put back after a clean stop: refused, with the ways out."""
    text = put_back(ctx, SMALL, False)
    assert "was used in life 2" in text and "attach that disk" in text, text


@case(disks=PAIR, timeout=200)
def old_disk_in_place_is_refused(ctx):
    """The same with the volume in place."""
    put_back(ctx, IN_PLACE, False)


@case(disks=PAIR, timeout=200)
def old_disk_after_a_crash_is_refused(ctx):
    """The same when life two did not stop: records and the tail tell."""
    put_back(ctx, SMALL, True)


@case(disks=THREE, timeout=300)
def old_copy_elsewhere_is_refused(ctx):
    """A copy on another disk, of each life, after three lives, in the place of the right disk."""
    lc = stack(ctx, SMALL)
    copies = []
    for _ in range(3):
        life_one(lc)
        copies.append(image(ctx.hdd))
    life_two(lc, False)
    for copy in copies:
        put(ctx.other, copy)
        there = LcStack(ctx.other, ctx.ssd)
        refused(there)
    # As it is now it may move to another disk.
    put(ctx.other, image(ctx.hdd))
    is_second_life(LcStack(ctx.other, ctx.ssd))


@case(disks=PAIR, timeout=200)
def old_ssd_is_refused(ctx):
    """The other way round: an old copy of the SSD with the disk as it is now."""
    lc = stack(ctx, SMALL)
    with lc, lc.open() as raw:
        fill(raw, 0, 200, "one")
        raw.flush()
    copy = image(ctx.ssd)
    life_two(lc, False)
    right = image(ctx.ssd)
    put(ctx.ssd, copy)
    refused(lc, "an old or damaged superblock")
    put(ctx.ssd, right)
    is_second_life(lc)


def cut_start(lc):
    """A start of which the power was cut between superblock and mark."""
    before = image(lc.backing)
    lc.activate()
    cut = image(lc.cache)
    lc.remove()
    put(lc.backing, before)
    put(lc.cache, cut)


@case(disks=PAIR, timeout=300)
def forked_ssd_is_refused(ctx):
    """A copy of the SSD went on after a start that was cut: epochs do not tell the two apart."""
    for cuts in (1, 2):
        lc = stack(ctx, (*SMALL, "--force=paired", "--force=dirty-cache"))
        life_one(lc)
        copy = image(ctx.ssd)
        for _ in range(cuts):
            cut_start(lc)
        left = image(ctx.ssd)
        put(ctx.ssd, copy)
        life_two(lc, False)
        right = image(ctx.ssd)
        put(ctx.ssd, left)
        refused(lc, "was used with a copy of this cache")
        put(ctx.ssd, right)
        is_second_life(lc)


@case(disks=PAIR, timeout=200)
def cut_start_keeps_the_fingerprint(ctx):
    """A start that ended before the mark wrote nothing: the last stop's fingerprint holds."""
    lc = stack(ctx, SMALL)
    life_one(lc)
    cut_start(lc)
    with dm.Raw(ctx.hdd) as raw:
        was = raw.read(MIB, BLOCK)
        raw.write(MIB, b"changed".ljust(BLOCK, b"-"))
        raw.flush()
    refused(lc, "was changed while the cache was detached")
    with dm.Raw(ctx.hdd) as raw:
        raw.write(MIB, was)
        raw.flush()
    with lc, lc.open() as raw:
        check(raw, range(200), "one")
