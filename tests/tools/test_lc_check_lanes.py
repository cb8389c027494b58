# SPDX-License-Identifier: GPL-2.0-only
"""lc-check on logs of several lanes, and on checkpoints with tail stops."""

import os
import random
import time

import pytest

from lib.tools import (
    CLEAN,
    LANES,
    LANES_AT,
    SEGMENT,
    SLOT,
    assert_repairs,
    check,
    dump,
    expect,
    lc_format,
    mklog,
    run_of,
    run_tool,
    slot_at,
)

SEG_SLOTS = SEGMENT // SLOT


def places_of(disk):
    """Of each record in the run: place, type and cut."""
    return {r["seq"]: (r["segment"], r["slot"], r["type"], r["cut"])
            for r in dump(disk.path, "--records")["records"] if r["in_run"]}


@pytest.mark.parametrize("rotten, said", [
    (((10, 0),), {100: (10, 0, "data", 10)}),
    (((11, 0),), {101: (11, 0, "data", 10)}),
    (((10, 3),), {102: (10, 3, "data", 10)}),
    (((11, 5),), {104: (11, 5, "range", 10)}),
    (((10, 6),), {105: (10, 6, "range", 10)}),
    (((11, 0), (10, 3)), {101: (11, 0, "data", 10), 102: (10, 3, "data", 10)}),
    (((10, 0), (11, 0)), {100: (10, 0, "data", 10), 101: (11, 0, "data", 10)}),
    (((10, 3), (11, 3)), {102: (10, 3, "data", 10), 103: (11, 3, "data", 10)}),
    (((10, 0), (10, 3)), {100: (10, 0, "range", 10), 102: (10, 1, "data", 10)}),
    (((11, 3), (11, 5)), {103: (11, 3, "range", 10), 104: (11, 4, "range", 10)}),
])
def test_check_lanes_damaged_header(image, rotten, said):
    """Each hole gets a seq that fits, no matter whose; the records behind come back."""
    disk = image(LANES)
    assert check(disk).code == 0 and run_of(disk) == (100, 106)
    good = places_of(disk)
    for segment, slot in rotten:
        disk.write(slot_at(segment, slot) + 104, b"rot")
    assert_repairs(disk)
    assert run_of(disk) == (100, 106)
    assert places_of(disk) == {**good, **said}


def test_check_lanes_lost_segment(image):
    """All of one of two that were open side by side."""
    disk = image(LANES)
    disk.write(slot_at(11, 0), bytes(SEGMENT))
    assert check(disk).code == 4
    assert_repairs(disk)
    # 103 would fit behind 102 as well, but the seqs of a segment go on rising.
    assert places_of(disk)[103] == (11, 1, "range", 10) and run_of(disk) == (100, 106)


def test_check_lanes_hidden_in_the_lower_segment(image):
    """The run ends in the higher segment: what tells of damage is behind it by seq only."""
    for cut, code in ((10, 4), (11, 0)):
        # With the cut 11 record 101 says that the lower one was closed: nobody looks there.
        disk = image(f"sb generation={cut} epoch=1 {LANES_AT}\n"
                     "data segment=10 slot=0 seq=100 durable=99 cut=10 blocks=1\n"
                     f"data segment=11 slot=0 seq=101 durable=99 cut={cut} blocks=2\n"
                     "data segment=10 slot=2 seq=102 durable=99 cut=10 blocks=3\n"
                     "data segment=10 slot=4 seq=103 durable=102 cut=10 blocks=4\n")
        assert check(disk).code == 0 and run_of(disk) == (100, 103)
        disk.write(slot_at(10, 2) + 104, b"rot")
        done = check(disk)
        assert done.code == code and run_of(disk) == (100, 101)
        if code:
            assert "record 102 is missing, but all up to 102" in done.out, done.out
            assert_repairs(disk)


def test_check_lanes_hole_for_what_is_below_the_tail(image):
    """No missing seq fits: one that replay ignores does; or nothing is changed."""
    disk = image(f"sb epoch=1 {LANES_AT}\n"
                 "data segment=11 slot=0 seq=100 durable=99 cut=10 blocks=1\n"
                 "data segment=10 slot=0 seq=98 durable=97 cut=10 blocks=2\n"
                 "data segment=10 slot=2 seq=101 durable=100 cut=10 blocks=3\n"
                 "data segment=11 slot=2 seq=102 durable=101 cut=10 blocks=4\n")
    disk.write(slot_at(10, 0) + 104, b"rot")
    assert_repairs(disk)
    assert run_of(disk) == (100, 102)
    records = dump(disk.path, "--records")["records"]
    assert [(r["seq"], r["slot"]) for r in records if r["segment"] == 10] == [(99, 0), (101, 2)]
    disk = image(f"sb generation=5 epoch=1 {LANES_AT.replace('100', '1').replace('=10 ', '=8 ')}\n"
                 "data segment=9 slot=0 seq=1 cut=8 blocks=1\n"
                 "data segment=8 slot=4 seq=2 durable=1 cut=8 blocks=3\n"
                 "data segment=9 slot=2 seq=3 durable=2 cut=8 blocks=3\n")
    before = disk.digest()
    expect(check(disk, "--repair"), 4, "the hole of 4 slots in segment 8 cannot be filled")
    assert disk.digest() == before


