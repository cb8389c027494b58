# SPDX-License-Identifier: GPL-2.0-only
"""The parts of the harness that need no guest: log scanner, parsers, checks.

meta/ proves the whole, with guests; this proves the pieces, in a second.
"""

import dataclasses
import os
import re
import runpy
import socket
import subprocess
import sys
import threading
import time
import types
import typing

import pytest

from cases import kunit as suites
from checks import test_check
from lclib import dm, kmsg, pattern, registry, states, status, wait
from lib import apt, frozen, guests, host, kernels, payload, series, server, serverroot, times, vm

FAULTS = (
    "WARNING: CPU: 1 PID: 77 at drivers/md/dm.c:100 dm_x+0x1/0x2 [dm_mod]",
    "WARNING: possible circular locking dependency detected",
    "WARNING: possible recursive locking detected",
    "WARNING: suspicious RCU usage",
    "BUG: KASAN: slab-use-after-free in lc_map+0x10/0x20 [dm_lc]",
    "BUG: sleeping function called from invalid context at mm/page_alloc.c:1",
    "BUG: unable to handle page fault for address: ffff",
    "UBSAN: shift-out-of-bounds in dm-lc/store/index.c:3:4",
    "INFO: task dmsetup:123 blocked for more than 120 seconds.",
    "watchdog: BUG: soft lockup - CPU#0 stuck for 22s!",
    "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "refcount_t: underflow; use-after-free.",
    "list_del corruption. prev->next should be x, but was y",
    "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "ODEBUG: free active (active state 0) object: x object type: work_struct",
    "general protection fault, probably for non-canonical address",
)
HARMLESS = (
    "device-mapper: ioctl: 4.47.0-ioctl (2022-07-28) initialised: dm-devel@redhat.com",
    "dm_lc: loading out-of-tree module taints kernel.",
    "kmemleak: Kernel memory leak detector initialized (mem pool available: 35328)",
    "XFS (dm-0): Mounting V5 Filesystem",
    "clocksource: Watchdog remote CPU 1 read timed out",
    "dmlc-harness: case warns.BUG: starts",
)
CASE_PARTS = [part.name for part in dataclasses.fields(registry.Case)]


@pytest.mark.parametrize("line", FAULTS)
def test_fault_is_seen(line):
    """Each kind of report that the kernel can make."""
    assert kmsg.faults(["before", line, "after"])[0] == line


@pytest.mark.parametrize("line", HARMLESS)
def test_harmless_line_is_no_fault(line):
    """What a healthy guest says."""
    assert kmsg.faults([line]) == []


def race(where):
    """A report of the race detector."""
    return ["=" * 66, f"BUG: KCSAN: data-race in {where}", "",
            "write to 0xffff888004a2 of 8 bytes by task 1 on cpu 0:", " lc_a+0x1/0x2 [dm_lc]",
            "CPU: 0 UID: 0 PID: 1 Comm: x", "=" * 66]


def test_only_our_races_are_faults():
    """A race between others is none of ours, and hides nothing."""
    ours = race("lc_a [dm_lc] / vring_interrupt")
    alien = race("pick_next_task / vring_interrupt")
    assert kmsg.faults(alien) == []
    assert kmsg.faults([*alien, *ours])[0] == ours[1]
    assert kmsg.faults([*alien, FAULTS[0]])[0] == FAULTS[0]
    assert kmsg.faults([alien[0], alien[1], alien[0], FAULTS[0]])[0] == FAULTS[0]


NO_MEMORY = ["python3: vmalloc error: size 4096, page order 0, failed to allocate pages",
             "Call Trace:", " <TASK>", "percpu: allocation failed, size=8 align=8 atomic=0, empty",
             "Call Trace:"]


def test_failed_allocation_is_forgiven_on_request():
    """Its own trace, if the case says that memory may run out, and nothing else."""
    assert kmsg.faults(NO_MEMORY)
    assert kmsg.faults(NO_MEMORY, no_memory=True) == []
    for head in ("__kmem_cache_create_args(bio-432) failed with error -22",
                 "kmem_cache_create(bio-432) failed with error -12"):
        assert kmsg.faults([head, "Call Trace:"], no_memory=True) == []
    for more in ("Call Trace:", FAULTS[0]):
        assert kmsg.faults([*NO_MEMORY, more], no_memory=True)
        assert kmsg.faults([FAULTS[0], *NO_MEMORY], no_memory=True)


