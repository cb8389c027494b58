# SPDX-License-Identifier: GPL-2.0-only
"""lc-check on media that read badly for a moment, repairs that are killed, lc-format killed."""

import os
import pty
import struct

import pytest

from lib.tools import (
    CLEAN,
    CUT,
    LANES,
    LOG,
    MIB,
    PROMOTED,
    SB_VERSION_AT,
    SLOT,
    Disk,
    check,
    dump,
    expect,
    lc_format,
    preload,
    run_tool,
    slot_at,
    turning_link,
)


def bad_reads(tmp_path, *lines, of=None):
    """Bytes whose blocks read badly, see userland/tests/bad_blocks.c."""
    path = tmp_path / "bad-blocks"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    env = preload("bad_blocks", BAD_BLOCKS=str(path))
    return {**env, "BAD_BLOCKS_OF": str(of)} if of else env


def both(*envs):
    """Several stand-ins at once."""
    merged = {key: value for env in envs for key, value in env.items()}
    return {**merged, "LD_PRELOAD": " ".join(env["LD_PRELOAD"] for env in envs)}


# -- reads that fail for a moment ------------------------------------------------------------------

PLACES = {"superblock": 0, "third-copy": None, "header": slot_at(1, 4), "slot": slot_at(1, 5),
          "last-slot": slot_at(2, 2), "end-of-chain": slot_at(2, 3)}


@pytest.mark.parametrize("kind", ["", "flip"], ids=["error", "nonsense"])
@pytest.mark.parametrize("place", PLACES)
def test_passing_read_error_is_no_damage(image, tmp_path, place, kind):
    """A block reads badly twice: no damage, and a repair writes nothing."""
    disk = image(LOG)
    at = PLACES[place]
    at = dump(disk.path)["superblock"]["end_offset"] if at is None else at
    before = disk.digest()
    for options in ((), ("--repair",)):
        expect(run_tool("check", *options, disk.path, env=bad_reads(tmp_path, f"{at} 2 {kind}")), 0)
        assert disk.digest() == before


def test_passing_read_error_of_a_checkpoint(image, tmp_path):
    """The same of a checkpoint, which a repair would give up."""
    disk = image(CLEAN.replace("first=9", "first=5"))
    at = dump(disk.path)["superblock"]["ckpt_offset"]
    before = disk.digest()
    for line in (f"{at} 2", f"{at} 2 flip", f"{slot_at(1, 2)} 2 flip"):
        done = run_tool("check", "--repair", disk.path, env=bad_reads(tmp_path, line))
        assert done.code == 0 and disk.digest() == before, done.out + done.err


@pytest.mark.parametrize("kind", ["", "flip"], ids=["error", "nonsense"])
def test_repair_looks_again_before_it_writes(image, tmp_path, kind):
    """What all tries found bad is good again when the repair would begin: it does not."""
    disk = image(LOG)
    before = disk.digest()
    # The record is read as a whole, then slot by slot; what fails, in four tries.
    done = run_tool("check", "--repair", disk.path,
                    env=bad_reads(tmp_path, f"{slot_at(1, 5)} {5 if kind else 8} {kind}"))
    assert "DAMAGE: slot 5 of segment 1" in done.out, done.out
    assert done.code == 8 and "reads differently" in done.err, done.out + done.err
    assert disk.digest() == before


def test_unreadable_is_never_no_damage(image, tmp_path):
    """A slot nothing needs, and one behind a clean stop: told, and mended by writing."""
    spare = LOG + "data segment=2 slot=3 seq=5 durable=4 blocks=50,51 mask=0\n"
    clean = CLEAN.replace("first=9", "first=5")
    for script, slot in ((spare, (2, 4)), (LOG, (4, 7)), (clean, (3, 0)), (clean, (4, 2))):
        disk = image(script)
        env = bad_reads(tmp_path, slot_at(*slot))
        done = run_tool("check", disk.path, env=env)
        assert done.code == 4 and "cannot be read" in done.out, (slot, done.out)
        assert run_tool("check", "--repair", disk.path, env=env).code == 1
        assert run_tool("check", disk.path, env=env).code == 0


# -- one descriptor --------------------------------------------------------------------------------

@pytest.mark.parametrize("which", [0, 1], ids=["ssd", "hdd"])
def test_repair_writes_to_what_was_checked(disks, pair, tmp_path, which):
    """A link that is turned between check and repair to a copy with the same damage: the copy is
    not written to."""
    assert lc_format(pair).code == 0
    pair[which].write(0, b"rot")
    other = disks("other", pair[which].size)
    other.write(0, pair[which].read(0, other.size))
    before = other.digest()
    names, env = turning_link(tmp_path, pair, which, other)
    done = run_tool("check", "--repair", "--backing", names[1], names[0], env=env)
    assert done.code == 1 and os.readlink(names[which]) == other.dev, done.out + done.err
    assert other.digest() == before
    assert run_tool("check", "--backing", pair[1].dev, pair[0].dev).code == 0


