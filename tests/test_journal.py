# SPDX-License-Identifier: GPL-2.0-only
"""The journal of the emulated disks: a state made from it is one that a cut would have left.

DM_LC_SEED sets the seed. Says nothing about what a guest makes of the states.
"""

from __future__ import annotations

import base64
import os
import random
import struct
import tarfile
import threading
import zlib

import pytest

from disks import Disks, DisksError, crash, nbd
from disks.image import CHUNK, SECTOR, Write, read
from disks.recorder import IoError, Recorder

SEED = int(os.environ.get("DM_LC_SEED", "1"))
SIZE = 4 << 20
HOUR_MS = 3_600_000


@pytest.fixture
def rec() -> Recorder:
    """A recorder alone."""
    return Recorder({"ssd": SIZE, "hdd": SIZE})


def sectors(tag: int, count: int) -> bytes:
    """Bytes that name their writer in every sector."""
    return b"".join(f"{tag:08d}.{i:04d}".encode().ljust(SECTOR, b"=") for i in range(count))


def content(rec: Recorder, disk: str = "ssd", offset: int = 0, length: int = SECTOR) -> bytes:
    """What a reader gets."""
    return read(rec.disks[disk].live, offset, length)


def digests(rec: Recorder) -> list[str]:
    """Of both disks."""
    return [rec.digest(disk)["sha256"] for disk in ("ssd", "hdd")]


def commands(seed: int, count: int) -> list[tuple]:
    """(disk, what, offset, sectors, fua) of random commands."""
    rng = random.Random(seed)
    return [
        (rng.choice(("ssd", "hdd")), rng.choice(("write",) * 8 + ("zero", "flush", "flush")),
         rng.randrange(400) * SECTOR, rng.choice((1, 3, 8, 8, 17, 64)), rng.random() < 0.1)
        for _ in range(count)
    ]  # fmt: skip


def send(rec: Recorder, tag: int, disk: str, what: str, offset: int, count: int, fua: bool) -> None:
    """One of those commands."""
    target = rec.disks[disk]
    if what == "write":
        rec.write(target, sectors(tag, count), offset, fua)
    elif what == "zero":
        rec.zero(target, offset, count * SECTOR, fua)
    else:
        rec.flush(target)


def held(rec: Recorder, disk: str, op: str, run) -> tuple[int, threading.Thread]:
    """Start a command that is kept in service; (the fault that holds it, its thread)."""
    rule = rec.fault(disk=disk, op=op, errno=0, delay_ms=HOUR_MS)["id"]
    thread = threading.Thread(target=run)
    thread.start()
    while not any(f["hits"] for f in rec.faults()["faults"] if f["id"] == rule):
        pass
    return rule, thread


@pytest.mark.parametrize("policy", crash.POLICIES)
def test_a_state_is_what_a_cut_at_that_point_leaves(rec, policy):
    """Behind each command in turn, for a random history: journal and cut agree to the byte."""
    history = commands(SEED, 60)
    other = Recorder({"ssd": SIZE, "hdd": SIZE})
    for tag in range(1, 20):  # the journal begins in the middle of a life
        for each in (rec, other):
            send(each, tag, "ssd", "write", tag * SECTOR, 8, False)
    rec.journal_start("life")
    points = []
    for tag, command in enumerate(history, 100):
        send(rec, tag, *command)
        points.append(rec.clock())
    rec.journal_stop()
    for number, (tag, command) in enumerate(enumerate(history, 100)):
        send(other, tag, *command)
        other.snapshot("here")
        other.cut(SEED + number, policy)
        rec.crash_state("life", points[number], SEED + number, policy)
        assert digests(rec) == digests(other), f"seed {SEED}, command {number}"
        other.revert("here")


def test_states_come_in_any_order_and_again(rec):
    rec.journal_start("life")
    for tag, command in enumerate(commands(SEED, 100), 1):
        send(rec, tag, *command)
    end = rec.journal_stop()["order"]
    first = {}
    rng = random.Random(SEED)
    for point in [*range(0, end, 7)] * 2 + [rng.randrange(end) for _ in range(20)]:
        rec.crash_state("life", point, point, "random")
        assert first.setdefault(point, digests(rec)) == digests(rec)
    assert len({tuple(state) for state in first.values()}) > 20


def test_a_write_in_service_may_be_there_and_one_behind_the_point_is_not(rec):
    rec.journal_start("life")
    before = rec.clock()
    rule, thread = held(rec, "ssd", "write", lambda: rec.write(
        rec.disks["ssd"], sectors(1, 1), 0, fua=True))
    during = rec.clock()
    rec.fault_clear(rule)
    thread.join()
    after = rec.journal_stop()["order"]

    def there(point: int, policy: str) -> bool:
        rec.crash_state("life", point, SEED, policy)
        return any(content(rec))

    assert not there(before, "keep-all")
    assert there(during, "keep-all") and not there(during, "drop-all")
    assert there(after, "drop-all")  # FUA, and answered


def test_a_flush_covers_what_was_answered_when_it_arrived(rec):
    ssd = rec.disks["ssd"]
    rec.journal_start("life")
    rec.write(ssd, sectors(1, 1), 0)
    rule, thread = held(rec, "ssd", "flush", lambda: rec.flush(ssd))
    rec.write(ssd, sectors(2, 1), SECTOR)
    during = rec.clock()
    rec.fault_clear(rule)
    thread.join()
    after = rec.journal_stop()["order"]

    def there(point: int) -> list[bool]:
        rec.crash_state("life", point, SEED, "drop-all")
        return [any(content(rec, offset=at)) for at in (0, SECTOR)]

    assert there(during) == [False, False]
    assert there(after) == [True, False]


