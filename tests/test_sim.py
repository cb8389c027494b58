# SPDX-License-Identifier: GPL-2.0-only
"""The cache simulator, and the policy of read caching over made-up traces.

tests/sim/sim.h tells how it works. A check of the policy is a function check_*() of a simulator:
with each of the records in tests/sim/mutants/ the one that it names must fail.
"""

import collections
import os
import random
import re
import shutil
import struct
import subprocess
import time

import pytest

from lib import host, mutation

SIM = host.TESTS / "sim"
MUTANTS = mutation.records(SIM / "mutants")
READ, WRITE = 0x28, 0x2a
SEGMENT = 256


def make(folder, *words, top=host.TOP):
    """Build the simulator of a tree; returns the binary."""
    host.run("nice", "make", "-s", f"-j{host.jobs()}", "-C", top / "tests/sim", f"O={folder}",
             *words)
    return folder / "sim"


@pytest.fixture(scope="session")
def simulator():
    """The simulator of this tree."""
    return make(host.BUILD / "sim")


def dice():
    """Random numbers of this run."""
    seed = int(os.environ.get("LC_SEED") or time.time())
    print(f"LC_SEED={seed}")
    return random.Random(seed)


class Trace:
    """Requests for a simulator, of blocks of 4 KiB."""

    def __init__(self):
        self.requests = []   # (write, block, blocks)

    def read(self, block, nr=1):
        """One more request."""
        self.requests.append((False, block, nr))

    def write(self, block, nr=1):
        """One more request."""
        self.requests.append((True, block, nr))

    def accesses(self):
        """(write, block) of each block."""
        return [(write, at) for write, block, nr in self.requests
                for at in range(block, block + nr)]

    def share(self, slots):
        """Of the distinct blocks, as the simulator's argument."""
        return f"{(slots + 0.5) / len({block for _, block in self.accesses()}):.9f}"

    def save(self, folder):
        """A file of them."""
        path = folder / "made-up.vscsi"
        path.write_bytes(b"".join(
            struct.pack("<IIIHHQQ", 0, nr * 4096, 1, WRITE if write else READ, 1, block * 8, 0)
            for write, block, nr in self.requests))
        return path


def figures(binary, folder, trace, slots, *models):
    """{model: (% of the blocks read that were hits, blocks written to the SSD)}."""
    done = host.run(binary, "--models", ",".join(models), trace.save(folder), trace.share(slots))
    print(done)
    cells = re.findall(r"([\d.]+) / ([\d.]+) \|", done)
    # The simulator prints its models in an order of its own.
    head = re.findall(r" ([\w-]+(?: \w+)*) \|",
                      host.run(binary, "--models", ",".join(models), "--head").partition("|")[2])
    assert len(head) == len(cells) == len(models)
    return {name: (float(hit), float(written)) for name, (hit, written) in zip(head, cells)}


def mixed(rng):
    """Reads and writes of hot and cold blocks, some in runs."""
    trace = Trace()
    for _ in range(30000):
        block = min(int(rng.paretovariate(0.3)), 20000) if rng.random() < 0.7 \
            else rng.randrange(20000)
        nr = rng.choice((1, 1, 1, 2, 8))
        (trace.write if rng.random() < 0.4 else trace.read)(block, nr)
    return trace


def plain(trace, slots, recent):
    """Whether each read was a hit, by the plainest FIFO or LRU there can be."""
    cached = collections.OrderedDict()
    hits = []
    for write, block in trace.accesses():
        if not write:
            hits.append(block in cached)
        if block in cached:
            if recent:
                cached.move_to_end(block)
            continue
        if len(cached) == slots:
            cached.popitem(last=False)
        cached[block] = True
    return hits


def plain_ring(trace, segments):
    """The same of a ring that only writes get into."""
    ring = collections.deque([set()])
    used = 1
    hits = []
    for write, block in trace.accesses():
        if not write:
            hits.append(any(block in segment for segment in ring))
            continue
        if block in ring[-1]:
            continue
        if used == SEGMENT:
            if len(ring) == segments:
                ring.popleft()
            ring.append(set())
            used = 1
        for segment in ring:
            segment.discard(block)
        ring[-1].add(block)
        used += 1
    return hits


