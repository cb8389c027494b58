# SPDX-License-Identifier: GPL-2.0-only
"""The demo's part on the host: build, boot one guest, show what it says, draw the chart."""

import argparse
import json
import pathlib
import random
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from lib import host, kernels, payload, products, sideport, vm  # noqa: E402, I001
from lclib import CASES, registry  # noqa: E402

from chart import draw  # noqa: E402
from results import HDD, SSD, ROWS, table  # noqa: E402
from screen import Screen  # noqa: E402

FOLDER = host.BUILD / "demo"
PORT = "dmlc.demo"
HOW = {True: "CPU emulated", False: "KVM"}
# Both disks are timed, with the demo's figures for their time models.
DISKS = {"models": {"hdd": "hdd", "ssd": "ssd"}, "model_params": {"hdd": HDD, "ssd": SSD},
         "preheat": "640M"}


class Audience:
    """Takes the guest's events, hands them to the screen, keeps what they say."""

    def __init__(self, screen):
        self.screen = screen
        self.figures = {}
        self.checks = []

    def take(self, event):
        """One event."""
        if event["kind"] == "figure":
            self.figures[event["name"]] = event["value"]
            return
        if event["kind"] == "check":
            self.checks.append(event["good"])
        self.screen.show(event)


def prepare(screen):
    """Kernel, module, tools, and the files of the guest."""
    started = time.monotonic()
    kernel = kernels.get("stock")
    with host.locked("build", host.BUILD):
        made = products.build(kernel)
        files = payload.make(kernel, made, FOLDER / "payload")
    screen.line(f"built      module and tools for Linux {kernel.release}, "
                f"{time.monotonic() - started:.0f} s")
    return kernel, files


def perform(screen, kernel, files, seed):
    """One boot; returns (outcome, audience)."""
    registry.load(TESTS / "demo/guest")
    case = CASES["demo.end_to_end"]
    audience = Audience(screen)
    side = sideport.Side(PORT, audience.take)
    boot = sideport.Boot(kernel, files, [case], FOLDER / "boot", seed, side=side, disks=DISKS)
    screen.machine(case, HOW[vm.is_emulated(kernel)])
    return sideport.perform(boot, side), audience


def show(screen, seed):
    """The whole demo; returns whether every verification passed and every figure is there."""
    screen.line("dm-lc, end to end", "1")
    screen.line()
    kernel, files = prepare(screen)
    outcome, audience = perform(screen, kernel, files, seed)
    figures = audience.figures
    whole = all(name in figures for name, *_ in ROWS)
    good = outcome.verdict == "passed" and whole and audience.checks and all(audience.checks)
    if outcome.verdict != "passed":
        screen.failure(outcome.reason)
    if whole:
        screen.results(table(figures))
        draw(figures, f"emulated disks, {HOW[vm.is_emulated(kernel)]}", FOLDER / "demo.png")
        (FOLDER / "figures.json").write_text(json.dumps(figures, indent=1) + "\n",
                                             encoding="ascii")
    screen.end(good, audience.checks, FOLDER.relative_to(host.TOP), seed)
    return good


def main():
    """The command line; exit 0 only if all went well."""
    parser = argparse.ArgumentParser(prog="tests/demo/run", description="The demo of dm-lc.")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 1 << 31),
                        help="of the power cut and the load")
    args = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with host.locked("demo", FOLDER), open(FOLDER / "transcript", "w", encoding="utf-8") as copy:
        screen = Screen(copy)
        try:
            return 0 if show(screen, args.seed) else 1
        except RuntimeError as error:  # a build, a fetch, or QEMU itself
            screen.failure(str(error))
        except KeyboardInterrupt:
            screen.failure("stopped")
    return 1


if __name__ == "__main__":
    sys.exit(main())