def test_what_failed_and_what_lied_is_not_in_the_journal(rec):
    ssd = rec.disks["ssd"]
    rec.journal_start("life")
    rec.write(ssd, sectors(1, 1), 0)
    rec.fault(disk="ssd", op="flush", apply="lie", count=1)
    rec.flush(ssd)
    rec.fault(disk="ssd", op="flush", count=1)
    rec.fault(disk="ssd", op="write", count=1)
    for command in (lambda: rec.flush(ssd), lambda: rec.write(ssd, sectors(2, 1), SECTOR)):
        with pytest.raises(IoError):
            command()
    assert [event[2:] for event in rec.journal_events("life")["events"]] == [
        ("ssd", 0, SECTOR, False)
    ]
    rec.crash_state("life", rec.clock(), SEED, "drop-all")
    assert not any(content(rec))


def test_fates_told_can_be_changed_and_given_back(rec):
    rec.journal_start("life")
    for tag, command in enumerate(commands(SEED, 50), 1):
        send(rec, tag, *command)
    for tag in range(51, 71):  # no state may be alike only because all was flushed
        send(rec, tag, "ssd", "write", tag * 64 * SECTOR, 64, False)
    end = rec.journal_stop()["order"]
    told = rec.crash_state("life", end, SEED, "tear-all", tell=True)
    torn = digests(rec)
    assert rec.crash_state("life", end, fates=told["fates"]) and digests(rec) == torn
    whole = {
        disk: [[[0, length // SECTOR]] for _, length, _, _ in writes]
        for disk, writes in told["writes"].items()
    }
    rec.crash_state("life", end, fates=whole)
    kept = digests(rec)
    rec.crash_state("life", end, SEED, "keep-all")
    assert digests(rec) == kept != torn


def test_lose_breaks_the_promise_of_a_flush(rec):
    ssd = rec.disks["ssd"]
    rec.journal_start("life")
    rec.write(ssd, sectors(1, 1), 0)
    rec.write(ssd, sectors(2, 1), SECTOR)
    rec.flush(ssd)
    rec.write(ssd, sectors(3, 1), 2 * SECTOR)
    end = rec.journal_stop()["order"]
    rec.crash_state("life", end, SEED, "keep-all", lose={"ssd": 1})
    assert [any(content(rec, offset=at * SECTOR)) for at in range(3)] == [True, False, True]


def test_warm_restart_keeps_the_cache_until_the_power_goes(rec):
    ssd = rec.disks["ssd"]
    rec.journal_start("life")
    rec.write(ssd, sectors(1, 1), 0)
    end = rec.journal_stop()["order"]
    for flushed in (False, True):
        rec.crash_state("life", end, policy="warm")
        rec.journal_start("next")
        assert any(content(rec))
        if flushed:
            rec.flush(ssd)
        rec.crash_state("next", rec.clock(), SEED, "drop-all")
        assert any(content(rec)) == flushed


def test_a_journal_ends_with_the_life_it_is_of(rec):
    rec.journal_start("life")
    rec.write(rec.disks["ssd"], sectors(1, 1), 0)
    rec.cut(SEED, "keep-all")
    with pytest.raises(ValueError, match="off"):
        rec.journal_start("dark")
    rec.restore()
    rec.write(rec.disks["ssd"], sectors(2, 1), 0)
    assert len(rec.journal_events("life")["events"]) == 1
    rec.journal_drop("life")
    with pytest.raises(ValueError, match="no journal"):
        rec.crash_state("life", 1)


def test_saved_state_holds_disks_and_files(tmp_path):
    with Disks(ssd=SIZE, hdd=SIZE, save=tmp_path) as disks:
        ask = disks.control.request
        with nbd.Client(disks.nbd_socket, "hdd") as hdd:
            hdd.write(CHUNK, sectors(7, 8))
        ledger = base64.b64encode(zlib.compress(b"ledger")).decode()
        path = ask("save-state", name="../found", files={"ledger": ledger},
                   about={"seed": SEED})["path"]
        assert path == str(tmp_path / "found.tar.xz")
        with tarfile.open(path) as tar:
            saved = {name: tar.extractfile(name).read() for name in tar.getnames()}
    chunks: dict = {}
    Write.of_data(CHUNK, sectors(7, 8)).apply(chunks)
    assert saved["hdd.img"] == read(chunks, 0, SIZE) and saved["ssd.img"] == bytes(SIZE)
    assert saved["ledger"] == b"ledger" and str(SEED).encode() in saved["about.json"]
    with Disks(ssd=SIZE, hdd=SIZE) as disks, pytest.raises(DisksError, match="folder"):
        disks.control.request("save-state", name="x", files={}, about={})


def test_clock_is_an_export_in_step_with_the_disks():
    with Disks(ssd=SIZE, hdd=SIZE) as disks, nbd.Client(disks.nbd_socket, "clock") as clock, \
            nbd.Client(disks.nbd_socket, "ssd") as ssd:
        disks.control.request("journal-start", name="life")
        before = struct.unpack_from("<Q", clock.read(0, SECTOR))[0]
        ssd.write(0, sectors(1, 1))
        after = struct.unpack_from("<Q", clock.read(0, SECTOR))[0]
        assert disks.control.request("clock")["clock"] > after
        begun, ended, *_ = disks.control.request("journal-events", name="life")["events"][0]
        assert before < begun < ended < after
        with pytest.raises(nbd.NbdError):
            clock.write(0, sectors(1, 1))
