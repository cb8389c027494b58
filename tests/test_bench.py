# SPDX-License-Identifier: GPL-2.0-only
"""The benchmark's judge and report, on made-up figures: nothing is measured here."""

import argparse
import contextlib
import lzma
import os
import pathlib
import sys

import pytest

from disks.drive import DriveModel
from disks.models import SsdModel
from lib import host

sys.path[:0] = [str(host.TESTS / "bench"), str(host.TESTS / "bench/guest")]

import charts  # noqa: E402
import plan  # noqa: E402
import real  # noqa: E402
import report  # noqa: E402
import traces  # noqa: E402
from lcbench import beside, common, fio, instructions, jobs, load, locks, replay, service, systems  # noqa: E402
from rows import MISSED, REACHED, ROWS, UNKNOWN, Figures  # noqa: E402

import bench  # noqa: E402

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
    if job.startswith("trace_"):
        return {"hit": 50, "simulated": {"hit": 49 if good else 53},
                "read": {"mean": cost, "p990": cost}, "hdd": {"commands": cost},
                "ssd": {"kib": cost}}
    return {
        "format_and_start": {"small": {"ssd_kib": 8},
                             "large": {"ssd_kib": 8 if good else 32}},
        "ssd_bound": {"bytes_s": rate},
        "sequential": {"write": rate, "read_ssd": rate, "read_hdd": rate, "write_hdd": rate,
                       "around_ssd_kib": 16 if good else 1024},
        "sequential_array": {"read_hdd": rate, "write_hdd": rate,
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
        "memory": {"per_block": dict.fromkeys(
            ("live", "reload", "suspended", "read_cache"), 12 if good else 40)},
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
        "beside_misses": {kind: {"off": {"iops": 10}, "on": {"iops": rate}}
                          for kind in ("synced_writes", "random_writes", "full_log")},
        "power_cut": {"before": 100, "after": 10 * rate},
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
    """None is forgotten: 1 to 25."""
    have = {row.number.rstrip("abcd") for row in ROWS}
    assert have == {str(number) for number in range(1, 26)}


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
    def nothing(*_, **__):
        pass
    def fields(_):
        return {"buffers": 64, "segment_bytes": plan.MIB, "buffers_used": 64,
                "cache_mode": "writethrough", "promoted": 0, "warm_left": 0,
                "warmed": 1}
    verbs = dict.fromkeys(("wipe", "start", "stop", "restart", "drain", "warm", "lose_power",
                           "keep_reads"), nothing)
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


class FakeMisses(FakeDurable):
    """Reads that nobody waits for."""

    count = 7


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
    monkeypatch.setattr(beside, "Misses", FakeMisses)
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
    monkeypatch.setattr(service, "AGED", 0)
    monkeypatch.setattr(instructions, "PAUSE", 0)
    monkeypatch.setattr(fio, "mixed", lambda *_: {"write_iops": 1.0})
    monkeypatch.setattr(jobs.null_blk, "disk",
                        lambda _: contextlib.nullcontext(str(tmp_path / "ssd")))
    # A drain that does nothing has ended before: see below.
    monkeypatch.setattr(jobs, "few_reads", lambda *_: {
        "few": dict.fromkeys(("drained_kib_s", "reads_s", "max"), 1.0)})
    monkeypatch.setattr(jobs, "scheduled", lambda *_: contextlib.nullcontext())
    for name in ("STAT", "SWITCH"):
        monkeypatch.setattr(locks, name, tmp_path / name)
    monkeypatch.setattr(fio, "replay", lambda *_: {
        "seconds": 1.0, "read": {"requests": 8, "mean": 2.0, "p990": 3.0},
        "write": {"requests": 4, "mean": 1.0}})
    knobs = stand_in_beside(monkeypatch, tmp_path)
    monkeypatch.setattr(service, "TRACING", fake_tracing(tmp_path / "tracing"))
    traced = {"segments": 16, "read_kib": 8, "requests": 12}
    wanted = {**plan.SMOKE, "traces": dict.fromkeys(traces.TRACES, traced),
              "trace_models": traces.models(plan.SMOKE)}
    bench = common.Bench(str(tmp_path / "ssd"), str(tmp_path / "hdd"), wanted, 1, FakeDisks())
    made = [{"job": name, "system": system, "error": "", "repetition": 0,
             "figures": job.function(bench, system)}
            for name, job in jobs.JOBS.items() for system in job.systems]
    traces.add_simulated(made, {name: dict.fromkeys(systems.BY_NAME, {"hit": 1.0})
                                for name in traces.TRACES})
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
           "plan": {**plan.QUICK, "hdd_model": {}, "traces": {"cp": {
               "requests": 2000, "read_kib": 8000, "written_kib": 40, "blocks": 1500,
               "segments": 16, "share": 0.2}}}, "results": made,
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
    assert ("Trace cp: its first 2,000 requests, 2,000 blocks read and 10 written, 1,500 distinct "
            "ones; caches of 16 MiB of data (2.731 of these blocks)") in text
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


def test_real_disks_are_measured_by_the_host():
    """Not by the file of the same name that is for the guest."""
    script = "import runpy; print(runpy.run_path('real.py')['bench'].Notes.__module__)"
    assert host.run(sys.executable, "-c", script, cwd=host.TESTS / "bench") == "bench\n"


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


def test_traces_are_cut(tmp_path):
    """The first requests, in whole blocks; fio and the simulator get the same ones."""
    # The second request begins where the first one ends, and each has a block at least.
    lines = ["7 16 0 0", "23 8 0 1", "0 0 0 2", "4096 64 0 3", "7 1 0 4", "4 2 0 5"]
    requests = list(traces.read_lis("\n".join(lines).encode()))
    assert requests == [(False, 0, 2), (False, 2, 1), (False, 512, 8), (False, 0, 1), (False, 0, 1)]
    data = b"".join(traces.RECORD.pack(n, length, 1, command, 1, sector, 0)
                    for n, (length, command, sector) in enumerate((
                        (8192, 0x28, 7), (512, 0x2a, 8), (4096, 0x00, 0), (8192, 0x8a, 80),
                        (0, 0x28, 0))))
    requests = list(traces.read_vscsi(data + b"half of a record"))
    assert requests == [(False, 0, 2), (True, 1, 1), (True, 10, 2)]
    assert traces.footprint(requests) == 4
    traces.save_iolog(tmp_path / "log", requests)
    assert (tmp_path / "log").read_text(encoding="ascii").splitlines()[2:] == [
        "volume open", "volume read 0 8192", "volume write 4096 4096", "volume write 40960 8192",
        "volume close"]
    traces.save_vscsi(tmp_path / "cut.vscsi", requests)
    assert list(traces.read_vscsi((tmp_path / "cut.vscsi").read_bytes())) == requests


def test_traces_are_prepared(tmp_path, monkeypatch):
    """Of packed files; the cache is a share of what is replayed, and the simulator has it, too."""
    lis = "".join(f"{n % 7000 * 64} 64 0 {n}\n" for n in range(7010))
    vscsi = b"".join(traces.RECORD.pack(n, 16384, 1, 0x2a if n % 2 else 0x28, 1, n * 32, 0)
                     for n in range(9000))
    (tmp_path / "made").write_text(lis, encoding="ascii")
    host.run("zstd", "-q", tmp_path / "made", "-o", tmp_path / traces.TRACES["P6"].file)
    (tmp_path / traces.TRACES["cp"].file).write_bytes(lzma.compress(vscsi))
    asked = []
    monkeypatch.setattr(traces, "simulate", lambda path, *words: asked.append((path.stem, *words)))
    wanted = {"trace_requests": 7010, "jobs": ["drain", "trace_cp", "trace_P6"]}
    about, files, _ = traces.prepare(tmp_path, tmp_path, wanted)
    assert about["P6"] == {"requests": 7010, "blocks": 56000, "segments": 22, "share": 0.1,
                           "read_kib": 7010 * 32, "written_kib": 0}
    assert about["cp"] == {"requests": 7010, "blocks": 28040, "segments": 22, "share": 0.2,
                           "read_kib": 7010 * 8, "written_kib": 7010 * 8}
    assert asked == [("cp", 28040, 22 * 256), ("P6", 56000, 22 * 256)]
    assert [len(path.read_text(encoding="ascii").splitlines()) for path in files] == [7014, 7014]
    assert traces.segments(1000, 0.1) == 16
    (tmp_path / traces.TRACES["P6"].file).unlink()
    assert list(traces.prepare(tmp_path, tmp_path, {**wanted, "jobs": ["trace_cp"]})[0]) == ["cp"]
    with pytest.raises(SystemExit, match="no arc-P6.lis.zst in"):
        traces.prepare(tmp_path, tmp_path, wanted)


def test_traces_are_left_out_where_there_are_none(monkeypatch, tmp_path):
    """Unless they are asked for by name; with a folder they are prepared."""
    args = argparse.Namespace(length="quick", jobs=None, systems=None, repetitions=None,
                              profile=False, traces=None)
    wanted, files, simulated = bench.planned(args)
    assert wanted["jobs"] == [job for job in plan.QUICK["jobs"] if not job.startswith("trace_")]
    assert not files and not simulated and "traces" not in wanted
    args.jobs = ["drain", "trace_P6"]
    with pytest.raises(SystemExit, match="trace_P6 needs --traces"):
        bench.planned(args)
    args.traces = tmp_path
    monkeypatch.setattr(traces, "prepare", lambda *_: ({"P6": 1}, ["a file"], {"P6": 2}))
    wanted, files, simulated = bench.planned(args)
    assert wanted["jobs"] == args.jobs and wanted["trace_models"]["hdd"]["rpm"] > 7200
    assert (wanted["traces"], files, simulated) == ({"P6": 1}, ["a file"], {"P6": 2})


def test_traces_are_simulated(tmp_path):
    """Each system has the figures of its own model: of one that writes little, little."""
    requests = [(False, n, 1) for _ in range(3) for n in range(0, 40000, 10)]
    traces.save_vscsi(tmp_path / "made.vscsi", requests)
    found = traces.simulate(tmp_path / "made.vscsi", 4000, 16 * 256)
    assert set(found) == set(traces.MODELS)
    # Two of three reads are hits if all is cached at once, and then each block is written once.
    assert found["bcache"] == {"hit": 66.7, "written": 0.33}
    assert found["dm-lc"]["hit"] < found["bcache"]["hit"]
    less = traces.simulate(tmp_path / "made.vscsi", 4000, 4 * 256)
    assert less["bcache"]["hit"] < found["bcache"]["hit"]


def test_models_run_faster():
    """Twice as fast: half of each time, twice each rate, and what is no time stays."""
    assert traces.faster({"rpm": 7200, "seek_ms": 8.0, "depth": 32, "rate": 10}, 2) == {
        "rpm": 14400, "seek_ms": 4.0, "depth": 32, "rate": 20}
    made = traces.models({**plan.LONG, "trace_speed": 2})
    assert made["hdd"]["rpm"] == 14400 and made["ssd"]["flush_us"] == 50
    for disk, model in (("hdd", DriveModel), ("ssd", SsdModel)):
        unchanged = {name for name, value in made[disk].items() if value == model.params[name]}
        assert unchanged <= {"depth", "cache", "segments", "ahead"}


def test_replays_are_counted():
    """From the disks' counters: hits of what is read, and what is drained counts."""
    count = {"reads": 2, "read_sectors": 16, "writes": 3, "write_sectors": 24, "flushes": 1,
             "trims": 0}
    first = replay.told({"hdd": count})
    assert first == {"hdd": {"reads": 2, "writes": 3, "commands": 5, "flushes": 1, "read_kib": 8,
                             "kib": 12}}
    assert replay.added(first, first)["hdd"]["commands"] == 10
    assert replay.hit_ratio(8, 32) == 75 and replay.hit_ratio(64, 32) == -100
    replay.check({"read": {"requests": 8}, "write": {"requests": 4}}, {"requests": 12})
    with pytest.raises(load.LoadError, match="11 of 12"):
        replay.check({"read": {"requests": 8}, "write": {"requests": 3}}, {"requests": 12})


@pytest.mark.parametrize("mib", (16, 29, 127, 210))
def test_ssds_have_room_for_what_systems_keep_besides(mib):
    """So many MiB of data fit, whatever else a system has on its SSD; but not much more."""
    size = mib * plan.MIB
    for name in traces.MODELS:
        assert size < systems.BY_NAME[name].room(size) <= size * 1.07 + 3 * plan.MIB, name
    cache = systems.BY_NAME["dm-cache"]
    assert cache.room(size) - cache.metadata(cache.room(size) // 512) * 512 >= size
    assert systems.BY_NAME["bcache"].bucket(128 * plan.MIB) == 128 * 1024


FIO_SAYS = """fio: a warning
{"jobs": [{"error": %d, "job_runtime": 1500,
 "read": {"total_ios": 2, "lat_ns":
          {"N": 2, "mean": 2000, "max": 3000,
           "percentile": {"50.000000": 1000, "99.900000": 3000}}},
 "write": {"total_ios": 0, "lat_ns": {"N": 0}}}]}"""


def test_fio_tells_of_a_replay(monkeypatch):
    """In microseconds; of writes that were none there are no latencies."""
    monkeypatch.setattr(fio.sh, "run", lambda *_: FIO_SAYS % 0)
    assert fio.replay("/dev/x", "log", 4) == {
        "seconds": 1.5, "read": {"requests": 2, "mean": 2, "max": 3, "p500": 1,
                                 "p999": 3},
        "write": {"requests": 0}}
    monkeypatch.setattr(fio.sh, "run", lambda *_: FIO_SAYS % 5)
    with pytest.raises(AssertionError, match="error 5"):
        fio.replay("/dev/x", "log", 4)