# -- newer versions --------------------------------------------------------------------------------

@pytest.mark.parametrize("copy", [0, 1, 2])
def test_repair_leaves_a_newer_superblock_copy(image, copy):
    """Whatever else is damaged, nothing is written."""
    disk = image(LOG)
    at = dump(disk.path)["superblock"]["end_offset"] if copy == 2 else copy * MIB // 2
    disk.write(at + SB_VERSION_AT, struct.pack("<I", 2))
    disk.write(slot_at(1, 2), b"rot")
    before = disk.digest()
    done = check(disk, "--repair")
    assert done.code == 4 and "may be of a newer dm-lc" in done.out, done.out
    assert disk.digest() == before


@pytest.mark.parametrize("copy", [0, 1])
def test_repair_leaves_a_newer_mark_copy(image, tmp_path, copy):
    """The mark's likewise."""
    hdd = Disk(tmp_path / "hdd", 513 * MIB)
    disk = image(LOG + f"mark file={hdd.path}\n")
    hdd.write(copy * MIB // 2 + 72, struct.pack("<I", 2))
    before = disk.digest(), hdd.read(0, MIB)
    done = check(disk, "--repair", "--backing", hdd.path)
    assert done.code == 4 and "may be of a newer dm-lc" in done.out, done.out
    assert (disk.digest(), hdd.read(0, MIB)) == before


# -- what is unreadable is written anew ------------------------------------------------------------

@pytest.mark.parametrize("copy", [0, 1])
def test_unreadable_mark_copy(pair, fake, tmp_path, copy):
    """Every tool goes by the other copy, as the kernel does; a repair writes it anew."""
    assert lc_format(pair).code == 0
    env = bad_reads(tmp_path, copy * MIB // 2, of=pair[1].dev)
    done = run_tool("resume", "lc0", pair[0].dev, pair[1].dev, env=both(env, fake.env))
    assert done.code == 0 and f"mark copy {copy} is bad" in done.err, done.err
    with_hdd = ("--backing", pair[1].dev, pair[0].dev)
    done = run_tool("check", *with_hdd, env=env)
    assert done.code == 4 and f"mark copy {copy}" in done.out, done.out + done.err
    expect(lc_format(pair, env=env), 1, "--force=paired")
    expect(run_tool("check", "--repair", *with_hdd, env=env), 1)
    assert run_tool("check", *with_hdd, env=env).code == 0


@pytest.mark.parametrize("copy", [0, 1, 2])
def test_unreadable_superblock_copy(pair, fake, tmp_path, copy):
    """The SSD's copies likewise."""
    assert lc_format(pair).code == 0
    at = dump(pair[0].path)["superblock"]["end_offset"] if copy == 2 else copy * MIB // 2
    env = bad_reads(tmp_path, at, of=pair[0].dev)
    expect(run_tool("resume", "lc0", pair[0].dev, pair[1].dev, env=both(env, fake.env)), 0)
    expect(run_tool("check", "--repair", "--backing", pair[1].dev, pair[0].dev, env=env), 1)
    assert run_tool("check", "--backing", pair[1].dev, pair[0].dev, env=env).code == 0


def test_unreadable_places_are_not_taken_for_empty(pair, tmp_path):
    """Nobody knows what they held: lc-format refuses, and takes a force."""
    env = bad_reads(tmp_path, 0, MIB // 2, of=pair[1].dev)
    expect(lc_format(pair, env=env), 1, "nothing was written")
    env = bad_reads(tmp_path, MIB // 2, of=pair[0].dev)
    expect(lc_format(pair, env=env), 1, "--force=dirty-cache")


# -- the question ----------------------------------------------------------------------------------

def at_terminal(answer, *args):
    """lc-check with a terminal as standard input; exit code and standard error."""
    main, sub = pty.openpty()
    try:
        os.write(main, answer)
        done = run_tool("check", *args, stdin=sub)
    finally:
        os.close(sub)
        os.close(main)
    return done


def test_repair_asks_at_a_terminal(image):
    """Every write is listed; only "yes" goes on, and --yes is not asked."""
    disk = image(LOG)
    disk.write(slot_at(1, 2), b"rot")
    disk.write(300, b"rot")
    before = disk.digest()
    done = at_terminal(b"no\n", "--repair", "--quiet", disk.path)
    assert done.code == 4 and "nothing was written" in done.err and disk.digest() == before
    assert "superblock copy 0 is rewritten" in done.err and "overwrite 2 blocks" in done.err
    assert "sectors of block 11 in record 1 become lost" in done.err, done.err
    done = at_terminal(b"yes\n", "--repair", disk.path)
    assert done.code == 1 and disk.digest() != before
    disk = image(LOG)
    disk.write(300, b"rot")
    done = at_terminal(b"", "--repair", "--yes", disk.path)
    assert done.code == 1 and "Type" not in done.err
    assert at_terminal(b"", disk.path).code == 0


# -- a repair that is killed -----------------------------------------------------------------------

def rot(*places):
    """Change some bytes of the image."""
    def damage(disk):
        for at in places:
            disk.write(at, b"rot")
    return damage


SPAN = "".join(f"data segment={1 + n // 3} slot={n % 3 * 4} seq={n + 1} durable={n} "
               f"blocks={n * 3},{n * 3 + 1},{n * 3 + 2}\n" for n in range(12))
HEADERS = ("sb epoch=1 first=1 tail=1 tail_segment=1\n" + SPAN)
DAMAGES = {
    "slots": (LOG, rot(slot_at(1, 2), slot_at(1, 8), slot_at(1, 10), slot_at(1, 5))),
    "copies": (LOG, rot(300, 15 * MIB + 300)),
    "headers": (HEADERS, rot(slot_at(1, 4) + 60, slot_at(1, 8) + 60, slot_at(2, 0) + 60,
                             slot_at(2, 4) + 60)),
    "segment": (HEADERS, rot(*(slot_at(2, slot) + 60 for slot in range(16)))),
    "all": (HEADERS, rot(MIB // 2 + 300, slot_at(1, 1), slot_at(2, 4) + 60, slot_at(3, 2),
                         slot_at(3, 8) + 60)),
    "lanes": (LANES, rot(slot_at(10, 3) + 60, slot_at(11, 3) + 60, slot_at(10, 1))),
    "lanes-segment": (LANES, rot(*(slot_at(11, slot) + 60 for slot in range(16)))),
    "checkpoint": (CLEAN.replace("first=9", "first=5"), None),
    "promoted": (PROMOTED, rot(slot_at(2, 4), slot_at(2, 7) + 60)),
    "checkpoint-slot": (CLEAN.replace("first=9", "first=5"), rot(slot_at(1, 2), 300)),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_killed_repair_ends_in_the_same_state(image, name, tmp_path):
    """Killed before each write and run again: the same bytes as if it had not been."""
    script, damage = DAMAGES[name]
    log, blank = tmp_path / "writes", image(script).path

    def damaged():
        for size in (0, 16 * MIB):  # nothing of the last time
            os.truncate(blank, size)
        disk = image(script)
        if damage:
            damage(disk)
        else:
            disk.write(dump(disk.path)["superblock"]["ckpt_offset"] + 70, b"rot")
        return disk

    disk = damaged()
    expect(run_tool("check", "--repair", disk.path, env=preload("cut_writes", CUT_LOG=str(log))), 1)
    whole = disk.digest()
    writes = log.read_text(encoding="ascii").splitlines()
    assert writes and all(line.startswith(f"{SLOT} ") for line in writes)
    for n in range(len(writes)):
        disk = damaged()
        done = run_tool("check", "--repair", disk.path,
                        env=preload("cut_writes", CUT_AFTER=str(n)))
        assert done.code == CUT
        again = run_tool("check", "--repair", disk.path)
        assert again.code == 1, f"after {n} writes: {again.out}{again.err}"
        assert disk.digest() == whole, f"after {n} of {len(writes)} writes: {writes}"


def test_killed_repair_of_unreadable_slots(image, tmp_path):
    """The same of slots that are written anew because they cannot be read."""
    digests = set()
    for n in (None, 0, 1, 2):
        disk = image(LOG)
        os.truncate(disk.path, 0)
        os.truncate(disk.path, 16 * MIB)
        disk = image(LOG)
        bad = bad_reads(tmp_path, slot_at(2, 2), slot_at(1, 5), slot_at(3, 0))
        env = both(preload("cut_writes"), bad)
        if n is not None:
            expect(run_tool("check", "--repair", disk.path, env={**env, "CUT_AFTER": str(n)}), CUT)
        assert run_tool("check", "--repair", disk.path, env=env).code == 1
        assert run_tool("check", disk.path, env=env).code == 0
        digests.add(disk.digest())
    assert len(digests) == 1
