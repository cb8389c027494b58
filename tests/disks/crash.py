# SPDX-License-Identifier: GPL-2.0-only
"""What becomes of volatile writes when the power goes: crash policies.

A fate is a list of sector ranges of the write that reached the medium: the whole
write is kept, none of it, or any subset cut at 512-byte boundaries (torn). Fates
are drawn from the seed and from nothing else, in the order of the writes, so the
same history and seed give the same crash.

Policies
  keep-all        everything arrived
  drop-all        nothing volatile arrived
  random          each write kept, dropped or torn for itself; how often is drawn
                  once per crash, so that some crashes lose little and some much
  tear-all        every write of more than one sector is torn, the others kept
  one-lost        everything arrived but one write
  one-kept        nothing arrived but one write
  ordered-prefix  one point in the common order of both disks: everything before
                  arrived, nothing after, the write at the point torn
  disk-prefix     the same, with a point for each disk of its own
  any             one of the above, drawn from the seed

Not modelled: a sector torn in itself, a write landing in the wrong place, damage to
data that was already durable (use `corrupt`), and a flush that lies (use `fault`).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

from .image import SECTOR, Write

Range = tuple[int, int]
Fate = list[Range]
Entry = tuple[str, Write]  # disk name, write

MASK_SECTORS = 64  # up to here a torn write may be any subset of its sectors


def _whole(write: Write) -> Fate:
    return [(0, write.length // SECTOR)]


def _runs(mask: int, sectors: int) -> Fate:
    """Set bits of @mask as ranges."""
    runs: Fate = []
    for i in range(sectors):
        if mask >> i & 1:
            if runs and runs[-1][1] == i:
                runs[-1] = (runs[-1][0], i + 1)
            else:
                runs.append((i, i + 1))
    return runs


def _torn(rng: random.Random, write: Write) -> Fate:
    """Some, but neither all nor none, of the sectors (a single one: all or none)."""
    sectors = write.length // SECTOR
    if sectors < 2:
        return _whole(write) if rng.random() < 0.5 else []
    kind = rng.choice(("prefix", "suffix", "scattered"))
    cut = rng.randrange(1, sectors)
    if kind == "prefix":
        return [(0, cut)]
    if kind == "suffix":
        return [(cut, sectors)]
    if sectors <= MASK_SECTORS:
        return _runs(rng.randrange(1, (1 << sectors) - 1), sectors)
    points = sorted({0, sectors, *(rng.randrange(1, sectors) for _ in range(6))})
    runs = list(itertools.pairwise(points))
    return runs[rng.randrange(2) :: 2]


def _random(rng: random.Random, writes: list[Write]) -> list[Fate]:
    keep = rng.choice((0.1, 0.3, 0.5, 0.7, 0.9))
    tear = rng.choice((0.0, 0.1, 0.3))
    fates = []
    for write in writes:
        draw = rng.random()
        if draw < tear:
            fates.append(_torn(rng, write))
        elif rng.random() < keep:
            fates.append(_whole(write))
        else:
            fates.append([])
    return fates


def _prefix(rng: random.Random, writes: list[Write]) -> list[Fate]:
    point = rng.randrange(len(writes) + 1)
    fates = [_whole(w) for w in writes[:point]]
    if point < len(writes):
        fates.append(_torn(rng, writes[point]))
    return fates + [[]] * (len(writes) - len(fates))


def _odd_one(rng: random.Random, writes: list[Write], one_kept: bool) -> list[Fate]:
    odd = rng.randrange(len(writes)) if writes else -1
    return [_whole(w) if (i == odd) == one_kept else [] for i, w in enumerate(writes)]


Policy = Callable[[random.Random, list[Write]], list[Fate]]

PER_DISK: dict[str, Policy] = {
    "keep-all": lambda rng, writes: [_whole(w) for w in writes],
    "drop-all": lambda rng, writes: [[] for _ in writes],
    "random": _random,
    "tear-all": lambda rng, writes: [
        _torn(rng, w) if w.length > SECTOR else _whole(w) for w in writes
    ],
    "one-lost": lambda rng, writes: _odd_one(rng, writes, False),
    "one-kept": lambda rng, writes: _odd_one(rng, writes, True),
    "disk-prefix": _prefix,
}
POLICIES = (*PER_DISK, "ordered-prefix", "any")


def choose(seed: int, policy: str) -> str:
    """The policy that @seed and @policy stand for."""
    if policy not in POLICIES:
        raise ValueError(f"unknown policy {policy!r}; one of {', '.join(POLICIES)}")
    if policy != "any":
        return policy
    return random.Random(f"{seed}/policy").choice(POLICIES[:-1])


def fates(seed: int, policy: str, volatile: dict[str, list[Write]]) -> dict[str, list[Fate]]:
    """The fate of each disk's writes. Durable ones among them are always kept."""
    if policy == "ordered-prefix":
        order = sorted(
            ((name, w) for name, writes in volatile.items() for w in writes),
            key=lambda entry: entry[1].order,
        )
        drawn = _prefix(random.Random(f"{seed}/order"), [w for _, w in order])
        result: dict[str, list[Fate]] = {name: [] for name in volatile}
        for (name, _), fate in zip(order, drawn, strict=True):
            result[name].append(fate)
    else:
        result = {
            name: PER_DISK[policy](random.Random(f"{seed}/{name}"), writes)
            for name, writes in volatile.items()
        }
    for name, writes in volatile.items():
        for i, write in enumerate(writes):
            if write.durable:
                result[name][i] = _whole(write)
    return result
