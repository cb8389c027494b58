# SPDX-License-Identifier: GPL-2.0-only
"""Groups of promoted blocks: what lc-check and lc-dump make of them, alone and in a checkpoint."""

import re

import pytest

from lib.tools import LOG, PROMOTED, assert_repairs, check, dump, run_of, run_tool, slot_at

GROUPS = "".join(f"{line}\n" for line in PROMOTED.splitlines() if line.startswith("group"))


def damages(done):
    """Lines of a check that call something damage."""
    assert done.code == 4, done.out + done.err
    return [line for line in done.out.splitlines() if line.startswith("DAMAGE")]


def assert_given_up(disk):
    """A repair leaves the log alone, which any version can replay, and loses nothing."""
    _, again = assert_repairs(disk)
    superblock = dump(disk.path)["superblock"]
    assert not superblock["clean"] and "promoted" not in superblock["incompat"]
    assert run_of(disk) == (1, 4) and "Lost" not in again.out, again.out


def test_checkpoint_with_promoted_blocks(image):
    """No damage."""
    disk = image(PROMOTED)
    done = check(disk)
    assert done.code == 0 and "7 blocks in the checkpoint" in done.out, done.out
    assert dump(disk.path)["superblock"]["incompat"].endswith("promoted")


@pytest.mark.parametrize("slot", [4, 9])
def test_rotten_promoted_slot(image, slot):
    """The hard disk has it, too: the checkpoint is given up and nothing is lost."""
    disk = image(PROMOTED)
    disk.write(slot_at(2, slot) + 100, b"rot")
    line, = damages(check(disk))
    assert f"slot {32 + slot} " in line and "also on the hard disk" in line
    assert "its checksum does not match" in line
    assert_given_up(disk)


def test_rotten_written_slot_beside_promoted_ones(image):
    """It is lost, and only it."""
    disk = image(PROMOTED)
    disk.write(slot_at(1, 2) + 100, b"rot")
    line, = damages(check(disk))
    assert "only here" in line
    _, again = assert_repairs(disk)
    assert "Lost: 8 sectors" in again.out and "  sectors 88-95" in again.out


def test_rotten_header_of_a_group(image):
    """Its blocks have no checksum any more. Those of the group behind it have."""
    disk = image(PROMOTED)
    disk.write(slot_at(2, 3) + 60, b"rot")
    lines = damages(check(disk))
    assert len(lines) == 2 and all("no record holds it" in line for line in lines), lines
    assert "slot 36 " in lines[0] and "slot 38 " in lines[1]
    assert_given_up(disk)


def test_group_that_was_not_written(image):
    """A write of the SSD failed: the checkpoint has nothing of it, and what is behind it counts."""
    disk = image(PROMOTED.replace("items=7", "items=5").replace("36:50:8,38:51:24,", ""))
    disk.write(slot_at(2, 3), bytes(4096))
    done = check(disk)
    assert done.code == 0 and "5 blocks in the checkpoint" in done.out, done.out


@pytest.mark.parametrize("old,new,says", [
    ("blocks=50,-,51", "blocks=50,51,52", "slot 38 .*: its record says another block"),
    ("36:50:8", "37:50:8", "slot 37 .*: its record says another block"),
    ("blocks=50,-,51", "blocks=50,-,51 mask=127", "slot 36 .*: no record holds it"),
    ("blocks=60,61", "blocks=60,61 forge=114:2", "slot 40 .*: no record holds it"),
    ("blocks=60,61", "blocks=60,61 forge=118:200", "slot 40 .*: no record holds it"),
    ("promoted=1", "promoted=0", "checkpoint block 0: an entry is out of bounds"),
    ("41:61:8", "41:61:4", "checkpoint block 0: an entry is out of bounds"),
    ("41:61:8", "41:61:10", "checkpoint block 0: an entry is out of bounds"),
], ids=["another-block", "hole", "part-of-a-block", "type", "beyond-the-segment", "no-feature",
        "unknown-flag", "boundary-that-was-used"])
def test_bad_groups_and_flags(image, old, new, says):
    """What no writer makes is damage of the checkpoint."""
    assert old in PROMOTED
    disk = image(PROMOTED.replace(old, new))
    assert [line for line in damages(check(disk)) if re.search(says, line)]
    assert_given_up(disk)


@pytest.mark.parametrize("rotten", [None, (2, 3), (2, 4), (2, 8)])
def test_groups_after_a_crash(image, rotten):
    """They are no part of the log, whatever is in them."""
    disk = image(LOG + GROUPS)
    if rotten:
        disk.write(slot_at(*rotten) + 60, b"rot")
    done = check(disk)
    assert done.code == 0 and "11 data slots verified" in done.out, done.out
    assert run_of(disk) == (1, 4)


def test_groups_are_shown(image):
    """A line for each, with the blocks that it holds; they are no records."""
    disk = image(PROMOTED)
    shown = dump(disk.path, "--segments", "--records")
    assert [(group["segment"], group["slot"], group["slots"], group["blocks"])
            for group in shown["groups"]] == [(2, 3, 3, 2), (2, 7, 2, 2)]
    assert [record["seq"] for record in shown["records"]] == [1, 2, 3, 4]
    assert shown["segments"][1]["slots_used"] == 3
    disk.write(slot_at(2, 3) + 60, b"rot")
    assert [group["slot"] for group in dump(disk.path, "--segments")["groups"]] == [7]
    assert "slot 7  slots 2  blocks 2" in run_tool("dump", "--segments", disk.path, san=True).out


def test_extract_leaves_promoted_blocks_out(image, tmp_path):
    """The hard disk has them."""
    disk = image(PROMOTED)
    done = run_tool("dump", "--extract", tmp_path / "new", "--extract-map", tmp_path / "map",
                    disk.path, san=True)
    assert done.code == 0, done.err
    assert (tmp_path / "map").read_text(encoding="ascii") == "88 16 data\n"
