# SPDX-License-Identifier: GPL-2.0-only
"""Hostile input in userspace: libFuzzer targets, the tools on hostile images, and proof that
both would notice. See tests/fuzz/."""

import concurrent.futures
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess

import pytest

from lib import apt, host, mutation, seeds

FUZZ = host.TESTS / "fuzz"
BUILD = host.BUILD / "fuzz"
USERLAND = host.TOP / "userland"

# Runs of each target in a normal run, corpus included; all of them take about half a minute.
RUNS = {
    "checkpoint": 100000,
    "geometry": 1000000,
    "image": 1800,
    "mark": 60000,
    "params": 200000,
    "recovery": 1800,
    "record": 150000,
    "replay": 100000,
    "superblock": 100000,
}
LONG_SECONDS = 600
LONGEST_INPUT = {"image": 16384, "params": 512, "recovery": 16384}
IMAGES = 300
# lc-format wants block devices, which take their time.
FORMAT_IMAGES = 40
# Small enough to be quick; what is freed is looked at for long enough all the same.
SANITIZERS = {"ASAN_OPTIONS": "quarantine_size_mb=8:allocator_release_to_os_interval_ms=-1"}
CHECK_CODES = (0, 1, 4, 8, 16)


# Declares what the module needs of the kernel.


def seed():
    """Of this run, see conftest.py."""
    return int(os.environ["LC_SEED"])


def newest_clang():
    """The newest clang here."""
    found = [path.name for path in pathlib.Path("/usr/bin").glob("clang-*")
             if re.fullmatch(r"clang-\d+", path.name)]
    return max(found, key=apt.version_key, default="clang" if shutil.which("clang") else None)


@pytest.fixture(name="clang", scope="session")
def fixture_clang(tmp_path_factory):
    """A clang that has libFuzzer, or a skip."""
    clang = newest_clang()
    if not clang:
        pytest.skip("no clang here: tests/setup installs it")
    source = tmp_path_factory.mktemp("probe") / "probe.c"
    source.write_text("int LLVMFuzzerTestOneInput(const char *d, long n) { return !d && n; }\n",
                      encoding="ascii")
    done = subprocess.run([clang, "-w", "-fsanitize=fuzzer,address,undefined", source, "-o",
                           source.with_suffix("")], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"{clang} has no libFuzzer: tests/setup installs libclang-rt-*-dev")
    return clang


def make(*words):
    """make in tests/fuzz."""
    return host.run("make", "-s", f"-j{host.jobs()}", "-C", FUZZ, *words)


@pytest.fixture(name="built", scope="session")
def fixture_built(clang):
    """All targets."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with host.locked("fuzz", host.BUILD):
        make(f"CLANG={clang}")
    return BUILD


@pytest.fixture(name="mkimages", scope="session")
def fixture_mkimages():
    """The maker of hostile images, which needs no clang."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with host.locked("fuzz", host.BUILD):
        make("mkimages")
    return BUILD / "mkimages"


# -- the targets ---------------------------------------------------------------------------------

def fuzz(binary, target, scratch, *options):
    """Run a target on its corpus and from there; returns exit code and output."""
    scratch.mkdir(exist_ok=True)
    findings = BUILD / "findings"
    findings.mkdir(parents=True, exist_ok=True)
    corpus = scratch.parent / "corpus"
    seeds.unpack(target, corpus)
    argv = [binary, *options, f"-seed={seed() % (1 << 32) or 1}", "-print_final_stats=1",
            f"-max_len={LONGEST_INPUT.get(target, 4200)}", "-len_control=0", "-timeout=120",
            f"-artifact_prefix={findings}/{target}-", scratch, corpus]
    done = subprocess.run([str(arg) for arg in argv], stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.STDOUT, text=True, errors="replace",
                          env={**os.environ, **SANITIZERS})
    return done.returncode, done.stdout


def executed(output):
    """How many inputs a target has run."""
    return int(re.search(r"number_of_executed_units: (\d+)", output)[1])


def finding(binary, output):
    """What to tell of a failed run: the heart of it, the input and how to run it again."""
    saved = re.search(r"Test unit written to (\S+)", output)
    lines = [line for line in output.splitlines()
             if re.search(r"EXPECT|ERROR|SUMMARY|runtime error| in .*/(tests/fuzz|dm-lc|userland)/",
                          line)]
    text = "\n".join(lines[:25]) or output[-2000:]
    if saved:
        text += (f"\ninput: {saved[1]}\nagain: "
                 f"{shlex.join([str(binary), saved[1]])}  (seed {seed()})")
    return text


