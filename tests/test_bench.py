# SPDX-License-Identifier: GPL-2.0-only
"""The benchmark's judge and report, on made-up figures: nothing is measured here."""

import argparse
import contextlib
import os
import pathlib
import sys

import pytest

from lib import host

sys.path[:0] = [str(host.TESTS / "bench"), str(host.TESTS / "bench/guest")]

import charts  # noqa: E402
import plan  # noqa: E402
import real  # noqa: E402
import report  # noqa: E402
from lcbench import beside, common, fio, instructions, jobs, load, locks, service, systems  # noqa: E402
from rows import MISSED, REACHED, ROWS, UNKNOWN, Figures  # noqa: E402

# Whatever a row looks at, by job: figures that reach every target, for dm-lc and for the rest.
PER_DISK = ("commands", "flushes", "kib")


def tree(job, good):
    """Figures of one job as a system gives them, better or worse."""
    rate = 10.0 if good else 1.0
    cost = 0.1 if good else 10.0
    if job in ("random_write", "native_write", "synced_write", "journal_write"):
        return {f"iops_{n}": rate for n in (1, 2, 4, 16)} | {
            f"latency_{n}": dict.fromkeys(("p500", "p900", "p990", "p999"), cost) for n in (1, 16)}
    if job == "programs":
        return {name: {"write_iops": rate}
                for name in ("write_depth_32", "write_2_jobs", "write_4_jobs")}
    if job == "read":
        return {f"{kind}_{n}": rate for kind in ("hit", "miss") for n in (1, 2)}
    if job == "commands":
        kinds = {"sync_1": 1.0, "sync_4": 0.5, "sync_16": 0.2, "sync_every_8": 0.9,
                 "journal_1": 1.0, "journal_4": 0.5, "journal_16": 0.2}
        found = {kind: {"ssd": dict.fromkeys(PER_DISK, factor * (1 if good else 10)),
                        "hdd": dict.fromkeys(PER_DISK, 0 if good else 1)}
                 for kind, factor in kinds.items()}
        found["random"] = {"ssd": {"commands": 0.004 if good else 1, "kib": 4.02 if good else 9,
                                   "flushes": 0}, "hdd": dict.fromkeys(PER_DISK, 0)}
        return found
    return {
        "format_and_start": {"small": {"ssd_kib": 8},
                             "large": {"ssd_kib": 8 if good else 32}},
        "ssd_bound": {"bytes_s": rate},
        "sequential": {"write": rate, "read_ssd": rate, "read_hdd": rate, "write_hdd": rate,
                       "around_ssd_kib": 16 if good else 1024},
        "through": {"iops": rate},
        "drain": {"seconds": cost, "kib_s": 10,
                  "per_block": {"hdd": dict.fromkeys(PER_DISK, cost)}},
        "full": {"iops": rate},
        "read_while_draining": {"quiet": {"p990": 1}, "draining": {"p990": cost},
                                "few": {"drained_kib_s": rate}},
        "restart": {size: {"blocks": blocks, "stopped": {"bytes_per_block": 8 if good else 30,
                                                         "kib": 1 if good else 4 * blocks}}
                    for size, blocks in (("small", 100), ("large", 300))} |
                   {"whole": {"crashed": {"kib": 1 if good else 4 * 300}}},
        "memory": {"per_block": dict.fromkeys(("live", "reload", "suspended"),
                                              12 if good else 40)},
        "nowait": {"punted_per_write": 0 if good else 1},
        "throttled": {"latency": {"p999": 1e3 if good else 1e9}, "fairness": rate / 10},
        "swap_table": {"pool_write": 1, "frozen": {"suspend": cost, "swap": cost}},
        "endurance": {"ssd_per_user_byte": cost},
        "fua_disk": {"writes": 1 if good else 2, "flushes": 0 if good else 1},
        "mixed": {"hdd_none": {"read_p99": cost}},
        "copy": {kind: {"max": cost} for kind in ("direct", "cached")},
        "dirty_flood": {"max": cost},
        "full_flood": {"max": cost},
        "trim": {what: {"seconds": cost} for what in ("cached", "dropped")} | {
            "fsync_alone": {"p990": 1, "max": 1}, "fsync_beside": {"p990": cost, "max": cost}},
        "shares": {"direct_direct": {"fairness": rate / 10}},
        "instructions": dict.fromkeys(instructions.KINDS, cost),
        "locks": {"contended": {"own": 0 if good else 1, "all": 1}},
    }[job]


