# SPDX-License-Identifier: GPL-2.0-only
"""Writes that wait for room: whose turn it is, by counts of what got into the log before what.

The SSD answers nothing for a while: what was written before takes the buffers, and what comes then
is parked. When it goes on, the order in the log is the order in which parked writes were continued.
"""

import contextlib
import json
import os
import random
import threading

from lclib import Disk, case, dm, sh
from lclib.faulty import BLOCK, Breakable, content
from lclib.lc import LcStack

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
SMALL = ("--segment-size=64K",)
FLOOD = 3000            # blocks
COMMIT = 20_000         # a block far from them


class Write(threading.Thread):
    """A direct write that is under way."""

    def __init__(self, path, block, data, fua):
        super().__init__(daemon=True)
        self.path, self.offset, self.data = path, block * BLOCK, data
        self.flags = os.RWF_DSYNC if fua else 0
        self.error = None
        self.start()

    def run(self):
        try:
            with dm.Raw(self.path) as raw:
                view = memoryview(raw.buffer)[:len(self.data)]
                view[:] = self.data
                assert os.pwritev(raw.handle, [view], self.offset, self.flags) == len(view)
        except OSError as error:
            self.error = error

    def finish(self):
        """It ends well."""
        self.join(120)
        assert not self.is_alive() and self.error is None, self.error


class Held:
    """A volume whose SSD answers nothing until it is let go, with all of its buffers taken."""

    def __init__(self, ctx, **options):
        self.ctx = ctx
        self.ssd = Breakable("ssd1", ctx.ssd)
        self.lc = LcStack(ctx.hdd, self.ssd.path, format=SMALL, writeback="off", stats="on",
                          **{"buffers": 8, "idle_seal_ms": 0, "ssd_patience_ms": 0, **options})
        # The same blocks with a page cache of its own.
        self.cached = dm.Device("cached")
        self.parts = contextlib.ExitStack()
        self.parked = 0         # writes that wait
        self.writes = []

    def __enter__(self):
        self.parts.enter_context(self.ssd)
        self.parts.enter_context(self.lc)
        self.cached.targets = (dm.linear(self.lc.path),)
        self.parts.enter_context(self.cached)
        self.pages = self.parts.enter_context(dm.Raw(self.cached.path, direct=False))
        self.ssd.suspend("--noflush", "--nolockfs")
        return self

    def __exit__(self, *error):
        if error[0]:
            self.ssd.resume()
        self.parts.__exit__(*error)

    def expect(self, count):
        """So many more are parked."""
        self.parked += count
        self.lc.wait(lambda fields: fields["parked"] >= self.parked,
                     what=f"{self.parked} parked writes")
        assert self.lc.fields()["parked"] == self.parked, self.lc.fields()

    def background(self, block, datas):
        """Blocks go to the page cache, and from there to the volume; nobody waits for them."""
        self.pages.write(block * BLOCK, b"".join(datas))
        os.posix_fadvise(self.pages.handle, block * BLOCK, len(datas) * BLOCK,
                         os.POSIX_FADV_DONTNEED)

    def flood(self):
        """More of them than there are buffers for.  Returns how many are in the log."""
        before = self.lc.fields()["dirty"]
        self.background(0, [content(block, "page") for block in range(FLOOD)])
        fields = self.lc.wait(
            lambda fields: fields["parked"] + fields["dirty"] - before >= FLOOD, what="a flood")
        self.parked = fields["parked"]
        assert self.parked > FLOOD // 2, fields
        return fields["dirty"]

    def write(self, block, data, fua=False):
        """A direct write, which is parked."""
        self.writes.append(Write(self.lc.path, block, data, fua))
        self.expect(1)

    def let_go(self):
        """The SSD works, and all that was written arrives."""
        self.ssd.resume()
        for write in self.writes:
            write.finish()
        self.pages.flush()

    def log(self):
        """Blocks in the order of the log, of a volume that has been stopped."""
        dump = json.loads(sh.run("lc-dump", "--json", "--entries", self.ctx.ssd))
        records = sorted(dump["records"], key=lambda record: record["seq"])
        return [entry["block"] for record in records for entry in record["entry_list"]
                if "block" in entry]


@case(kernels=("stock",), disks=PAIR, timeout=100)
def commits_overtake_the_page_cache(ctx):
    """A write that is to be durable at once waits for none of the page cache (D12)."""
    with Held(ctx) as held:
        before = held.flood()
        held.write(COMMIT, content(COMMIT, "commit"), fua=True)
        held.let_go()
    log = held.log()
    overtaken = log[before:]
    assert len(overtaken) > FLOOD // 2, len(overtaken)
    waited = overtaken.index(COMMIT)
    ctx.figure("blocks that were parked before it", held.parked - 1)
    ctx.figure("blocks it waited for", waited)
    assert waited <= 16, f"a commit waited for {waited} blocks of the page cache"


@case(kernels=("stock",), disks=PAIR, timeout=100)
def order_per_block_is_kept(ctx):
    """Parked writes of all classes to the same blocks end in the order they came (D12)."""
    rng = random.Random(ctx.seed)
    blocks = 12
    with Held(ctx) as held:
        held.flood()
        once = rng.sample(range(blocks), blocks)    # a page is written back once at a time
        last = {}
        for turn in range(30):
            count = rng.randint(1, 3)
            first = COMMIT + rng.randint(0, blocks - count)
            kind = rng.randrange(3)
            if kind == 0 and once:
                first, count = COMMIT + once.pop(), 1
            data = [content(block, f"turn {turn}") for block in range(first, first + count)]
            if kind == 0 and count == 1:
                held.background(first, data)
                held.expect(1)
            else:
                held.write(first, b"".join(data), fua=kind == 1)
            last.update(zip(range(first, first + count), data))
        held.let_go()
        with held.lc.open() as raw:
            wrong = [block for block, data in sorted(last.items())
                     if raw.read(block * BLOCK, BLOCK) != data]
        assert not wrong, f"an earlier write came later: {wrong}; seed {ctx.seed}"
