# SPDX-License-Identifier: GPL-2.0-only
"""The charts of the report: each drawn only if its figures are there."""

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from rows import LC, PEERS  # noqa: E402

QUIET, LOUD, INK = "#b8c0c8", "#1f6f8b", "#22303a"
# One colour and dash for each system, the same in all charts.
LINES = {LC: (LOUD, "-"), "dm-writeboost": ("#c98f2c", "-"), "dm-writecache": ("#8f6bb3", "-"),
         "dm-cache": ("#5b9a5b", "-"), "bcache": ("#c2524f", "-"), "dm-linear": (INK, "--"),
         "dm-zero": (QUIET, "--"), "raw": (INK, ":")}
# MB/s in the 2013 report: hard disk random, SSD random, dm-lc random, SSD sequential.
OLD = (("hard disk, random 4 KiB", 0.883), ("dm-lc, random 4 KiB", 259),
       ("SSD, sequential 1 MiB", 266))


def plain(axes, title):
    """No frame, no ticks."""
    axes.set_title(title, loc="left", fontsize=11, color=INK, pad=10)
    axes.tick_params(length=0)
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    axes.spines["left"].set_color(QUIET)


def bars(axes, title, values, unit):
    """Horizontal bars of {name: value}; dm-lc's stands out."""
    names = list(values)
    most = max(values.values()) or 1
    colours = [LOUD if name.startswith("dm-lc") else QUIET for name in names]
    axes.barh(range(len(names)), list(values.values()), color=colours, height=0.62)
    for place, value in enumerate(values.values()):
        text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        axes.text(value + most * 0.02, place, f"{text} {unit}", va="center", fontsize=9,
                  color=INK)
    axes.set_xlim(0, most * 1.35)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xticks([])
    axes.set_yticks(range(len(names)), names, fontsize=9.5, color=INK)
    plain(axes, title)


def values(figures, job, path, scale=1.0):
    """{system: figure}."""
    return {name: figures.get(job, path, name) * scale for name in figures.systems(job, path)}


def save(figure, path):
    """Keep it and forget it."""
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return True


def side_by_side(panels, path):
    """One row of bar charts; panels are (title, {name: value}, unit)."""
    panels = [panel for panel in panels if panel[1]]
    if not panels:
        return False
    figure, axes = pyplot.subplots(1, len(panels), figsize=(5.2 * len(panels), 3.6),
                                   squeeze=False)
    for one, panel in zip(axes[0], panels, strict=True):
        bars(one, *panel)
    return save(figure, path)


def throughput(figures):
    """The bars of 2013, beside those of this run."""
    wanted = (("full", "iops", "raw", 4096, OLD[0][0]),
              ("ssd_bound", "bytes_s", "dm-lc", 1, OLD[1][0]),
              ("ssd_bound", "bytes_s", "raw", 1, OLD[2][0]))
    here = {}
    for job, path, system, scale, title in wanted:
        if system in figures.systems(job, path):
            here[title] = figures.get(job, path, system) * scale / 1e6
    return [("this run, modelled disks", here, "MB/s"),
            ("2013 report", dict(OLD) if here else {}, "MB/s")]


def finish(figure, axes, drawn, path):
    """A legend, and the file; nothing of a chart without figures."""
    if not drawn:
        pyplot.close(figure)
        return False
    axes.legend(frameon=False, fontsize=9)
    return save(figure, path)


def line(axes, name, along, up):
    """One system's; dm-lc's stands out."""
    mine = name == LC
    colour, dash = LINES[name]
    axes.plot(along, up, label=name, linewidth=2.4 if mine else 1.4, color=colour,
              linestyle=dash, zorder=3 if mine else 2)


def steps(axes, title, figures, job, paths, among=tuple(LINES)):
    """A line for each system through its figures at {label: path}; False without any."""
    names = [name for name in among
             if all(name in figures.systems(job, path) for path in paths.values())]
    for name in names:
        line(axes, name, list(paths), [figures.get(job, path, name) for path in paths.values()])
    plain(axes, title)
    return bool(names)


def against_jobs(figures, path):
    """IOPS that fio sees, against its jobs."""
    figure, axes = pyplot.subplots(figsize=(8, 3.8))
    drawn = steps(axes, "4 KiB random writes a second against fio's jobs, depth 32 each", figures,
                  "programs", {"1": "write_depth_32.write_iops", "2": "write_2_jobs.write_iops",
                               "4": "write_4_jobs.write_iops"})
    axes.set_ylim(bottom=0)
    return finish(figure, axes, drawn, path)


def percentiles(figures, path):
    """How long FLUSHes take, by percentile; dm-linear and raw have nothing to flush."""
    figure, axes = pyplot.subplots(1, 2, figsize=(10.4, 3.8), sharey=True)
    drawn = False
    for one, threads in zip(axes, (1, 16), strict=True):
        drawn |= steps(one, f"us of a FLUSH, {threads} thread{'s' if threads > 1 else ''}",
                       figures, "synced_write",
                       {name: f"latency_{threads}.{key}" for name, key in
                        (("50 %", "p500"), ("90 %", "p900"), ("99 %", "p990"),
                         ("99.9 %", "p999"))}, (LC, *PEERS))
        one.set_yscale("log")
    return finish(figure, axes[0], drawn, path)


def drain_curve(got, path):
    """What has reached the HDD, over time."""
    curves = {}
    for result in got["results"]:
        curve = result["figures"].get("curve") if result["job"] == "drain" else None
        if curve and result["system"] not in curves:
            curves[result["system"]] = curve
    if not curves:
        return False
    figure, axes = pyplot.subplots(figsize=(8, 3.8))
    for name, curve in curves.items():
        line(axes, name, [point[0] for point in curve], [point[1] / 1024 for point in curve])
    plain(axes, "MiB written back to the modelled HDD, seconds since the drain began")
    return finish(figure, axes, True, path)


def draw(got, figures, folder):
    """All charts there are figures for; returns their names."""
    made = []

    def keep(name, done):
        if done:
            made.append(name)

    keep("random-write.png", side_by_side(
        [(f"{n} thread{'s' if n > 1 else ''}",
          values(figures, "random_write", f"iops_{n}"), "IOPS") for n in (1, 2)],
        folder / "random-write.png"))
    keep("synced-write.png", side_by_side(
        [(f"writes with FLUSH, {n} thread{'s' if n > 1 else ''}",
          values(figures, "synced_write", f"iops_{n}"), "IOPS") for n in (1, 16)]
        + [("p99 of the FLUSH, 1 thread",
            values(figures, "synced_write", "latency_1.p990"), "us")],
        folder / "synced-write.png"))
    keep("jobs.png", against_jobs(figures, folder / "jobs.png"))
    keep("percentiles.png", percentiles(figures, folder / "percentiles.png"))
    keep("throughput.png", side_by_side(throughput(figures), folder / "throughput.png"))
    keep("drain.png", drain_curve(got, folder / "drain.png"))
    return made
