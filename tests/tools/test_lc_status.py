# SPDX-License-Identifier: GPL-2.0-only
"""lc-status, with a stand-in for libdevmapper."""

import json
import re
import subprocess

import jsonschema
import pytest

from lib import host, promtool
from lib.tools import WHOLE_STATUS, expect, run_tool, samples_of

SCHEMA = host.TOP / "userland/schema/lc-status.json"
GOLDEN = host.TESTS / "tools/lc-status.golden.json"


def checked(text):
    """(exit code, what it says) of Prometheus' own checker."""
    try:
        promtool.get()
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        pytest.skip(f"promtool cannot be fetched: {error}")
    return promtool.check(text)


def test_status(fake):
    """A table, all of one, JSON; keys of later kernels are shown."""
    assert "No lc volume" in fake.tool("status").out
    fake.volume((500, 100, 10))
    assert "rw" in fake.tool("status").out.splitlines()[1]
    assert "shiny" in fake.tool("status", "lc0").out
    for option in ("--json", "--format=json"):
        status = json.loads(fake.tool("status", option).out)[0]["status"]
        assert status["dirty"] == 500 and status["shiny"] == 7
        assert status["generation"] == "00000000000000ff"


def types(schema, at=""):
    """{path of a key: its type} of the objects of a schema."""
    found = {}
    for key, value in schema.get("properties", {}).items():
        found[at + key] = value["type"]
        found.update(types(value, f"{at}{key}."))
    return found


def test_json_is_as_described(fake):
    """By the schema that is installed, which has each key of the status line, as the test has."""
    schema = json.loads(SCHEMA.read_text(encoding="ascii"))
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    fake.volume((500, 100, 10))
    fake.put("status", WHOLE_STATUS)
    volumes = json.loads(fake.tool("status", "--json").out)
    validator.validate(volumes)
    assert set(volumes[0]) == set(schema["items"]["required"])
    source = (host.TOP / "dm-lc/status.c").read_text(encoding="utf-8")
    source = source.partition("void lc_status_info(")[2].partition("\n}\n")[0]
    keys = re.findall(r'DMEMIT\(" ?(\w+) %', source)
    assert list(schema["items"]["properties"]["status"]["properties"]) == keys
    assert sorted(volumes[0]["status"]) == sorted(keys)
    volumes[0]["status"]["dirty"] = "500"
    assert not validator.is_valid(volumes)


def test_json_only_grows():
    """Each key that the golden list has is there, of the same type.  New ones are added to it."""
    now = types(json.loads(SCHEMA.read_text(encoding="ascii"))["items"])
    golden = json.loads(GOLDEN.read_text(encoding="ascii"))
    assert now == golden, "keys may be added, here and in the golden list; none may go or change"


def test_metrics(fake):
    """Bytes and not blocks, a word as one sample for each of its values, and no volume is fine."""
    text = fake.tool("status", "--format=prometheus").out
    assert samples_of(text) == {("lc_volumes", None): 0}
    assert checked(text) == (0, "")
    fake.volume((500, 100, 10))
    fake.put("status", WHOLE_STATUS)
    text = fake.tool("status", "--format=prometheus").out
    got = samples_of(text)
    assert checked(text) == (0, "")
    this = 'volume="lc0"'
    for name, value in {"dirty_bytes": 500 * 4096, "segments": 64, "log_head_seq": 100,
                        "relogged_bytes_total": 7 * 4096, "parked_bytes": 3 * 4096,
                        "suspended": 0, "parked_writes_total": 4}.items():
        assert got[f"lc_{name}", this] == value, name
    assert got["lc_copied_bytes_total", f'{this},node="remote"'] == 4096
    assert got["lc_mode", f'{this},mode="rw"'] == 1 and got["lc_mode", f'{this},mode="fail"'] == 0
    assert checked(text.replace("# HELP lc_mode", "# HELP lc_other"))[0] != 0
    assert sum(value for (name, _), value in got.items() if name == "lc_writeback_state") == 1
    info = next(labels for name, labels in got if name == "lc_volume_info")
    assert re.fullmatch(f'{this},device="dm-\\d+",generation="00000000000000ff"', info)


def test_each_number_is_a_metric(fake):
    """No number of the status line is missing, and each changes one sample."""
    fake.volume((500, 100, 10))
    fake.put("status", WHOLE_STATUS)
    words = WHOLE_STATUS.split()
    keys = [key for key, value in zip(words[::2], words[1::2]) if value.isdigit()
            and key != "generation"]
    before = samples_of(fake.tool("status", "--format=prometheus").out)
    for key in keys:
        fake.put("status", re.sub(rf"\b{key} \d+", f"{key} 12345", WHOLE_STATUS))
        after = samples_of(fake.tool("status", "--format=prometheus").out)
        changed = [name for name in before if before[name] != after[name]]
        assert len(changed) == 1 and after[changed[0]] % 12345 == 0, (key, changed)


