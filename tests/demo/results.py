# SPDX-License-Identifier: GPL-2.0-only
"""The disks' figures and the rows of the table, beside those of the 2013 report."""

# Parameters of tests/disks/models.py. The SSD is slow enough for an emulated CPU to keep up.
HDD = {"rotation_ms": 3.0}
HDD_TEXT = "about 4 ms for a random command, 150 MB/s in sequence"
SSD = {"rate": 60e6, "command_us": 20.0}
SSD_TEXT = "60 MB/s, 20 us a command"

# name, what it is, MB/s in the 2013 report
ROWS = (
    ("hdd", "hard disk, random 4 KiB", 0.883),
    ("ssd", "SSD, random 4 KiB", 202),
    ("lc", "dm-lc, random 4 KiB", 259),
    ("ssd-seq", "SSD, sequential 1 MiB", 266),
)


def rate(value):
    """Three digits."""
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else \
        f"{value:.1f}" if value < 100 else f"{value:.0f}"


def ratio(value):
    """To the hard disk."""
    return f"{value:.0f} x" if value >= 9.95 or value == 1 else f"{value:.1f} x"


def table(figures):
    """The lines of the table; figures in bytes a second."""
    old = {name: value for name, _, value in ROWS}
    lines = [f"{'writes':24}{'here':>14}{'':>10}{'2013 report':>17}", "-" * 74]
    for name, what, _ in ROWS:
        lines.append(f"{what:24}{rate(figures[name] / 1e6):>9} MB/s"
                     f"{ratio(figures[name] / figures['hdd']):>8}"
                     f"{rate(old[name]):>14} MB/s{ratio(old[name] / old['hdd']):>9}")
    lines += ["", f"dm-lc to the SSD in sequence: {figures['lc'] / figures['ssd-seq']:.3f} here, "
              f"{old['lc'] / old['ssd-seq']:.3f} in 2013",
              f"dm-lc to the SSD at random:   {figures['lc'] / figures['ssd']:.2f} here, "
              f"{old['lc'] / old['ssd']:.2f} in 2013"]
    return lines