def test_status_parser():
    """Pairs, and what is not pairs."""
    assert status.parse("0 8 lc mode rw dirty 5") == {"mode": "rw", "dirty": 5}
    for bad in ("0 8 linear", "0 8 lc mode", "0 8 lc dirty 1 dirty 2"):
        with pytest.raises(ValueError):
            status.parse(bad)


def test_pattern_names_what_it_finds():
    """Version, foreign bytes, zeroes, and a sector torn inside."""
    good = pattern.sector(7, 9, 3)
    assert len(good) == 512 and pattern.describe(good) == "seed 7 sector 9 version 3"
    assert pattern.describe(bytes(512)) == "zeroes"
    assert "foreign" in pattern.describe(b"x" * 512)
    assert "torn" in pattern.describe(good[:256] + pattern.sector(7, 9, 4)[256:])


def test_limits_are_stretched(monkeypatch):
    """Where the guest is known to be slow, a condition has longer to come true."""
    monkeypatch.setattr(wait, "scale", 3)
    with pytest.raises(AssertionError, match="not within 0.03 s: nothing"):
        wait.until(lambda: False, 0.01, "nothing")


def test_systemd_waits_as_long(monkeypatch):
    """LC_TIMEOUT_SCALE stretches its limits, too; without it they are its own."""
    for scale, words in (("1", []), ("3", ["systemd.default_timeout_start_sec=270",
                                           "systemd.default_device_timeout_sec=270"])):
        monkeypatch.setenv("LC_TIMEOUT_SCALE", scale)
        assert server.systemd_limits().split() == words


def test_device_in_use_is_waited_for(monkeypatch):
    """A mapped device is removed when the last file on it has gone."""
    opened = iter(("1\n", "0\n"))
    called = []

    def run(*argv):
        called.append(argv[1])
        return next(opened) if argv[1] == "info" else ""

    monkeypatch.setattr(dm.sh, "run", run)
    dm.Device("used").remove()
    assert called == ["info", "info", "remove"]


@pytest.fixture(name="boot")
def fixture_boot(tmp_path):
    """A boot of the debug kernel in which one case had its verdict; without a guest."""
    kernel = kernels.Kernel("debug", "0", *[tmp_path] * 4)
    case = registry.Case(**dict.fromkeys(CASE_PARTS) | {"name": "a.case", "timeout": 1})
    boot = vm.Boot(kernel, None, [case], tmp_path, 1)
    boot.take({"boot": True, "faults": [], "unfit": ""}, 0)
    boot.take({"start": "a.case"}, 0)
    boot.take({"case": "a.case", "verdict": "passed", "reason": "", "seconds": 1,
               "figures": {}}, 0)
    return boot


@pytest.fixture(name="gone")
def fixture_gone():
    """A process that ended."""
    with subprocess.Popen(["true"]) as process:
        yield process


def test_boot_that_ends_is_no_failure(boot, gone):
    """The control of the next two."""
    boot.take({"end": True, "spoilt": ""}, 0)
    boot.finish(gone)
    assert boot.outcomes["a.case"].verdict == "passed"


def test_guest_lost_after_the_last_verdict(boot, gone):
    """It had not said yet whether memory leaked: no case of it may pass as if it had."""
    (boot.folder / "console").write_text("Kernel panic - not syncing: late\n", encoding="ascii")
    boot.finish(gone)
    got = boot.outcomes["a.case"]
    assert got.verdict == "failed"
    assert "after the verdict of a.case: panic: Kernel panic - not syncing: late" in got.reason


def test_runner_broken_after_the_last_verdict(boot, gone):
    """The same, told by the guest itself."""
    boot.take({"broken": "OSError: no scan"}, 0)
    boot.finish(gone)
    got = boot.outcomes["a.case"]
    assert got.verdict == "failed" and "OSError: no scan" in got.reason


SUSPECT = """ lock-classes:                         1843 [max: 8192]
 debug_locks:                             {}

 zapped classes:                          0
"""


@pytest.mark.parametrize(("kernel", "stats", "reason"), [
    ("debug", SUSPECT.format(1), ""), ("kcsan", SUSPECT.format(1), ""), ("stock", None, ""),
    ("debug", SUSPECT.format(0), "lock debugging is off"),
    ("debug", None, "no /proc/lockdep_stats"),
    ("debug", "lock-classes: 3\n", "does not tell")])
