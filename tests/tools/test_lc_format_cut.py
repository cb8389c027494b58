# SPDX-License-Identifier: GPL-2.0-only
"""lc-format that is killed: what each tool says of the state it leaves is tried."""

import re

import pytest

from lib.tools import CUT, MIB, dump, expect, lc_format, preload, run_tool

LAYOUTS = {"default": (), "crc32c": ("--checksum", "crc32c", "--segment-size", "64K")}
# An old pair is formatted anew with these.
ANEW = ("--force=paired", "--force=dirty-cache")


def restore(pair, contents):
    """Both disks as they were; contents are of the first and the last bytes, the rest is empty."""
    for disk, parts in zip(pair, contents):
        for at, data in parts:
            disk.write(at, data)


def keep(pair):
    """What lc-format may touch."""
    return [[(at, disk.read(at, 2 * MIB)) for at in (0, disk.size - 2 * MIB)] for disk in pair]


def resume(pair, fake):
    """lc-resume, as far as a stand-in for device mapper goes."""
    done = run_tool("resume", "lc0", pair[0].dev, pair[1].dev, env=fake.env)
    run_tool("remove", "--no-drain", "lc0", env=fake.env)
    (fake.folder / "name").unlink(missing_ok=True)
    return done


def follow(pair, fake, layout):
    """Do what the tools say, and see that it works; the pair is usable afterwards."""
    started = resume(pair, fake)
    checked = run_tool("check", "--backing", pair[1].dev, pair[0].dev)
    shown = run_tool("dump", pair[0].dev)
    state = keep(pair)
    formatted = lc_format(pair, *layout, "--yes")
    texts = {"lc-resume": started.err, "lc-check": checked.out + checked.err,
             "lc-dump": shown.err, "lc-format": formatted.err}
    print(texts)
    if started.code == 0:
        # What is bad is told, and mended.
        restore(pair, state)
        assert "lc-check" not in started.err or checked.code == 4
        if checked.code == 4:
            assert "lc-check --repair" in checked.err
            expect(run_tool("check", "--repair", "--backing", pair[1].dev, pair[0].dev), 1)
        assert [copy["state"] for copy in dump(pair[0].dev)["copies"]] == ["good"] * 3
        return
    # Nobody names a start or a repair that cannot be.
    for tool, text in texts.items():
        assert "start it with lc-resume" not in text.replace("Start it with: lc-resume", ""), tool
        assert "lc-check --repair" not in text, (tool, text)
        if tool != "lc-format" and "lc-check" not in text.replace("lc-check:", ""):
            assert "lc-format" in text, (tool, text)
    # Where another tool sends to lc-check, that names lc-format.
    assert "lc-format" in texts["lc-check"].replace("lc-format)", ""), texts
    if formatted.code:
        forces = re.findall(r"--force=[\w-]+", formatted.err)
        assert forces, formatted.err
        formatted = lc_format(pair, *layout, *forces, "--yes")
    assert formatted.code == 0, formatted.err
    assert resume(pair, fake).code == 0


@pytest.mark.parametrize("old", [False, True], ids=["empty", "paired"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_killed_format(pair, fake, tmp_path, layout, old):
    """Before each of its writes, and in the middle of each: every remedy that is named works."""
    options = LAYOUTS[layout]
    if old:
        assert lc_format(pair, *options, "--label", "old").code == 0
    before = keep(pair)
    forces = ANEW if old else ()
    log = tmp_path / "writes"
    done = lc_format(pair, *options, *forces, "--yes", env=preload("cut_writes", CUT_LOG=str(log)))
    assert done.code == 0, done.err
    lengths = [int(line.split()[0]) for line in log.read_text(encoding="ascii").splitlines()]
    assert len(lengths) >= 5
    for n, length in enumerate(lengths):
        for torn in (0, 512, length // 2 + 512):
            restore(pair, before)
            env = preload("cut_writes", CUT_AFTER=str(n), CUT_TORN=str(torn))
            expect(lc_format(pair, *options, *forces, "--yes", env=env), CUT)
            print(f"write {n} of {len(lengths)}, {torn} of {length} bytes")
            follow(pair, fake, options)
