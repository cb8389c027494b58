# SPDX-License-Identifier: GPL-2.0-only
"""lc-dump, and both readers on hostile images."""

import os
import random
import time

from lib import host
from lib.tools import (
    CLEAN,
    LOG,
    MIB,
    SLOT,
    check,
    lc_format,
    run_tool,
    slot_at,
)


def test_dump_says_what_it_found_instead(pair):
    """Exit 1, in libblkid's words or ours."""
    done = run_tool("dump", pair[0].dev, san=True)
    assert done.code == 1 and "nothing that is recognised" in done.err
    host.run("mkfs.ext4", "-q", "-L", "music", pair[0].dev)
    done = run_tool("dump", pair[0].dev, san=True)
    assert done.code == 1 and 'ext4 "music"' in done.err
    assert lc_format(pair, "--force=ssd-signature").code == 0
    done = run_tool("dump", pair[1].dev)
    assert done.code == 1 and "name the SSD" in done.err


def test_dump_human(image):
    """Every record on its line."""
    out = run_tool("dump", "--segments", "--entries", image(LOG).path, san=True).out
    assert "verdict: unbroken" in out and "seq 3  type data" in out and "block 33" in out


def test_hostile_images(image, tmp_path):
    """Random damage, superblock sealed or not: an answer and no sanitizer's word."""
    seed = int(os.environ.get("LC_SEED") or time.time())
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(40):
        disk = image(rng.choice((LOG, CLEAN)))
        for _ in range(rng.randrange(1, 12)):
            at = rng.choice((0, MIB // 2, slot_at(1, rng.randrange(16)), slot_at(2, 0),
                             slot_at(rng.randrange(40), 0), 15 * MIB))
            disk.write(at + rng.randrange(SLOT), rng.randbytes(rng.randrange(1, 64)))
        assert run_tool("dump", "--entries", disk.path, san=True).code in (0, 1)
        code = check(disk).code
        assert code in (0, 4, 8)
        after = check(disk, "--repair").code
        assert after in ((0,) if code == 0 else (1, 4, 8))
        if after == 1:
            assert check(disk).code == 0