def test_guest_without_lock_debugging_is_unfit(kernel, stats, reason):
    """No case may pass on a kernel that disabled its checks of locks while it booted."""
    assert reason in kmsg.unfit(kernel, stats) if reason else kmsg.unfit(kernel, stats) == ""


def test_unfit_guest_runs_no_case(tmp_path):
    """All its cases fail, with the reason."""
    class Words(vm.Boot):
        """A boot with these messages."""

        @staticmethod
        def accept(listener, process):
            """The guest's end has said all it will."""
            host_end, guest_end = socket.socketpair()
            guest_end.sendall(b'{"boot": true, "faults": [], "unfit": "lock debugging is off"}\n'
                              b'{"start": "a.case"}\n')
            guest_end.shutdown(socket.SHUT_WR)
            ends.append(guest_end)
            return host_end

    ends = []
    kernel = kernels.Kernel("debug", "0", *[tmp_path] * 4)
    cases = [registry.Case(**dict.fromkeys(CASE_PARTS) | {"name": name, "smp": 1, "timeout": 1})
             for name in ("a.case", "b.case")]
    boot = Words(kernel, None, cases, tmp_path, 1)
    boot.talk(None, types.SimpleNamespace(pid=os.getpid()), None)
    ends[0].close()
    assert [got.verdict for got in boot.outcomes.values()] == ["failed"] * 2
    assert "no case was run: lock debugging is off" in boot.outcomes["b.case"].reason


def test_console_of_a_server():
    """Only the kernel's own lines of a console count, wherever on a line they begin."""
    harmless = "".join(f"[   12.345678] {line}\n" for line in HARMLESS)
    others = "[  OK  ] Started WARNING: BUG: of somebody\r\nsystemd[1]: Oops WARNING: x\n"
    assert not server.console_faults(harmless + others)
    for line in FAULTS:
        for before in ("", "         Starting something"):
            text = f"{harmless}{before}[  123.456789] {line}\r\n{others}"
            assert server.console_faults(text)[0].startswith(line), line


# QEMU and the agent in one: runs the scripts here, ends at "systemctl".
MACHINE = """
import json, socket, subprocess, sys
path, console = sys.argv[1:]
channel = socket.socket(socket.AF_UNIX)
channel.connect(path)
with open(console, "w") as log:
    print("systemd[1]: here", file=log, flush=True)
    channel.sendall(b'{"boot": true}\\n')
    for line in channel.makefile("rb"):
        script = json.loads(line)["run"]
        if script.startswith("systemctl"):
            break
        if script == "oops":
            print("[    1.000000] WARNING: CPU: 0 PID: 1 at x", file=log, flush=True)
        if script == "die":
            sys.exit()
        done = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
        answer = {"code": done.returncode, "output": done.stdout}
        channel.sendall(json.dumps(answer).encode() + b"\\n")
"""


def restarts(ctx):
    """The content of a disk is there after a restart."""
    assert ctx.run("echo 5").strip() == "5" and ctx.result("exit 3") == (3, "")
    ctx.stop("reboot")
    before = ctx.digest("ssd")
    ctx.start()
    assert before == ctx.digest("ssd") and len(ctx.figures["boot_seconds"]) == 2


@pytest.mark.parametrize(("script", "reason"), [
    ("true", ""), ("false", "`false` ended with 1"),
    ("oops", "boot 2: WARNING: CPU: 0"), ("die", "gave no answer")])
def test_server_case(monkeypatch, tmp_path, script, reason):
    """A failed command, a warning of the kernel and a guest that ends fail a server case."""
    def case(ctx):
        restarts(ctx)
        ctx.result("oops") if script == "oops" else ctx.run(script)

    def command(machine, path, console):
        (machine.folder / f"{machine.disk('ssd').serial}.img").touch()
        return [sys.executable, "-c", MACHINE, str(path), str(console)]

    monkeypatch.setattr(server.Server, "command", command)
    # Not host.run(): guests may be built meanwhile, by threads of this process.
    monkeypatch.setattr(server.Server, "prepare", lambda machine: machine.folder.mkdir())
    kernel = kernels.Kernel("server", "0", *[tmp_path] * 4)
    files = server.Payload(tmp_path, tmp_path, tmp_path)
    made = registry.Case(**dict.fromkeys(CASE_PARTS)
                         | {"name": "a.case", "function": case, "timeout": 60,
                            "disks": (registry.Disk("ssd", "16M"),)})
    got = server.one(kernel, files, made, tmp_path / "case", 1)
    assert got.verdict == ("failed" if reason else "passed"), got.reason
    assert reason in got.reason, got.reason


