# SPDX-License-Identifier: GPL-2.0-only
"""Promela models of the write path, searched exhaustively with spin."""

import dataclasses
import functools
import re
import shutil
import subprocess

import pytest

from lib import host

MODELS = host.TESTS / "model"
# pan says so if a path is longer, or if it needs more memory.
LONGEST_PATH = 2000
MOST_MEMORY_MIB = 6000
# log2 of its first size; it grows, but clearing a large one takes longer than most searches.
HASH_TABLE = 20
# What pan prints when it has not seen everything.
INCOMPLETE = ("max search depth too small", "Search not completed", "out of memory",
              "MEMLIM", "interrupted")
# "Hazard: L5   MUT_TAIL_EARLY   what is broken", in the comment at the top of a model.
HAZARD = re.compile(r"^ \*  Hazard: ([A-Z]\d+) +(MUT_\w+) +\S", re.M)


@dataclasses.dataclass(frozen=True)
class Run:
    """A model in one size; `words` become -D options."""

    model: str
    name: str
    words: str
    long: bool = False
    optimise: str = "-O1"  # little more to run than -O2, much less to compile


LOST = "NSEG=5 FLUSHES=0 SLOTS=1 BIOS_0=1 BIO_0=6 BIOS_1=0 READS=0 LOST"
LOST_TWO = ("FULL NSEG=6 SLOTS=2 HEADER=1 KEPT=2 RESERVE=2 BIOS_0=1 BIOS_1=0 READS=0 LOST=2 "
            "FLUSHES=1")
FEW_BUFFERS = "NSEG=9 READS=0 BIOS_0=1 BIO_0=11 BIOS_1=0 NO_WRITEBACK"
SLOW_SSD = f"{FEW_BUFFERS} BUFFERS=6 MOST=2"     # half of the buffers would be 3
FEW_SEGMENTS = "NSEG=3 FLUSHES=0 SLOTS=1 BIOS_0=1 BIO_0=3"

RUNS = (
    Run("record", "two_writers", "SLOTS=4 DISCARDS=0"),
    Run("record", "discards", "SLOTS=5 WRITERS=1 SEALS=2 DISCARDS=2"),
    Run("record", "relog", "SLOTS=4 DISCARDS=0 RELOG"),
    Run("record", "all", "SLOTS=5", long=True),
    Run("lane", "one_lane", "FAIL"),
    Run("lane", "two_lanes", "LANES=2 WRITES_0=1 READS=0"),
    Run("lane", "small_buffers", "SLOTS=2 FAIL", long=True),
    Run("lane", "two_lanes_reader", "LANES=2 WRITES_0=1 FAIL", long=True),
    Run("lane", "two_lanes_writes", "LANES=2 READS=0", long=True),
    Run("lane", "two_lanes_flushes", "LANES=2 READS=0 FLUSHES=2", long=True),
    Run("ring", "few_buffers", FEW_BUFFERS),
    Run("ring", "slow_ssd", SLOW_SSD),
    Run("ring", "slow_for_a_while", f"{SLOW_SSD} SLOW"),
    Run("ring", "slow_without_cache", f"{SLOW_SSD} SLOW NO_CACHE"),
    Run("ring", "few_segments", FEW_SEGMENTS),
    Run("ring", "lost_block", LOST),
    Run("ring", "lost_two", f"{LOST_TWO} BIO_0=4"),
    Run("ring", "lost_two_more", f"{LOST_TWO} BIO_0=7", long=True),
    Run("ring", "few_segments_more", "NSEG=4 FLUSHES=0 SLOTS=1 BIOS_0=1 BIO_0=4 READS=2",
        long=True),
    Run("ring", "few_segments_slow", f"{FEW_SEGMENTS} BUFFERS=6 MOST=2 SLOW", long=True),
    Run("ring", "lost_block_slow", f"{LOST} BUFFERS=6 MOST=2", long=True),
    Run("ring", "lost_block_two_writers",
        "NSEG=5 FLUSHES=0 SLOTS=1 BIOS_0=1 BIO_0=5 READS=0 LOST", long=True),
    Run("discard", "two", "BATCHES=2 DISCARDS=2"),
    Run("discard", "three_writers", "BATCHES=2 DISCARDS=2 WRITERS=3", long=True),
)