CUTS = (f"sb epoch=1 {LANES_AT} clean=1 next=107 head=13 items=3\n" + LANES.split("\n", 1)[1]
        + "ckpt items=161:1:1,167:9:1 cuts=192:106\n")


def test_checkpoint_with_cuts(image):
    """They are no blocks, whatever their bytes look like, and are shown."""
    disk = image(CUTS)
    done = check(disk)
    assert done.code == 0 and "2 blocks in the checkpoint" in done.out, done.out
    found = dump(disk.path, "--segments")
    assert found["cuts"] == [{"segment": 12, "seq": 106}]
    assert found["superblock"]["incompat"] == "lanes short_sums"
    assert "cuts:\n  segment 12  seq 106" in run_tool("dump", "-s", disk.path, san=True).out
    for words, features in (("", "short_sums"), (" long_sums=1", "none"),
                            (" long_sums=1 lanes=1", "lanes")):
        other = CLEAN.replace("sb ", f"sb{words} ", 1)
        assert dump(image(other).path)["superblock"]["incompat"] == features


@pytest.mark.parametrize("cuts, says", [
    ("193:106", "an entry is out of bounds"), ("192:99", "an entry is out of bounds"),
    ("192:108", "an entry is out of bounds"), ("160:100", "a boundary is not above the tail"),
    ("208:107", "a boundary is not above the tail"),
    ("192:106,192:107", "it names a boundary twice"),
], ids=["inside", "below-tail", "above-next", "at-tail", "at-head", "twice"])
def test_check_bad_cuts(image, cuts, says):
    """What the kernel refuses; without the checkpoint the log says the same."""
    nr = 2 + len(cuts.split(","))
    disk = image(CUTS.replace("192:106", cuts).replace("items=3", f"items={nr}"))
    done = check(disk)
    assert done.code == 4 and says in done.out, done.out
    assert_repairs(disk)
    assert run_of(disk) == (100, 106)


def test_check_cuts_of_one_lane(image):
    """Without the feature they are no entries at all."""
    disk = image(CUTS.replace("lanes=1", "lanes=0"))
    done = check(disk)
    assert done.code == 4 and "an entry is out of bounds" in done.out, done.out


def test_format_takes_no_cut_for_lost_sectors(pair):
    """A high seq in the place of mask and lost is no data that would be lost."""
    high = 1 << 55
    mklog(pair[0].path, f"sb epoch=1 lanes=1 clean=1 items=2 next={high + 1} head=9\n"
          f"ckpt items=1:1:0 cuts=32:{high}\n")
    assert lc_format(pair).code == 0