@pytest.mark.parametrize("model", ["FIFO", "LRU", "writes only"])
def test_models(simulator, tmp_path, model):
    """Each read is a hit if and only if it is one in a model that is too plain to be wrong."""
    trace = mixed(dice())
    slots = 8 * SEGMENT
    # An empty segment is open from the first write on.
    wanted = plain_ring(trace, 8) if model == "writes only" else plain(trace, slots, model == "LRU")
    told = host.run(simulator, "--hits", "--models", model, trace.save(tmp_path),
                    trace.share(slots)).split()
    assert [mark == "+" for mark in told] == wanted
    assert 0 < sum(wanted) < len(wanted)


def test_together(simulator, tmp_path):
    """Blocks that are missed in a row in a request are promoted together, or not at all."""
    trace = Trace()
    # Requests of 64 KiB are too long for the first touch.
    for block in (1000, 990, 1000):
        trace.read(block, 16)         # at the second one the policy knows but the last six
    trace.read(1000, 16)              # there since the third one
    trace.read(2000, 16)
    trace.read(2000, 24)              # knows but the last eight
    trace.read(2016, 8)
    trace.read(3000, 16)
    trace.read(3000, 40)              # 32 are read together
    trace.read(3016, 24)
    told = "".join(host.run(simulator, "--hits", "--models", "lc", trace.save(tmp_path),
                            trace.share(4 * SEGMENT)).split())
    wanted = ["-" * 48, "+" * 16, "-" * 40, "+" * 8, "-" * 56, "+" * 16, "-" * 8]
    assert told == "".join(wanted)


def check_scan(binary, folder):
    """What is read all the time stays, although as much is read only once."""
    rng, trace = dice(), Trace()
    for n in range(60000):
        trace.read(rng.randrange(2000))
        # In any order, so that it is no stream.
        trace.read(1_000_000 + n * 7919 % 60013)
    found = figures(binary, folder, trace, 16 * SEGMENT, "lc", "LRU")
    assert found["lc"][0] > 44 and found["lc"][0] > found["LRU"][0] + 5, found
    # A cold block is written to the SSD now and then, to see whether that pays.
    assert found["lc"][1] < 0.2, found


def check_second_touch(binary, folder):
    """What is read twice is there when it is read for the third time, and not before."""
    rng, trace = dice(), Trace()
    for base in range(40):
        # Too long for the first touch.
        places = [base * 100_000 + n * 50 for n in range(64)]
        for _ in range(3):
            rng.shuffle(places)
            for place in places:
                trace.read(place, 16)
                # Hits, so that the budget is not what keeps the SSD from being written.
                trace.read(9_000_000 + rng.randrange(4) * 16, 16)
    found = figures(binary, folder, trace, 16 * SEGMENT, "lc")
    assert 64 < found["lc"][0] < 69, found


def check_first_touch(binary, folder):
    """Where nearly all is read several times within a while, little is lost to the first miss."""
    rng, trace = dice(), Trace()
    for base in range(60000):
        for _ in range(4):
            trace.read((base + int(rng.expovariate(1 / 600))) * 7 % 1_000_003)
    found = figures(binary, folder, trace, 16 * SEGMENT, "lc", "FIFO")
    assert found["lc"][0] > found["FIFO"][0] - 3, found


def check_room_for_writes(binary, folder):
    """Promotion stops itself where what is written is read much later, and what is read is not."""
    rng, trace = dice(), Trace()
    segments = 48
    lap = int(segments * SEGMENT * 0.75)
    for n in range(120_000):
        trace.write(n * 7 % 1_000_003)
        if n >= lap:
            trace.read((n - lap) * 7 % 1_000_003)
        # Each twice, so that the ghost knows it, and never again.
        cold = 2_000_000 + (n - n % 2 * 301) * 11
        if rng.random() < 0.9:
            trace.read(cold)
    found = figures(binary, folder, trace, segments * SEGMENT, "lc", "writeboost", "writes only")
    assert found["lc"][0] > found["writes only"][0] - 4, found
    assert found["lc"][0] > found["writeboost"][0] + 20, found
    assert found["lc"][1] < 1.15, found


