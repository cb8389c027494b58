# SPDX-License-Identifier: GPL-2.0-only
"""How the demo looks in a terminal, and in the transcript."""

import os
import sys
import time

import results


class Screen:
    """Prints; a copy without colours goes to the transcript."""

    def __init__(self, copy):
        self.copy = copy
        self.colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self.started = time.monotonic()
        self.steps = 0

    def line(self, text="", style="", indent=2):
        """One line."""
        text = " " * indent + text if text else ""
        print(text, file=self.copy, flush=True)
        if style and self.colour:
            text = f"\033[{style}m{text}\033[0m"
        print(text, flush=True)

    def machine(self, case, how):
        """What the guest is."""
        sizes = {disk.name: disk.size for disk in case.disks}
        self.line(f"guest      {case.smp} CPUs, {how}, {case.memory} of RAM")
        self.line(f"hard disk  {sizes['hdd']}, {results.HDD_TEXT}")
        self.line(f"SSD        {sizes['ssd']}, {results.SSD_TEXT}")

    def show(self, event):
        """One event of the guest."""
        getattr(self, "show_" + event["kind"])(event)

    def show_begin(self, event):
        """The guest is up."""
        self.line(f"booted     Linux {event['release']}; the hard disk is {event['hdd']}, "
                  f"the SSD {event['ssd']}")

    def show_step(self, event):
        """A chapter, with the time on the right."""
        self.steps += 1
        self.line()
        clock = divmod(int(time.monotonic() - self.started), 60)
        title = f"{self.steps}  {event['title']}"
        self.line(f"{title:68}{clock[0]}:{clock[1]:02}", "1")
        for note in event["notes"]:
            self.line(note, "2", 5)
        self.line()

    def show_note(self, event):
        """A sentence."""
        self.line(event["text"], "2", 5)

    def show_command(self, event):
        """What was typed."""
        self.line("# " + event["text"], "36", 5)

    def show_output(self, event):
        """What came."""
        self.line(event["text"], "", 7)

    def show_check(self, event):
        """A verdict."""
        word, style = ("ok  ", "32") if event["good"] else ("WRONG  ", "1;31")
        self.line(word + event["text"], style, 5)

    def failure(self, reason):
        """The guest did not come to its end."""
        self.line()
        for line in reason.splitlines():
            self.line(line, "31")

    def results(self, lines):
        """The table."""
        self.line()
        for line in lines:
            self.line(line)

    def end(self, good, checks, folder, seed):
        """The last words."""
        self.line()
        self.line(f"{sum(checks)} of {len(checks)} checks passed in "
                  f"{time.monotonic() - self.started:.0f} s (seed {seed})",
                  "1;32" if good else "1;31")
        self.line(f"{folder}/: transcript, figures.json" + (", demo.png" if good else
                  "; boot/console has what the guest's kernel said"))
