# SPDX-License-Identifier: GPL-2.0-only
"""pytest's side of the harness: options, guest cases as items, the last line."""

import json
import os
import pathlib
import random
import re
import sys
import zlib

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lib import guests, host, times  # noqa: E402

# The debug kernel takes five times as long.
EITHER = ("debug", *["stock"] * 7)
# The longest cases first.  If the time of the run is over, those on stock are left.
KERNELS = ("server", "debug", "stock", "kcsan")


def pytest_addoption(parser):
    """What tests/run hands through."""
    group = parser.getgroup("dm-lc")
    group.addoption("--seed", type=int, help="seed of all random choices (also LC_SEED)")
    group.addoption("--long", action="store_true", help="also the cases that take long")
    group.addoption("--match", metavar="REGEX", help="only the tests whose name matches")
    group.addoption("--in-time", action="store_true",
                    help="start no guest case when the time that a run may take is over")
    group.addoption("--kernel", choices=KERNELS, help="only guests with this kernel")


def pytest_configure(config):
    """One seed for everything that runs, host tests included."""
    seed = config.getoption("--seed")
    if seed is None:
        seed = int(os.environ.get("LC_SEED") or random.SystemRandom().randrange(1, 1 << 31))
    os.environ["LC_SEED"] = os.environ["DM_LC_SEED"] = str(seed)
    config.seed = seed
    config.addinivalue_line("markers", "long: only with --long")
    config.addinivalue_line("markers", "sampled(n): one of n, drawn by the seed; all of them with "
                                       "--long or --match")


def pytest_report_header(config):
    """Into the head of the report."""
    return f"dm-lc: seed {config.seed} (repeat with --seed {config.seed})"


def pytest_generate_tests(metafunc):
    """Every guest case x kernel is an item of its own."""
    if "guest_case" not in metafunc.fixturenames:
        return
    wanted = metafunc.config.getoption("--kernel")
    long = metafunc.config.getoption("--long")
    items = [(kernel, case) for case in guests.cases(metafunc.module.CASE_FOLDER)
             for kernel in guests.kernels_of(case, wanted, long)]
    names = [f"{kernel}-{case.name}" for kernel, case in items]
    metafunc.parametrize("guest_case", items, ids=names)


def case_of(item):
    """(kernel, case) of a guest's item; () if no case was left for it; None of a host test."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    if "guest_case" not in params:
        return None
    return params["guest_case"] if isinstance(params["guest_case"], tuple) else ()


def draw(config, name, count):
    """A number below `count`, by the seed."""
    return zlib.crc32(f"{config.seed}/{name}".encode()) % count


def left_out(item, config):
    """Is an item left to other seeds, because nothing asks for it or for all?

    A sampled test or case, or a case that runs on both kernels on one of them.
    """
    if any(config.getoption(name) for name in ("--long", "--match", "--kernel")):
        return False
    if case_of(item):
        kernel, case = case_of(item)
        if draw(config, f"sampled {case.name}", case.sampled):
            return True
        return (kernel in EITHER and set(EITHER) <= set(guests.kernels_of(case, None, False))
                and kernel != EITHER[draw(config, case.name, len(EITHER))])
    mark = item.get_closest_marker("sampled")
    return bool(mark) and draw(config, item.nodeid, mark.args[0]) != 0


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Those that match; guests of one kind behind each other, host tests before them.

    Sampled cases come last: they are what is skipped if the time of the run is over.
    """
    match = config.getoption("--match") or ""
    long = config.getoption("--long")
    dropped = [item for item in items if not re.search(match, item.nodeid)
               or (item.get_closest_marker("long") and not long) or case_of(item) == ()
               or left_out(item, config)]
    if dropped:
        items[:] = [item for item in items if item not in dropped]
        config.hook.pytest_deselected(items=dropped)

    def order(item):
        if case_of(item) is None:
            return (0,)
        kernel, case = case_of(item)
        return (1, guests.comes_last(case), KERNELS.index(kernel),
                guests.group_name(kernel, case))
    items.sort(key=order)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    """The guests start at once: they run beside the host tests."""
    selected = [case_of(item) for item in session.items if case_of(item)]
    session.config.guest_items = {item.nodeid for item in session.items if case_of(item)}
    if selected and not session.config.option.collectonly:
        seconds = times.RUN_SECONDS if session.config.getoption("--in-time") else None
        session.config.runs = guests.Runs(selected, session.config.seed, times.Budget(seconds))


def pytest_sessionfinish(session):
    """Write the measurements of all guests to results.json; a run that left too much out fails."""
    runs = getattr(session.config, "runs", None)
    if runs:
        runs.close()
        report = json.dumps(runs.report(), indent=1)
        (host.run_folder() / "results.json").write_text(report, encoding="ascii")
        session.exitstatus = session.exitstatus or int(bool(runs.left_too_much()))


@pytest.fixture(scope="session")
def guest_runs(request):
    """The guests of the selected items."""
    return request.config.runs


def pytest_terminal_summary(terminalreporter):
    """What took how long, and N passed, N failed[, N skipped], alone on the last line of all."""
    times.tell(terminalreporter)

    def count(*kinds):
        return sum(len(terminalreporter.stats.get(kind, ())) for kind in kinds)
    failed = count("failed", "error")
    runs = getattr(terminalreporter.config, "runs", None)
    if runs and runs.left_too_much():
        terminalreporter.write_line(f"FAILED: {runs.left_too_much()}")
        failed += 1
    line = f"{count('passed', 'xfailed')} passed, {failed + count('xpassed')} failed"
    if count("skipped"):
        line += f", {count('skipped')} skipped"
    (pathlib.Path(os.environ.get("LC_SUMMARY") or host.run_folder() / "summary")
     ).write_text(line + "\n", encoding="ascii")