def test_metrics_are_documented(fake):
    """The guide lists each metric, and no other."""
    fake.volume((500, 100, 10))
    fake.put("status", WHOLE_STATUS)
    got = samples_of(fake.tool("status", "--format=prometheus").out)
    guide = (host.TOP / "docs/dm-lc.rst").read_text(encoding="utf-8")
    guide = guide.partition("\nMetrics\n-------\n")[2].partition("\n-------")[0]
    assert {name for name, _ in got} == set(re.findall(r"^``(lc_\w+)`` ", guide, re.M))


def test_metrics_of_another_module(fake):
    """One that says less gives fewer samples, and words that are not known here are shown."""
    fake.volume((500, 100, 10))
    fake.put("status", 'mode a\\"b{,\n')
    text = fake.tool("status", "--format=prometheus").out
    got = samples_of(text)
    assert checked(text) == (0, "")
    assert not any(name == "lc_dirty_bytes" for name, _ in got)
    assert [value for (name, labels), value in got.items()
            if name == "lc_mode" and labels.partition("mode=")[2].startswith('"a')] == [1]


def test_output_to_a_file(fake, tmp_path):
    """It is replaced as a whole or kept, and nothing else stays in its folder."""
    folder = tmp_path / "collector"
    folder.mkdir()
    path = folder / "lc.prom"
    path.write_text("old", encoding="ascii")
    before = path.stat().st_ino
    fake.volume((500, 100, 10))
    done = fake.tool("status", "--format=prometheus", f"--output={path}")
    assert done.code == 0 and done.out == "" and path.stat().st_ino != before
    assert samples_of(path.read_text("ascii"))["lc_volumes", None] == 1
    assert list(folder.iterdir()) == [path]
    expect(fake.tool("status", f"--output={tmp_path}/none/x"), 1, "folder that exists")
    (tmp_path / "taken").mkdir()
    expect(fake.tool("status", f"--output={tmp_path}/taken"), 1, "cannot be written")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["collector", "dm", "taken"]


def test_wrong_command_lines_are_refused():
    """With what would be right."""
    expect(run_tool("status", "--format=xml"), 2, "json or prometheus")
    for seconds in ("0", "x", "86401", "-1"):
        expect(run_tool("status", f"--watch={seconds}"), 2, "1 to 86400")
    expect(run_tool("status", "--watch=1", "--count=0"), 2, "from 1 on")
    expect(run_tool("status", "--watch=1", "--json"), 2, "standard output only")
    expect(run_tool("status", "--count=1"), 2, "--watch")


def test_watch(fake):
    """A line each time, with the rates since the one before: none at first, none after a new start,
    and none of what the module does not count.
    """
    fake.volume((500, 100, 10))
    later = WHOLE_STATUS.replace("ssd_flushes 9", "ssd_flushes 1000009")
    looks = [WHOLE_STATUS, later.replace("hdd_wr", "no_wr"),
             WHOLE_STATUS.replace("epoch 3", "epoch 4").replace("mode rw", "mode degraded")]
    fake.put("status", "\n".join(looks))
    done = fake.tool("status", "--watch=1", "--count=3", "lc0")
    assert done.code == 0, done.err
    heading, *lines = done.out.splitlines()
    got = []
    for line in lines:
        words = re.sub(r" ((?:[KMGTPE]i)?B)\b", r"\1", line).split()
        got.append(dict(zip(heading.split(), words, strict=True)))
    rates = [name for name in got[0] if name.endswith("/s")]
    assert len(got) == 3 and len(rates) == 6
    for first in got[0], got[2]:
        assert {first[name] for name in rates} == {"-"}, first
    assert got[0]["NAME"] == "lc0" and got[2]["MODE"] == "degraded"
    second = got[1]
    assert 0 < float(second["SSD-FL/s"]) <= 1000000 and second["SSD-FL/s"] != "-"
    assert second["HDD-WR/s"] == second["HDD-W/s"] == "-"
    assert second["HDD-FL/s"] == second["PARKED/s"] == "0.0"


def test_watch_ends_with_its_volume(fake):
    """One that was named and is gone is an error; without names, there may be none."""
    expect(fake.tool("status", "--watch=1", "gone"), 1, "gone")
    assert "No lc volume" in fake.tool("status", "--watch=1", "--count=1").out
