# SPDX-License-Identifier: GPL-2.0-only
"""Devices that can be broken and healed, and blocks that tell who wrote them."""

import contextlib
import errno
import re

from . import dm, sh
from .disk import MIB, image
from .dmioctl import NO_FLUSH, NO_FS, RESUME, Control
from .lc import LcStack

BLOCK = 4096


class Breakable(dm.Device):
    """A linear device that can be made to fail and to heal."""

    def __init__(self, name, path):
        super().__init__(name, dm.linear(path))
        self.under = path

    def swap(self, *targets):
        """Other targets in place of the live ones, without waiting for I/O in flight."""
        sh.run("dmsetup", "load", self.name, input=dm.table(*targets))
        sh.run("dmsetup", "suspend", "--noflush", "--nolockfs", self.name)
        sh.run("dmsetup", "resume", self.name)

    def fail(self):
        """Every access is an error from now on."""
        self.swap(dm.error(dm.sectors(self.under)))

    def heal(self):
        """As it was."""
        self.swap(dm.linear(self.under))

    def refuse_writes(self):
        """Takes no write any more, but can be read."""
        self.swap(dm.flakey(self.under, 0, 3600, "error_writes"))

    @contextlib.contextmanager
    def unread(self):
        """Takes no write, and keeps what is read waiting; afterwards it can be read."""
        size = dm.sectors(self.under)
        with dm.Device("bad", dm.error(size)) as bad:
            self.swap(dm.Target("delay", size, self.under, 0, Holding.FOR_EVER, bad.path, 0, 0))
            try:
                yield
            finally:
                self.refuse_writes()

    def prepare_to_heal(self):
        """Load the table that heal_at_once() swaps in; no other may be loaded in between."""
        self.load(dm.linear(self.under))

    def heal_at_once(self):
        """heal() without a program, which may be slow to start while somebody's patience runs."""
        Control().call(RESUME, self.name, flags=NO_FS | NO_FLUSH)


class Holding(Breakable):
    """A linear device that can keep reads or writes of a range waiting.

    By dm-delay, and not by a rule of the emulated disks: QEMU's NBD client (7.2) may act on a reply
    only when the next one comes, and while a command is held perhaps none does.
    """

    FOR_EVER = 600_000      # ms, until they are let go

    def __exit__(self, kind, *rest):
        if kind is not None:
            self.heal()     # else the cleanup waits for the reads that wait
        super().__exit__(kind, *rest)

    def hold(self, start, length):
        """Reads of these bytes wait from now on; those that waited go on."""
        first, count = start // 512, length // 512
        behind = first + count
        self.swap(
            dm.linear(self.under, first),
            dm.Target("delay", count, self.under, first, self.FOR_EVER, self.under, first, 0),
            dm.linear(self.under, dm.sectors(self.under) - behind, behind))

    def hold_writes(self, start, length):
        """The same for writes, but for flushes."""
        first, count = start // 512, length // 512
        behind = first + count
        under = self.under, first
        self.swap(
            *([dm.linear(self.under, first)] if first else []),
            dm.Target("delay", count, *under, 0, *under, self.FOR_EVER, *under, 0),
            dm.linear(self.under, dm.sectors(self.under) - behind, behind))

    def waiting(self):
        """What dm-delay says: how many reads, writes and flushes wait."""
        line = next(line.split() for line in self.status().splitlines() if " delay " in line)
        return [int(word) for word in line[3:]]

    def held(self):
        """How many reads wait."""
        return self.waiting()[0]

    def held_writes(self):
        """How many writes wait."""
        return self.waiting()[1]


@contextlib.contextmanager
def salvage(ctx, blocks, tag):
    """A volume whose SSD was given up, with a salvage that waits for reads of the SSD.

    Yields the volume, an open handle of it, and a function that lets the reads go on.  So many
    blocks from 0 on are to be salvaged.
    """
    with Breakable("ssd1", ctx.ssd) as ssd:
        lc = LcStack(ctx.hdd, ssd.path, format=("--segment-size=64K",), ssd_patience_ms=500,
                     writeback="off", buffers=16).start()
        try:
            with lc.open() as raw, contextlib.ExitStack() as held:
                fill(raw, 0, blocks, tag)
                raw.flush()
                held.enter_context(ssd.unread())
                fill(raw, blocks, 1, "in RAM")
                raw.flush()
                assert lc.fields()["mode"] == "degraded", lc.fields()
                yield lc, raw, held.close
        finally:
            ssd.heal()
            lc.remove()


def events(lc):
    """How many events device mapper has counted for the volume."""
    return int(sh.run("dmsetup", "info", "-c", "--noheadings", "-o", "events", lc.name))


def fill(raw, first, count, tag):
    """Blocks whose content tells their number and a tag."""
    for block in range(first, first + count):
        raw.write(block * BLOCK, content(block, tag))


def content(block, tag):
    """What fill() writes."""
    return f"{tag} {block}\n".encode().ljust(BLOCK, b"+")


def check(raw, blocks, tag, offset=0):
    """These blocks are what fill() wrote."""
    for block in blocks:
        assert raw.read(offset + block * BLOCK, BLOCK) == content(block, tag), block


def check_hdd(ctx, blocks, tag):
    """They are on the bare hard disk."""
    with dm.Raw(ctx.hdd) as hdd:
        check(hdd, blocks, tag, MIB)


def unreadable(raw, block):
    """Whether a read of the block fails with EIO."""
    try:
        raw.read(block * BLOCK, BLOCK)
    except OSError as error:
        assert error.errno == errno.EIO, error
        return True
    return False


def listed(lc, what):
    """The sectors that the volume lists as lost or refused."""
    found = set()
    start = 0
    while start is not None:
        words = lc.message("list", what, start).split()
        start = int(words[-1]) if "next" in words else None
        for word in words:
            first, plus, count = word.partition("+")
            if plus:
                found.update(range(int(first), int(first) + int(count)))
    return found


def listed_offline(ssd, hdd):
    """The sectors that lc-check lists as lost."""
    _, text = sh.result("lc-check", "--backing", hdd.path, ssd.path)
    found = set()
    for first, last in re.findall(r"records as lost: sectors (\d+)-(\d+)", text):
        found.update(range(int(first), int(last) + 1))
    return found


def said(text):
    """How often the kernel said this."""
    return sh.run("dmesg").count(text)


def around(path, first, *targets):
    """A linear device that has other targets from a sector on."""
    end = first + sum(target.length for target in targets)
    return dm.linear(path, first), *targets, dm.linear(path, dm.sectors(path) - end, end)


def slot_sector(path, text):
    """Where on the SSD the slot that starts with this text lies, in sectors."""
    with dm.Raw(path) as ssd:
        return next(offset for offset in range(MIB, ssd.size, BLOCK)
                    if ssd.read(offset, 512).startswith(text)) // 512


def rot(path, text):
    """Change the first letter of each slot that starts with this text.

    Slots that earlier cases have left behind may start with it, too.
    """
    data = image(path)
    slots = [at for at in range(1 << 20, len(data), BLOCK) if data.startswith(text, at)]
    assert slots, text
    with dm.Raw(path) as ssd:
        for at in slots:
            ssd.write(at, b"#" + data[at + 1:at + BLOCK])
