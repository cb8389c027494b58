# SPDX-License-Identifier: GPL-2.0-only
"""A 7200 rpm hard disk: one head over a turning platter, a sorted queue, a volatile write cache.

A command costs the seek, the wait until its first sector passes under the head, and the
transfer. The seek takes track_ms for the smallest and grows with the square root of the
distance, so that the average over two random places is seek_ms. Where a sector is on its track
follows from its address: a revolution holds rate * 60 / rpm bytes, and tracks are skewed so that
a transfer goes on into the next one.

Writes complete when they are in the cache (command_us, and the transfer on the link), which holds
`cache` bytes in at most `segments` pieces; the drive writes them back by itself. Reads go first;
when the cache is half full, or a flush waits, they take turns with writes. Of those that may go,
all reads or the `depth` oldest cached writes, the one with the shortest access is served, but no
read is passed over for longer than `patience_ms`. A flush waits for all writes that were in the
cache when it came, FUA for its own. A read that goes on where the last one ended finds what the
head has passed over since (read-ahead, as long as the drive had nothing else to do).

What this comes to, with the defaults, over the whole disk (tests/test_drive.py holds it to that):

    4 KiB random reads, one at a time    76-82 a second   (published: 8.5 + 4.16 ms, 75-80)
    4 KiB random reads, 32 in flight     about 185        (published: 160-250 with NCQ)
    4 KiB random writes, cache on        about 190        (0.883 MB/s = 216 in the 2013 report)
    1 MiB in sequence, either way        150 MB/s

Not modelled: zones of different speed, remapped sectors, writes that miss their track and are
tried again, several platters.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field

SLACK = 200e-6  # shorter waits are carried over
LINGER = 0.5  # so long the arm's thread waits for more
MEAN_ROOT = 8 / 15  # of the distance of two random places on [0, 1]


@dataclass(eq=False)
class Command:
    """One that waits for the arm."""

    op: str
    offset: int
    length: int
    arrival: float
    number: int = 0
    done: threading.Event = field(default_factory=threading.Event)


class Mechanism:
    """Head and platter; knows times, has no clock of its own."""

    def __init__(self, size: int, p: dict[str, float]):
        self.size = size
        self.rate = p["rate"]
        self.turn = 60 / p["rpm"]
        self.track = self.rate * self.turn
        self.shortest = p["track_ms"] / 1e3
        self.stroke = (p["seek_ms"] / 1e3 - self.shortest) / MEAN_ROOT
        self.depth = int(p["depth"])
        self.patience = p["patience_ms"] / 1e3
        self.ahead = p["ahead"]
        self.head = 0
        self.free_at = 0.0
        self.read_end = -1  # where the last read ended, if the head stayed there
        self.read_at = 0.0

    def access(self, offset: int, start: float) -> float:
        """Seconds until the first sector is under the head."""
        gap = abs(offset - self.head)
        seek = 0.0
        if gap >= self.track:
            seek = self.shortest + self.stroke * math.sqrt(gap / self.size)
        angle = (offset % self.track) / self.track
        wait = (angle - (start + seek) / self.turn) % 1.0
        if wait > 1 - 1e-4:  # it is there, but for rounding
            wait = 0.0
        return seek + wait * self.turn

    def choose(self, waiting: list[Command], start: float, pressed: bool = False) -> Command:
        """The next to be served; @waiting is in the order of arrival."""
        reads = [command for command in waiting if command.op == "read"]
        writes = [command for command in waiting if command.op == "write"][: self.depth]
        if reads and start - reads[0].arrival > self.patience:
            return reads[0]
        both = reads and writes
        if both and pressed and self.read_end >= 0:
            group = writes
        else:
            group = reads or writes
        return min(group, key=lambda c: self.access(c.offset, max(start, c.arrival)))

    def serve(self, command: Command, start: float) -> float:
        """When it is done; moves the head."""
        passed = (start - self.read_at) * self.rate
        end = command.offset + command.length
        if command.op == "read" and 0 <= self.read_end == command.offset and passed < self.ahead:
            done = max(start, self.read_at + command.length / self.rate)
        else:
            done = start + self.access(command.offset, start) + command.length / self.rate
        self.head = end
        self.free_at = done
        self.read_end = end if command.op == "read" else -1
        self.read_at = done
        return done


class Timed:
    """What each model has: its parameters, and the sums of what it has served."""

    kind = "none"
    params: dict[str, float] = {}

    def __init__(self, size: int, sleep: bool = True, **params: float):
        unknown = set(params) - set(self.params)
        if unknown:
            raise ValueError(f"{self.kind} model has no {', '.join(sorted(unknown))}")
        self.size = size
        self.sleep = sleep
        self.p = {**self.params, **{k: float(v) for k, v in params.items()}}
        self.seconds = 0.0
        self.commands = 0
        self._lock = threading.Condition()

    def time(self, reset: bool = False) -> dict:
        """The sums, for `model-time`: seconds of service, and commands served."""
        with self._lock:
            reply = {"kind": self.kind, "seconds": self.seconds, "commands": self.commands}
            if reset:
                self.seconds = 0.0
                self.commands = 0
        return reply


class DriveModel(Timed):
    """The interface of models.Model, with a thread that moves the arm."""

    kind = "drive"
    params = {
        "rpm": 7200.0,
        "seek_ms": 8.5,
        "track_ms": 0.8,
        "rate": 150e6,
        "depth": 32.0,
        "cache": 64e6,
        "segments": 1024.0,
        "ahead": 2e6,
        "command_us": 50.0,
        "link_rate": 500e6,
        "patience_ms": 500.0,
    }

    def __init__(self, size: int, sleep: bool = True, **params: float):
        super().__init__(size, sleep, **params)
        self.arm = Mechanism(size, self.p)
        self._changed = self._lock
        self._waiting: list[Command] = []
        self._served: Command | None = None
        self._number = 0
        self._cached = 0  # bytes
        self._pieces = 0
        self._flushes = 0  # that wait
        self._running = False

    def serve(self, op: str, offset: int, length: int, fua: bool = False) -> None:
        """Wait until a command is answered."""
        arrival = time.monotonic()
        if op == "flush":
            self._flush()
            return
        if op not in ("read", "write"):
            return  # a command, no data
        command = Command(op, offset, length, arrival)
        if not self.sleep:
            with self._changed:
                self._account(command, self.arm.free_at)
            return
        with self._changed:
            if op == "write":
                self._changed.wait_for(lambda: self._room(length))
                self._cached += length
                self._pieces += 1
            self._number += 1
            command.number = self._number
            self._waiting.append(command)
            self._changed.notify_all()
            if not self._running:
                self._running = True
                threading.Thread(target=self._move, daemon=True).start()
        if op == "read" or fua:
            command.done.wait()
        else:
            _sleep_until(arrival + self.p["command_us"] / 1e6 + length / self.p["link_rate"])

    # ---- the arm -----------------------------------------------------------------

    def _account(self, command: Command, start: float) -> float:
        done = self.arm.serve(command, start)
        self.seconds += done - start
        self.commands += 1
        return done

    def _flush(self) -> None:
        with self._changed:
            last = self._number
            self._flushes += 1
            self._changed.wait_for(lambda: not any(
                command.op == "write" and command.number <= last for command in self._pending()))
            self._flushes -= 1

    def _room(self, length: int) -> bool:
        return not self._pieces or (self._cached + length <= self.p["cache"]
                                    and self._pieces < self.p["segments"])

    def _pressed(self) -> bool:
        return (self._flushes > 0 or self._cached > self.p["cache"] / 2
                or self._pieces > self.p["segments"] / 2)

    def _pending(self):
        if self._served:
            yield self._served
        yield from self._waiting

    def _move(self) -> None:
        while True:
            with self._changed:
                idle = not self._waiting
                if not self._changed.wait_for(lambda: self._waiting, LINGER):
                    self._running = False
                    return
                # While there is work the arm's own clock goes on, however late the thread is.
                start = time.monotonic() if idle else self.arm.free_at
                command = self.arm.choose(self._waiting, start, self._pressed())
                self._waiting.remove(command)
                self._served = command
                done = self._account(command, max(start, command.arrival))
            _sleep_until(done)
            with self._changed:
                self._served = None
                if command.op == "write":
                    self._cached -= command.length
                    self._pieces -= 1
                self._changed.notify_all()
            command.done.set()


def _sleep_until(when: float) -> None:
    delay = when - time.monotonic()
    if delay > SLACK:
        time.sleep(delay)
