# SPDX-License-Identifier: GPL-2.0-only
"""The dashboard for Grafana: each of its queries has an answer from the metrics of lc-status."""

import json
import re
import subprocess

import pytest

from lib import host, promtool
from lib.tools import WHOLE_STATUS, samples_of

DASHBOARD = host.TOP / "userland/grafana/dm-lc.json"
# What node_exporter has of the volume's device, of fake_dm's number.
OTHERS = ['node_disk_written_bytes_total{device="dm-%s"}']
MINUTES = 30


def queries():
    """[(title of a panel, its PromQL)], with variables as Grafana replaces them."""
    found = []
    for panel in json.loads(DASHBOARD.read_text(encoding="ascii"))["panels"]:
        assert panel["targets"] and panel["title"] and panel["description"]
        found += [(panel["title"], target["expr"].replace("$__rate_interval", "5m")
                   .replace("$volume", ".*")) for target in panel["targets"]]
    assert found and not any("$" in query for _, query in found)
    return found


def evaluate(folder, series, asked):
    """What promtool says when each query must have a sample at the end of the series."""
    rules = [{"record": f"query:{i}", "expr": query} for i, (_, query) in enumerate(asked)]
    tests = [{"expr": f"count(query:{i}) > bool 0", "eval_time": f"{MINUTES}m",
              "exp_samples": [{"labels": "{}", "value": 1}]} for i in range(len(asked))]
    # JSON is YAML.
    (folder / "rules.yml").write_text(json.dumps({"groups": [{"name": "g", "rules": rules}]}),
                                      encoding="ascii")
    (folder / "test.yml").write_text(json.dumps({
        "rule_files": ["rules.yml"], "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "promql_expr_test": tests,
                   "input_series": [{"series": name, "values": values}
                                    for name, values in series.items()]}]}), encoding="ascii")
    done = subprocess.run([promtool.get(), "test", "rules", "test.yml"], cwd=folder, text=True,
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


@pytest.fixture(name="series")
def fixture_series(fake):
    """All that a volume gives Prometheus, counters growing."""
    fake.volume((500, 100, 10))
    fake.put("status", WHOLE_STATUS)
    got = samples_of(fake.tool("status", "--format=prometheus").out)
    minor = next(re.search(r'device="dm-(\d+)"', labels)[1] for name, labels in got
                 if name == "lc_volume_info")
    series = {f"{name}{{{labels or ''}}}": f"{value:g}+{name.endswith(('_total', '_seq')):d}"
              f"x{MINUTES}" for (name, labels), value in got.items()}
    return series | {name % minor: f"0+1x{MINUTES}" for name in OTHERS}


def test_every_query_has_an_answer(series, tmp_path):
    """By Prometheus' own evaluation; and a query of a metric that does not exist has none."""
    try:
        promtool.get()
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        pytest.skip(f"promtool cannot be fetched: {error}")
    code, said = evaluate(tmp_path, series, queries())
    assert code == 0, said
    assert evaluate(tmp_path, series, [("none", "lc_no_such_metric")])[0] != 0


def test_counters_are_shown_as_rates():
    """A counter as it is tells nothing."""
    for title, query in queries():
        for name in re.findall(r"\b\w+_total\b", query):
            assert f"rate({name}" in query, title


def test_panels():
    """They have numbers of their own and do not overlap."""
    panels = json.loads(DASHBOARD.read_text(encoding="ascii"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = set()
    for place in (panel["gridPos"] for panel in panels):
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        assert place["x"] + place["w"] <= 24 and not cells & taken
        taken |= cells