# Each in the smallest size in which it can be seen, which is seen soon.
BROKEN = {
    "record": dict.fromkeys(("MUT_NO_INCARNATION", "MUT_CLOSED_OK", "MUT_NO_CLOSER",
                             "MUT_RETRACT_USED", "MUT_BACK_ANYWAY", "MUT_LIMIT_FIRST"),
                            "SLOTS=4") | {
        "MUT_WISH_FIRST": "SLOTS=4 DISCARDS=0 RELOG",
        "MUT_NO_WISH": "SLOTS=4 DISCARDS=0 RELOG",
    },
    "lane": dict.fromkeys(("MUT_NO_WAIT", "MUT_NO_REFERENCE", "MUT_NO_PIN", "MUT_NO_SECOND_LOOK",
                           "MUT_NO_ZEROING", "MUT_WRITTEN_HIGHEST", "MUT_ACK_WRITTEN",
                           "MUT_FUA_ALONE", "MUT_RETIRE_WRITTEN", "MUT_NO_OUTDATED"), "") | {
        "MUT_FLUSH_AGAIN": "FAIL",
        "MUT_LANES_APART": "LANES=2 WRITES_0=1 READS=0",
    },
    "ring": dict.fromkeys(("MUT_OVERTAKE", "MUT_OFF_IS_OFF", "MUT_SLEEP", "MUT_NO_IDLE_WAIT",
                           "MUT_NO_WAKE"), FEW_SEGMENTS) | {
        "MUT_NO_RESERVE": LOST,
        "MUT_ONE_KEPT": f"{LOST_TWO} BIO_0=2",
        "MUT_GREEDY": f"{LOST_TWO} BIO_0=7",
        "MUT_NO_RELOG_GATE": LOST,
        "MUT_RELOG_GATE": LOST,
        "MUT_NO_WISH": FEW_BUFFERS,
        "MUT_WISH_ONCE": FEW_BUFFERS,
        "MUT_NO_LOOK": FEW_BUFFERS,
        "MUT_NO_LEAST": SLOW_SSD,
    },
    "discard": dict.fromkeys(("MUT_PLACES_FREE", "MUT_NO_REFRESH", "MUT_HDD_FIRST",
                              "MUT_DROP_EARLY", "MUT_DROP_NEWER", "MUT_NOT_HELD",
                              "MUT_CLEAN_ANYWAY"), ""),
}


@functools.cache
def text_of(model):
    """All of a model."""
    return (MODELS / f"{model}.pml").read_text(encoding="ascii")


def mutants():
    """The runs of all mutants."""
    for model, rules in BROKEN.items():
        for rule, words in rules.items():
            yield Run(model, rule.removeprefix("MUT_"), f"{words} {rule}", optimise="-O0")


def pytest_generate_tests(metafunc):
    """One item for each run; the long ones only if asked for."""
    for name, runs in (("run", RUNS), ("mutant", mutants())):
        if name in metafunc.fixturenames:
            wanted = [run for run in runs if not run.long or metafunc.config.getoption("--long")]
            metafunc.parametrize(name, wanted, ids=[f"{run.model}-{run.name}" for run in wanted])


def repeat(run):
    """What a person types to see the same."""
    words = " ".join(f"-D{word}" for word in run.words.split())
    return (f"spin -a -o3 {words} {MODELS}/{run.model}.pml && "
            f"gcc -O2 -w -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m{LONGEST_PATH}")


