# SPDX-License-Identifier: GPL-2.0-only
"""Counters of the status line against what the disks count themselves."""

import os
import pathlib

from lclib import case, wait
from lclib.faulty import BLOCK, fill
from lclib.lc import LcStack
from lclib.registry import Disk

NR = 300
FSYNC_EVERY = 20
KEYS = ("ssd_written_bytes", "ssd_read_bytes", "hdd_written_bytes")


def seen(ctx):
    """The same, in the order of KEYS, as the kernel counts it for each disk."""
    def sectors(path, field):
        number = os.stat(path).st_rdev
        stat = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat")
        return int(stat.read_text(encoding="ascii").split()[field])

    return [512 * sectors(path, field)
            for path, field in ((ctx.ssd, 6), (ctx.ssd, 2), (ctx.hdd, 6))]


def counted(lc):
    """By the volume."""
    fields = lc.fields()
    return [fields[key] for key in KEYS]


@case(kernels=("stock",), disks=(Disk("ssd", "64M"), Disk("hdd", "128M")), timeout=120)
def bytes_are_those_the_disks_saw(ctx):
    """Log, superblocks and mark, writeback and its reads: not a byte more or less, without the
    option `stats`; and a count of each batch, FLUSH and write.
    """
    with LcStack(ctx.hdd, ctx.ssd, writeback="off") as lc, lc.open() as raw:
        disks, volume, first = seen(ctx), counted(lc), lc.fields()
        for n in range(NR):
            fill(raw, 3 * n, 1, "v1")
            if n % FSYNC_EVERY == 0:
                raw.flush()
        raw.flush()
        lc.drain()
        wait.until(lambda: [now - then for now, then in zip(seen(ctx), disks)]
                   == [now - then for now, then in zip(counted(lc), volume)], 60,
                   "the disks and the volume agree")
        fields = lc.fields()
        grown = {key: fields[key] - first[key] for key in fields
                 if key.startswith(("ssd_", "hdd_", "batches"))}
        ctx.figure("counters", grown)
        assert grown["hdd_written_bytes"] >= NR * BLOCK, grown
        assert grown["ssd_written_bytes"] >= (NR + NR // FSYNC_EVERY) * BLOCK, grown
        assert grown["ssd_read_bytes"] >= NR * BLOCK, grown
        assert grown["batches"] and grown["hdd_flushes"], grown
        assert 0 < grown["ssd_writes"] < NR and NR // 2 < grown["hdd_writes"], grown
