# SPDX-License-Identifier: GPL-2.0-only
"""In place: the first MiB of a disk is out of the way while the disk has a cache, and comes
back; the power may go at any write of that.  Loop devices, no kernel module."""

import dataclasses
import os
import pathlib
import random

import pytest

from lib import host
from lib.tools import MIB, USERLAND, expect, mklog, run_tool, turning_link

HDD_BYTES = 6 * MIB
SSD_BYTES = 4 * MIB
END = HDD_BYTES - MIB
# While this stands at the start of a disk, nobody takes it for a bare one.
MARK = b"dmlc-mk\n"
FORMAT = ("--in-place", "--segment-size=64K", "--yes")


@dataclasses.dataclass
class Write:
    """One write a tool did, or a FLUSH (data None)."""

    path: str
    offset: int
    data: bytes | None


def read_log(path):
    """What userland/tests/write_log.c wrote."""
    raw, at, found = pathlib.Path(path).read_bytes(), 0, []
    while at < len(raw):
        end = raw.index(b"\n", at)
        words = raw[at:end].decode().split()
        at = end + 1
        if words[0] == "S":
            found.append(Write(words[1], 0, None))
            continue
        found.append(Write(words[1], int(words[2]), raw[at:at + int(words[3])]))
        at += int(words[3])
    return found


class World:
    """A disk with something on it, an SSD, and both as a power cut may have left them."""

    def __init__(self, disks, tmp_path, lbs=512):
        option = ("--sector-size", str(lbs))
        self.ssd = disks("ssd", SSD_BYTES, *option)
        self.hdd = disks("hdd", HDD_BYTES, *option)
        self.tmp = tmp_path
        self.lbs = lbs

    def save(self):
        """Both images."""
        host.run("sync")
        return {disk.dev: disk.read(0, disk.size) for disk in (self.ssd, self.hdd)}

    def load(self, images):
        """Put both images back."""
        for disk in (self.ssd, self.hdd):
            disk.write(0, images[disk.dev])

    def recorded(self, name, *args):
        """Run a tool; its writes."""
        log = self.tmp / "log"
        log.write_bytes(b"")
        done = run_tool(name, *args, env={"LD_PRELOAD": USERLAND / "build/tests/write_log.so",
                                          "WRITE_LOG": str(log)})
        return done, read_log(log)

    def format(self, recorded=False):
        """The same lc-format, always."""
        args = ("format", *FORMAT, "--backing", self.hdd.dev, self.ssd.dev)
        return self.recorded(*args) if recorded else run_tool(*args)

    def detach(self, *more, recorded=False):
        """The same lc-detach, always."""
        args = ("detach", "--backing", self.hdd.dev, *more, self.ssd.dev)
        return self.recorded(*args) if recorded else run_tool(*args)

    def check(self, *more, recorded=False):
        """lc-check of both."""
        args = ("check", *more, "--backing", self.hdd.dev, self.ssd.dev)
        return self.recorded(*args) if recorded else run_tool(*args)

    def head(self):
        """The first MiB of the disk."""
        return self.hdd.read(0, MIB)


def cut(images, writes, upto, rng, lbs):
    """A power cut while write @upto was on its way: what was not flushed by then is kept,
    dropped or torn."""
    state = {path: bytearray(image) for path, image in images.items()}
    for i, write in enumerate(writes[:upto + 1]):
        if write.data is None:
            continue
        flushed = any(later.data is None and later.path == write.path
                      for later in writes[i:upto])
        fate = "kept" if flushed else rng.choice(("kept", "dropped", "torn"))
        for at in range(0, len(write.data), lbs):
            if fate == "kept" or (fate == "torn" and rng.random() < 0.5):
                to = write.offset + at
                state[write.path][to:to + lbs] = write.data[at:at + lbs]
    return {path: bytes(image) for path, image in state.items()}


def cuts(images, writes, rng, lbs, each=3):
    """States at every write."""
    for upto, write in enumerate(writes):
        for _ in range(each if write.data is not None else 1):
            yield upto, cut(images, writes, upto, rng, lbs)
    yield len(writes), cut(images, [*writes, *(Write(path, 0, None) for path in images)],
                           len(writes) + 1, rng, lbs)


def seeded():
    """A generator whose seed is printed, and can be given."""
    seed = int(os.environ.get("LC_SEED", random.randrange(1 << 31)))
    print(f"seed {seed}: repeat with LC_SEED={seed}")
    return random.Random(seed)


def recognised(dev):
    """What libblkid finds on a device."""
    return host.run("wipefs", "--noheadings", dev).strip()


