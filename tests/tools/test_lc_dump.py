# SPDX-License-Identifier: GPL-2.0-only
"""lc-dump."""

from lib import host
from lib.tools import LOG, expect, lc_format, run_tool


def test_dump_says_what_it_found_instead(pair):
    """Exit 1, in libblkid's words or ours."""
    expect(run_tool("dump", pair[0].dev, san=True), 1, "nothing that is recognised")
    host.run("mkfs.ext4", "-q", "-L", "music", pair[0].dev)
    done = run_tool("dump", pair[0].dev, san=True)
    assert done.code == 1 and 'ext4 "music"' in done.err
    assert lc_format(pair, "--force=ssd-signature").code == 0
    expect(run_tool("dump", pair[1].dev), 1, "name the SSD")


def test_dump_human(image):
    """Every record on its line."""
    out = run_tool("dump", "--segments", "--entries", image(LOG).path, san=True).out
    assert "verdict: unbroken" in out and "seq 3  type data" in out and "block 33" in out