def check_budget(binary, folder):
    """However well it would pay, three blocks are written to the SSD for ten that are read."""
    rng, trace = dice(), Trace()
    for base in range(100_000):
        # Each is read twice, so the first touch pays, and only half of the reads are hits.
        trace.read(base * 7 % 1_000_003)
        trace.read((base - rng.randrange(1, 2000)) * 7 % 1_000_003)
    found = figures(binary, folder, trace, 16 * SEGMENT, "lc", "writeboost")
    assert found["lc"][1] < 0.33 and found["writeboost"][1] > 0.5, found


def check_second_chance(binary, folder):
    """What is hit in both halves of its time in the ring stays, and costs a write a lap."""
    rng, trace = dice(), Trace()
    for n in range(150_000):
        if n % 2:
            trace.read(rng.randrange(1000) * 7)
        else:
            # Each four times, close to one another.
            trace.read(1_000_000 + (n // 8 - rng.randrange(20)) * 11)
    found = figures(binary, folder, trace, 12 * SEGMENT, "lc", "FIFO")
    assert found["lc"][0] > found["FIFO"][0] + 1, found


def check_streams(binary, folder):
    """A long sequential read, in short requests and with others in between, is not promoted."""
    trace = Trace()
    for _ in range(3):
        for n in range(3000):
            trace.read(n)
            trace.read(5_000_000 + n)
    found = figures(binary, folder, trace, 64 * SEGMENT, "lc", "LRU")
    assert found["lc"][1] < 0.05 and found["LRU"][1] < 0.05, found


CHECKS = {name.removeprefix("check_"): check for name, check in list(globals().items())
          if name.startswith("check_")}


@pytest.mark.parametrize("name", CHECKS)
def test_policy(simulator, tmp_path, name):
    """The checks above."""
    CHECKS[name](simulator, tmp_path)


@pytest.mark.parametrize("name", ["zs", "zr"])
def test_made_up(simulator, name):
    """A trace that the simulator makes is the same for a seed, and another one for another."""
    def row(seed):
        return host.run(simulator, "--seed", seed, "--models", "LRU,lc", "small", "0.10")

    assert row(1) == row(1) != row(2)
    assert name in host.run("cat", SIM / "run")


def test_broken_traces(simulator, tmp_path):
    """What is no trace is told."""
    empty = tmp_path / "empty.lis"
    empty.write_text("", encoding="ascii")
    for path in (empty, tmp_path / "nowhere.u32"):
        done = subprocess.run([simulator, path, "0.1"], text=True, capture_output=True, check=False)
        assert done.returncode == 2 and "no requests" in done.stderr, done


def test_sanitized(tmp_path):
    """All models over a small trace with address and undefined behaviour sanitizers."""
    binary = make(host.BUILD / "sim-san", "SAN=1")
    path = mixed(dice()).save(tmp_path)
    host.run(binary, "--tell", path, "0.05", "0.5")


@pytest.fixture(scope="session")
def tree(simulator, tmp_path_factory):
    """A copy of what the simulator is built from, with its objects."""
    assert simulator
    top = tmp_path_factory.mktemp("sim")
    (top / "tests").mkdir()
    for name in ("dm-lc", "userland", "tests/sim", "tests/host"):
        host.run("cp", "-a", host.TOP / name, top / name)
    make(top / "build/sim", top=top)
    return top


@pytest.mark.parametrize("path", MUTANTS, ids=lambda path: path.stem)
def test_mutants(tree, path, tmp_path):
    """With the rule left out, the check that the record names fails."""
    record = mutation.read(path)
    assert record.field("Breaks")
    top = tmp_path / "tree"
    host.run("cp", "-a", tree, top)
    if any(changed.suffix == ".h" for changed in mutation.apply(path, top)):
        # What the objects depend on is noted with the paths of the tree they were built in.
        shutil.rmtree(top / "build/sim")
    binary = make(top / "build/sim", top=top)
    with pytest.raises(AssertionError):
        CHECKS[record.field("Check")](binary, tmp_path)
