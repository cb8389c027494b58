# SPDX-License-Identifier: GPL-2.0-only
"""The emulated disks, tested on the host without a VM.

Most tests drive the recorder directly; those that take `disks` go through nbdkit, its
threads and the control socket. DM_LC_SEED sets the seed, which pytest prints on failure.
Proves the recorder's promises as recorder.py states them; says nothing about QEMU or
about the guest's side of the control port.
"""

from __future__ import annotations

import base64
import json
import os
import random
import threading

import pytest

from disks import Disks, DisksError, crash, models, nbd
from disks.control import answer
from disks.image import CHUNK, SECTOR, Write, read
from disks.recorder import IoError, Recorder

SEED = int(os.environ.get("DM_LC_SEED", "1"))
MIB = 1 << 20
SIZE = 16 * MIB


@pytest.fixture
def rec() -> Recorder:
    """A recorder alone."""
    return Recorder({"ssd": SIZE, "hdd": SIZE})


@pytest.fixture(scope="module")
def server():
    """One nbdkit for all tests of this file."""
    with Disks(ssd="64M", hdd="8T") as running:
        yield running


@pytest.fixture
def disks(server):
    """That nbdkit, as new."""
    ask = server.control.request
    ask("fault-clear")
    ask("disarm")
    ask("model", disk="ssd", kind="none")
    ask("model", disk="hdd", kind="none")
    ask("wipe")
    ask("reset-stats")
    return server