def fill(world, kind, rng):
    """Something that is recognised, and noise in the rest of the first MiB."""
    if kind == "ext4":
        host.run("mkfs.ext4", "-q", world.hdd.dev, str((HDD_BYTES - MIB) // 1024))
    elif kind == "btrfs-like":      # a superblock at 64 KiB, all else noise
        world.hdd.write(0, rng.randbytes(END))
        world.hdd.write(65536 + 64, b"_BHRfS_M")
        world.hdd.write(65536 + 0xc9 + 8, (4 * MIB).to_bytes(8, "little"))
    else:                           # every sector of it differs from zero
        world.hdd.write(0, rng.randbytes(END))
    world.hdd.write(2 * MIB, rng.randbytes(64 * 1024))


@pytest.fixture(name="world", params=[512, 4096], ids=["512", "4Kn"])
def fixture_world(request, disks, tmp_path):
    """Disks with small or large logical blocks."""
    return World(disks, tmp_path, request.param)


def expect_pair(world, original, where):
    """The pair is whole, and the volume holds what the disk did."""
    done = world.check("--quiet")
    assert done.code == 0, (where, done.err)
    assert world.hdd.read(END, MIB) == original[:MIB], where
    assert world.hdd.read(MIB, END - MIB) == original[MIB:END], where
    found = world.head()
    for at in range(0, MIB, 4096):
        block = found[at:at + 4096]
        assert block.startswith(MARK) if at in (0, MIB // 2) else not any(block), (where, at)


@pytest.mark.parametrize("kind", ["ext4", "btrfs-like", "noise"])
def test_in_place_disk_is_not_recognised(world, kind):
    """A1: the bare disk shows nothing while it has a cache, and everything afterwards."""
    fill(world, kind, random.Random(7))
    before, original = recognised(world.hdd.dev), world.hdd.read(0, HDD_BYTES)
    expect(world.format(), 0)
    assert not recognised(world.hdd.dev)
    expect_pair(world, original, kind)
    expect(world.detach(), 0, "can be used as it is")
    assert recognised(world.hdd.dev) == before
    assert world.hdd.read(0, END) == original[:END]
    assert not recognised(world.ssd.dev) and b"dmlc-sb" not in world.ssd.read(0, SSD_BYTES)
    expect(world.detach(), 0, "bears no mark")


def finish(world, original, way, where):
    """One of the remedies that the tools name."""
    if way == "format":
        done = world.format()
        assert done.code == 0, (where, done.err)
        expect_pair(world, original, where)
    elif way == "detach":
        done = world.detach()
        assert done.code == 0, (where, done.err)
        assert world.hdd.read(0, END) == original[:END], where
    else:
        done = world.check("--repair")
        assert done.code in (0, 1), (where, done.err)


@pytest.mark.parametrize("kind", ["ext4", "noise"])
def test_attach_cut_anywhere(world, kind):
    """A3: every power cut of lc-format --in-place leaves the bare disk, or the pair, or what
    the same command finishes and lc-detach takes back."""
    rng = seeded()
    fill(world, kind, rng)
    images, original = world.save(), world.hdd.read(0, HDD_BYTES)
    done, writes = world.format(recorded=True)
    assert done.code == 0 and len(writes) > 12, done.err
    seen = set()
    for upto, state in cuts(images, writes, rng, world.lbs):
        world.load(state)
        bare = state[world.hdd.dev][:MIB] == original[:MIB]
        done = run_tool("resume", "--print-table", "v", world.ssd.dev, world.hdd.dev)
        if done.code == 0:
            seen.add("pair")
            expect_pair(world, original, upto)
        elif bare:
            seen.add("bare")
            assert recognised(world.hdd.dev) or kind == "noise"
        else:
            seen.add("between")
            assert state[world.hdd.dev].startswith(MARK), upto
            assert f"lc-detach --backing={world.hdd.dev}" in done.err, done.err
            assert world.check().code == 4
            finish(world, original, "check", upto)
            expect_pair(world, original, upto)
            world.load(state)
        if done.code == 0:
            continue
        finish(world, original, "format", upto)
        world.load(state)
        finish(world, original, "detach", upto)
    assert seen == {"bare", "between", "pair"}


@pytest.mark.parametrize("kind", ["ext4", "noise"])
def test_detach_cut_anywhere(world, kind):
    """A3: killed at any write and run again, twice if need be, lc-detach finishes."""
    rng = seeded()
    fill(world, kind, rng)
    assert world.format().code == 0
    # The volume's first MiB was written to meanwhile.
    world.hdd.write(END + 8192, rng.randbytes(300 * 1024))
    images = world.save()
    original = world.hdd.read(END, MIB) + world.hdd.read(MIB, END - MIB)
    done, writes = world.detach(recorded=True)
    assert done.code == 0 and world.hdd.read(0, END) == original, done.err
    for upto, state in cuts(images, writes, rng, world.lbs):
        world.load(state)
        done = run_tool("resume", "--print-table", "v", world.ssd.dev, world.hdd.dev)
        bare = state[world.hdd.dev][:END] == original
        if done.code and not bare:
            assert state[world.hdd.dev].startswith(MARK), upto
            assert f"lc-detach --backing={world.hdd.dev}" in done.err, (upto, done.err)
        done, again = world.detach(recorded=True)
        assert done.code == 0, (upto, done.err)
        assert world.hdd.read(0, END) == original, upto
        assert b"dmlc-sb" not in world.ssd.read(0, SSD_BYTES), upto
        if not again:
            continue
        world.load(cut(state, again, rng.randrange(len(again)), rng, world.lbs))
        assert world.detach().code == 0, upto
        assert world.hdd.read(0, END) == original, upto


def test_repair_finishes_a_detach(world):
    """A3: what a power cut leaves of lc-detach, lc-check --repair finishes, also if it is cut."""
    rng = seeded()
    fill(world, "noise", rng)
    assert world.format().code == 0
    world.hdd.write(END + 8192, rng.randbytes(300 * 1024))
    images = world.save()
    original = world.hdd.read(END, MIB) + world.hdd.read(MIB, END - MIB)
    done, writes = world.detach(recorded=True)
    assert done.code == 0, done.err
    seen = set()
    for upto, state in cuts(images, writes, rng, world.lbs, each=1):
        world.load(state)
        done = world.check()
        if f"lc-detach --backing={world.hdd.dev}" not in done.err:
            bare = state[world.hdd.dev][:END] == original
            seen.add("bare" if bare else "pair")
            assert bare or done.code == 0, (upto, done.err)
            continue
        seen.add("between")
        assert done.code == 4, (upto, done.err)
        done, again = world.check("--repair", recorded=True)
        assert done.code == 1 and again, (upto, done.err)
        assert world.hdd.read(0, END) == original, upto
        assert b"dmlc-sb" not in world.ssd.read(0, SSD_BYTES), upto
        world.load(cut(state, again, rng.randrange(len(again)), rng, world.lbs))
        if world.hdd.read(0, END) != original:
            done = world.check("--repair")
            assert done.code == 1, (upto, done.err)
        assert world.hdd.read(0, END) == original, upto
    assert seen == {"pair", "between", "bare"}


@pytest.mark.parametrize("copy", [0, MIB // 2])
def test_one_copy_of_the_mark_tells(world, copy):
    """A3: of two good copies of the mark the later one counts, as it does in the kernel."""
    fill(world, "noise", random.Random(3))
    assert world.format().code == 0
    images = world.save()
    done, writes = world.detach(recorded=True)
    assert done.code == 0, done.err
    write = next(w for w in writes if w.path == world.hdd.dev and w.offset == copy and w.data)
    assert write.data[76:80] == b"\4\0\0\0", "the first thing written is not the state"
    world.load(images)
    world.hdd.write(copy, write.data)
    done = run_tool("resume", "--print-table", "v", world.ssd.dev, world.hdd.dev)
    assert done.code == 1 and f"lc-detach --backing={world.hdd.dev}" in done.err, done.err


def interrupted_attach(world, rng):
    """A cut behind the first block of the mark; the images."""
    images = world.save()
    done, writes = world.format(recorded=True)
    assert done.code == 0, done.err
    decides = [i for i, w in enumerate(writes)
               if w.path == world.hdd.dev and w.offset == 0 and w.data][0]
    state = cut(images, writes[:decides + 3], decides + 2, rng, world.lbs)
    assert state[world.hdd.dev].startswith(MARK)
    return state


def test_used_bare_disk_is_not_overwritten(world):
    """A4: what somebody wrote to the bare disk between two tries stays."""
    rng = seeded()
    fill(world, "noise", rng)
    original = world.hdd.read(0, END)
    world.load(interrupted_attach(world, rng))
    newer = rng.randbytes(world.lbs)
    world.hdd.write(65536, newer)
    before = world.hdd.digest()
    expect(world.format(), 1, "lc-detach", "sector 128")
    assert world.check("--repair").code == 8
    assert world.hdd.digest() == before
    expect(world.detach(), 0, "stay as they are")
    expected = original[:65536] + newer + original[65536 + world.lbs:]
    assert world.hdd.read(0, END) == expected


def test_interrupted_is_not_finished_beside_another_use(world):
    """Each remedy is refused while there is a loop device over the disk."""
    rng = seeded()
    fill(world, "noise", rng)
    original = world.hdd.read(0, HDD_BYTES)
    world.load(interrupted_attach(world, rng))
    before = world.ssd.digest(), world.hdd.digest()
    over = host.run("losetup", "--find", "--show", world.hdd.dev).strip()
    try:
        chain = f"{os.path.basename(over)} on {os.path.basename(world.hdd.dev)}"
        for done in (world.format(), world.detach(), world.check("--repair")):
            assert done.code in (1, 8) and f"by another device: {chain}" in done.err, done.err
    finally:
        host.run("losetup", "--detach", over)
    assert (world.ssd.digest(), world.hdd.digest()) == before
    finish(world, original, "format", "alone again")


def test_detach_without_the_cache(world):
    """A disk whose SSD is gone comes back when it is said by name; another's does not."""
    fill(world, "ext4", random.Random(1))
    original = world.hdd.read(0, END)
    assert world.format().code == 0
    before = world.hdd.digest()
    expect(run_tool("detach", "--backing", world.hdd.dev), 1, "--force=cache-missing")
    assert world.hdd.digest() == before
    expect(run_tool("detach", "--backing", world.hdd.dev, "--force=cache-missing"), 0)
    assert world.hdd.read(0, END) == original


def test_moved_head_survives_another_cache(world):
    """A new cache for a disk that lost its own knows that the first MiB is away."""
    fill(world, "ext4", random.Random(2))
    original = world.hdd.read(0, HDD_BYTES)
    assert world.format().code == 0
    world.ssd.write(0, bytes(SSD_BYTES))
    before = world.hdd.digest()
    expect(world.format(), 1, "--force=paired")
    done = run_tool("format", *FORMAT, "--no-mark", "--force=paired", "--backing", world.hdd.dev,
                    world.ssd.dev)
    assert done.code == 1, done.err
    assert world.hdd.digest() == before
    expect(run_tool("format", *FORMAT, "--force=paired", "--backing", world.hdd.dev, world.ssd.dev),
           0)
    expect_pair(world, original, "again")
    assert world.detach().code == 0
    assert world.hdd.read(0, END) == original[:END]


@pytest.mark.parametrize("which", [0, 1], ids=["ssd", "hdd"])
def test_detach_writes_to_what_was_checked(disks, tmp_path, which):
    """A link that is turned between check and write to a copy of the disk: the copy is not
    written to."""
    world = World(disks, tmp_path)
    fill(world, "noise", random.Random(7))
    original = world.hdd.read(0, HDD_BYTES)
    assert world.format().code == 0
    pair = (world.ssd, world.hdd)
    other = disks("other", pair[which].size)
    other.write(0, pair[which].read(0, other.size))
    before = other.digest()
    names, env = turning_link(tmp_path, pair, which, other)
    done = run_tool("detach", "--backing", names[1], names[0], env=env)
    assert done.code == 0 and os.readlink(names[which]) == other.dev, done.err
    assert other.digest() == before
    assert world.hdd.read(0, END) == original[:END]
    assert b"dmlc-sb" not in world.ssd.read(0, SSD_BYTES)


def test_detach_default_layout(world):
    """The default layout: nothing to move, and the message says how the data is reached."""
    args = ("format", "--segment-size=64K", "--backing", world.hdd.dev, world.ssd.dev)
    assert run_tool(*args).code == 0
    world.hdd.write(MIB, b"x" * MIB)
    expect(world.detach(), 0, f"losetup --find --show -o {MIB} {world.hdd.dev}")
    assert not any(world.hdd.read(0, MIB)) and world.hdd.read(MIB, MIB) == b"x" * MIB
    assert run_tool(*args).code == 0


def test_detach_refuses(world):
    """Another cache's SSD; one that was not stopped cleanly; a lost list nobody has seen."""
    fill(world, "ext4", random.Random(3))
    assert world.format().code == 0
    before = world.hdd.digest()
    mklog(world.ssd.path, "sb epoch=1\n")
    expect(world.detach(), 1, "name the right devices")
    assert world.hdd.digest() == before
    facts = f"volume={END // 512} epoch=2 clean=1 next=1 head=1"
    mklog(world.ssd.path, f"sb {facts} owner=7\nmark file={world.hdd.path} owner=8\n")
    before = world.hdd.digest()
    expect(world.detach(), 1, "with a copy of this cache in life 2")
    assert world.hdd.digest() == before


def test_what_stays_recognised_is_not_attached(world):
    """A1: a signature behind the first MiB would have the bare disk used: all is undone."""
    fill(world, "noise", random.Random(4))
    world.hdd.write(MIB, bytes.fromhex("0dd001c0"))
    original = world.hdd.read(0, END)
    assert "VMFS" in recognised(world.hdd.dev)
    done = run_tool("format", *FORMAT, "--force=fs-at-end", "--backing", world.hdd.dev,
                    world.ssd.dev)
    assert done.code == 1 and "still shows VMFS" in done.err, done.err
    assert world.hdd.read(0, END) == original
    assert b"dmlc-sb" not in world.ssd.read(0, SSD_BYTES)
