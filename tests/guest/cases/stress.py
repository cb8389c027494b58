# SPDX-License-Identifier: GPL-2.0-only
"""Everything at once: overlapping commands of every kind while the volume is rearranged."""

import os
import pathlib

from lclib import case, dm
from lclib.registry import Disk
from lclib.storm import Asker, Storm, looks, messages, races, step

PAIR = (Disk("ssd", "24M"), Disk("hdd", "64M"))


def everything(ctx, lives, rounds):
    """Lives of so many rounds each; the volume is judged at the end of each life."""
    storm = Storm(ctx)
    before = races()
    asked = writes = 0
    for life in range(lives):
        with storm.life(life == 0) as (lc, check):
            with Asker(messages(lc.name, ctx.seed)) as told, Asker(looks(lc.name)) as seen:
                for _ in range(rounds):
                    step(lc, storm.rng)
                    check()
            asked += told.asked + seen.asked
            assert told.asked and seen.asked
        writes += storm.writes
        ctx.figure("lives", life + 1)
    ctx.figure("rounds", lives * rounds)
    ctx.figure("asked", asked)
    ctx.figure("writes", writes)
    for key, value in races().items():
        ctx.figure(key, value - before[key])


@case(kernels=("stock", "debug", "kcsan"), long=("debug", "kcsan"), disks=PAIR, smp=4, timeout=240,
      sampled=3)
def everything_at_once(ctx):
    """Writes, reads, flushes, discards, reloads, suspends and messages at the same time."""
    everything(ctx, 1, 12)


@case(kernels=("debug", "kcsan"), long=True, disks=PAIR, smp=4, timeout=900)
def everything_for_long(ctx):
    """The same in four lives of 40 rounds."""
    everything(ctx, 4, 40)


# --- processors that come and go ----------------------------------------------------


def switch(cpu, on):
    """A processor leaves, or comes back."""
    path = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/online")
    path.write_text("1" if on else "0", encoding="ascii")


def processors(ctx, rounds):
    """One processor after the other, up to three at a time; the log goes on each time."""
    storm = Storm(ctx)
    others = dict.fromkeys(range(1, ctx.case.smp), True)
    with storm.life(True) as (lc, check):
        try:
            for _ in range(rounds):
                cpu = storm.rng.choice(list(others))
                others[cpu] = not others[cpu]
                switch(cpu, others[cpu])
                head = lc.fields()["head_seq"]
                lc.wait(lambda fields, head=head: fields["head_seq"] > head + 4,
                        what="the log goes on")
                check()
        finally:
            for cpu in others:
                switch(cpu, True)
    ctx.figure("rounds", rounds)
    ctx.figure("writes", storm.writes)


@case(kernels=("stock", "debug"), long=("debug",), disks=PAIR, smp=4, timeout=240, sampled=3)
def processors_come_and_go(ctx):
    """Processors go offline and come back while all kinds of commands are in flight."""
    processors(ctx, 16)


@case(kernels=("stock", "debug", "kcsan"), long=True, disks=PAIR, smp=4, timeout=600)
def processors_for_long(ctx):
    """The same in 150 rounds."""
    processors(ctx, 150)


# --- suspend during flush -------------------------------------------------------------


def in_flight(path):
    """Commands that change something and have not come back from a device."""
    number = os.stat(path).st_rdev
    stats = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/inflight")
    return int(stats.read_text(encoding="ascii").split()[1])


@case(disks=PAIR, smp=4, timeout=600, long=("stock", "debug"))
def suspend_during_flush(ctx):
    """FLUSHes of the SSD are in flight when the volume is suspended, with flush and without."""
    slow = dm.Target("delay", dm.sectors(ctx.ssd), *(ctx.ssd, 0, 0) * 2, ctx.ssd, 0, 300)
    rounds = 12
    with dm.Device("slow", slow) as ssd:
        storm = Storm(ctx, cache=ssd.path)
        with storm.life(True, fio=False, jobs=8, sync_every=2) as (lc, check):
            for number in range(rounds):
                # A write takes no time there, a FLUSH 300 ms.
                lc.wait(lambda fields: in_flight(ssd.path) and
                        fields["durable_seq"] + 1 < fields["head_seq"], what="a FLUSH in flight")
                with lc.paused(*(("--noflush", "--nolockfs") if number % 2 else ())):
                    fields = lc.fields()
                    assert fields["durable_seq"] + 1 == fields["head_seq"], fields
                    assert not in_flight(ssd.path)
                check()
    ctx.figure("rounds", rounds)
    ctx.figure("writes", storm.writes)
