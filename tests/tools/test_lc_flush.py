# SPDX-License-Identifier: GPL-2.0-only
"""lc-flush and lc-remove, with a stand-in for libdevmapper."""

import json

from lib.tools import expect


def test_old_name_is_explained(fake):
    """A tool that is given a former name of a volume tells the name that it has now."""
    fake.volume((500, 100, 10))
    status = (fake.folder / "status").read_text(encoding="ascii").strip()
    fake.put("status", status + " former_names a\\x20b,music,12")
    for tool in ("status", "flush", "remove"):
        for name in ("a b", "a\\x20b", "music", "12"):
            done = fake.tool(tool, name)
            assert done.code == 1 and f"{name}: no such device: the volume was renamed to lc0" \
                in done.err.replace("\\\\", "\\"), done.err
        for name in ("usic", "music,12", "1", "a", "-"):
            done = fake.tool(tool, name)
            assert done.code == 1 and "renamed" not in done.err, done.err
    assert not fake.log()
    shown = json.loads(fake.tool("status", "--json", "lc0").out)[0]["status"]
    assert shown["former_names"].endswith(",music,12")
    fake.put("status", status + " former_names 12")
    assert json.loads(fake.tool("status", "--json").out)[0]["status"]["former_names"] == "12"


def test_flush_waits_for_the_tail(fake):
    """Until the head of the first look is behind the tail, however much comes after it."""
    fake.volume((500, 100, 10), (600, 110, 40), (700, 130, 99), (700, 140, 100), (1, 1, 1))
    done = expect(fake.tool("flush", "lc0"), 0)
    assert fake.log() == ["message lc0 sync", "message lc0 drain"]
    assert "written to the hard disk" in done.out
    assert "tail_seq 1 " in (fake.folder / "status").read_text(encoding="ascii")


def test_flush_of_buffers_only(fake):
    """A sync and no drain."""
    fake.volume((500, 100, 10))
    assert fake.tool("flush", "--buffers", "lc0").code == 0
    assert fake.log() == ["message lc0 sync"]


def test_flush_with_an_older_module(fake):
    """One that knows only the older names of the messages is asked by these."""
    fake.volume((500, 100, 10), (0, 100, 10))
    fake.put("unknown", "sync drain")
    assert fake.tool("flush", "lc0").code == 0
    assert fake.log() == ["message lc0 sync", "message lc0 flush", "message lc0 drain",
                          "message lc0 writeback"]


def test_flush_says_that_the_kernel_refuses(fake):
    """A message that has no other name, or is refused by both, is an error."""
    fake.volume((500, 100, 10))
    fake.put("unknown", "sync flush")
    expect(fake.tool("flush", "lc0"), 1, "message 'flush' failed")
    assert fake.log() == ["message lc0 sync", "message lc0 flush"]


def test_flush_refuses(fake):
    """A broken volume, another target, a suspended one, none."""
    assert "no such device" in fake.tool("flush", "lc0").err
    fake.volume((500, 100, 10))
    fake.put("status", "mode fail dirty 1 head_seq 2 tail_seq 1")
    expect(fake.tool("flush", "lc0"), 1, "mode fail")
    fake.put("suspended")
    assert "is suspended" in fake.tool("flush", "lc0").err
    fake.put("target", "linear")
    expect(fake.tool("flush", "lc0"), 1, "not an lc device")


def test_remove(fake):
    """Drains first, refuses while in use; --no-drain and its older name leave the data."""
    fake.volume((5, 10, 1), (0, 10, 1))
    fake.put("open", "1")
    done = fake.tool("remove", "lc0")
    assert done.code == 1 and "in use" in done.err and not fake.log()
    fake.put("open", "0")
    assert fake.tool("remove", "lc0").code == 0
    assert fake.log() == ["message lc0 sync", "message lc0 drain", "remove lc0"]
    for option in ("--no-drain", "--no-flush"):
        before = len(fake.log())
        fake.volume((5, 10, 1))
        assert fake.tool("remove", option, "lc0").code == 0
        assert fake.log()[before:] == ["remove lc0"]


def test_remove_at_shutdown(fake):
    """--missing-ok and --busy-ok: what others stop, or have stopped, is no error; the rest is."""
    expect(fake.tool("remove", "lc0"), 1, "no such device")
    done = fake.tool("remove", "--missing-ok", "lc0")
    assert done.code == 0 and done.out == "lc0: there is no such volume, nothing to stop\n", done
    fake.volume((5, 10, 1))
    fake.put("open", "1")
    expect(fake.tool("remove", "--no-drain", "--missing-ok", "lc0"), 1, "in use")
    done = fake.tool("remove", "--no-drain", "--busy-ok", "lc0")
    assert done.code == 0 and done.out == "lc0: is in use; the end of the shutdown stops it\n", done
    assert not fake.log()
    fake.put("target", "linear")
    expect(fake.tool("remove", "--missing-ok", "--busy-ok", "lc0"), 1, "not an lc device")
    (fake.folder / "target").unlink()
    for option in ("--missing-ok", "--busy-ok"):
        expect(fake.tool("remove", "--detach", option, "lc0"), 2, "leave")
    fake.put("open", "0")
    assert fake.tool("remove", "--no-drain", "--missing-ok", "--busy-ok", "lc0").code == 0
    assert fake.log() == ["remove lc0"]
