# SPDX-License-Identifier: GPL-2.0-only
"""lc-dump --extract: what a cache holds beyond its hard disk, without starting the volume."""

import os
import random
import re
import time

import pytest

from lib.tools import CLEAN, LANES, LOG, MIB, dump, mklog, preload, run_tool, slot_at

SECTORS = 1 << 20
BLOCK = 8


def run_extract(disk, folder, **kwargs):
    """Exit code and text, the image's path, and the map as {sector: what}."""
    image, listed = folder / "extracted", folder / "map"
    for path in (image, listed):
        path.unlink(missing_ok=True)
    before = disk.digest()
    done = run_tool("dump", "--extract", image, "--extract-map", listed, disk.path, san="env"
                    not in kwargs, **kwargs)
    assert disk.digest() == before
    found, last = {}, -1
    for line in listed.read_text(encoding="ascii").splitlines() if listed.exists() else ():
        first, count, what = re.fullmatch(r"(\d+) (\d+) (data|lost|damaged)", line).groups()
        assert int(first) > last
        last = int(first) + int(count) - 1
        found |= {sector: what for sector in range(int(first), last + 1)}
    return done, image, found


def assert_holds(image, found, blocks, gone=()):
    """The image has these {block: seq} and holes elsewhere; the map says the same."""
    assert image.stat().st_size == SECTORS * 512
    wanted = {}
    for block in blocks:
        wanted |= {block * BLOCK + i: "data" for i in range(BLOCK)}
    wanted |= dict(gone)
    assert found == wanted
    with open(image, "rb") as file:
        for block, seq in blocks.items():
            file.seek(block * 4096)
            data = file.read(4096)
            for i in range(BLOCK):
                if (block * BLOCK + i, "data") in found.items():
                    assert set(data[i * 512:i * 512 + 512]) == {(block * 31 + seq) & 0xff}
        at = 0
        while True:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                break
            assert at // 4096 in blocks
            at = (at // 4096 + 1) * 4096


LOG_BLOCKS = {10: 4, 11: 1, 12: 1, 20: 2, 21: 2, 30: 3, 31: 3, 32: 3, 33: 3, 41: 4}


def test_extract_log(image, tmp_path):
    """The newest version of each block, holes elsewhere; nothing is written over."""
    disk = image(LOG)
    done, path, found = run_extract(disk, tmp_path)
    assert done.code == 0 and "80 sectors (40 KiB) extracted, 0 damaged or lost" in done.out
    assert_holds(path, found, LOG_BLOCKS)
    assert path.stat().st_blocks <= 20 * BLOCK
    before = path.read_bytes()[:64 * 4096]
    again = run_tool("dump", "--extract", path, disk.path)
    assert again.code == 1 and "name a new file" in again.err
    assert path.read_bytes()[:64 * 4096] == before
    assert run_tool("dump", "--extract-map", tmp_path / "m", disk.path).code == 2


def test_extract_torn_end(image, tmp_path):
    """A record that was not written completely is no record (10 of seq 1 is back)."""
    disk = image(LOG)
    disk.write(slot_at(2, 2), b"torn")
    done, path, found = run_extract(disk, tmp_path)
    assert done.code == 0, done.err
    blocks = {**LOG_BLOCKS, 10: 1}
    del blocks[41]
    assert_holds(path, found, blocks)


def test_extract_damage(image, tmp_path):
    """Slots that rotted or cannot be read, and sectors that are lost, are listed, not written."""
    lost = LOG + "data segment=2 slot=3 seq=5 durable=4 blocks=20,55 mask=15 lost=48\n"
    disk = image(lost)
    disk.write(slot_at(1, 9), b"rot")  # block 31
    bad = tmp_path / "bad"
    bad.write_text(f"{slot_at(1, 3)}\n", encoding="ascii")  # block 12
    done, path, found = run_extract(disk, tmp_path, env=preload("bad_blocks", BAD_BLOCKS=str(bad)))
    assert done.code == 1 and "20 damaged or lost" in done.out, done
    gone = {block * BLOCK + i: "damaged" for block in (12, 31) for i in range(BLOCK)}
    gone |= {block * BLOCK + i: "lost" for block in (20, 55) for i in (4, 5)}
    blocks = {**LOG_BLOCKS, 20: 5, 55: 5}
    for block in (12, 31):
        del blocks[block]
    for block in (20, 55):  # the older version does not show through
        assert {i for i in range(BLOCK) if found.get(block * BLOCK + i) == "data"} == {0, 1, 2, 3}
        for i in (6, 7):
            assert block * BLOCK + i not in found
    found |= {block * BLOCK + i: "data" for block in (20, 55) for i in (6, 7)}
    wanted = {block * BLOCK + i: "data" for block in blocks for i in range(BLOCK)} | gone
    assert found == wanted
    with open(path, "rb") as file:
        for block in (12, 31):
            file.seek(block * 4096)
            assert file.read(4096) == bytes(4096)


def test_extract_discard(image, tmp_path):
    """No older copy of a discarded block exists, a newer one does."""
    disk = image(LOG + "range segment=2 slot=3 seq=5 durable=4 block=11 count=20 type=3\n"
                 "data segment=2 slot=4 seq=6 durable=5 blocks=30\n"
                 f"range segment=2 slot=6 seq=7 durable=6 block=41 count={SECTORS // BLOCK - 41} "
                 "type=3\n")
    done, path, found = run_extract(disk, tmp_path)
    assert done.code == 0, done.err
    assert_holds(path, found, {10: 4, 30: 6, 31: 3, 32: 3, 33: 3})


def test_extract_after_a_clean_stop(image, tmp_path):
    """What the checkpoint calls dirty; if it is damaged, all of the log, and that is said."""
    script = CLEAN.replace("first=9", "first=5")
    disk = image(script)
    done, path, found = run_extract(disk, tmp_path)
    assert done.code == 0, done.err
    assert_holds(path, found, {11: 1, 12: 1})
    disk.write(dump(disk.path)["superblock"]["ckpt_offset"] + 70, b"rot")
    done, path, found = run_extract(disk, tmp_path)
    assert done.code == 0 and "checkpoint is damaged" in done.err, done.err
    assert_holds(path, found, LOG_BLOCKS)


def test_extract_damaged_log(image, tmp_path):
    """Durable records are missing: what is before them is extracted, the rest is told."""
    disk = image(LOG)
    disk.write(slot_at(1, 4) + 60, b"rot")
    done, path, found = run_extract(disk, tmp_path)
    assert done.code == 1 and "record 2 is damaged" in done.err, done.err
    assert_holds(path, found, {10: 1, 11: 1, 12: 1})


def test_extract_lanes(image, tmp_path):
    """By seq, not by place."""
    disk = image(LANES)
    done, path, found = run_extract(disk, tmp_path)
    assert done.code == 0, done.err
    assert_holds(path, found, {1: 100, 2: 100, 3: 101, 4: 101, 5: 102, 6: 102, 7: 103, 8: 104,
                               9: 105, 10: 106})


@pytest.mark.parametrize("script, says", [
    ("sb epoch=1 first=1\ndata segment=1 slot=0 seq=1 epoch=2 first=1 blocks=1\n",
     "later life than its superblock"),
    (LOG + "data segment=2 slot=3 seq=5 durable=4 blocks=1 forge=114:9\n", "newer dm-lc"),
    ("sb copies=2\n", "no valid superblock"),
], ids=["old-superblock", "newer", "no-superblock"])
def test_extract_refuses(image, tmp_path, script, says):
    """What it cannot know; no file is left that looks like an answer."""
    done, path, found = run_extract(image(script), tmp_path)
    assert done.code == 1 and says in done.err, done.err
    assert not path.exists() and not found


def test_extract_random(image, tmp_path):
    """Random logs of some records against a model."""
    seed = int(os.environ.get("LC_SEED") or time.time())
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(8):
        lines, blocks, segment, slot = ["sb epoch=1 first=1 tail=1 tail_segment=1"], {}, 1, 0
        for seq in range(1, rng.randrange(5, 60)):
            some = rng.sample(range(64), rng.randrange(1, 9))
            is_range = rng.random() < 0.15
            need = 1 if is_range else 1 + len(some)
            if slot + need > 16:
                segment, slot = segment + 1, 0
            where = f"segment={segment} slot={slot} seq={seq} durable={seq - 1}"
            if is_range:
                count = rng.randrange(1, 30)
                lines.append(f"range {where} block={some[0]} count={count} type=3")
                blocks = {b: s for b, s in blocks.items() if not some[0] <= b < some[0] + count}
            else:
                lines.append(f"data {where} blocks={','.join(map(str, some))}")
                blocks |= {block: seq for block in some}
            slot += need
        disk = image("\n".join(lines) + "\n")
        for size in (0, 16 * MIB):
            os.truncate(disk.path, size)
        mklog(disk.path, "\n".join(lines) + "\n")
        done, path, found = run_extract(disk, tmp_path)
        assert done.code == 0, done.err
        assert_holds(path, found, blocks)