class Attempts(server.Server):
    """Servers that do nothing, or log a fault in their first run."""

    fault = ""
    made: typing.ClassVar = []

    def prepare(self):
        """Only the folder."""
        self.folder.mkdir()
        self.made.append(self)

    def start(self, meanwhile=None):
        """The fault, unless processors run in turn."""
        if not self.in_turn:
            self.faults = [f"boot 1: {line}" for line in self.fault.splitlines()]

    def stop(self, how=""):
        """No machine runs."""


INT3 = "Oops: int3: 0000 [#1] SMP"


@pytest.mark.parametrize(("fault", "emulated", "icount", "over", "runs", "verdict"), [
    ("", True, False, False, 1, "passed"),
    (INT3, True, False, False, 2, "passed"),
    (INT3 + "\nCall Trace:", True, False, False, 2, "passed"),
    ("WARNING: CPU: 0 PID: 1 at x\n" + INT3, True, False, False, 1, "failed"),
    (INT3, True, False, True, 1, "failed"),
    (INT3, False, False, False, 1, "failed"),
    (INT3, True, True, False, 1, "failed"),
    ("Oops: general protection fault", True, False, False, 1, "failed")])
def test_emulator_runs_what_is_gone(  # pylint: disable=too-many-arguments
        monkeypatch, tmp_path, fault, emulated, icount, over, runs, verdict):
    """Only a breakpoint that was left over, as the first fault, has a case run once more; and only
    if the kernel was emulated and there is time.
    """
    monkeypatch.setattr(server, "Server", Attempts)
    monkeypatch.setattr(Attempts, "fault", fault)
    monkeypatch.setattr(Attempts, "made", [])
    monkeypatch.setattr(vm, "kvm_works", lambda kernel: not emulated)
    monkeypatch.delenv("LC_ACCEL", raising=False)
    kernel = kernels.Kernel("server", "0", *[tmp_path] * 4)
    made = registry.Case(**dict.fromkeys(CASE_PARTS)
                         | {"name": "a.case", "function": lambda ctx: None, "timeout": 60,
                            "disks": (), "smp": 2, "icount": icount})
    budget = types.SimpleNamespace(is_over=lambda: over)
    got = server.one(kernel, server.Payload(*[tmp_path] * 3), made, tmp_path / "case", 1, budget)
    assert got.verdict == verdict, got.reason
    assert [machine.in_turn for machine in Attempts.made] == [False, True][:runs]
    assert len({machine.seed for machine in Attempts.made}) == 1
    if runs == 2:
        assert (tmp_path / "case-int3").exists()
        first, second = Attempts.made
        assert second.scale == 2 * first.scale
        assert "tcg,thread=single" in vm.accelerators(kernel, in_turn=True)[0]


def made_up(name, *disks, folder="cases", timeout=10, **words):
    """A registered case that is never run."""
    function = types.SimpleNamespace(__module__=f"{folder}.made", __doc__="None.")
    parts = {"name": name, "function": function, "kernels": ("stock",), "disks": disks,
             "timeout": timeout, "smp": words.get("smp", 2), "memory": "1G", "append": "",
             "sampled": words.get("sampled", 1)}
    return registry.Case(**dict.fromkeys(CASE_PARTS) | parts)


