# SPDX-License-Identifier: GPL-2.0-only
"""Texts from media on terminals, in table lines and in JSON; output that cannot be written."""

import json
import os
import re
import subprocess

import pytest

from lib.tools import MIB, USERLAND, dump, expect, lc_format, mklog, run_tool

MARK_LABEL_AT = 128
LABEL_AT, OPTIONS_AT, SERIAL_AT, HOST_AT = 56, 760, 496, 368
# As bytes, and as they are shown.
TEXTS = {
    "utf8": ("Müsik 音楽".encode(), "Müsik 音楽"),
    "escape": (b"\x1b[2Jgone\x07\x7f", r"\x1b[2Jgone\x07\x7f"),
    "line": (b"one\ntwo\rthree", r"one\x0atwo\x0dthree"),
    "latin1": (b"caf\xe9", r"caf\xe9"),
    "cut": ("caf\u00e9".encode()[:-1], r"caf\xc3"),
    "overlong": (b"\xc0\xaf\xed\xa0\x80", r"\xc0\xaf\xed\xa0\x80"),
    "c1": ("a\u0085b\u009bc".encode(), r"a\xc2\x85b\xc2\x9bc"),
    "direction": ("a\u202eb".encode(), r"a\xe2\x80\xaeb"),
    "backslash": (b"a\\x1bb", r"a\\x1bb"),
}


def forged(pair, at, text, length=64):
    """A cache whose superblocks have these bytes in a text; mklog seals them."""
    assert len(text) < length
    words = f"text={at}:{text.hex()}"
    label = f" text={MARK_LABEL_AT}:{text.hex()}" if at == LABEL_AT else ""
    mklog(pair[0].path, f"sb volume={95 * 2048} {words}\nmark file={pair[1].path}{label}\n")


def raw_tool(name, *args, env=None):
    """Output as bytes."""
    return subprocess.run([USERLAND / f"build/lc-{name}", *map(str, args)], check=False,
                          capture_output=True, timeout=600, env={**os.environ, **(env or {})})


def assert_tame(*outputs):
    """UTF-8, and nothing that moves a terminal's cursor but ends of lines."""
    for output in outputs:
        text = output.decode("utf-8")
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text), repr(text)


@pytest.mark.parametrize("name", TEXTS)
def test_texts_from_media(pair, name):
    """Shown as UTF-8 where they are, escaped where not; one line stays one line."""
    raw, said = TEXTS[name]
    for at, key in ((LABEL_AT, "label"), (HOST_AT, "opener_host"), (SERIAL_AT, "backing_serial"),
                    (OPTIONS_AT, "options")):
        forged(pair, at, raw)
        plain, in_json = raw_tool("dump", pair[0].path), raw_tool("dump", "--json", pair[0].path)
        assert plain.returncode == in_json.returncode == 0
        assert_tame(plain.stdout, plain.stderr, in_json.stdout)
        assert f"  {key}: {said}\n" in plain.stdout.decode()
        assert json.loads(in_json.stdout)["superblock"][key] == said


def test_messages_show_texts_from_media(pair, fake):
    """Labels and serials in refusals."""
    forged(pair, LABEL_AT, b"\x1b[31mred\xff")
    done = raw_tool("format", "--backing", pair[1].dev, pair[0].dev)
    assert done.returncode == 1 and rb"\x1b[31mred\xff" in done.stderr, done.stderr
    assert_tame(done.stdout, done.stderr)
    forged(pair, SERIAL_AT, b"\x1b]0;title\x07")
    pair[1].write(0, bytes(MIB))
    done = raw_tool("resume", "lc0", pair[0].dev, env=fake.env)
    assert done.returncode == 1 and rb"\x1b]0;title\x07" in done.stderr, done.stderr
    assert_tame(done.stdout, done.stderr)


@pytest.mark.parametrize("options", [b"buffers 16\n0 8 zero", b"buffers", b"a\x1bb 1",
                                     b"buffers 16 lanes"])
def test_options_from_media_make_no_line(pair, fake, options):
    """What is not pairs of words is left out of the table line, with a warning."""
    forged(pair, OPTIONS_AT, options)
    for print_only in ((), ("--print-table",)):
        done = raw_tool("resume", *print_only, "lc0", pair[0].dev, pair[1].dev, env=fake.env)
        assert done.returncode == 0 and b"are left out" in done.stderr, done.stderr
        assert_tame(done.stdout, done.stderr)
    table = f"0 {95 * 2048} lc {pair[1].dev} {pair[0].dev}"
    assert done.stdout.decode() == table + "\n"
    # The kernel gets numbers: a name may change its meaning meanwhile.
    numbers = [f"{os.major(node)}:{os.minor(node)}"
               for node in (os.stat(disk.dev).st_rdev for disk in (pair[1], pair[0]))]
    assert any(line.endswith(f"0 {95 * 2048} lc {' '.join(numbers)}") for line in fake.log())


def test_label_with_control_characters(pair):
    """Refused before anything is written; UTF-8 is taken."""
    before = [disk.digest() for disk in pair]
    for label in ("a\nb", "\x1b[2J", "a\u0085b"):
        done = expect(lc_format(pair, "--label", label), 2, "control characters")
        assert_tame(done.err.encode())
    assert [disk.digest() for disk in pair] == before
    assert lc_format(pair, "--label", "Müsik").code == 0
    assert dump(pair[0].path)["superblock"]["label"] == "Müsik"


@pytest.mark.parametrize("args, code", [
    (("dump", "SSD"), 1), (("dump", "--json", "SSD"), 1), (("check", "SSD"), 8),
    (("status",), 1), (("dump", "--help"), 1), (("check", "--version"), 8),
    (("format", "--help"), 1), (("resume", "--print-table", "x", "SSD", "HDD"), 1)])
def test_output_that_cannot_be_written(pair, fake, args, code):
    """Is an error: who reads the output would take a part for all of it."""
    mklog(pair[0].path, f"sb volume={95 * 2048}\nmark file={pair[1].path}\n")
    fake.volume((1, 2, 3))
    names = {"SSD": pair[0].dev, "HDD": pair[1].dev}
    command = [USERLAND / f"build/lc-{args[0]}", *(names.get(arg, arg) for arg in args[1:])]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True,
                              check=False, timeout=600, env={**os.environ, **fake.env})
    assert done.returncode == code and "could not be written" in done.stderr, done
    assert run_tool(args[0], *command[1:], env=fake.env).code == 0