def results(good):
    """dm-lc good or bad, all others the other way round."""
    return [{"job": job, "system": system, "repetition": 0, "error": "", "seconds": 1,
             "figures": tree(job, (system == "dm-lc") == good)}
            for job in plan.JOBS for system in jobs.JOBS[job].systems]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.number)
def test_every_row_can_be_reached_missed_and_unknown(row):
    """A verdict follows from the figures, and none is given without them."""
    assert row.judge(Figures(results(True)))[0] == REACHED
    assert row.judge(Figures(results(False)))[0] == MISSED
    assert row.judge(Figures([])) == (UNKNOWN, [])


def test_rows_of_the_table_are_measured():
    """None is forgotten: 1 to 22."""
    have = {row.number.rstrip("abc") for row in ROWS}
    assert have == {str(number) for number in range(1, 23)}


def test_every_system_has_a_line_in_the_charts():
    """And a colour of its own or another dash."""
    assert tuple(charts.LINES) == plan.SYSTEMS
    assert len(set(charts.LINES.values())) == len(plan.SYSTEMS)


def test_figures_are_medians_with_their_spread():
    """Over the repetitions."""
    made = [{"job": "full", "system": "raw", "figures": {"iops": value}, "error": ""}
            for value in (90, 100, 130)]
    figures = Figures(made)
    assert figures.get("full", "iops", "raw") == 100
    assert figures.spread("full", "iops", "raw") == pytest.approx(0.4)


def test_plan_names_the_jobs_and_systems_there_are():
    """On the host and in the guest."""
    assert set(plan.JOBS) == set(jobs.JOBS)
    assert set(plan.BOOTS) <= set(plan.JOBS)
    assert plan.SYSTEMS == tuple(system.name for system in systems.ALL)
    assert set(plan.QUICK) == set(plan.LONG) == set(plan.SMOKE)


class FakeDisks:
    """Emulated disks that do nothing."""

    def model(self, **_):
        """Any."""

    cut = restore = model

    def stats(self, seen=[0]):  # noqa: B006
        """Never quiet."""
        seen[0] += 1
        names = ("reads", "read_bytes", "writes", "write_bytes", "flushes", "trims")
        return {disk: dict.fromkeys(names, 512 * seen[0]) for disk in ("ssd", "hdd")}

    def model_time(self, **_):
        """Some."""
        return {"hdd": {"seconds": 1.0, "commands": 3}}


def fake_run(_dev, **job):
    """What load.run() gives, for a load that was not run."""
    got = {"ns": 10**6, "errors": 0, "thread_least": 9, "thread_most": 10, "iops": 100.0,
           "bytes_s": 4e5, "write": 9, "read": 9}
    for kind in ("read", "write", "flush"):
        got |= {f"{kind}_{name}_ns": 1000 for name in ("p500", "p900", "p990", "p999", "max")}
    assert job.get("order", "seq") in ("seq", "random", "once", "zipf")
    return got


def fake_stat(_dev, seen=[0]):  # noqa: B006
    """A disk that is never quiet."""
    seen[0] += 1
    return dict.fromkeys(load.STAT, seen[0])


