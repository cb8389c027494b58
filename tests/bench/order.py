#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What the order of a drain costs: random blocks on the modelled drive, in its own time.

Batches are in the order of the log, which is random, and each is sorted.  The drive has its queue
full all the time.  One batch of all blocks is what a sweep comes to, and what dm-writecache and
bcache do when they write everything back.  Nothing is slept, so this shows the disk alone.
"""

import argparse
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from disks.drive import Command, DriveModel, Mechanism  # noqa: E402

BLOCK, GIB = 4096, 1 << 30
RUN_BLOCKS = 64     # of neighbours that are written together
DISK = 2 << 40      # bytes


def runs_of(blocks):
    """[[first, number]] of sorted blocks."""
    runs = []
    for block in blocks:
        if runs and sum(runs[-1]) == block and runs[-1][1] < RUN_BLOCKS:
            runs[-1][1] += 1
        else:
            runs.append([block, 1])
    return runs


def drain(blocks, batch):
    """Seconds and commands for blocks in the order in which they were logged."""
    drive = Mechanism(DISK, DriveModel.params)
    now, commands, waiting = 0.0, 0, []

    def serve():
        nonlocal now
        command = drive.choose(waiting, now)
        waiting.remove(command)
        now = drive.serve(command, now)
    for begin in range(0, len(blocks), batch):
        for first, number in runs_of(sorted(blocks[begin:begin + batch])):
            waiting.append(Command("write", first * BLOCK, number * BLOCK, now))
            commands += 1
            if len(waiting) >= drive.depth:
                serve()
        while waiting:      # the FLUSH at the end of a batch
            serve()
    return now, commands


def main():
    """A table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, nargs="+", default=[8192, 65536, 524288])
    parser.add_argument("--span", type=int, nargs="+", default=[8, 1024], help="GiB")
    parser.add_argument("--batch", type=int, default=8192)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print(f"{'GiB':>5} {'blocks':>7} {'':16} {'commands':>8} {'seconds':>8}")
    for span in args.span:
        for number in args.blocks:
            blocks = random.Random(args.seed).sample(range(span * GIB // BLOCK), number)
            for what, batch in ((f"batches of {args.batch}", args.batch), ("a sweep", number)):
                seconds, commands = drain(blocks, batch)
                print(f"{span:5} {number:7} {what:16} {commands:8} {seconds:8.1f}", flush=True)


if __name__ == "__main__":
    main()
