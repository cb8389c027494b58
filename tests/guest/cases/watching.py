# SPDX-License-Identifier: GPL-2.0-only
"""lc-watch: journal and hooks learn what changes, without anybody who asks."""

import contextlib
import pathlib
import socket
import tempfile

from lclib import case, sh, wait
from lclib.faulty import Breakable, fill
from lclib.lc import LcStack
from lclib.registry import Disk

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
JOURNAL = pathlib.Path("/run/systemd/journal/socket")
HOOK = """#!/bin/sh
echo "$LC_EVENT $LC_VOLUME $LC_OLD_MODE $LC_MODE $LC_LOST" >> {}/told
exit $EXIT
"""


class Journal:
    """Stands in for journald: the entries that came, as dictionaries."""

    def __init__(self):
        JOURNAL.parent.mkdir(parents=True, exist_ok=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(JOURNAL))
        self.socket.setblocking(False)
        self.entries = []

    def look(self):
        """All entries up to now."""
        with contextlib.suppress(BlockingIOError):
            while True:
                lines = self.socket.recv(65536).decode().splitlines()
                self.entries.append(dict(line.split("=", 1) for line in lines))
        return self.entries

    def close(self):
        """As it was."""
        self.socket.close()
        JOURNAL.unlink()


@contextlib.contextmanager
def watching(hooks):
    """lc-watch beside what runs inside; it goes on until it is ended."""
    process = sh.start("lc-watch", f"--hooks={hooks}")
    try:
        yield process
        assert process.poll() is None, "lc-watch ended by itself"
    finally:
        process.kill()
        process.wait()


def ended(pid):
    """Is a process over?  Its new parent may not ask for it."""
    try:
        stat = pathlib.Path("/proc", pid, "stat").read_text("ascii")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


def let_die(ssd, raw, journal, limit):
    """Fail the SSD that has newer data than the hard disk; returns when the end of its rescue is
    told, within the limit.
    """
    fill(raw, 0, 300, "only on the SSD")
    raw.flush()
    ssd.fail()
    fill(raw, 1000, 16, "in RAM")
    raw.flush()
    wait.until(lambda: any(one["LC_EVENT"] == "saved" for one in journal.look()), limit,
               "the end of the rescue in the journal")


@case(kernels=("stock",), disks=PAIR, timeout=180)
def dying_ssd_is_told(ctx):
    """Change of mode, lost blocks, and the end of the rescue: an entry and a run of the hooks each.

    A hook that fails takes nothing from the next one.
    """
    with (tempfile.TemporaryDirectory() as hooks, contextlib.closing(Journal()) as journal,
          Breakable("ssd1", ctx.ssd) as ssd):
        for name, code in (("a-fails", 1), ("b-works", 0)):
            hook = pathlib.Path(hooks, name)
            hook.write_text(HOOK.format(hooks).replace("$EXIT", str(code)), encoding="ascii")
            hook.chmod(0o755)
        lc = LcStack(ctx.hdd, ssd.path, ssd_patience_ms=500, writeback="off").start()
        with watching(hooks), lc.open() as raw:
            let_die(ssd, raw, journal, 60)
            told = pathlib.Path(hooks, "told")
            wait.until(lambda: told.read_text("ascii").count("saved") == 2, 60, "all hooks")
        lost = lc.fields()["lost"]
        by_event = {one["LC_EVENT"]: one for one in journal.look()}
        assert list(by_event) == ["mode", "lost", "saved"], journal.entries
        assert by_event["mode"]["MESSAGE"].startswith("lc0: mode degraded, was rw:")
        assert by_event["mode"]["PRIORITY"] == "3" and by_event["saved"]["PRIORITY"] == "5"
        assert by_event["saved"]["LC_LOST"] == str(lost) and lost, journal.entries
        assert len({one["MESSAGE_ID"] for one in by_event.values()}) == 3
        lines = told.read_text("ascii").splitlines()
        assert lines[:2] == ["mode lc0 rw degraded " + by_event["mode"]["LC_LOST"]] * 2, lines
        assert lines[-2:] == [f"saved lc0 degraded degraded {lost}"] * 2, lines
        lc.remove()
        ssd.heal()


@case(kernels=("stock",), disks=PAIR, timeout=400, long=True)
def hanging_hook_is_killed(ctx):
    """A hook that does not end is killed with what it has started, and later events are told."""
    with (tempfile.TemporaryDirectory() as hooks, contextlib.closing(Journal()) as journal,
          Breakable("ssd1", ctx.ssd) as ssd):
        hook = pathlib.Path(hooks, "hangs")
        hook.write_text(f"#!/bin/sh\ntest $LC_EVENT = mode || exit 0\nsleep 5000 &\n"
                        f"echo $! > {hooks}/pid\nwait\n", encoding="ascii")
        hook.chmod(0o755)
        lc = LcStack(ctx.hdd, ssd.path, ssd_patience_ms=500, writeback="off").start()
        with watching(hooks), lc.open() as raw:
            let_die(ssd, raw, journal, 200)
        pid = pathlib.Path(hooks, "pid").read_text("ascii").strip()
        wait.until(lambda: ended(pid), 60, "the end of its child")
        lc.remove()
        ssd.heal()