def test_cases_share_boots(monkeypatch):
    """Whatever disks they want, evenly; but not with recorded disks, nor with what fails."""
    monkeypatch.setattr(guests.host, "guests_at_once", lambda: 2)
    small, large = (registry.Disk("ssd", size) for size in ("16M", "64M"))
    recorded = registry.Disk("ssd", "16M", kind="recorded")
    assert len({small.serial, large.serial, recorded.serial}) == 3
    assert all(len(disk.serial) <= 20 for disk in (small, large))
    many = [made_up(f"a.{i}", small if i % 2 else large, timeout=10 * (1 + i % 5))
            for i in range(20)]
    apart = [made_up("b.recorded", recorded), made_up("b.meta", small, folder="meta"),
             made_up("b.smp", small, smp=4)]
    servers = [made_up(f"c.{i}", small, folder="server") for i in range(2)]
    selected = [("stock", case) for case in (*many, *apart)] + [("debug", many[0])]
    selected += [("server", case) for case in servers]
    apart += servers
    last = [made_up(f"d.{i}", small, sampled=3) for i in range(2)]
    selected += [("stock", case) for case in last]
    apart += last
    boots = guests.boots_of(selected)
    assert len(boots) == 10
    assert sorted((kernel, case.name) for kernel, cases in boots.values() for case in cases) == \
        sorted((kernel, case.name) for kernel, case in selected)
    for case in apart:
        assert [case] in [cases for _, cases in boots.values()], case.name
    shares = [cases for kernel, cases in boots.values() if len(cases) > 1]
    assert [sum(case.timeout for case in cases) for cases in shares] == [300, 300]
    assert all(cases == sorted(cases, key=many.index) for cases in shares)


def test_time_that_a_run_has(monkeypatch):
    """It counts from the start of the run, before anything was installed or built."""
    monkeypatch.setenv("LC_STARTED", str(time.time() - 50))
    assert 0 < times.Budget(3600).left() <= 3550 and not times.Budget(3600).is_over()
    assert times.Budget(40).is_over() and times.Budget(40).left() == 0
    assert times.Budget().left() is None and not times.Budget().is_over()


def test_nothing_is_booted_when_the_time_is_over(monkeypatch, tmp_path):
    """The cases are skipped, and say why."""
    monkeypatch.setattr(vm.Boot, "run", lambda boot: pytest.fail("a boot"))
    monkeypatch.setattr(server, "one", lambda *args: pytest.fail("a boot"))
    case = registry.Case(**dict.fromkeys(CASE_PARTS) | {"name": "a.case"})
    for run_all in (vm.run_all, server.run_all):
        outcomes, _ = run_all(None, None, [case], tmp_path, 1, times.Budget(0))
        assert outcomes["a.case"].verdict == "skipped"
        assert "the 0 minutes that the run has are over" in outcomes["a.case"].reason


@pytest.mark.parametrize(("left", "fails"), [(0, False), (2, False), (3, True)])
def test_run_that_leaves_too_much_fails(left, fails):
    """More than half of four cases; not for other reasons, and not without an end."""
    runs = guests.Runs.__new__(guests.Runs)
    runs.group_of = dict.fromkeys(range(4))
    for budget in (times.Budget(0), times.Budget()):
        runs.budget = budget
        late = vm.Outcome("skipped", times.Budget(0).reason())
        runs.outcomes = {"a": dict.fromkeys(range(left), late),
                         "b": dict.fromkeys(range(left, 4), vm.Outcome("skipped", "another"))}
        assert bool(runs.left_too_much()) == (fails and budget.end is not None)


def test_guests_whose_kernel_is_built_come_first():
    """In order; while none is built, the first one waits for its kernel."""
    runs = guests.Runs.__new__(guests.Runs)
    runs.adding = threading.Lock()
    runs.groups = {"a": ("debug", ()), "b": ("stock", ()), "c": ("debug", ()), "d": ("stock", ())}
    runs.waiting = list(runs.groups)
    runs.ready = {"stock": None}
    assert runs.take() == "b"
    runs.ready["debug"] = None
    assert [runs.take() for _ in range(2)] == ["a", "c"]
    runs.ready = {}
    assert runs.take() == "d" and not runs.waiting


def test_guest_starts_no_case_when_the_time_is_over(monkeypatch):
    """The one that runs then ends as ever; those after it are skipped."""
    sys.path.insert(0, str(host.TESTS / "guest"))
    import runner  # pylint: disable=import-outside-toplevel
    guest = runner.Runner()
    guest.job = {"cases": ["a.case", "b.case"], "over": "too late"}
    guest.end = time.monotonic() + 3600
    guest.log = types.SimpleNamespace(mark=lambda text: None)
    said = []

    def one(name):
        guest.end = time.monotonic()
        return "passed", "", {}

    monkeypatch.setattr(guest, "one", one)
    monkeypatch.setattr(guest, "send", said.append)
    monkeypatch.setattr(guest, "blame_leaks", lambda: None)
    guest.run()
    assert [(line["case"], line["verdict"], line["reason"]) for line in said if "case" in line] == [
        ("a.case", "passed", ""), ("b.case", "skipped", "too late")]


