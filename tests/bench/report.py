# SPDX-License-Identifier: GPL-2.0-only
"""The report in Markdown, made from results.json alone.

By hand: tests/bench/report.py build/bench/results.json
"""

import json
import pathlib
import sys

from rows import MISSED, REACHED, ROWS, UNKNOWN, Figures

CHARTS = (
    ("random-write.png", "4 KiB random writes on RAM disks"),
    ("throughput.png", "The figure of the 2013 report, on modelled disks"),
    ("jobs.png", "What fio sees, against its jobs"),
    ("synced-write.png", "A FLUSH after every write: rate and p99"),
    ("percentiles.png", "A FLUSH after every write: percentiles"),
    ("drain.png", "Draining random dirty blocks"),
)


def number(value):
    """Three digits, thousands apart."""
    if value >= 1000:
        return f"{value:,.0f}"
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    if value >= 1 or value == 0:
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{value:.4f}".rstrip("0")


def table(head, lines):
    """A Markdown table."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for line in lines:
        yield "| " + " | ".join(line) + " |"


def setting(got):
    """Where and how it was measured."""
    machine = got["machine"]
    real = machine.get("real")
    kind = "an emulated CPU (TCG): only ratios within this run mean anything" \
        if machine["emulated"] else "KVM"
    yield f"Commit {got['commit']}, {got['date']}, {got['length']} run of {got['seconds']} s, " \
          f"seed {got['seed']}, {got['plan']['repetitions']} repetition(s) in rotated order, one " \
          f"of {', '.join(got['plan']['once'])}" + "".join(
              f", and of {job} with {', '.join(names)}"
              for job, names in got["plan"]["once_of"].items()) + "."
    yield ""
    yield "; ".join(
        f"Linux {boot['kernel']} ({boot['name']}), {boot['guest'].get('cpus', '?')} CPUs, clock "
        f"{boot['guest'].get('clock', '?')}" for boot in got["boots"]) + "."
    if not real:
        yield f"Guests, on {kind}, {machine['qemu']}. An emulated CPU has neither SSE 4.2 nor " \
              "PCLMULQDQ but where instructions are counted: emulated, crc32c takes 39 us per " \
              "4 KiB with them, which would hide the other costs. dm-lc sums with xxh64 there."
    yield f"Machine: {machine['cpu']}, {machine['cpus']} CPUs, load average " \
          f"{machine['load_before']} before the run."
    if real:
        yield f"SSD: {real['ssd']}. HDD: {real['hdd']}. Jobs meant for RAM disks or models ran " \
              "on these."
    else:
        yield f"SSD model: {got['plan']['ssd_model']}. HDD model: {got['plan']['hdd_kind']} " \
              f"{got['plan']['hdd_model'] or 'with its defaults'} (`tests/disks/`)."
    yield from about_traces(got["plan"])
    if left_out := got["plan"]["left_out"]:
        yield "Left out here: " + "; ".join(f"{job} ({', '.join(names)})"
                                            for job, names in left_out.items()) + "."
    versions = {f"{name} {version}" for boot in got["boots"]
                for name, version in boot["versions"].items()}
    if versions:
        yield f"Peers: {', '.join(sorted(versions))}."
    yield ""
    guest = got["boots"][0]["guest"]
    yield from table(("system", "set up with"),
                     [(name, text) for name, text in guest.get("options", {}).items()])


def about_traces(plan):
    """What of each trace was replayed, and with which cache."""
    for name, trace in plan.get("traces", {}).items():
        read, written = trace["read_kib"] // 4, trace["written_kib"] // 4
        yield f"Trace {name}: its first {trace['requests']:,} requests, {read:,} blocks read and " \
              f"{written:,} written, {trace['blocks']:,} distinct ones; caches of " \
              f"{trace['segments']} MiB of data " \
              f"({trace['segments'] * 256 / trace['blocks']:.3f} of these blocks), and what a " \
              "system needs besides; " \
              f"{plan['trace_depth']} in flight, disks {plan['trace_speed']} times as fast."


def summary(figures):
    """The table of targets with verdicts."""
    lines = []
    for row in ROWS:
        verdict, tests = row.judge(figures)
        shown = "; ".join(
            f"{test.what} **{number(test.value)}**" if not test.holds
            else f"{test.what} {number(test.value)}" for test in tests)
        mark = {REACHED: "reached", MISSED: "**MISSED**", UNKNOWN: UNKNOWN}[verdict]
        lines.append((row.number, row.what, row.target, mark, shown))
    yield from table(("#", "what", "target", "verdict", "dm-lc (bold: what misses)"), lines)


def details(figures, systems):
    """Every figure of every system."""
    for row in ROWS:
        lines = []
        for job, path, unit in row.shown:
            have = figures.systems(job, path)
            if not have:
                continue
            cells = []
            for name in systems:
                if name not in have:
                    cells.append("")
                    continue
                spread = figures.spread(job, path, name)
                cells.append(number(figures.get(job, path, name))
                             + (f" ±{spread * 50:.0f}%" if spread else ""))
            lines.append((f"{path} ({unit})", *cells))
        if lines:
            yield ""
            yield f"### {row.number}. {row.what}"
            yield ""
            yield from table(("figure", *systems), lines)


def others(figures, systems):
    """What no row of the table looks at."""
    used = {(job, path) for row in ROWS for job, path, _ in row.shown}
    jobs = {}
    for job, path, _ in figures.values:
        if (job, path) not in used:
            jobs.setdefault(job, {})[path] = True
    for job, paths in jobs.items():
        yield from ("", f"### {job}", "")
        lines = []
        for path in paths:
            have = figures.systems(job, path)
            lines.append((path, *(number(figures.get(job, path, name)) if name in have else ""
                                  for name in systems)))
        yield from table(("figure", *systems), lines)


def failures(got):
    """What has no figure because it failed."""
    failed = [result for result in got["results"] if result["error"]]
    for boot in got["boots"]:
        if boot["verdict"] != "passed":
            yield f"* **The guest ({boot['name']}): {boot['verdict']}**: " \
                  f"{boot['reason'].splitlines()[0]}"
    for result in failed:
        yield f"* {result['job']}, {result['system']}: {result['error'].splitlines()[0]}"


def lines_of(got, charts=()):
    """The whole report."""
    figures = Figures(got["results"])
    systems = [name for name in got["plan"]["systems"]]
    yield "<!-- SPDX-License-Identifier: GPL-2.0-only -->"
    yield "# The benchmark of dm-lc"
    yield ""
    yield from setting(got)
    bad = list(failures(got))
    if bad:
        yield from ("", "## Failures", "", *bad)
    yield from ("", "## Targets", "")
    yield from summary(figures)
    for name, title in CHARTS:
        if name in charts:
            yield from ("", f"![{title}]({name})")
    yield from ("", "## Figures", "",
                "Medians; ± is half of what lies between the smallest and the largest value.")
    yield from details(figures, systems)
    yield from ("", "## All other figures", "", "Latencies in microseconds.")
    yield from others(figures, systems)


def write(got, folder):
    """report.md and the charts below folder; returns the path of the report."""
    import charts  # pylint: disable=import-outside-toplevel
    made = charts.draw(got, Figures(got["results"]), folder)
    path = pathlib.Path(folder) / "report.md"
    path.write_text("\n".join(lines_of(got, made)) + "\n", encoding="utf-8")
    return path


def profile_lines(got):
    """One table per load: the share of each task in all samples, of each function in its task's."""
    yield "# Where the time goes"
    for profile in got["profiles"]:
        for load in profile["loads"]:
            tasks = dict(load["tasks"])
            whole = sum(tasks.values())
            yield ""
            yield f"## {profile['job']}, {profile['system']}"
            yield ""
            yield f"`{load['load']}`: " + ", ".join(
                f"{name} {100 * hits / whole:.0f} %" for name, hits in tasks.items()
                if 100 * hits >= whole) + f" of {whole} samples (swapper: idle)"
            yield ""
            yield from table(("task", "function", "samples", "share of the task"),
                             [(task, f"`{name}`", str(hits), f"{100 * hits / tasks[task]:.1f} %")
                              for task, name, hits in load["functions"]])


def write_profile(got, folder):
    """profile.md below folder; returns its path."""
    path = pathlib.Path(folder) / "profile.md"
    path.write_text("\n".join(profile_lines(got)) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    source = pathlib.Path(sys.argv[1])
    print(write(json.loads(source.read_text(encoding="utf-8")), source.parent))
