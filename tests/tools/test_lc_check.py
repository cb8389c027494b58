# SPDX-License-Identifier: GPL-2.0-only
"""lc-check on hand-made images: what is damage, what is lost, what is not."""

import os
import re

import pytest

from lib import host
from lib.tools import (
    CLEAN,
    HIGH,
    LOG,
    MIB,
    SEGMENT,
    SLOT,
    USERLAND,
    Disk,
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


def test_check_of_a_good_log(image):
    """No damage."""
    disk = image(LOG)
    done = check(disk)
    assert done.code == 0 and "11 data slots verified" in done.out, done.out
    assert run_of(disk) == (1, 4)


def test_check_torn_tail_is_no_damage(image):
    """Data or header missing above the durable seq: the log just ends there."""
    disk = image(LOG)
    disk.write(slot_at(2, 1), b"torn")
    done = check(disk)
    assert done.code == 0 and "record 4 was not completely written" in done.out.lower()
    disk = image(LOG)
    disk.write(slot_at(2, 0) + 104, b"torn")
    assert check(disk).code == 0
    assert run_of(disk) == (1, 3)


def test_check_bad_slot(image):
    """Named by sectors; after the repair they are recorded as lost."""
    disk = image(LOG)
    disk.write(slot_at(1, 6) + 100, b"rot")
    done = check(disk)
    assert done.code == 4 and "  sectors 168-175" in done.out, done.out
    _, again = assert_repairs(disk)
    assert "  sectors 168-175" in again.out
    entry = dump(disk.path, "--entries")["records"][1]["entry_list"][1]
    assert (entry["mask"], entry["lost"]) == (0, 255)


def test_check_bad_slot_that_was_overwritten(image):
    """Damage, but nothing is lost: block 10 is in record 4 again."""
    disk = image(LOG)
    disk.write(slot_at(1, 1), b"rot")
    done = check(disk)
    assert done.code == 4 and "Lost" not in done.out
    _, again = assert_repairs(disk)
    assert "Lost" not in again.out


# Blocks of a record that fills its segment.
LATER = ",".join(str(1000 + n) for n in range(SEGMENT // SLOT - 1))


def test_check_damage_hides_no_durable_records(image):
    """One bad header in the only segment: those behind it tell that it was durable (L4, L13)."""
    disk = image("sb epoch=1\n" + "".join(
        f"data segment=1 slot={2 * n} seq={n + 1} durable={n} blocks={n}\n" for n in range(8)))
    assert check(disk).code == 0 and run_of(disk) == (1, 8)
    disk.write(slot_at(1, 6) + 104, b"rot")
    done = check(disk)
    assert done.code == 4 and "record 4 is missing" in done.out, done.out
    assert_repairs(disk)
    assert run_of(disk) == (1, 8)


def test_check_older_life_hides_no_durable_records(image):
    """A header of life 1 where record 6 was never written: among its slots is record 7, which tells
    that record 5 was durable; another header of life 1 hides record 8 there (L19).
    """
    disk = image("sb epoch=2 first=4 tail=1 tail_segment=1\n" + "".join(
        f"data segment=1 slot={2 * n} seq={n + 1} epoch=1 first=1 durable={n} blocks={n}\n"
        for n in range(3))
        + f"data segment=2 slot=0 seq=9 epoch=1 first=1 durable=0 blocks={LATER}\n"
          "data segment=2 slot=0 seq=4 durable=3 blocks=40\n"
          "data segment=2 slot=2 seq=5 durable=4 blocks=50\n"
          f"data segment=3 slot=0 seq=14 epoch=1 first=1 durable=0 blocks={LATER}\n"
          "data segment=3 slot=2 seq=7 durable=4 blocks=70\n"
          "data segment=3 slot=4 seq=13 epoch=1 first=1 durable=0 blocks=90,91,92\n"
          "data segment=3 slot=6 seq=8 durable=5 blocks=80\n")
    disk.write(slot_at(2, 2) + 104, b"rot")
    done = check(disk)
    assert done.code == 4 and "record 5 is missing" in done.out, done.out
    assert_repairs(disk)
    assert run_of(disk)[1] >= 5


@pytest.mark.parametrize("durable", [5, 6, 7])
def test_check_repairs_what_an_older_life_hides(image, durable):
    """Record 7 stands among the slots of a header of life 1: there is no hole in front of it, and
    what is missing below what was durable gets a place elsewhere.
    """
    disk = image("sb epoch=2 first=4 tail=1 tail_segment=1\n" + "".join(
        f"data segment=1 slot={2 * n} seq={n + 1} epoch=1 first=1 durable={n} blocks={n}\n"
        for n in range(3))
        + "data segment=2 slot=0 seq=4 durable=3 blocks=40\n"
          "data segment=2 slot=2 seq=5 durable=4 blocks=50\n"
          f"data segment=3 slot=0 seq=14 epoch=1 first=1 durable=0 blocks={LATER}\n"
          "data segment=3 slot=2 seq=7 durable=4 blocks=70\n"
          f"data segment=3 slot=4 seq=8 durable={durable} blocks=80\n")
    assert check(disk).code == (4 if durable > 5 else 0)
    if durable == 6:
        done, _ = assert_repairs(disk)
        assert "hole" not in done.err and run_of(disk)[1] >= 6, done.err
    elif durable == 7:
        # No writer leaves that: record 7 is durable only with all that is in front of it.
        done = check(disk, "--repair")
        assert done.code == 4 and "could not be repaired completely" in done.err, done


@pytest.mark.parametrize("slot, seq, last", [(0, 1, 4), (4, 2, 4), (7, 3, 4)])
def test_check_damaged_header(image, slot, seq, last):
    """At the start, in the middle and at the end of a segment: the records behind come back."""
    disk = image(LOG)
    disk.write(slot_at(1, slot) + 104, b"rot")
    assert run_of(disk)[1] < seq
    done = check(disk)
    assert done.code == 4 and f"record {seq} is missing" in done.out, done.out
    assert "segment 1" in done.out
    done, _ = assert_repairs(disk)
    assert "not known" in done.out
    assert run_of(disk) == (1, last)


def test_check_lost_segment(image):
    """All of a segment in the middle: its seqs become empty records."""
    disk = image(LOG + "data segment=3 slot=0 seq=5 durable=4 blocks=50\n")
    disk.write(slot_at(2, 0), bytes(SEGMENT))
    assert_repairs(disk)
    assert run_of(disk) == (1, 5)


LIVES = ("sb epoch=2 first=5 tail=1 tail_segment=1\n"
         "data segment=1 slot=0 seq=1 epoch=1 first=1 durable=0 blocks=10,11,12\n"
         "data segment=1 slot=4 seq=2 epoch=1 first=1 durable=1 blocks=20,21\n"
         "data segment=1 slot=7 seq=3 epoch=1 first=1 durable=2 blocks=30\n"
         "data segment=1 slot=9 seq=4 epoch=1 first=1 durable=3 blocks=40\n"
         "data segment=2 slot=0 seq=5 durable=4 blocks=50\n"
         "data segment=2 slot=2 seq=6 durable=5 blocks=60\n"
         "data segment=3 slot=0 seq=7 durable=6 blocks=70\n")


@pytest.mark.parametrize("rotten", [
    ((2, 0), (2, 2)), ((1, 9), (2, 0)), ((1, 0), (1, 4), (1, 7), (1, 9)), ((1, 9),), ((2, 0),),
], ids=["new-life", "both-ends", "old-life", "end-of-old", "start-of-new"])
def test_check_keeps_lives_apart(image, rotten):
    """A placeholder takes the place of no record of another life that is whole (R7)."""
    disk = image(LIVES)
    good = {(r["segment"], r["slot"]): r for r in dump(disk.path, "--entries")["records"]}
    for segment, slot in rotten:
        disk.write(slot_at(segment, slot) + 104, b"rot")
        del good[segment, slot]
    assert_repairs(disk)
    assert run_of(disk) == (1, 7)
    after = {(r["segment"], r["slot"]): r for r in dump(disk.path, "--entries")["records"]}
    for place, record in good.items():
        after[place]["hidden"] = record["hidden"]
        assert after[place] == record


def test_check_never_wraps_onto_the_tail(image):
    """No room for the missing record in a full ring: the tail's segment is not free."""
    disk = image("sb epoch=1\n")
    ring = dump(disk.path)["superblock"]["nr_segments"]
    full = ",".join(str(block) for block in range(SEGMENT // SLOT - 1))
    mklog(disk.path, "sb epoch=2 first=" + str(ring + 2) + "\n" + "".join(
        f"data segment={n} slot=0 seq={n} epoch=1 first=1 durable={n - 1} blocks={full}\n"
        for n in range(1, ring + 1)))
    assert run_of(disk) == (1, ring)
    before = disk.read(MIB, ring * SEGMENT)
    expect(check(disk, "--repair"), 4, f"no room for a record in place of the missing {ring + 1}")
    assert disk.read(MIB, ring * SEGMENT) == before


def test_check_does_not_bring_back_what_is_not_durable(image):
    """A gap above the durable seq ends the log; what is behind stays dead (P2)."""
    disk = image(LOG + "data segment=2 slot=3 seq=5 durable=3 blocks=50\n"
                 "data segment=2 slot=5 seq=6 durable=3 blocks=60\n")
    disk.write(slot_at(1, 4), b"rot")
    disk.write(slot_at(2, 3), b"torn")
    assert_repairs(disk)
    assert run_of(disk) == (1, 4)


def test_check_hole_of_several_records(image):
    """k records missing from n slots: placeholders cover exactly the hole."""
    disk = image(LOG)
    for slot in (0, 4):
        disk.write(slot_at(1, slot), b"rot")
    assert_repairs(disk)
    assert run_of(disk) == (1, 4)
    records = dump(disk.path, "--records")["records"]
    assert [(r["seq"], r["slot"], r["type"]) for r in records[:3]] == [
        (1, 0, "range"), (2, 1, "data"), (3, 7, "data")]


def test_repair_believes_no_clean_copies(image):
    """Placeholders make a log whole that is not: the superblock says so before they are there."""
    disk = image(LOG.replace("sb ", "sb warm=1 "))
    assert check(disk).code == 0 and dump(disk.path)["superblock"]["warm_segment"] == 1
    assert check(disk, "--repair").code == 0 and dump(disk.path)["superblock"]["warm_segment"] == 1
    disk.write(slot_at(1, 0), b"rot")
    assert_repairs(disk)
    assert dump(disk.path)["superblock"]["warm_segment"] == 0


def test_check_foreign_generation_and_lap(image):
    """Records of another format run or lap do not exist, however good they look."""
    other = LOG.replace("sb ", "sb generation=99 ")
    mklog(image("sb epoch=1\n").path, other)
    disk = image("sb epoch=1 first=1\n")
    assert check(disk).code == 0 and run_of(disk) == (1, 0)
    disk = image(LOG.replace("sb ", "sb epoch=2 first=1 ") + "sb epoch=1 first=1\n")
    disk = image("sb epoch=1\n" + LOG.split("\n", 1)[1].replace("segment=1 ", "segment=226 "))
    assert run_of(disk) == (1, 0)


RECORD_TYPE_AT = 114
RECORD_FLAGS_AT = 115
RECORD_BACKING_AT = 128 + 5


@pytest.mark.parametrize("durable", [3, 4], ids=["end", "middle"])
@pytest.mark.parametrize("forged", [f"{RECORD_TYPE_AT}:0", f"{RECORD_TYPE_AT}:3",
                                    f"{RECORD_FLAGS_AT}:1", f"{RECORD_BACKING_AT}:1"])
def test_check_unknown_record(image, forged, durable):
    """The kernel does not start from it, so it is no good log; and it is not overwritten."""
    disk = image(LOG.replace("durable=3", f"durable=3 forge={forged}") +
                 ("data segment=3 slot=0 seq=5 durable=4 blocks=50\n" if durable == 4 else ""))
    before = disk.digest()
    done = check(disk)
    assert done.code == 4 and "segment 2, slot 0: " in done.out, done.out
    assert "a record of a newer dm-lc" in done.out and "beyond repair" in done.err
    assert check(disk, "--repair").code == 4 and disk.digest() == before
    assert "does not know" in dump(disk.path)["log"]["verdict"]


def test_check_unknown_record_behind_the_lap(image):
    """What is not of this lap or format run is not looked at, whatever its type."""
    for old in (LOG.replace("sb ", "sb generation=99 "), LOG.replace("segment=2", "segment=228")):
        disk = image(old.replace("durable=3", f"durable=3 forge={RECORD_TYPE_AT}:9") +
                     "sb epoch=1\n")
        assert check(disk).code == 0


@pytest.mark.parametrize("kind", [2, 4, 5], ids=["zero", "range-zero", "range-lost"])
def test_check_entry_nobody_writes(image, kind):
    """The kernel refuses it in the log, and does not look at it behind the end."""
    entry_type_at = 128 + 7
    line = (f"data segment=2 slot=0 seq=4 durable=3 blocks=10 forge={entry_type_at}:2\n"
            if kind == 2 else f"range segment=2 slot=0 seq=4 durable=3 type={kind}\n")
    rest = LOG.rsplit("\n", 2)[0] + "\n"
    disk = image(rest + line)
    before = disk.digest()
    done = check(disk)
    assert done.code == 4 and f"never writes: type {kind}" in done.out, done.out
    assert check(disk, "--repair").code == 4 and disk.digest() == before
    assert check(image(rest + line.replace("seq=4", "seq=6"))).code == 0


def test_check_wrap(image):
    """A log whose segments go around the ring."""
    disk = image("sb epoch=1\n")
    ring = dump(disk.path)["superblock"]["nr_segments"]
    first = 3 * ring - 1
    mklog(disk.path, f"sb epoch=1 first=1 tail=70 tail_segment={first}\n"
          f"data segment={first} slot=0 seq=70 durable=69 blocks=1\n"
          f"data segment={first + 1} slot=0 seq=71 durable=70 blocks=2\n"
          f"data segment={first + 2} slot=0 seq=72 durable=71 blocks=3\n")
    assert check(disk).code == 0 and run_of(disk) == (70, 72)
    disk.write(slot_at(first + 1, 0, ring) + 99, b"rot")
    assert check(disk).code == 4
    assert_repairs(disk)
    assert run_of(disk) == (70, 72)


def test_check_hidden_records_of_a_later_life(image):
    """They lie behind a good record where no life writes: that one stays, and is not doubled."""
    disk = image("sb epoch=2 first=5 tail=1 tail_segment=1\n"
                 "data segment=1 slot=0 seq=1 epoch=1 first=1 blocks=1\n"
                 "data segment=1 slot=2 seq=2 epoch=1 first=1 blocks=2\n"
                 "data segment=3 slot=0 seq=3 epoch=1 first=1 blocks=3\n"
                 "data segment=3 slot=9 seq=15 epoch=2 first=5 blocks=4\n")
    before = disk.digest()
    assert run_of(disk) == (1, 3)
    done = check(disk, "--repair")
    assert done.code == 4 and disk.digest() == before, done.out
    # Nothing was done, so nothing was tried again.
    assert done.err.count("no room for a record in place of the missing 4") == 1, done.err


def test_check_first_header_of_a_dead_record(image):
    """It says nothing about those of a later life behind it: they are led to again."""
    disk = image("sb epoch=2 first=5 tail=1 tail_segment=1\n"
                 "data segment=1 slot=0 seq=1 epoch=1 first=1 blocks=1\n"
                 "data segment=1 slot=2 seq=2 epoch=1 first=1 blocks=2\n"
                 "data segment=1 slot=4 seq=3 epoch=1 first=1 blocks=3\n"
                 "data segment=1 slot=6 seq=4 epoch=1 first=1 blocks=4\n"
                 "data segment=2 slot=0 seq=5 epoch=1 first=1 blocks=9\n"
                 "data segment=2 slot=5 seq=6 epoch=2 first=5 blocks=6\n"
                 "data segment=2 slot=7 seq=7 epoch=2 first=5 blocks=7\n"
                 "data segment=3 slot=0 seq=8 epoch=2 first=5 durable=7 blocks=8\n")
    done, _ = assert_repairs(disk)
    assert done.out.count("REPAIR: record") == 1 and run_of(disk) == (1, 8), done.out


def test_check_later_life_behind_the_run(image):
    """Replay sees its record there, so the one before it does not exist: a gap to be filled."""
    disk = image("sb epoch=2 first=5 tail=1 tail_segment=1\n"
                 "data segment=1 slot=0 seq=1 epoch=1 first=1 blocks=1\n"
                 "data segment=1 slot=2 seq=2 epoch=1 first=1 blocks=2\n"
                 "data segment=1 slot=4 seq=3 epoch=1 first=1 blocks=3\n"
                 "data segment=2 slot=0 seq=4 epoch=1 first=1 blocks=4\n"
                 "data segment=2 slot=5 seq=6 epoch=2 first=5 blocks=6\n")
    assert_repairs(disk)
    assert run_of(disk) == (1, 4)


def test_check_superblock_copies(image):
    """Any one bad copy is rewritten; with both front ones gone nothing can be."""
    for copy in range(3):
        disk = image(LOG)
        at = dump(disk.path)["superblock"]["end_offset"] if copy == 2 else copy * MIB // 2
        disk.write(at + 300, b"rot")
        done, _ = assert_repairs(disk)
        assert f"superblock copy {copy}" in done.out
        assert [c["state"] for c in dump(disk.path)["copies"]] == ["good"] * 3
    disk = image(LOG)
    disk.write(300, b"rot")
    disk.write(MIB // 2 + 300, b"rot")
    assert check(disk).code == 4
    assert check(disk, "--repair").code == 4


def test_check_superblock_older_than_the_log(image):
    """Records of a later life: the superblock lost an update; nothing is touched (L9)."""
    for flags in ("", " clean=1 head=1"):
        disk = image(f"sb epoch=1 first=1{flags}\n"
                     "data segment=1 slot=0 seq=1 epoch=2 first=1 blocks=1\n")
        before = disk.digest()
        done = check(disk)
        assert done.code == 4 and "superblock is an old one" in done.out
        assert check(disk, "--repair").code == 4 and disk.digest() == before


def test_check_checkpoint(image):
    """A good one; rot in it, and rot in what it names, gives it up for the log."""
    disk = image(CLEAN.replace("first=9", "first=5"))
    done = check(disk)
    assert done.code == 0 and "3 blocks in the checkpoint" in done.out, done.out
    at = dump(disk.path)["superblock"]["ckpt_offset"]
    disk.write(at + 70, b"rot")
    assert_repairs(disk)
    assert not dump(disk.path)["superblock"]["clean"] and run_of(disk) == (1, 4)
    disk = image(CLEAN.replace("first=9", "first=5"))
    disk.write(slot_at(1, 2), b"rot")
    done = check(disk)
    assert done.code == 4 and "only here" in done.out and "  sectors 88-95" in done.out
    assert_repairs(disk)


def test_check_bad_checkpoint_loses_no_records(image):
    """A clean stop made them durable, though no header says so: rot there is not a torn tail."""
    lines = CLEAN.replace("epoch=2 first=9", "epoch=1 first=1")
    disk = image(re.sub(r" durable=\d+", " durable=0", lines))
    assert check(disk).code == 0
    at = dump(disk.path)["superblock"]["ckpt_offset"]
    disk.write(at + 70, b"rot")
    disk.write(slot_at(2, 2), b"rot")
    assert_repairs(disk)
    assert not dump(disk.path)["superblock"]["clean"] and run_of(disk) == (1, 4)
    assert "Lost: 8 sectors" in check(disk).out


def test_check_names_the_bad_checkpoint_block(image):
    """The number is that of the block, also if what is wrong is inside."""
    disk = image(CLEAN.replace("first=9", "first=5").replace("18:11:1", "99999999:11:1"))
    done = check(disk)
    assert done.code == 4 and "checkpoint block 0: an entry is out of bounds" in done.out


def bad_blocks(tmp_path, *slots):
    """The environment of a tool that cannot read some slots, until they are written."""
    path = tmp_path / "bad-blocks"
    path.write_text("".join(f"{slot_at(*slot)}\n" for slot in slots), encoding="ascii")
    return {"LD_PRELOAD": str(USERLAND / "build/tests/bad_blocks.so"), "BAD_BLOCKS": str(path)}


@pytest.mark.parametrize("slot", [(2, 2), (1, 7), (2, 3), (3, 0)],
                         ids=["torn-or-not", "header", "end-of-chain", "behind-the-end"])
def test_check_unreadable_slot(image, tmp_path, slot):
    """A start takes it as torn; here it is damage, and a repair makes it readable."""
    disk = image(LOG)
    env = bad_blocks(tmp_path, slot)
    done = run_tool("check", disk.path, env=env)
    assert done.code == 4 and "cannot be read: a start takes it as torn" in done.out
    done = run_tool("check", "--repair", disk.path, env=env)
    assert done.code == 1 and "written anew, empty" in done.out, done.out
    assert run_tool("check", disk.path, env=env).code == 0
    assert run_of(disk) == (1, 4)


def test_check_log_too_high_for_another_life(image):
    """The superblock's numbers would do, those of the log do not."""
    disk = image(f"sb epoch=1 tail={HIGH - 1} first={HIGH - 1}\n"
                 f"data segment=1 slot=0 seq={HIGH - 1} durable={HIGH - 2} blocks=1\n")
    assert run_of(disk) == (HIGH - 1, HIGH - 1)
    done = check(disk)
    assert done.code == 4 and "too high for another life" in done.out, done.out


def test_check_mark(image, tmp_path):
    """A bad copy is repaired, an abandoned or a foreign mark cannot be."""
    hdd = Disk(tmp_path / "hdd", 513 * MIB)
    disk = image(LOG + f"mark file={hdd.path}\n")
    with_hdd = ("--backing", hdd.path)
    assert check(disk, *with_hdd).code == 0
    hdd.write(100, b"rot")
    assert check(disk, *with_hdd).code == 4
    assert check(disk, "--repair", *with_hdd).code == 1
    assert check(disk, *with_hdd).code == 0
    for facts, says in (("state=2", "went on without"), ("epoch=9", "has seen life 9")):
        disk = image(LOG + f"mark file={hdd.path} {facts}\n")
        done = check(disk, *with_hdd)
        assert done.code == 4 and says in done.out
        assert check(disk, "--repair", *with_hdd).code == 4


@pytest.mark.parametrize("facts", ["", "clean=1 next=5 head=3", "mark_epoch=1", "clean_epoch=1"])
def test_check_old_disk(image, tmp_path, facts):
    """A copy of the hard disk from before a life that it was used in: said, and not repaired."""
    hdd = Disk(tmp_path / "hdd", 513 * MIB)
    disk = image(LOG.replace("sb ", f"sb {facts} ") + f"mark file={hdd.path} epoch=0\n")
    before = [disk.digest(), hdd.digest()]
    done = check(disk, "--repair", "--backing", hdd.path)
    assert done.code == 4 and "is an old copy" in done.out, done.out
    assert "was used in life 1" in done.out, done.out
    assert [disk.digest(), hdd.digest()] == before


def test_check_start_that_was_cut(image, tmp_path):
    """Superblocks of a life that never began, and the mark of the one before: no damage."""
    hdd = Disk(tmp_path / "hdd", 513 * MIB)
    log = LOG.replace("sb epoch=1 first=1", "sb epoch=3 first=5 mark_epoch=1")
    disk = image(log.replace("\ndata", "\ndata epoch=1 first=1") +
                 f"mark file={hdd.path} epoch=1\n")
    expect(check(disk, "--backing", hdd.path), 0)


@pytest.mark.parametrize("facts, mark, code", [
    ("epoch=3 owner=7 mark_owner=6", "epoch=3 owner=7", 0),
    ("epoch=3 owner=7 mark_owner=6", "epoch=1 owner=6", 0),
    ("epoch=3 owner=7 mark_owner=6", "epoch=3 owner=6", 4),
    ("epoch=3 owner=7 mark_owner=6", "epoch=1 owner=7", 4),
    ("epoch=3", "epoch=3 owner=6", 0),
    ("epoch=3 owner=7 mark_owner=6", "epoch=3", 0),
])
def test_check_copy_of_the_ssd(image, tmp_path, facts, mark, code):
    """Another copy of it went on: said, and not repaired.  Without owners nothing tells."""
    hdd = Disk(tmp_path / "hdd", 513 * MIB)
    log = LOG.replace("sb epoch=1 first=1", f"sb {facts} first=5 mark_epoch=1")
    disk = image(log.replace("\ndata", "\ndata epoch=1 first=1") + f"mark file={hdd.path} {mark}\n")
    before = [disk.digest(), hdd.digest()]
    done = expect(check(disk, "--repair", "--backing", hdd.path), code)
    assert ("went on without this one" in done.out) == bool(code), done.out
    assert [disk.digest(), hdd.digest()] == before
    if code:
        expect(check(disk, "--this-copy", "--backing", hdd.path), 4)
        assert [disk.digest(), hdd.digest()] == before
        expect(check(disk, "--repair", "--this-copy", "--backing", hdd.path), 1)
        expect(check(disk, "--backing", hdd.path), 0)
        assert hdd.digest() == before[1], "the mark was changed"


@pytest.mark.parametrize("owner", [0, 7])
def test_check_bad_checkpoint_keeps_the_pair(image, tmp_path, owner):
    """The life that a repair begins follows that of the mark, which keeps its owner."""
    hdd = Disk(tmp_path / "hdd", 513 * MIB)
    with_hdd = ("--backing", hdd.path)
    lines = CLEAN.replace("first=9", f"first=5 owner={owner}")
    disk = image(lines + f"mark file={hdd.path} owner=7\n")
    assert check(disk, *with_hdd).code == 0
    disk.write(dump(disk.path)["superblock"]["ckpt_offset"] + 70, b"rot")
    assert check(disk, "--repair", *with_hdd).code == 1
    now = dump(disk.path)["superblock"]
    assert check(disk, *with_hdd).code == 0 and now["epoch"] == 3
    assert now["mark_owner"] == f"{owner:016x}" and now["owner"] != f"{7:016x}"
    assert bool(int(now["owner"], 16)) == bool(owner)


@pytest.mark.parametrize("nr_lost, said, suspect", [(2, 2, 0), (224, 224, 0), (0xffffffff, 0, 1)])
def test_check_says_what_the_mark_lost(image, tmp_path, nr_lost, said, suspect):
    """Each range; or once that there is no list, instead of one nobody wrote."""
    hdd = Disk(tmp_path / "hdd", 513 * MIB)
    disk = image(LOG + f"mark file={hdd.path} state=2 nr_lost={nr_lost}\n")
    done = expect(check(disk, "--backing", hdd.path), 4)
    assert done.out.count("records as lost: sectors ") == said, done.out
    assert done.out.count("All of the volume is suspect") == suspect, done.out


def test_check_of_a_hard_disk_that_shrank(image, tmp_path):
    """Told, and nothing is written behind its end: not even an image in a file grows."""
    hdd = Disk(tmp_path / "hdd", MIB // 2)
    disk = image(LOG + f"mark file={hdd.path}\n")
    os.truncate(hdd.path, MIB // 2)
    done = check(disk, "--repair", "--backing", hdd.path)
    assert done.code == 4 and "when it was formatted" in done.out
    assert hdd.path.stat().st_size == MIB // 2


def test_check_refuses(pair):
    """In use: 8.  Not a cache: 8, and what it is instead.  Bad arguments: 16."""
    assert lc_format(pair).code == 0
    holder = os.open(pair[0].dev, os.O_RDONLY | os.O_EXCL)
    done = run_tool("check", pair[0].dev)
    os.close(holder)
    assert done.code == 8 and "in use" in done.err
    host.run("mkswap", pair[1].dev)
    expect(run_tool("check", pair[1].dev), 8, "swap")
    assert run_tool("check").code == 16