@pytest.mark.parametrize("unfit", ["", "lock debugging is off"])
@pytest.mark.parametrize(("deaf", "boots"), [(0, 1), (1, 2), (5, 2)])
def test_guest_that_did_not_boot_is_booted_again(monkeypatch, tmp_path, deaf, boots, unfit):
    """Once, and what the first one said is kept; two such boots are a failure."""
    made = []

    def run(boot):
        made.append(boot)
        boot.folder.mkdir()
        (boot.folder / "console").write_text("APIC timer disabled\n", encoding="ascii")
        if len(made) > deaf or unfit:
            boot.boot_seconds = 1
        if len(made) <= deaf:
            boot.unfit = unfit
            boot.blame("hang")

    monkeypatch.setattr(vm.Boot, "run", run)
    kernel = kernels.Kernel("stock", "0", *[tmp_path] * 4)
    case = registry.Case(**dict.fromkeys(CASE_PARTS) | {"name": "a.case"})
    boot = vm.booted(kernel, None, [case], tmp_path / "boot", 1)
    assert len(made) == boots and boot is made[-1]
    assert (tmp_path / "boot-unbooted/console").exists() == (boots == 2)
    assert ("a.case" in boot.outcomes) == (deaf >= boots)


@pytest.mark.parametrize(("times", "verdict"), [(0, "passed"), (1, "passed"), (2, "failed")])
def test_case_is_run_again_if_the_emulator_stood_still(monkeypatch, tmp_path, times, verdict):
    """Once; the cases before it keep their verdicts."""
    ran = []

    def run(boot):
        boot.folder.mkdir(parents=True)
        (boot.folder / "console").write_text("", encoding="ascii")
        boot.boot_seconds = 1
        for case in boot.cases:
            ran.append(case.name)
            boot.running = case.name
            if case.name == "b.case" and ran.count("b.case") <= times:
                boot.still = "in b.case"
                return
            boot.outcomes[case.name] = vm.Outcome("passed")
            boot.running = None

    monkeypatch.setattr(vm.Boot, "run", run)
    kernel = kernels.Kernel("stock", "0", *[tmp_path] * 4)
    cases = [registry.Case(**dict.fromkeys(CASE_PARTS) | {"name": f"{name}.case"})
             for name in "abc"]
    outcomes, _ = vm.run_all(kernel, None, cases, tmp_path / "boots", 1)
    assert {name: got.verdict for name, got in outcomes.items()} == {
        "a.case": "passed", "b.case": verdict, "c.case": "passed"}
    assert ran.count("a.case") == 1 and ran.count("b.case") == min(times + 1, 2)


def test_emulator_that_stands_still_is_known(tmp_path):
    """A machine that its monitor has stopped does; one whose firmware waits for a timer does not,
    and its registers are told."""
    path = tmp_path / "monitor"
    with subprocess.Popen(["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display",
                           "none", "-accel", "tcg,thread=multi", "-smp", "2", "-name",
                           "guest,debug-threads=on", "-qmp", f"unix:{path},server=on,wait=off"],
                          stdin=subprocess.DEVNULL) as machine:
        try:
            wait.until(path.exists, 60, "QEMU's monitor")
            begun = frozen.cpu_time(machine.pid)
            wait.until(lambda: frozen.cpu_time(machine.pid) > begun, 60, "the firmware")
            still, text = frozen.evidence(machine.pid, path, 5)
            assert not still and re.search(r"CPU 1: .*\n[RE]AX=", text), text
            with frozen.Monitor(path) as monitor:
                monitor.command("stop")
            still, text = frozen.evidence(machine.pid, path, 2)
            assert still, text
        finally:
            machine.kill()


def test_time_of_a_guest_is_counted_once():
    """By the thread that boots it, not by the items that wait for it."""
    reports = [types.SimpleNamespace(nodeid=name, duration=seconds) for name, seconds in
               (("a.py::b", 2), ("a.py::c", 3), ("test_guest.py::test_guest[debug-d]", 100))]
    assert times.by_part(reports, {"test_guest.py::test_guest[debug-d]"}, {"debug guests": 40}) \
        == [("debug guests", 40), ("a.py", 5)]


