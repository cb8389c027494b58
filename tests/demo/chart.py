# SPDX-License-Identifier: GPL-2.0-only
"""The chart of the demo: what was measured here beside the 2013 report."""

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from results import ROWS, rate, ratio  # noqa: E402

QUIET, LOUD, INK = "#b8c0c8", "#1f6f8b", "#22303a"


def panel(axes, title, values):
    """One group of bars, with its figures behind them."""
    places = range(len(ROWS))
    colours = [LOUD if name == "lc" else QUIET for name, *_ in ROWS]
    axes.barh(places, values, color=colours, height=0.62)
    for place, value in zip(places, values, strict=True):
        axes.text(value + max(values) * 0.02, place,
                  f"{rate(value)} MB/s   {ratio(value / values[0])}",
                  va="center", fontsize=10, color=INK,
                  fontweight="bold" if ROWS[place][0] == "lc" else "normal")
    axes.set_title(title, loc="left", fontsize=11, color=INK, pad=10)
    axes.set_xlim(0, max(values) * 1.5)
    axes.set_ylim(len(ROWS) - 0.4, -0.6)
    axes.set_xticks([])
    axes.set_yticks(list(places), [what for _, what, _ in ROWS], fontsize=10.5, color=INK)
    axes.tick_params(length=0)
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    axes.spines["left"].set_color(QUIET)


def draw(figures, where, path):
    """Write the PNG; `where` says what the guest was."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.1), sharey=True)
    figure.subplots_adjust(left=0.175, right=0.985, top=0.8, bottom=0.12, wspace=0.06)
    figure.text(0.015, 0.925, "Write throughput: a hard disk, an SSD, and both through dm-lc",
                fontsize=13.5, fontweight="bold", color=INK)
    figure.text(0.015, 0.04, "x: times the random writes of the hard disk. "
                "Each side has a scale of its own.", fontsize=9, color=INK)
    panel(left, f"this demo ({where})", [figures[name] / 1e6 for name, *_ in ROWS])
    panel(right, "2013 report (Samsung 840 Pro, Linux 3.9.8)", [old for *_, old in ROWS])
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