def pattern(tag: int, length: int) -> bytes:
    """Bytes that name their writer in every sector."""
    return b"".join(
        f"{tag:08d}.{i:08d}|".encode().ljust(SECTOR, b"=") for i in range(length // SECTOR)
    )


def after_cut(rec: Recorder, policy: str, seed: int = SEED) -> None:
    """Power off and on."""
    rec.cut(seed, policy)
    rec.restore()


def content(rec: Recorder, disk: str, offset: int, length: int) -> bytes:
    """What a reader gets."""
    return read(rec.disks[disk].live, offset, length)


# ---- what a flush covers ---------------------------------------------------------


def test_unflushed_write_is_lost_by_drop_all_and_kept_by_keep_all(rec):
    for policy, expected in (("drop-all", bytes(CHUNK)), ("keep-all", pattern(1, CHUNK))):
        rec.wipe()
        rec.write(rec.disks["ssd"], pattern(1, CHUNK), 0)
        after_cut(rec, policy)
        assert content(rec, "ssd", 0, CHUNK) == expected


@pytest.mark.parametrize("policy", crash.POLICIES)
def test_flushed_and_fua_writes_survive_every_policy(rec, policy):
    ssd = rec.disks["ssd"]
    for seed in range(SEED, SEED + 30):
        rec.wipe()
        rec.write(ssd, pattern(1, 3 * CHUNK), SECTOR)
        rec.flush(ssd)
        rec.write(ssd, pattern(2, CHUNK), MIB)
        rec.write(ssd, pattern(3, CHUNK), 2 * MIB, fua=True)
        rec.write(ssd, pattern(4, CHUNK), 3 * MIB)
        after_cut(rec, policy, seed)
        assert content(rec, "ssd", SECTOR, 3 * CHUNK) == pattern(1, 3 * CHUNK)
        assert content(rec, "ssd", 2 * MIB, CHUNK) == pattern(3, CHUNK)


def test_fua_write_is_not_undone_by_an_older_volatile_write(rec):
    ssd = rec.disks["ssd"]
    rec.write(ssd, pattern(1, CHUNK), 0)
    rec.write(ssd, pattern(2, SECTOR), SECTOR, fua=True)
    after_cut(rec, "keep-all")
    assert content(rec, "ssd", SECTOR, SECTOR) == pattern(2, SECTOR)


def test_fua_does_not_cover_other_writes(rec):
    ssd = rec.disks["ssd"]
    rec.write(ssd, pattern(1, CHUNK), 0)
    rec.write(ssd, pattern(2, CHUNK), MIB, fua=True)
    after_cut(rec, "drop-all")
    assert content(rec, "ssd", 0, CHUNK) == bytes(CHUNK)
    assert content(rec, "ssd", MIB, CHUNK) == pattern(2, CHUNK)


def test_flush_of_one_disk_does_not_cover_the_other(rec):
    rec.write(rec.disks["ssd"], pattern(1, CHUNK), 0)
    rec.write(rec.disks["hdd"], pattern(2, CHUNK), 0)
    rec.flush(rec.disks["hdd"])
    after_cut(rec, "drop-all")
    assert content(rec, "ssd", 0, CHUNK) == bytes(CHUNK)
    assert content(rec, "hdd", 0, CHUNK) == pattern(2, CHUNK)


def test_write_during_a_flush_is_not_covered(rec):
    ssd = rec.disks["ssd"]
    rec.write(ssd, pattern(1, CHUNK), 0)
    rule = rec.fault(disk="ssd", op="flush", errno=0, delay_ms=60_000)
    flusher = threading.Thread(target=rec.flush, args=(ssd,))
    flusher.start()
    wait_for_hit(rec, rule["id"])
    rec.write(ssd, pattern(2, CHUNK), MIB)
    rec.fault_clear(rule["id"])
    flusher.join()
    after_cut(rec, "drop-all")
    assert content(rec, "ssd", 0, CHUNK) == pattern(1, CHUNK)
    assert content(rec, "ssd", MIB, CHUNK) == bytes(CHUNK)


def test_write_in_service_when_a_flush_starts_is_not_covered(rec):
    ssd = rec.disks["ssd"]
    rule = rec.fault(disk="ssd", op="write", errno=0, delay_ms=60_000)
    writer = threading.Thread(target=rec.write, args=(ssd, pattern(1, CHUNK), 0))
    writer.start()
    wait_for_hit(rec, rule["id"])
    rec.flush(ssd)
    rec.fault_clear()
    writer.join()
    assert rec.stats()["ssd"]["volatile"] == 1


def test_flush_that_fails_or_is_cut_covers_nothing(rec):
    ssd = rec.disks["ssd"]
    rec.write(ssd, pattern(1, CHUNK), 0)
    rec.fault(disk="ssd", op="flush", count=1)
    with pytest.raises(IoError):
        rec.flush(ssd)
    rec.arm(1, SEED, "drop-all")
    with pytest.raises(IoError):
        rec.flush(ssd)
    rec.restore()
    assert content(rec, "ssd", 0, CHUNK) == bytes(CHUNK)


def wait_for_hit(rec: Recorder, rule: int) -> None:
    """Until a fault rule holds a command."""
    while not any(f["hits"] for f in rec.faults()["faults"] if f["id"] == rule):
        pass


# ---- the cut -----------------------------------------------------------------------


def random_history(rec: Recorder, rng: random.Random, commands: int) -> None:
    """Writes, zeroings and flushes on both disks."""
    for i in range(commands):
        disk = rec.disks[rng.choice(("ssd", "hdd"))]
        sectors = rng.choice((1, 1, 3, 8, 8, 17, 64, 300))
        offset = rng.randrange(1024) * SECTOR
        kind = rng.random()
        if kind < 0.8:
            rec.write(disk, pattern(i + 1, sectors * SECTOR), offset, fua=rng.random() < 0.1)
        elif kind < 0.9:
            rec.zero(disk, offset, sectors * SECTOR)
        else:
            rec.flush(disk)


def unflushed_history(rec: Recorder, commands: int) -> None:
    """The same, and enough behind the last flush that no two crashes need be alike."""
    random_history(rec, random.Random(SEED), commands)
    for i in range(20):
        for disk in rec.disks.values():
            rec.write(disk, pattern(commands + i, 8 * SECTOR), i * 8 * SECTOR)


def test_same_seed_same_crash_and_other_seed_another(rec):
    unflushed_history(rec, 200)
    rec.snapshot("before")

    def crashes(policy: str) -> list[str]:
        found = []
        for seed in range(SEED, SEED + 8):
            rec.revert("before")
            rec.cut(seed, policy)
            found.append(rec.digest("ssd")["sha256"] + rec.digest("hdd")["sha256"])
        return found

    for policy in crash.POLICIES:
        assert crashes(policy) == crashes(policy)
    assert len(set(crashes("random"))) == 8


def test_cut_again_draws_another_crash_of_the_same_writes(rec):
    unflushed_history(rec, 100)
    rec.cut(SEED, "random")
    first = rec.digest("ssd")
    rec.cut(SEED + 1, "random")
    assert rec.digest("ssd") != first
    rec.cut(SEED, "random")
    assert rec.digest("ssd") == first


def test_model_of_history_agrees_with_a_naive_one():
    """Every crash state is one that whole-image bookkeeping allows, sector by sector."""
    rng = random.Random(SEED)
    for policy in crash.POLICIES:
        rec = Recorder({"ssd": MIB})
        ssd = rec.disks["ssd"]
        allowed = [{bytes(SECTOR)} for _ in range(MIB // SECTOR)]
        live = [bytes(SECTOR)] * len(allowed)
        for i in range(300):
            first = rng.randrange(len(allowed) - 64)
            n = rng.choice((1, 2, 8, 9, 64))
            kind = rng.random()
            if kind < 0.1:
                rec.flush(ssd)
                allowed = [{now} for now in live]
                continue
            fua = kind < 0.2
            data = pattern(i, n * SECTOR) if kind < 0.9 else bytes(n * SECTOR)
            if kind < 0.9:
                rec.write(ssd, data, first * SECTOR, fua)
            else:
                rec.trim(ssd, first * SECTOR, n * SECTOR)
            for s in range(n):
                live[first + s] = data[s * SECTOR : (s + 1) * SECTOR]
                if fua:
                    allowed[first + s] = set()
                allowed[first + s].add(live[first + s])
        assert read(ssd.live, 0, MIB) == b"".join(live)
        after_cut(rec, policy, SEED)
        after = content(rec, "ssd", 0, MIB)
        for s, versions in enumerate(allowed):
            assert after[s * SECTOR : (s + 1) * SECTOR] in versions, f"{policy}: sector {s}"


def test_tearing_is_at_sectors_and_reaches_every_kind(rec):
    ssd = rec.disks["ssd"]
    shapes = set()
    for seed in range(SEED, SEED + 500):    # one in 20 is of a wanted shape
        rec.wipe()
        rec.write(ssd, pattern(1, CHUNK), 7 * SECTOR)
        after_cut(rec, "tear-all", seed)
        after = content(rec, "ssd", 7 * SECTOR, CHUNK)
        shape = ""
        for s in range(0, CHUNK, SECTOR):
            sector = after[s : s + SECTOR]
            assert sector in (bytes(SECTOR), pattern(1, CHUNK)[s : s + SECTOR])
            shape += "x" if any(sector) else "."
        shapes.add(shape)
    assert {"x.......", ".......x"} <= shapes
    assert any("x.x" in shape for shape in shapes)
    assert not shapes & {"........", "xxxxxxxx"}


def test_ordered_prefix_goes_across_both_disks(rec):
    points = set()
    for seed in range(SEED, SEED + 40):
        rec.wipe()
        for i in range(20):
            rec.write(rec.disks[("ssd", "hdd")[i % 2]], pattern(i + 1, SECTOR), i * SECTOR)
        after_cut(rec, "ordered-prefix", seed)
        there = [any(content(rec, ("ssd", "hdd")[i % 2], i * SECTOR, SECTOR)) for i in range(20)]
        assert there == sorted(there, reverse=True)
        points.add(sum(there))
    assert len(points) > 5


def test_everything_fails_while_the_power_is_off(rec):
    ssd, hdd = rec.disks["ssd"], rec.disks["hdd"]
    rec.cut(SEED, "keep-all")
    for command in (
        lambda: rec.write(ssd, bytes(SECTOR), 0),
        lambda: rec.read(hdd, bytearray(SECTOR), 0),
        lambda: rec.flush(hdd),
        lambda: rec.trim(ssd, 0, SECTOR),
        lambda: rec.zero(hdd, 0, SECTOR),
    ):
        with pytest.raises(IoError):
            command()
    rec.restore()
    rec.write(ssd, pattern(1, SECTOR), 0)


def test_crash_state_is_durable_after_restore(rec):
    rec.write(rec.disks["hdd"], pattern(1, CHUNK), 0)
    after_cut(rec, "keep-all")
    after_cut(rec, "drop-all")
    assert content(rec, "hdd", 0, CHUNK) == pattern(1, CHUNK)


def test_armed_cut_comes_at_its_command_which_may_arrive(rec):
    ssd = rec.disks["ssd"]
    outcomes = set()
    for seed in range(SEED, SEED + 30):
        rec.wipe()
        rec.arm(3, seed, "random")
        rec.write(ssd, pattern(1, SECTOR), 0)
        rec.read(ssd, bytearray(SECTOR), 0)
        rec.flush(rec.disks["hdd"])
        assert rec.state()["armed"] == 1
        with pytest.raises(IoError):
            rec.write(ssd, pattern(2, SECTOR), SECTOR)
        assert rec.wait("off", 0)["armed"] is None
        rec.restore()
        outcomes.add(any(content(rec, "ssd", SECTOR, SECTOR)))
    assert outcomes == {True, False}


def test_write_delayed_over_a_cut_fails_even_after_restore(rec):
    ssd = rec.disks["ssd"]
    rule = rec.fault(disk="ssd", op="write", errno=0, delay_ms=60_000)
    failed = []

    def write() -> None:
        try:
            rec.write(ssd, pattern(1, CHUNK), 0)
        except IoError:
            failed.append(True)

    writer = threading.Thread(target=write)
    writer.start()
    wait_for_hit(rec, rule["id"])
    after_cut(rec, "drop-all")
    writer.join()
    assert failed and content(rec, "ssd", 0, CHUNK) == bytes(CHUNK)


def test_snapshot_holds_volatile_writes(rec):
    ssd = rec.disks["ssd"]
    rec.write(ssd, pattern(1, CHUNK), 0)
    rec.flush(ssd)
    rec.write(ssd, pattern(2, CHUNK), 0)
    rec.snapshot("a")
    rec.write(ssd, pattern(3, CHUNK), 0, fua=True)
    for policy, tag in (("drop-all", 1), ("keep-all", 2), ("drop-all", 1)):
        rec.revert("a")
        assert content(rec, "ssd", 0, CHUNK) == pattern(2, CHUNK)
        after_cut(rec, policy)
        assert content(rec, "ssd", 0, CHUNK) == pattern(tag, CHUNK)


def test_volatile_writes_are_bounded():
    rec = Recorder({"ssd": SIZE}, cache_bytes=MIB)
    for i in range(SIZE // CHUNK):
        rec.write(rec.disks["ssd"], pattern(i, CHUNK), i * CHUNK)
    stats = rec.stats()["ssd"]
    assert stats["volatile_bytes"] == MIB
    assert stats["destaged"] == (SIZE - MIB) // CHUNK
    after_cut(rec, "drop-all")
    assert content(rec, "ssd", SIZE - MIB - CHUNK, CHUNK) == pattern(
        (SIZE - MIB) // CHUNK - 1, CHUNK
    )
    assert content(rec, "ssd", SIZE - MIB, MIB) == bytes(MIB)


def test_huge_zeroing_takes_no_memory_and_tears():
    rec = Recorder({"hdd": 8 << 40})
    hdd = rec.disks["hdd"]
    rec.write(hdd, pattern(1, CHUNK), 4 << 40, fua=True)
    outcomes = set()
    rec.snapshot("a")
    for seed in range(SEED, SEED + 40):
        rec.revert("a")
        rec.zero(hdd, SECTOR, (8 << 40) - 3 * SECTOR)
        after_cut(rec, "tear-all", seed)
        outcomes.add(any(content(rec, "hdd", 4 << 40, CHUNK)))
    assert outcomes == {True, False}


# ---- faults, corruption, requests ---------------------------------------------------


def test_fault_skips_counts_and_keeps_to_its_range(rec):
    ssd = rec.disks["ssd"]
    rule = rec.fault(
        disk="ssd", op="write", offset=MIB, length=CHUNK, skip=1, count=2, errno="ENOSPC"
    )
    rec.write(ssd, bytes(CHUNK), 0)
    rec.write(ssd, bytes(CHUNK), MIB)
    for _ in range(2):
        with pytest.raises(IoError, match="ENOSPC"):
            rec.write(ssd, bytes(2 * CHUNK), MIB - CHUNK // 2)
    rec.write(ssd, bytes(CHUNK), MIB)
    rec.write(rec.disks["hdd"], bytes(CHUNK), MIB)
    assert [f["hits"] for f in rec.faults()["faults"] if f["id"] == rule["id"]] == [2]


@pytest.mark.parametrize("apply, there", [("none", "...."), ("torn", "xx.."), ("all", "xxxx")])
def test_failed_write_leaves_what_the_rule_says(rec, apply, there):
    ssd = rec.disks["ssd"]
    rec.fault(disk="ssd", op="write", apply=apply)
    with pytest.raises(IoError):
        rec.write(ssd, pattern(1, 4 * SECTOR), 0)
    found = content(rec, "ssd", 0, 4 * SECTOR)
    assert "".join("x" if found[i * SECTOR] else "." for i in range(4)) == there


def test_lying_flush_and_write_seem_well(rec):
    ssd = rec.disks["ssd"]
    rec.write(ssd, pattern(1, SECTOR), 0)
    rec.fault(disk="ssd", op="flush", apply="lie", count=1)
    rec.flush(ssd)
    rec.fault(disk="ssd", op="write", apply="lie", count=1)
    rec.write(ssd, pattern(2, SECTOR), SECTOR)
    assert content(rec, "ssd", SECTOR, SECTOR) == bytes(SECTOR)
    after_cut(rec, "drop-all")
    assert content(rec, "ssd", 0, SECTOR) == bytes(SECTOR)


def test_corrupt_hits_each_sector_of_its_range_and_no_other(rec):
    hdd = rec.disks["hdd"]
    rec.write(hdd, pattern(1, 2 * CHUNK), 0, fua=True)
    assert rec.corrupt("hdd", 3 * SECTOR, 2 * SECTOR, SEED) == {"sectors": 2}
    found = content(rec, "hdd", 0, 2 * CHUNK)
    wrong = [
        s for s in range(16) if found[s * 512 : s * 512 + 512] != pattern(1, 8192)[s * 512 :][:512]
    ]
    assert wrong == [3, 4]
    rec.corrupt("hdd", 3 * SECTOR, 2 * SECTOR, SEED)
    assert content(rec, "hdd", 0, 2 * CHUNK) == pattern(1, 2 * CHUNK)


def test_corrupt_hits_no_byte_outside_its_range(rec):
    hdd = rec.disks["hdd"]
    first, end = 3 * SECTOR + 100, 4 * SECTOR + 3
    for seed in range(50):
        rec.write(hdd, pattern(1, 2 * CHUNK), 0, fua=True)
        rec.corrupt("hdd", first, end - first, seed)
        found, old = content(rec, "hdd", 0, 2 * CHUNK), pattern(1, 2 * CHUNK)
        wrong = [at for at, byte in enumerate(found) if byte != old[at]]
        assert first <= wrong[0] < 4 * SECTOR <= wrong[-1] < end, seed


def test_requests_are_checked(rec):
    for line, complaint in (
        ("nonsense", "Expecting value"),
        ("[]", "object"),
        ('{"do": "explode"}', "unknown request"),
        ('{"do": "arm"}', "after_commands"),
        ('{"do": "arm", "after_commands": 1, "policy": "maybe"}', "unknown policy"),
        ('{"do": "fault", "disk": "sdx"}', "unknown disk"),
        ('{"do": "dump", "disk": "ssd", "offset": -1, "len": 1}', "range"),
        ('{"do": "restore"}', "power is on"),
    ):
        reply = answer(rec, line)
        assert not reply["ok"] and complaint in reply["error"], line
    assert answer(rec, '{"do": "ping", "tag": 7}') == {"tag": 7, "ok": True}
    json.dumps(answer(rec, '{"do": "faults"}'))


def test_misaligned_and_outside_commands_are_refused(rec):
    ssd = rec.disks["ssd"]
    for offset, length in ((1, SECTOR), (0, 100), (SIZE, SECTOR)):
        with pytest.raises(IoError, match="EINVAL"):
            rec.write(ssd, bytes(length), offset)


def test_write_of_any_shape_is_what_it_says():
    rng = random.Random(SEED)
    flat = bytearray(64 * SECTOR)
    chunks: dict[int, bytes] = {}
    for i in range(500):
        first = rng.randrange(64)
        n = rng.randrange(1, 65 - first)
        span = slice(first * SECTOR, (first + n) * SECTOR)
        if rng.random() < 0.3:
            write = Write.of_zeros(span.start, n * SECTOR)
            flat[span] = bytes(n * SECTOR)
        else:
            write = Write.of_data(span.start, pattern(i, n * SECTOR))
            flat[span] = pattern(i, n * SECTOR)
        write.apply(chunks)
        assert read(chunks, 0, len(flat)) == flat


# ---- models: computed time, no clock -------------------------------------------------


def modelled(kind: str, size: int, commands, **params) -> float:
    """Computed seconds for commands (op, offset, length)."""
    model = models.make(kind, size, sleep=False, **params)
    for command in commands:
        model.serve(*command)
    return model.time()["seconds"]


@pytest.mark.parametrize("size", [4 << 30, 8 << 40])
def test_hdd_random_4k_writes_run_at_250_iops(size):
    rng = random.Random(SEED)
    writes = [("write", rng.randrange(size // 4096) * 4096, 4096) for _ in range(5000)]
    assert 5000 / modelled("hdd", size, writes) == pytest.approx(250, rel=0.05)


def test_hdd_sequential_writes_run_at_150_mb_s():
    writes = [("write", i * MIB, MIB) for i in range(500)]
    assert 500 * MIB / modelled("hdd", 4 << 30, writes) == pytest.approx(150e6, rel=0.01)


def test_hdd_sorted_writes_are_faster_than_random_ones():
    rng = random.Random(SEED)
    writes = [("write", rng.randrange(1 << 20) * 4096, 4096) for _ in range(2000)]
    ratio = modelled("hdd", 4 << 30, writes) / modelled("hdd", 4 << 30, sorted(writes))
    assert ratio > 1.4


def test_ssd_costs_commands_bytes_and_flushes():
    seconds = modelled(
        "ssd", SIZE, [("write", 0, MIB), ("flush", 0, 0)], command_us=10, rate=1e8, flush_us=500
    )
    assert seconds == pytest.approx(10e-6 + MIB / 1e8 + 500e-6)


def test_models_refuse_unknown_parameters():
    with pytest.raises(ValueError, match="wings"):
        models.make("hdd", SIZE, wings=2)
    with pytest.raises(ValueError, match="unknown model"):
        models.make("tape", SIZE)


# ---- through nbdkit --------------------------------------------------------------------


def client(disks: Disks, name: str) -> nbd.Client:
    """A connection to one of the disks."""
    return nbd.Client(str(disks.nbd_socket), name)


def test_served_disks_cut_restore_and_stats(disks):
    ask = disks.control.request
    with client(disks, "ssd") as ssd, client(disks, "hdd") as hdd:
        assert (ssd.size, hdd.size) == (64 * MIB, 8 << 40)
        ssd.write(0, pattern(1, CHUNK))
        ssd.flush()
        ssd.write(0, pattern(2, CHUNK))
        hdd.write((8 << 40) - CHUNK, pattern(3, CHUNK), fua=True)
        hdd.write(0, pattern(4, MIB))
        hdd.trim(0, SECTOR)
        hdd.zero(SECTOR, SECTOR)
        assert hdd.read(0, CHUNK) == bytes(2 * SECTOR) + pattern(4, CHUNK)[2 * SECTOR :]
        stats = ask("stats")
        assert {k: v for k, v in stats["ssd"].items() if v} == {
            "writes": 2, "write_bytes": 2 * CHUNK, "flushes": 1, "volatile": 1,
            "volatile_bytes": CHUNK, "allocated": CHUNK, "size": 64 * MIB,
        }  # fmt: skip
        assert (stats["hdd"]["fua"], stats["hdd"]["trims"], stats["hdd"]["zeroes"]) == (1, 1, 1)
        ask("cut", seed=SEED, policy="drop-all")
        with pytest.raises(nbd.NbdError):
            ssd.read(0, SECTOR)
        ask("restore")
        assert ssd.read(0, CHUNK) == pattern(1, CHUNK)
        assert hdd.read(0, MIB) == bytes(MIB)
        assert hdd.read((8 << 40) - CHUNK, CHUNK) == pattern(3, CHUNK)
        dump = ask("dump", disk="ssd", offset=SECTOR, len=SECTOR)["data"]
        assert base64.b64decode(dump) == pattern(1, CHUNK)[SECTOR : 2 * SECTOR]


def test_slow_hdd_does_not_hold_up_the_ssd(disks):
    ask = disks.control.request
    rule = ask("fault", disk="hdd", op="write", errno=0, delay_ms=60_000)["id"]
    with client(disks, "ssd") as ssd, client(disks, "hdd") as hdd:
        hdd.send(nbd.WRITE, 0, data=pattern(1, CHUNK))
        for i in range(100):
            ssd.write(i * CHUNK, pattern(2, CHUNK))
        ssd.flush()
        assert ask("stats")["hdd"]["allocated"] == 0
        ask("fault-clear", id=rule)
        assert hdd.receive()[1] == 0


def test_served_models_count_time_and_share_no_clock(disks):
    ask = disks.control.request
    ask("model", disk="hdd", kind="hdd", sleep=False)
    ask("model", disk="ssd", kind="ssd", sleep=False, rate=100e6, command_us=0)
    with client(disks, "ssd") as ssd, client(disks, "hdd") as hdd:
        for i in range(50):
            ssd.write(i * MIB, bytes(MIB))
        for i in range(50):
            hdd.write((i * 37 % 50) << 37, bytes(CHUNK))
    times = ask("model-time", reset=True)
    assert times["ssd"]["seconds"] == pytest.approx(50 * MIB / 100e6)
    assert 0.1 < times["hdd"]["seconds"] < 0.3
    assert ask("model-time")["hdd"] == {"kind": "hdd", "seconds": 0, "commands": 0}


def test_nearest_first_serves_every_waiting_command(disks):
    disks.control.request("model", disk="hdd", kind="hdd", rotation_ms=0, seek_ms=0.1)
    rng = random.Random(SEED)
    with client(disks, "hdd") as hdd:
        for _ in range(16):
            hdd.send(nbd.WRITE, rng.randrange(1 << 30) * CHUNK, data=bytes(CHUNK))
        assert {hdd.receive()[1] for _ in range(16)} == {0}


def test_control_refuses_with_a_reason(disks):
    with pytest.raises(DisksError, match="unknown policy"):
        disks.control.request("cut", policy="gently")


def test_start_failure_says_why():
    with pytest.raises(DisksError, match="multiple of 512"), Disks(ssd=1000):
        pass