class LanesLog:
    """A random log of several lanes: lives of which each ended by a power cut.

    What is in `records` got a seq; `whole` those whose header is on the media. In a life
    all up to its `durable` are whole, of the others the cut has left any.
    """

    def __init__(self, rng):
        self.rng = rng
        self.records, self.whole, self.harm = [], [], []
        self.cuts = []          # (segment, lowest seq in it or behind)
        self.next_segment = rng.randrange(1, 5)
        self.last = rng.randrange(200)
        self.epoch = 0
        for _ in range(rng.choice((1, 1, 2))):
            self.live(rng.randrange(2, 5))

    def turn(self):
        """All segments are closed: the next one is a cut."""
        self.lanes = [None] * len(self.lanes)
        self.cut = self.next_segment
        self.cuts.append((self.cut, self.last + 1))

    def write(self):
        """A record in one of the lanes."""
        lane = self.rng.randrange(len(self.lanes))
        blocks = self.rng.choice((0, 1, 1, 2, 3, self.rng.randrange(1, SEG_SLOTS)))
        if self.lanes[lane] and self.lanes[lane][1] + 1 + blocks > SEG_SLOTS:
            self.lanes[lane] = None
        if not self.lanes[lane]:
            if self.next_segment - self.cut >= self.round:
                self.turn()
            self.lanes[lane] = [self.next_segment, 0]
            self.next_segment += 1
        segment, slot = self.lanes[lane]
        self.last += 1
        self.lanes[lane][1] += 1 + blocks
        self.records.append({"seq": self.last, "segment": segment, "slot": slot, "blocks": blocks,
                             "epoch": self.epoch, "first": self.first, "cut": self.cut,
                             "lane": lane, "durable": self.durable})

    def live(self, nr_lanes):
        """Some writes and flushes, and a power cut."""
        self.epoch += 1
        self.first = self.last + 1
        self.durable = self.last
        self.lanes = [None] * nr_lanes
        self.round = self.rng.randrange(nr_lanes, 3 * nr_lanes)
        self.turn()
        begin = len(self.records)
        for _ in range(self.rng.randrange(5, 60)):
            what = self.rng.randrange(20)
            if what < 3:
                self.durable = self.last
            elif what == 3:
                self.turn()
            else:
                self.write()
        self.power_cut(self.records[begin:])

    def power_cut(self, records):
        """What was not flushed is there or not; the log ends before the first that is not."""
        broken = False
        for record in records:
            fate = self.rng.randrange(8) if record["seq"] > self.durable else 0
            record["torn"] = fate == 7 and record["blocks"] > 0
            if fate != 6:
                self.whole.append(record)
            broken |= fate == 6 or record["torn"]
            record["dead"] = broken
        alive = [record for record in self.records if not record["dead"]]
        self.last = max((record["seq"] for record in alive), default=self.first - 1)
        self.next_segment = max((record["segment"] for record in alive), default=0) + 1
        self.cuts = [cut for cut in self.cuts if cut[1] <= self.last]

    def script(self, number):
        """For mklog: the superblock, and all headers and data that are on the media."""
        below = [cut for cut in self.cuts if cut[1] <= self.durable]
        self.tail = self.rng.choice(below) if below else (1, self.first)
        lines = [f"sb generation={number} epoch={self.epoch} first={self.first} lanes=1 "
                 f"tail={self.tail[1]} tail_segment={self.tail[0]}"]
        for record in self.whole:
            words = " ".join(f"{key}={record[key]}" for key in (
                "seq", "segment", "slot", "epoch", "first", "cut", "lane", "durable"))
            blocks = ",".join(str(self.rng.randrange(99)) for _ in range(record["blocks"]))
            lines.append(f"data {words} torn={int(record['torn'])} blocks={blocks}" if blocks
                         else f"range {words} block=200")
        return "\n".join(lines) + "\n"

    def told(self, rotten):
        """The highest seq that is known to be durable."""
        return max([self.first - 1] + [r["durable"] for r in self.whole if r not in rotten
                                       and r["epoch"] == self.epoch])

    def choose(self):
        """One to three records, all of them below what the others say was durable."""
        needed = [r for r in self.whole if not r["dead"] and r["seq"] >= self.tail[1]]
        for _ in range(100 if needed else 0):
            rotten = self.rng.sample(needed, min(len(needed), self.rng.randrange(1, 4)))
            if max(r["seq"] for r in rotten) <= self.told(rotten):
                return rotten
        return None


def records_of(disk):
    """By place; what a repair changes of a good record is only who comes to see it."""
    found = {(r["segment"], r["slot"]): r
             for r in dump(disk.path, "--entries", san=False)["records"]}
    for record in found.values():
        del record["hidden"]
    return found


def assert_cuts(records):
    """Each record tells the truth about where those of higher seqs are."""
    lowest = 1 << 62
    for record in sorted(records, key=lambda record: -record["seq"]):
        if record["in_run"]:
            assert (record["cut"] or record["segment"]) <= min(lowest, record["segment"]), record
            lowest = min(lowest, record["segment"])


def test_check_random_lanes(image):
    """Damaged headers below the durable seq: told, repaired, and no good record is lost."""
    seed = int(os.environ.get("LC_SEED") or time.time())
    print(f"seed {seed}")
    rng = random.Random(seed)
    for number in range(1, 26):
        log = LanesLog(rng)
        disk = image(log.script(number))
        done = check(disk)
        assert done.code == 0, f"log {number}: {done.out}"
        rotten = log.choose()
        if not rotten:
            continue
        good = records_of(disk)
        for record in rotten:
            place = record["segment"], record["slot"]
            disk.write(slot_at(*place) + 104, b"rot")
            del good[place]
        print(f"log {number}: rotten {[(r['seq'], r['segment'], r['slot']) for r in rotten]}")
        assert_repairs(disk)
        durable = log.told(rotten)
        first, last = run_of(disk)
        assert first == log.tail[1] and last >= durable, (first, last, durable)
        after = records_of(disk)
        for place, record in good.items():
            if record["in_run"] and record["seq"] <= durable:
                assert after[place] == record, place
        assert_cuts(after.values())