def fake_system(kind):
    """A system that is never set up."""
    def nothing(*_):
        pass
    def fields(_):
        return {"buffers": 64, "segment_bytes": plan.MIB, "buffers_used": 64,
                "cache_mode": "writethrough"}
    verbs = dict.fromkeys(("wipe", "start", "stop", "restart", "drain", "warm"), nothing)
    return type(kind.__name__, (kind,), {**verbs, "fields": fields})


class FakeDurable:
    """Everything is durable at once."""

    seconds = (0.1, 0.3, 0.2)

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def figures(self):
        """Of three."""
        return beside.summary(self.seconds)


def stand_in_beside(monkeypatch, folder):
    """What lcbench.beside does to the machine."""
    volume, knobs = folder / "above", folder / "vm"
    volume.touch()
    knobs.mkdir()
    for name in ("dirty_ratio", "dirty_background_ratio", "dirty_expire_centisecs",
                 "dirty_writeback_centisecs"):
        (knobs / name).write_text("20\n", encoding="ascii")
    monkeypatch.setattr(beside, "VM", knobs)
    monkeypatch.setattr(beside, "Durable", FakeDurable)
    monkeypatch.setattr(beside, "above", lambda *_: contextlib.nullcontext(str(volume)))
    monkeypatch.setattr(beside, "sectors", lambda _: 1 << 20)
    monkeypatch.setattr(beside, "dirty_pages", lambda: 0)
    monkeypatch.setattr(beside, "file_system", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(beside, "fstrim", lambda: 1.0)
    monkeypatch.setattr(beside, "side_by_side", lambda *_: [1.0, 2.0])
    return knobs


def fake_tracing(folder):
    """A tracefs in which nothing happens."""
    for name in (f"events/{service.PUNT}/enable", "per_cpu/cpu0/stats", "trace"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("entries: 3\noverrun: 0\n", encoding="ascii")
    return folder


def test_jobs_give_what_the_rows_look_at(monkeypatch, tmp_path):
    """Every job runs from end to end over stand-ins; after that no row is without figures."""
    for name in ("ssd", "hdd"):
        (tmp_path / name).touch()
    monkeypatch.setattr(load, "run", fake_run)
    monkeypatch.setattr(load, "stat", fake_stat)
    monkeypatch.setattr(fio, "run", lambda *_: {"write_iops": 1.0})
    monkeypatch.setattr(common.sh, "run", lambda *_, **__: "")
    monkeypatch.setattr(common.sh, "result", lambda *_: (0, ""))
    for name, kind in systems.BY_NAME.items():
        monkeypatch.setitem(common.BY_NAME, name, fake_system(kind))
    monkeypatch.setattr(common, "sectors", lambda _: 1 << 20)
    monkeypatch.setattr(common, "Linear", common.BY_NAME["dm-linear"])
    monkeypatch.setattr(common, "RawDisk", common.BY_NAME["raw"])
    monkeypatch.setattr(service, "unavailable", lambda: 1 << 20)
    monkeypatch.setattr(fio, "mixed", lambda *_: {"write_iops": 1.0})
    monkeypatch.setattr(jobs.null_blk, "disk",
                        lambda _: contextlib.nullcontext(str(tmp_path / "ssd")))
    # A drain that does nothing has ended before: see below.
    monkeypatch.setattr(jobs, "few_reads", lambda *_: {
        "few": dict.fromkeys(("drained_kib_s", "reads_s", "max"), 1.0)})
    monkeypatch.setattr(jobs, "scheduled", lambda *_: contextlib.nullcontext())
    for name in ("STAT", "SWITCH"):
        monkeypatch.setattr(locks, name, tmp_path / name)
    knobs = stand_in_beside(monkeypatch, tmp_path)
    monkeypatch.setattr(service, "TRACING", fake_tracing(tmp_path / "tracing"))
    bench = common.Bench(str(tmp_path / "ssd"), str(tmp_path / "hdd"), plan.SMOKE, 1, FakeDisks())
    made = [{"job": name, "system": system, "error": "", "repetition": 0,
             "figures": job.function(bench, system)}
            for name, job in jobs.JOBS.items() for system in job.systems]
    figures = Figures(made)
    for row in ROWS:
        assert row.judge(figures)[0] != UNKNOWN, row.number
        for job, path, _ in row.shown:
            assert figures.systems(job, path), (row.number, path)
    assert (knobs / "dirty_ratio").read_text(encoding="ascii") == "20\n"
    assert (knobs / "dirty_expire_centisecs").read_text(encoding="ascii") == "20\n"


def test_durable_writes_are_ranked():
    """By rank, and of nothing there is no figure."""
    got = beside.summary([n / 1000 for n in range(200, 0, -1)])
    assert got == {"p500": pytest.approx(1e5), "p990": pytest.approx(198e3),
                   "max": pytest.approx(200e3), "count": 200}
    assert beside.summary([0.5])["p990"] == pytest.approx(5e5)
    with pytest.raises(AssertionError, match="nothing was made durable"):
        beside.summary([])


def test_durable_writes_are_made(tmp_path, monkeypatch):
    """Each is a block of the volume's beginning; an error is told by who asks for figures."""
    monkeypatch.setattr(beside.os, "O_DIRECT", 0)
    volume = tmp_path / "volume"
    with open(volume, "wb") as sparse:
        sparse.truncate(2 * beside.SYNCED)
    for dsync in (False, True):
        with beside.Durable(str(volume), 7, 0, dsync) as durable:
            while not durable.seconds:
                assert durable.is_alive()
        assert durable.figures()["count"] == len(durable.seconds)
    assert not any(volume.read_bytes()[beside.SYNCED:])
    with beside.Durable(str(tmp_path / "nowhere"), 7, 0) as durable:
        durable.join()
    with pytest.raises(FileNotFoundError):
        durable.figures()


@pytest.mark.parametrize("lasts", (True, False))
def test_few_reads_while_draining(monkeypatch, lasts):
    """The rate of a drain beside a few reads is a figure only if the drain lasted that long."""
    monkeypatch.setattr(load, "run", fake_run)
    monkeypatch.setattr(jobs, "FEW_SECONDS", 0)
    bench = common.Bench("", "", {"latency_ms": 1}, 1, FakeDisks())
    drainer = argparse.Namespace(is_alive=lambda: lasts)
    found = jobs.few_reads(bench, argparse.Namespace(path=""), drainer)
    assert bool(found) == lasts
    if lasts:
        assert found["few"]["drained_kib_s"] > 0 and found["few"]["max"] == 1.0


def test_report_is_whole(tmp_path):
    """Every row, every failure, every chart."""
    made = results(True)
    made.append({"job": "drain", "system": "bcache", "repetition": 1, "seconds": 2,
                 "figures": {"curve": [[0.2, 100], [0.4, 300]]}, "error": ""})
    made.append({"job": "read", "system": "dm-cache", "repetition": 1, "seconds": 2,
                 "figures": {}, "error": "LoadError: 3 errors\nmore"})
    got = {"commit": "abc", "date": "today", "length": "quick", "seconds": 5, "seed": 1,
           "machine": {"cpu": "a CPU", "cpus": 2, "qemu": "QEMU",
                                        "emulated": True, "load_before": "0.5"},
           "plan": {**plan.QUICK, "hdd_model": {}}, "results": made,
           "boots": [{"kernel": "6.1", "name": "stock", "versions": {"bcache-tools": "1"},
                      "verdict": "passed", "reason": "",
                      "guest": {"cpus": 2, "clock": "tsc", "options": {"dm-lc": "as it is"}}},
                     {"kernel": "7.3", "name": "lockstat", "versions": {}, "guest": {},
                      "verdict": "hang", "reason": "no word\nfor long"}]}
    text = report.write(got, tmp_path).read_text(encoding="utf-8")
    for row in ROWS:
        assert f"| {row.number} | {row.what} |" in text
    assert "* read, dm-cache: LoadError: 3 errors\n" in text
    assert ("\nLeft out here: drain (bcache); read_while_draining (bcache); memory "
            "(dm-writeboost); copy (dm-writeboost, dm-writecache, dm-cache, bcache); "
            "dirty_flood (") in text
    assert "MISSED" not in text and "**The guest (lockstat): hang**: no word\n" in text
    for name, _ in report.CHARTS:
        assert (tmp_path / name).stat().st_size > 1000 and f"({name})" in text


def test_profile_of_samples(monkeypatch, tmp_path):
    """Tasks of a kind are one; idle processors are told, but not where they idle."""
    samples = tmp_path / "samples"
    lines = ["lcload/0\tcopy"] * 3 + ["lcload/1\tcopy"] + ["kworker/u4:1-lc-log\tsum"] * 4
    lines += ["swapper/1\thalt"] * 2
    samples.touch()
    monkeypatch.setattr(load, "SAMPLES", samples)
    with load.profiled("a load"):
        assert samples.read_text(encoding="ascii") == "1"
        monkeypatch.setattr(type(samples), "write_text", lambda *_, **__: None)
        with open(samples, "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
    monkeypatch.undo()
    loads = load.take_profiles()
    assert load.take_profiles() == []
    text = "\n".join(report.profile_lines({"profiles": [
        {"job": "full", "system": "raw", "loads": loads}]}))
    assert "lcload 40 %, kworker 40 %, swapper 20 % of 10 samples" in text
    assert "| lcload | `copy` | 4 | 100.0 % |" in text and "halt" not in text


def test_real_disks_are_refused_as_by_lc_format(tmp_path, monkeypatch, capfd):
    """Too small, no disk, or holding something: it ends before anything is measured or written."""
    if not host.has_loops():
        pytest.skip("loop devices need root and the loop module")
    monkeypatch.setattr(real, "FOLDER", tmp_path)
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.setattr(real, "running_kernel", lambda: None)
    monkeypatch.setattr(real, "load_modules", lambda *_: None)
    monkeypatch.setattr(real, "measure", lambda *_: pytest.fail("it went on"))
    file = tmp_path / "file"
    file.write_bytes(b"mine")
    for name, size in real.LEAST.items():
        with open(tmp_path / name, "wb") as sparse:
            sparse.truncate(size)
    with host.loop(tmp_path / "ssd") as ssd, host.loop(tmp_path / "hdd") as hdd:
        for pair, why in (((file, hdd), "name a block device with SSD="),
                          ((ssd, ssd), "name a larger one with HDD=")):
            with pytest.raises(SystemExit, match=why):
                real.main(["--ssd", str(pair[0]), "--hdd", str(pair[1]), "--yes"])
        host.run("mkfs.ext4", "-q", hdd)
        before = written(tmp_path)
        with pytest.raises(SystemExit, match="nothing was written"):
            real.main(["--ssd", ssd, "--hdd", hdd, "--yes"])
        assert "ext4" in capfd.readouterr().err
        assert written(tmp_path) == before


def written(folder):
    """What both sparse files hold, as far as a signature or a superblock would show."""
    found = []
    for name in ("ssd", "hdd"):
        with open(folder / name, "rb") as file:
            os.fsync(file.fileno())
            head = file.read(1 << 20)
            file.seek(-(1 << 20), os.SEEK_END)
            found.append((head, file.read(), os.fstat(file.fileno()).st_blocks))
    return found


def test_disk_of_somebody_else_is_seen(tmp_path):
    """bcache's disks are held for a moment after its names are gone."""
    if not host.has_loops():
        pytest.skip("loop devices need root and the loop module")
    with open(tmp_path / "disk", "wb") as sparse:
        sparse.truncate(plan.MIB)
    with host.loop(tmp_path / "disk") as disk:
        assert not systems.is_held(disk)
        holder = os.open(disk, os.O_RDONLY | os.O_EXCL)
        assert systems.is_held(disk)
        os.close(holder)
        assert not systems.is_held(disk)


def test_real_disks_are_counted_by_the_kernel(tmp_path, monkeypatch):
    """An empty FLUSH is no write; busy from the last reset on."""
    counts = dict.fromkeys(load.STAT, 10)
    monkeypatch.setattr(load, "stat", lambda _: dict(counts))
    disks = real.Disks(ssd=tmp_path, hdd=tmp_path)
    assert disks.stats()["ssd"] == {"reads": 10, "read_bytes": 5120, "writes": 0,
                                    "write_bytes": 5120, "flushes": 10, "trims": 10}
    disks.model_time(reset=True)
    counts.update(busy_ms=2010, writes=13)
    assert disks.model_time()["hdd"] == {"seconds": pytest.approx(2), "commands": 3}


def test_plan_for_real_disks(tmp_path, monkeypatch):
    """Systems this machine has not are left out; a report of such a run is whole."""
    monkeypatch.setattr(real, "present", lambda: ["dm-lc", "dm-linear", "raw"])
    args = argparse.Namespace(length="quick", jobs=None, systems=None, repetitions=2)
    wanted = real.planned(args)
    assert wanted["systems"] == ["dm-lc", "dm-linear", "raw"] and wanted["repetitions"] == 2
    assert set(wanted["jobs"]) <= set(real.JOBS) < set(plan.JOBS)
    got = {"commit": "abc", "date": "today", "length": "quick", "seconds": 5, "seed": 1,
           "machine": {"cpu": "a CPU", "cpus": 8, "emulated": False, "load_before": "0.5",
                       "real": {"ssd": "Fast 1T", "hdd": "Slow 8T"}},
           "plan": wanted, "results": results(True),
           "boots": [{"kernel": "6.1", "name": "this machine", "versions": {}, "guest": {},
                      "verdict": "passed", "reason": ""}]}
    text = pathlib.Path(report.write(got, tmp_path)).read_text(encoding="utf-8")
    assert "SSD: Fast 1T. HDD: Slow 8T." in text and "QEMU" not in text


LOCK_STAT = """lock_stat version 0.4
-------------------------------------------------------------------------------------------
      class name    con-bounces    contentions   waittime-min
-------------------------------------------------------------------------------------------

             &lane->lock:            10             12           0.31           1.00
             -----------
             &lane->lock              7          [<00000000f1>] lc_lane_seal+0x2f/0x90 [dm_lc]
             &lane->lock              5          [<00000000f2>] lane_advance+0x1b/0x40 [dm_lc]
             -----------
             &lane->lock             12          [<00000000f3>] other+0x2f/0x90 [dm_cache]

...........................................................................................

            &pool->lock/1:             1              3           0.31           1.00
            -------------
            &pool->lock/1             3          [<00000000f4>] __queue_work+0x2f/0x90
            -------------
            &pool->lock/1             3          [<00000000f5>] lc_pool_get+0x2f/0x90 [dm_lc]

            quiet_lock-W:             0              0           0.00           0.00
"""


def test_contended_locks():
    """A class is a module's if its code waited, not if it was waited for."""
    found = locks.parse(LOCK_STAT)
    assert found == {"&lane->lock": (12, {"dm_lc"}), "&pool->lock/1": (3, set())}
    assert locks.per_write(found, "dm-lc", 100) == {"own": 0.12, "all": 0.15}
    assert locks.per_write(found, "dm-cache", 100) == {"own": 0, "all": 0.15}


def test_counts_per_write():
    """Flushes are commands."""
    seen = {"ssd": {"reads": 0, "read_sectors": 0, "writes": 10, "write_sectors": 160,
                    "flushes": 10}}
    assert load.per_write(seen, 10) == {"ssd": {"commands": 2, "flushes": 1, "kib": 8}}