def test_names_are_ordered_as_versions():
    """7.10 is newer than 7.9."""
    names = ["linux-source-7.10", "linux-source-7.9", "linux-source-6.12"]
    assert sorted(names, key=apt.version_key) == [names[2], names[1], names[0]]


def test_modules_come_in_loading_order():
    """What a module needs stands before it, once."""
    table = {"a.ko": ["b.ko", "c.ko"], "b.ko": ["c.ko"], "c.ko": []}
    assert payload.with_needs(table, ["a.ko", "b.ko"]) == ["c.ko", "b.ko", "a.ko"]


def test_long_function_is_measured():
    """The length check counts the lines between the braces."""
    text = "int f(void)\n{\n" + "\tx();\n" * 101 + "}\n"
    assert list(test_check.functions(text)) == [(2, 101)]


def test_sparse_sees_a_wrong_endian(tmp_path):
    """The sparse that make check uses complains where it must."""
    source = tmp_path / "wrong.c"
    source.write_text("typedef unsigned int __attribute__((bitwise)) le;\n"
                      "int f(le x);\nint f(le x) { return x; }\n", encoding="ascii")
    done = subprocess.run([host.TESTS / "checks/sparse", "-D__CHECK_ENDIAN__", source], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert "incorrect type in return expression" in done.stdout


def test_crash_states_fall_on_each_area(tmp_path, monkeypatch):
    """What is written once in a life is not left to chance: one state of each area comes first."""
    monkeypatch.setattr(states, "FOLDER", tmp_path / "states")
    trace = states.Trace("life", None, None, None)
    trace.phases = [("load", 0, 1000), ("stop", 1001, 1010)]
    trace.events = {"load": {f"area {n}": [(n, n + 1)] * 50 for n in range(9)},
                    "stop": {"area 0": [(1001, 1002)], "once": [(1003, 1004)]}}
    explorer = states.Explorer(types.SimpleNamespace(seed=1), None)
    explorer.chain = lambda trace, place, rng, name: explorer.count(place, 0, False)
    explorer.explore(trace, 10)
    areas = {name: seen for name, seen in explorer.seen.items() if name.startswith("area ")}
    assert len(areas) == 10 and set(areas.values()) == {1}, areas
    explorer.explore(trace, 30)
    assert explorer.seen["states"] == 40 and explorer.seen["phase stop"] >= 10


def test_second_pattern_is_refused():
    """It would have taken the place of the first, whose tests nobody would have missed."""
    done = subprocess.run([host.TOP / "tests/run", "--no-setup", "--list", "power", "tools"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "'power' and 'tools'" in done.stderr, done


def test_one_kernel_leaves_other_guests_out():
    """A file of which no case is left has no item, neither one that is skipped."""
    done = subprocess.run([host.TOP / "tests/run", "--no-setup", "--list", "--kernel", "stock",
                           r"test_(guest|server)\.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    names = [line for line in done.stdout.splitlines() if "::" in line]
    assert names and all("[stock-" in name for name in names), names


def test_cache_keeps_what_is_used(tmp_path):
    """Another checkout's images stay for a week after their last use; others' files always."""
    old = time.time() - host.WEEK - 60
    for name in ("root-old.squashfs", "root-recent.squashfs", "root-used.squashfs", "other-old"):
        (tmp_path / name).touch()
    for name in ("root-folder.squashfs", "root-used-folder.squashfs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    for path in tmp_path.iterdir():
        if "recent" not in path.name:
            os.utime(path, (old, old))
    host.keep(tmp_path / "root-used-folder.squashfs", "nothing-*")
    host.keep(tmp_path / "root-used.squashfs", "root-*.squashfs")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "other-old", "root-recent.squashfs", "root-used-folder.squashfs", "root-used.squashfs"]


def test_disk_is_plugged_in_and_out(tmp_path):
    """As often as wanted, but not twice; what QEMU answers is a failure, unless it is expected."""
    made = registry.Case(**dict.fromkeys(CASE_PARTS)
                         | {"name": "a.case", "timeout": 60,
                            "disks": (registry.Disk("ssd", "16M", bus="scsi"),)})
    kernel = kernels.Kernel("server", "0", *[tmp_path] * 4)
    machine = server.Server(kernel, server.Payload(*[tmp_path] * 3), made, tmp_path, 1)
    path = machine.socket_path("monitor")
    # Not started: no guest is needed to see what it would see.
    with subprocess.Popen(["qemu-system-x86_64", "-S", "-nodefaults", "-display", "none",
                           "-device", "virtio-scsi-pci",
                           "-qmp", f"unix:{path},server=on,wait=off"]) as qemu:
        try:
            wait.until(lambda: os.path.exists(path), 60, "QEMU's monitor")
            for _ in range(2):
                machine.plug("ssd")
                with pytest.raises(AssertionError, match="Duplicate|exists"):
                    machine.plug("ssd")
                machine.unplug("ssd")
            with pytest.raises(AssertionError, match="not found"):
                machine.unplug("ssd")
        finally:
            qemu.kill()
            os.unlink(path)


def test_newest_kernel_of_each_series(monkeypatch):
    """Whichever suite has it; a suite without a kernel is left out."""
    found = {"bookworm": "6.1.0-9-amd64", "bookworm-backports": "6.12.9+deb12-amd64",
             "trixie": "6.12.10+deb13-amd64", "trixie-backports": None, "sid": "7.2.1+deb14-amd64"}
    monkeypatch.setattr(series, "offered", found.get)
    assert list(series.offers().items()) == [
        ("bookworm", "6.1.0-9-amd64"), ("trixie", "6.12.10+deb13-amd64"),
        ("sid", "7.2.1+deb14-amd64")]
    assert set(found) == set(series.SUITES)


def test_upgrade_of_a_kernel(monkeypatch):
    """The backports have it before the suite itself does; neither has it if it is not newer."""
    found = {"bookworm": "6.1.0-10-amd64", "bookworm-backports": "6.12.9+deb12-amd64",
             "trixie": "6.12.10+deb13-amd64", "trixie-backports": None, "sid": "7.2.1+deb14-amd64"}
    monkeypatch.setattr(series, "offered", found.get)
    assert series.newer("bookworm", "6.1.0-9-amd64") \
        == ("bookworm-backports", "6.12.9+deb12-amd64")
    assert series.newer("trixie", "6.12.9+deb13-amd64") == ("trixie", "6.12.10+deb13-amd64")
    for suite in ("trixie", "sid"):
        assert series.newer(suite, found[suite]) is None


def test_suite_of_the_server_guest(monkeypatch):
    """It is this machine's, or what LC_SUITE says; backports alone are none."""
    monkeypatch.delenv("LC_SUITE", raising=False)
    assert serverroot.guest_suite() == host.codename()
    for name in ("trixie-backports", "no-such"):
        monkeypatch.setenv("LC_SUITE", name)
        with pytest.raises(RuntimeError, match=f"LC_SUITE={name}: no suite"):
            serverroot.image()


@pytest.mark.parametrize("dash", ["", "- "], ids=["new", "6.1"])
def test_ktap_of_each_kernel(dash):
    """A suite that is not ok, or of which one test is not, or that ran none, fails."""
    ktap = f"    ok 1 {dash}one\n    ok 2 {dash}two # SKIP no disk\nok 1 {dash}dm_lc_x\n"
    ctx = types.SimpleNamespace(figures={})
    ctx.figure = ctx.figures.__setitem__
    suites.verdict(ctx, ktap, "dm_lc_x")
    assert ctx.figures == {"tests": 2, "not run": ["two: no disk"]}
    for old, new in (("    ok 1", "    not ok 1"), ("\nok 1", "\nnot ok 1"), ("    ", "  ")):
        with pytest.raises(AssertionError, match="dm_lc_x"):
            suites.verdict(ctx, ktap.replace(old, new), "dm_lc_x")


@pytest.mark.parametrize(("counts", "text"), [
    ({"passed": 3, "failed": 0, "skipped": 1}, "3 passed, 1 skipped"),
    ({"passed": 3, "failed": 1, "skipped": 0}, "FAILED: 3 passed, 1 failed"),
    ({"passed": 0, "failed": 0, "skipped": 2}, "FAILED: 2 skipped"),
    ({"passed": 0, "failed": 0, "skipped": 0}, "FAILED: nothing ran")])
def test_words_of_the_matrix(counts, text):
    """What did not pass is a failure."""
    assert runpy.run_path(str(host.TESTS / "matrix"))["words"](counts) == text