@pytest.mark.parametrize("target", RUNS)
def test_target(target, built, tmp_path, request):
    """The corpus, then a fixed number of random runs; --long: ten minutes more."""
    binary = built / target
    code, output = fuzz(binary, target, tmp_path / "new", f"-runs={RUNS[target]}")
    if code:
        pytest.fail(finding(binary, output), pytrace=False)
    assert executed(output) >= RUNS[target]
    if request.config.getoption("--long"):
        code, output = fuzz(binary, target, tmp_path / "new", f"-max_total_time={LONG_SECONDS}")
        if code:
            pytest.fail(finding(binary, output), pytrace=False)
        print(f"{executed(output)} runs")


def test_every_target_is_run():
    """And has a corpus that is small."""
    assert sorted(RUNS) == sorted(path.name.removesuffix("_fuzz.c")
                                  for path in FUZZ.glob("*_fuzz.c"))
    sizes = [path.stat().st_size for path in seeds.SEEDS.iterdir()]
    assert seeds.targets() == sorted(RUNS)
    assert {path.parent.name for path in (FUZZ / "corpus").rglob("*.bin")} <= set(RUNS)
    assert sum(sizes) < 200 << 10


def test_seeds_are_packed_and_unpacked(monkeypatch, tmp_path):
    """What is packed is unpacked; it is packed once, and not if it has a name."""
    monkeypatch.setattr(seeds, "CORPUS", tmp_path / "corpus")
    monkeypatch.setattr(seeds, "SEEDS", tmp_path)
    (tmp_path / "corpus/mark").mkdir(parents=True)
    (tmp_path / "corpus/mark/has-a-name.bin").write_bytes(b"one")
    (tmp_path / "new").mkdir()
    for name, data in (("a", b"one"), ("b", b"two"), ("c", b"two"), ("d", b"")):
        (tmp_path / "new" / name).write_bytes(data)
    assert seeds.pack("mark", tmp_path / "new") == 2
    first = seeds.archive("mark").read_bytes()
    seeds.unpack("mark", tmp_path / "all")
    assert sorted(path.read_bytes() for path in (tmp_path / "all").iterdir()) == \
        [b"", b"one", b"two"]
    assert (tmp_path / "all/has-a-name.bin").exists()
    seeds.pack("mark", tmp_path / "all")
    assert seeds.archive("mark").read_bytes() == first


# -- proof that the targets find something ---------------------------------------------------------

MUTANTS = mutation.records(FUZZ / "mutants")


def apply_mutant(path, folder):
    """A copy of the sources with the break in it, and of the objects built without it."""
    for part in ("dm-lc", "userland"):
        shutil.copytree(host.TOP / part, folder / part,
                        ignore=shutil.ignore_patterns("build", "build-san"))
    mutation.apply(path, folder)
    # The dates are kept, so make builds what the mutant has touched and nothing else.
    shutil.copytree(BUILD / "obj", folder / "out/obj")


@pytest.mark.parametrize("path", MUTANTS, ids=lambda path: path.stem)
def test_mutant_is_caught(path, built, clang, tmp_path):
    """A small break is found within the runs of a normal run."""
    record = mutation.read(path)
    target = record.field("Proves")
    assert record.field("Hazard") and built and target in RUNS
    apply_mutant(path, tmp_path)
    make(f"CLANG={clang}", "WARNINGS=-w", f"TREE={tmp_path}", f"O={tmp_path}/out",
         f"{tmp_path}/out/{target}")
    code, output = fuzz(tmp_path / "out" / target, target, tmp_path / "new",
                        f"-runs={RUNS[target]}")
    for path in re.findall(r"Test unit written to (\S+)", output):
        os.unlink(path)
    assert code, f"the mutant survived {executed(output)} runs (seed {seed()})"
    assert re.search(r"EXPECT|Sanitizer|runtime error", output), output[-2000:]
    print(f"caught after {executed(output)} runs")


def test_there_are_mutants():
    """Of the code of the module and of the tools."""
    touched = {edit.file.split("/")[0] for path in MUTANTS for edit in mutation.read(path).edits}
    assert len(MUTANTS) >= 4 and touched >= {"dm-lc", "userland"}


# -- the tools on hostile images -------------------------------------------------------------------

def tool(name, *args, allowed):
    """Run lc-NAME with the sanitizers; only these exit codes are documented."""
    argv = [str(arg) for arg in (USERLAND / "build-san" / f"lc-{name}", *args)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.PIPE, text=True, errors="replace", timeout=300)
    again = f"{shlex.join(argv)}: {done.returncode}\n{done.stderr[-3000:]}"
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, again
    assert done.returncode in allowed, again
    return done


@pytest.fixture(name="tools", scope="session", autouse=True)
def fixture_tools():
    """The tools, with sanitizers."""
    host.run("make", "-s", "-C", USERLAND, "SAN=1")


