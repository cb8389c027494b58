# SPDX-License-Identifier: GPL-2.0-only
"""lc-latency up to the call of bpftrace, with stand-ins; a server case runs it whole."""

import os
import re
import subprocess

import pytest

from lib import host, tracepoints

TOOL = host.TOP / "userland/latency/lc-latency"
PROGRAM = host.TOP / "userland/latency/lc-latency.bt"
PAGE = host.TOP / "userland/man/lc-latency.8"


@pytest.fixture(name="latency")
def fixture_latency(tmp_path):
    """Runs it; the module is loaded, music is 253:300, and bpftrace says how it was called."""
    script = TOOL.read_text(encoding="ascii").replace("/sys/module/dm_lc", str(tmp_path))
    (tmp_path / "lc-latency").write_text(script, encoding="ascii")
    stubs = {"dmsetup": '[ "$8" = music ] && echo 253 300', "bpftrace": 'echo "bpftrace $*"'}
    for name, text in stubs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
        (tmp_path / name).chmod(0o755)

    def run(*words):
        return subprocess.run(["sh", tmp_path / "lc-latency", *words], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    return run


def test_calls_bpftrace(latency):
    """With the number that the kernel has for the device, for so long."""
    number = 253 << 20 | 300
    for words, called in (((), "-f text @SHAREDIR@/lc-latency.bt 0"),
                          (("music",), f"-f text @SHAREDIR@/lc-latency.bt {number}"),
                          (("--json", "music", "5"), f"-f json @SHAREDIR@/lc-latency.bt {number}")):
        done = latency(*words)
        assert (done.returncode, done.stdout) == (0, f"bpftrace {called}\n")


@pytest.mark.parametrize("words, code, said", [
    (("--fast",), 2, "no such option"),
    (("music", "0"), 2, "number of seconds"),
    (("music", "1s"), 2, "number of seconds"),
    (("music", "1", "2"), 2, "takes a name"),
    (("rock",), 1, "rock: no such device"),
], ids=["option", "zero", "unit", "arguments", "name"])
def test_refuses(latency, words, code, said):
    """In words that say what helps."""
    done = latency(*words)
    assert done.returncode == code and said in done.stdout and "lc-latency: " in done.stdout


def test_needs_bpftrace_and_the_module(latency, tmp_path):
    """Both are named."""
    (tmp_path / "bpftrace").unlink()
    if not any(os.access(f"{folder}/bpftrace", os.X_OK) for folder in os.get_exec_path()):
        done = latency("music")
        assert done.returncode == 1 and "apt install bpftrace" in done.stdout
    (tmp_path / "bpftrace").write_text("#!/bin/sh\n", encoding="ascii")
    (tmp_path / "bpftrace").chmod(0o755)
    script = (tmp_path / "lc-latency").read_text("ascii").replace(f"-e {tmp_path}", "-e /none")
    (tmp_path / "lc-latency").write_text(script, encoding="ascii")
    done = latency("music")
    assert done.returncode == 1 and "dm-lc is not loaded" in done.stdout


def test_program_uses_what_there_is():
    """Each event and field that it reads is one of the module's, or of the block layer."""
    program, fields = PROGRAM.read_text(encoding="ascii"), tracepoints.events()
    probes = re.findall(r"^tracepoint:lc:(\w+)\n(.*?)^}", program, re.M | re.S)
    assert len(probes) > 10
    for name, body in probes:
        assert set(re.findall(r"args->(\w+)", body)) <= fields[name], name
    kept = set(re.findall(r"^\t(@\w+)\[.*\] = nsecs", program, re.M)) | {"@place"}
    assert kept == {f"@{name}" for name in re.findall(r"clear\(@(\w+)\)", program)}


def test_page_explains_the_stages():
    """Each by its name in the output; and the options are those of --help."""
    program, page = (path.read_text(encoding="ascii") for path in (PROGRAM, PAGE))
    stages = re.findall(r"@(us_\d\w+) = ", program)
    assert len(stages) == 8 and re.findall(r"^\.TP\n\.B (us_\w+)$", page, re.M) == stages
    for option in ("json", "help", "version"):
        assert f"--{option}" in TOOL.read_text("ascii") and f"\\-\\-{option}" in page
