# SPDX-License-Identifier: GPL-2.0-only
"""The crash explorer: the module's log and recovery in a process, over modelled disks.

tests/explore/world.h tells how it works. Its own mistakes are looked for, too: with each of the
records in tests/explore/mutants/ it must find a violation.
"""

import os
import re
import shlex
import shutil
import subprocess
import time

import pytest

from lib import host, mutation

EXPLORE = host.TESTS / "explore"
MUTANTS = mutation.records(EXPLORE / "mutants")
MEMORY_MUTANTS = mutation.records(EXPLORE / "mutants/memory")
CORPUS = sorted((EXPLORE / "corpus").glob("*.path"))
# What the module does not get right yet: replayed so that it is noticed when it does.
GAPS = "gap-"
STATES = 100_000
STATES_LONG = 20_000_000
STATES_SANITIZED = 5_000
# Most are found within some thousands, two take some hundred thousands.
STATES_MUTANT = 1_000_000
SEEDS_APART = 1 << 40
RECORDS = 1_000_000
RECORDS_LONG = 10_000_000


def make(folder, *words, top=host.TOP):
    """Build the explorer of a tree; returns the binary."""
    host.run("nice", "make", "-s", f"-j{host.jobs()}", "-C", top / "tests/explore", f"O={folder}",
             *words)
    return folder / "explore"


@pytest.fixture(scope="session")
def explorer():
    """The explorer of this tree."""
    return make(host.BUILD / "explore")


def run(binary, *args):
    """An explorer that ended; 0: nothing found, 1: a violation."""
    done = subprocess.run([binary, *map(str, args)], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    assert done.returncode in (0, 1), done.stdout
    return done


def seed():
    """Of this run."""
    return int(os.environ.get("LC_SEED") or time.time())


def numbers(text):
    """{name: how many states were of that kind} from the last line of a run."""
    found = re.search(r"^explore: met (.*)$", text, re.M)
    words = found[1].split()
    return dict(zip(words[::2], map(int, words[1::2])))


def test_explore(explorer, request):
    """Whatever a crash leaves, recovery keeps the promises P1 to P3; no state is refused."""
    states = STATES_LONG if request.config.getoption("--long") else STATES
    jobs = host.jobs()
    runs = []
    for job in range(jobs):
        first = seed() + job * SEEDS_APART
        print(f"seeds from {first}")
        with open(host.BUILD / f"explore-{job}.log", "w+", encoding="utf-8") as log:
            runs.append((log.name, subprocess.Popen(
                ["nice", explorer, "--seed", str(first), "--states", str(states // jobs)],
                stdout=log, stderr=subprocess.STDOUT)))
    met = {}
    for name, process in runs:
        code = process.wait()
        with open(name, encoding="utf-8") as log:
            text = log.read()
        print(text)
        assert code == 0, f"a violation, see {name}"
        for kind, count in numbers(text).items():
            met[kind] = met.get(kind, 0) + count
    # Each kind of state must have been there, or it proves nothing about it.
    assert all(met.values()), met


def test_sanitized():
    """A short run with address and undefined behaviour sanitizers."""
    binary = make(host.BUILD / "explore-san", "SAN=1")
    done = run(binary, "--seed", seed(), "--states", STATES_SANITIZED)
    assert done.returncode == 0, done.stdout


def memory(folder, records, top=host.TOP, words=()):
    """tests/explore/memory.c of a tree, run: 0 or 1."""
    make(folder, folder / "memory", *words, top=top)
    done = subprocess.run([folder / "memory", str(records)], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    print(done.stdout)
    return done.returncode


def test_memory(request):
    """A start takes 24 bytes for each header that it finds, or is refused."""
    records = RECORDS_LONG if request.config.getoption("--long") else RECORDS
    assert memory(host.BUILD / "explore", records) == 0


def test_memory_sanitized():
    """The same of a small log, with address and undefined behaviour sanitizers."""
    assert memory(host.BUILD / "explore-san", 100_000, words=("SAN=1",)) == 0


@pytest.mark.parametrize("path", MEMORY_MUTANTS, ids=lambda path: path.stem)
def test_memory_mutants(path, tmp_path):
    """With one of these in found.c, the test above fails."""
    assert mutation.read(path).field("Breaks") and mutation.read(path).field("Hazard")
    for folder in ("dm-lc", "userland/kernel", "tests/explore", "tests/host"):
        (tmp_path / folder).parent.mkdir(parents=True, exist_ok=True)
        host.run("cp", "-a", host.TOP / folder, tmp_path / folder)
    mutation.apply(path, tmp_path)
    assert memory(tmp_path / "build", RECORDS, tmp_path) == 1, "the mutant survived"


@pytest.mark.parametrize("path", [path for path in CORPUS if not path.name.startswith(GAPS)],
                         ids=lambda path: path.stem)
def test_corpus(explorer, path):
    """Paths that once failed, and those that tell mutants from what they are made of."""
    done = run(explorer, "--replay", path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", [path for path in CORPUS if path.name.startswith(GAPS)],
                         ids=lambda path: path.stem)
def test_known_gaps(explorer, path, request):
    """Paths that fail, and are known to."""
    request.applymarker(pytest.mark.xfail(strict=True, reason=path.read_text().splitlines()[1]))
    done = run(explorer, "--replay", path)
    assert done.returncode == 0, done.stdout


def test_state_is_repeated(explorer, tmp_path):
    """--state K of a seed is the same state each time, and its path leads there, too."""
    first, second = (run(explorer, "--seed", 7, "--state", 40).stdout for _ in range(2))
    path, told = re.search(r"^--- path.*?\n(.*)^--- told\n(.*)^explore: 40 states", first,
                           re.M | re.S).groups()
    assert f"--- told\n{told}" in second
    file = tmp_path / "seed-7.path"
    file.write_text(path, encoding="ascii")
    assert run(explorer, "--replay", file).stdout == f"{file}\n{told}"


@pytest.fixture(scope="session")
def tree(explorer, tmp_path_factory):
    """A copy of what the explorer is built from, with its objects."""
    top = tmp_path_factory.mktemp("explore")
    (top / "tests").mkdir()
    for name in ("dm-lc", "userland", "tests/explore", "tests/host"):
        host.run("cp", "-a", host.TOP / name, top / name)
    make(top / "build/explore", top=top)
    return top


@pytest.mark.sampled(5)
@pytest.mark.parametrize("path", MUTANTS, ids=lambda path: path.stem)
def test_mutants(tree, path, tmp_path):
    """With the rule left out, the explorer finds a violation."""
    record = mutation.read(path)
    assert record.field("Breaks") and record.field("Hazard")
    top = tmp_path / "tree"
    host.run("cp", "-a", tree, top)
    if any(changed.suffix == ".h" for changed in mutation.apply(path, top)):
        # What the objects depend on is noted with the paths of the tree they were built in.
        shutil.rmtree(top / "build/explore")
    binary = make(top / "build/explore", top=top)
    corpus = record.field("Corpus", "")
    if corpus:
        done = run(binary, "--replay", EXPLORE / "corpus" / corpus)
    else:
        done = run(binary, "--no-minimise", "--states", STATES_MUTANT,
                   *shlex.split(record.field("Options", "")))
    shutil.rmtree(top)
    print(done.stdout)
    assert done.returncode == 1, "the mutant survived"
    assert re.search(f"^violation of {record.field('Finds', '')}", done.stdout, re.M), done.stdout