def make_images(mkimages, folder, count):
    """Hostile images in a folder; what the manifest says of each."""
    print(host.run(mkimages, folder, "--count", count, "--seed", seed()))
    lines = (folder / "manifest.jsonl").read_text(encoding="ascii").splitlines()
    return [json.loads(line) for line in lines]


def state(*paths):
    """Changes when somebody writes."""
    return [(path.stat().st_mtime_ns, path.stat().st_size) for path in paths]


def examine(folder, image):
    """lc-dump, lc-check, the repair and lc-check again, on one image."""
    ssd, hdd = folder / image["ssd"], folder / image["hdd"]
    backing = ("--backing", hdd) if image["image"] % 3 else ()
    before = state(ssd, hdd)
    tool("dump", "--entries", "--segments", *["--json"][:image["image"] % 2], ssd, allowed=(0, 1))
    found = tool("check", *backing, ssd, allowed=(0, 4, 8))
    assert state(ssd, hdd) == before
    if not image["changes"]:
        assert found.returncode == 0, f"{image}\n{found.stdout}"
    repair = tool("check", "--repair", *backing, ssd,
                  allowed=(1, 4, 8) if found.returncode == 4 else (found.returncode,))
    if found.returncode != 4:
        assert state(ssd, hdd) == before
    if repair.returncode == 1:
        again = tool("check", *backing, ssd, allowed=CHECK_CODES)
        assert again.returncode == 0, f"{image}\n{repair.stdout}\n{again.stdout}"
    return found.returncode, repair.returncode


def test_tools_on_hostile_images(mkimages, tmp_path):
    """An answer to each, no sanitizer's word, and what is repaired stays repaired."""
    manifest = make_images(mkimages, tmp_path, IMAGES)
    with concurrent.futures.ThreadPoolExecutor(host.jobs()) as pool:
        codes = list(pool.map(lambda image: examine(tmp_path, image), manifest))
    counts = {code: codes.count(code) for code in sorted(set(codes))}
    print(f"(found, repaired): {counts}")
    # If none were whole, or none had damage that can be mended, this would prove little.
    assert len(manifest) == IMAGES
    assert counts.get((0, 0)) and counts.get((4, 1)) and counts.get((4, 4))


def test_format_of_hostile_images(mkimages, tmp_path):
    """lc-format refuses, and has not written then; or it formats."""
    if not host.has_loops():
        pytest.skip("loop devices need root and the loop module")
    refused = 0
    for image in make_images(mkimages, tmp_path, FORMAT_IMAGES):
        paths = tmp_path / image["ssd"], tmp_path / image["hdd"]
        before = [path.read_bytes() for path in paths]
        with host.loop(paths[0]) as ssd, host.loop(paths[1]) as hdd:
            done = tool("format", "--backing", hdd, ssd, allowed=(0, 1))
        if done.returncode:
            refused += 1
            assert [path.read_bytes() for path in paths] == before, f"{image}\n{done.stderr}"
    assert refused


OPTIONS = {
    "check": ["--repair", "--backing", "-b", "-r", "-y", "-q", "--quiet"],
    "dump": ["--segments", "--records", "--entries", "--json", "-srej"],
    "flush": ["--buffers", "-q"],
    "format": ["--backing", "-b", "--in-place", "--no-mark", "--segment-size", "-s", "--checksum",
               "--label", "--option", "-o", "--discard", "--yes", "--force"],
    "remove": ["--no-drain", "--no-flush"],
    "resume": ["--print-table", "-o", "--option"],
    "status": ["--json", "-j"],
}
VALUES = ["", "-", "--", "=", "0", "-1", "64K", "64KiBx", "18446744073709551616", "99999999T",
          "%s%n", "key=value", "a=b=c", "=x", "x" * 5000, "no-such-lc", "/dev/null", "/",
          "/nonexistent", "ssd-signature", "crc32c", "\x01\xff", "k=" + "v" * 600, "--help=1"]


def test_options(mkimages, tmp_path):
    """Any arguments end in a documented exit code; only files and names that are nothing."""
    images = [tmp_path / image[disk] for image in make_images(mkimages, tmp_path, 8)
              for disk in ("ssd", "hdd")]
    rng = random.Random(seed())
    for _ in range(120):
        name = rng.choice(list(OPTIONS))
        words = [rng.choice([*OPTIONS[name], *VALUES, *rng.sample(images, 2)])
                 for _ in range(rng.randrange(6))]
        done = tool(name, *words, allowed=CHECK_CODES if name == "check" else (0, 1, 2))
        assert done.returncode == 0 or done.stderr or done.stdout, words