def search(folder, run):
    """Let pan go through all states of a model; what it prints."""
    if not shutil.which("spin"):
        pytest.skip("spin is not installed")
    defines = [f"-D{word}" for word in run.words.split()]
    # Without merging of statements (-o3), else pan does not know what it never reached.
    host.run("spin", "-a", "-o3", *defines, MODELS / f"{run.model}.pml", cwd=folder)
    host.run("gcc", run.optimise, "-w", "-DSAFETY", "-DCOLLAPSE", f"-DMEMLIM={MOST_MEMORY_MIB}",
             "-o", "pan", "pan.c", cwd=folder)
    done = subprocess.run([folder / "pan", f"-m{LONGEST_PATH}", f"-w{HASH_TABLE}"], cwd=folder,
                          text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert not done.returncode, f"{repeat(run)}\n{done.stdout}"
    return done.stdout


def count(output, what):
    """A number from pan's report."""
    found = re.search(rf"{what}: (\d+)" if what == "errors" else rf"(\d+) {what}", output)
    assert found, output
    return int(found.group(1))


def unreached(output):
    """Statements of pan's list that no state has reached, but for the ends of processes."""
    return re.findall(r"^\t(\S+\.pml:\d+), state \d+, (\"(?!-end-).*)$", output, re.M)


def trail(folder, run):
    """What happened, in the words of the model's printf()s."""
    files = list(folder.glob("*.trail"))
    assert len(files) == 1, files
    defines = [f"-D{word}" for word in run.words.split()]
    told = subprocess.run(["spin", "-k", files[0], "-T", *defines,
                           MODELS / f"{run.model}.pml"],
                          cwd=folder, text=True, check=False, stdout=subprocess.PIPE).stdout
    return "".join(f"{line.strip()}\n" for line in told.partition("#processes")[0].splitlines())


def test_run(run, tmp_path, capsys):
    """No assertion fails, nobody waits for ever, and everything in the model is reached."""
    output = search(tmp_path, run)
    errors = count(output, "errors")
    assert not errors, f"{repeat(run)}\n{trail(tmp_path, run)}{output}"
    for text in INCOMPLETE:
        assert text not in output, f"{repeat(run)}\n{output}"
    assert not unreached(output), f"{repeat(run)}\n{output}"
    with capsys.disabled():
        print(f" {count(output, 'states, stored')} states", end="")


def expect_error(run, folder):
    """pan finds an assertion that fails, or a state nobody gets out of."""
    output = search(folder, run)
    assert count(output, "errors") == 1, f"{repeat(run)}\nno error found\n{output}"
    assert re.search(r"^pan:1: (assertion violated|invalid end state)", output, re.M), output


def test_mutant(mutant, tmp_path):
    """Without the rule there is an error: the model would see its loss in the code, too."""
    expect_error(mutant, tmp_path)


@pytest.mark.parametrize("model", BROKEN)
def test_table(model):
    """The table at the top of a model names its mutants, and hazards that exist."""
    table = HAZARD.findall(text_of(model))
    names = [name for _, name in table]
    used = re.findall(r"(?:ifn?def|defined\()\s*(MUT_\w+)", text_of(model))
    assert len(names) == len(set(names))
    assert set(names) == set(used) == set(BROKEN[model])
    design = (host.TOP / "docs/design.rst").read_text(encoding="utf-8")
    promises = (host.TOP / "docs/dm-lc.rst").read_text(encoding="utf-8")
    for hazard, _ in table:
        assert (f"* - {hazard}\n" in design or f"* **{hazard}**" in design
                or re.search(rf"\b{hazard}\b", promises)), hazard


def test_pan_is_understood(tmp_path):
    """A search that was cut short, an unreached statement and a deadlock are seen."""
    (tmp_path / "small.pml").write_text(
        "byte n; active proctype p() { do :: n < 100 -> n++ :: n == 200 -> n = 0 od }\n",
        encoding="ascii")
    if not shutil.which("spin"):
        pytest.skip("spin is not installed")
    host.run("spin", "-a", "-o3", "small.pml", cwd=tmp_path)
    host.run("gcc", "-w", "-DSAFETY", "-o", "pan", "pan.c", cwd=tmp_path)
    output = host.run(tmp_path / "pan", "-m50", cwd=tmp_path)
    assert any(text in output for text in INCOMPLETE)
    output = host.run(tmp_path / "pan", "-m2000", cwd=tmp_path)
    assert count(output, "errors") == 1 and "invalid end state" in output
    output = host.run(tmp_path / "pan", "-m2000", "-E", cwd=tmp_path)
    assert not any(text in output for text in INCOMPLETE)
    assert count(output, "errors") == 0 and [what for _, what in unreached(output)] == ['"n = 0"']
