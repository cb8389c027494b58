# SPDX-License-Identifier: GPL-2.0-only
"""Would it be noticed? Broken variants of the module, each of which some case must catch.

Each record in tests/mutants/ breaks one rule; tests/lib/mutation.py has the format. With --long
each is built and booted, and one of the cases it names must fail; the same cases must pass
without it. Which test caught which mutant is written to build/mutants.md and build/mutants.json.
"""

import pytest

from lib import host, kernels, mutants, mutation

HAZARDS = host.TOP / "docs/design.rst"


def pytest_generate_tests(metafunc):
    """Mutants by name; of long tests only those with the wanted kernel."""
    wanted = metafunc.config.getoption("--kernel")
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", mutants.names())
        return
    found = [mutants.load(name) for name in mutants.names()]
    found = [mutant for mutant in found if wanted in (None, mutant.kernel)]
    if "mutant" in metafunc.fixturenames:
        metafunc.parametrize("mutant", found, ids=[mutant.name for mutant in found])
    if "control" in metafunc.fixturenames:
        pairs = sorted({(mutant.kernel, case) for mutant in found for case in mutant.tests})
        metafunc.parametrize("control", pairs, ids=["-".join(pair) for pair in pairs])


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A folder for a copy of the module's sources."""
    return tmp_path_factory.mktemp("module")


@pytest.fixture(scope="module")
def lab(request):
    """Where mutants are built and booted."""
    return mutants.Lab(request.config.seed)


def test_mutant_is_complete(name, copy):
    """It applies to the sources as they are, changes the module, and names what exists."""
    mutant = mutants.load(name)
    mutants.refresh(copy)
    changed = mutation.apply(mutant.path, copy)
    assert all(path.is_relative_to(copy / "dm-lc") for path in changed)
    for case in mutant.tests:
        mutants.find_case(case, mutant.kernel)
    known = HAZARDS.read_text(encoding="utf-8").split()
    known += [f"writeboost-{number}" for number in range(1, 14)]    # see docs/coverage.rst
    assert mutant.hazards and not [one for one in mutant.hazards if one not in known]


WRONG = ("SPDX-License-Identifier: GPL-2.0-only\n"
         "@@ dm-lc/life/volume.c event_work\n"
         "+\tlc_nobody_declares_this(vol);\n"
         " \tmutex_lock(&vol->life_lock);\n")


def test_mutants_compile(tmp_path):
    """Each record does, as it would be built; one that calls what is not declared is found."""
    wrong = tmp_path / "wrong.mutant"
    wrong.write_text(WRONG, encoding="ascii")
    tree = tmp_path / "tree"
    tree.mkdir()
    paths = [mutants.load(name).path for name in mutants.names()]
    found = mutants.errors([*paths, wrong], kernels.get("stock"), tree)
    assert "lc_nobody_declares_this" in found.pop("wrong")
    assert not found, "\n".join(found.values())


def test_batches_share_no_function(tmp_path):
    """Each record is in one batch, and no function is changed twice in it."""
    paths = [mutants.load(name).path for name in mutants.names()]
    found = mutants.batches(paths)
    assert sorted(path for batch in found for path in batch) == sorted(paths)
    for batch in found:
        scopes = [scope for path in batch
                  for scope in {(edit.file, edit.scope) for edit in mutation.read(path).edits}]
        assert len(scopes) == len(set(scopes))
    twin = tmp_path / "twin.mutant"
    twin.write_text(paths[0].read_text(encoding="ascii"), encoding="ascii")
    assert not any({twin, paths[0]} <= set(batch) for batch in mutants.batches([*paths, twin]))


@pytest.mark.parametrize("missing", ("Breaks", "Hazard", "Caught-by", "Kernel"))
def test_incomplete_head_is_refused(missing, tmp_path):
    """The check above can fail: each line of the head is wanted."""
    whole = mutants.load(mutants.names()[0]).path.read_text(encoding="ascii")
    path = tmp_path / "x.mutant"
    path.write_text(whole.replace(f"{missing}: ", "X: "), encoding="ascii")
    with pytest.raises(ValueError, match=missing):
        mutation.load(path)


def test_copy_follows_the_sources(tmp_path):
    """The next mutant is not built on top of the last one."""
    mutants.refresh(tmp_path)
    changed = tmp_path / "dm-lc/log/log.c"
    changed.write_text("broken", encoding="ascii")
    (tmp_path / "dm-lc/stale.c").write_text("stale", encoding="ascii")
    kept = (tmp_path / "dm-lc/bio/read.c").stat().st_mtime_ns
    mutants.refresh(tmp_path)
    assert changed.read_bytes() == (host.TOP / "dm-lc/log/log.c").read_bytes()
    assert not (tmp_path / "dm-lc/stale.c").exists()
    assert (tmp_path / "dm-lc/bio/read.c").stat().st_mtime_ns == kept


@pytest.mark.long
def test_passes_without_mutant(control, lab):
    """The tests that are to fail with a mutant pass without it."""
    kernel, name = control
    outcome = lab.run(kernel, mutants.find_case(name, kernel), None)
    assert outcome.verdict == "passed", outcome.reason


@pytest.mark.long
def test_mutant_is_caught(mutant, lab):
    """One of the cases it names fails."""
    if not lab.hunt(mutant):
        pytest.fail(f"{mutant.name} ({mutant.breaks}) passed {' '.join(mutant.tests)}; "
                    f"seed {lab.seed}", pytrace=False)
