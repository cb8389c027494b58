# SPDX-License-Identifier: GPL-2.0-only
"""How long a disk takes: service-time models of a hard disk and of an SSD.

A model turns each command into a computed service time, sums these up
(`model-time`), and, unless told not to sleep, lets the command wait until it would
have been served. Each disk has a model and a clock of its own; one disk's waiting
never holds up the other.

HddModel: one head. A command that continues where the head stands costs only its
transfer; any other costs
    seek_ms + stroke_ms * sqrt(distance / size) + rotation_ms + length / rate,
or, where that is less, the time for the gap to pass under the head. With the
defaults random 4 KiB commands over the whole disk come to 4.0 ms (250 a second, about
1 MB/s), sequential ones to 150 MB/s. rotation_ms is the wait that is left after a
drive's own sorting, taken as constant. Waiting commands are served nearest first,
but none is passed over for longer than `patience_ms`; with `fifo` they are served as
they came.

SsdModel: command_us for each command and length / rate for its bytes, one after
another as on a link; a flush costs flush_us.

DriveModel (drive.py): a hard disk whose sectors come around, with a write cache of its own; for
the benchmark.

Not modelled by the first two: write-back caching (a write takes its full time although it is
still volatile), zones of different speed, remapped sectors, an SSD's garbage collection and its
gain from parallel commands.
"""

from __future__ import annotations

import math
import threading
import time

from .drive import DriveModel, Timed

SLACK = 200e-6  # waits shorter than this are carried over to the next command


class Model(Timed):
    """Base: a queue of one server and its clock."""

    nearest = False

    def __init__(self, size: int, sleep: bool = True, **params: float):
        super().__init__(size, sleep, **params)
        self.head = 0
        self._free_at = 0.0
        self._busy = False
        self._queue: list[tuple[int, float, threading.Lock]] = []

    def cost(self, op: str, offset: int, length: int) -> float:
        """Seconds of service; moves the head."""
        raise NotImplementedError

    def serve(self, op: str, offset: int, length: int, fua: bool = False) -> None:
        """Account for a command and wait until it has been served; all writes wait like FUA."""
        arrival = time.monotonic()
        if self.nearest and self.sleep:
            self._take_turn(offset, arrival)
            self._wait_until(self._start(op, offset, length, arrival))
            self._pass_turn()
        else:
            with self._lock:
                done = self._start(op, offset, length, arrival)
            if self.sleep:
                self._wait_until(done)

    def _start(self, op: str, offset: int, length: int, arrival: float) -> float:
        seconds = self.cost(op, offset, length)
        self.seconds += seconds
        self.commands += 1
        self._free_at = max(arrival, self._free_at) + seconds
        return self._free_at

    @staticmethod
    def _wait_until(done: float) -> None:
        delay = done - time.monotonic()
        if delay > SLACK:
            time.sleep(delay)

    def _take_turn(self, offset: int, arrival: float) -> None:
        with self._lock:
            if not self._busy:
                self._busy = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._queue.append((offset, arrival, turn))
        turn.acquire()

    def _pass_turn(self) -> None:
        with self._lock:
            if not self._queue:
                self._busy = False
                return
            oldest = self._queue[0]
            if time.monotonic() - oldest[1] > self.p["patience_ms"] / 1e3:
                chosen = oldest
            else:
                chosen = min(self._queue, key=lambda waiting: abs(waiting[0] - self.head))
            self._queue.remove(chosen)
        chosen[2].release()


class HddModel(Model):
    """A hard disk with one head."""

    kind = "hdd"
    params = {
        "seek_ms": 0.5,
        "stroke_ms": 2.8,
        "rotation_ms": 2.0,
        "rate": 150e6,
        "flush_ms": 0.0,
        "patience_ms": 200.0,
        "fifo": 0.0,
    }

    def __init__(self, size: int, sleep: bool = True, **params: float):
        super().__init__(size, sleep, **params)
        self.nearest = not self.p["fifo"]

    def cost(self, op: str, offset: int, length: int) -> float:
        p = self.p
        if op == "flush":
            return p["flush_ms"] / 1e3
        if op in ("trim", "zero"):
            length = 0  # a command, no data
        gap = offset - self.head
        move = 0.0
        if gap:
            stroke = p["stroke_ms"] * math.sqrt(abs(gap) / self.size)
            move = (p["seek_ms"] + stroke + p["rotation_ms"]) / 1e3
            if gap > 0:
                move = min(move, gap / p["rate"])
        self.head = offset + length
        return move + length / p["rate"]


class SsdModel(Model):
    """An SSD behind a link of fixed speed."""

    kind = "ssd"
    params = {"command_us": 20.0, "rate": 500e6, "flush_us": 100.0}

    def cost(self, op: str, offset: int, length: int) -> float:
        p = self.p
        if op == "flush":
            return p["flush_us"] / 1e6
        if op in ("trim", "zero"):
            length = 0
        return p["command_us"] / 1e6 + length / p["rate"]


KINDS: dict[str, type[Model] | type[DriveModel]] = {
    "hdd": HddModel, "ssd": SsdModel, "drive": DriveModel,
}  # fmt: skip


def make(kind: str, size: int, sleep: bool = True, **params: float) -> Model | DriveModel | None:
    """The model named @kind, or None for `none` (as fast as it goes)."""
    if kind == "none":
        if params:
            raise ValueError("no parameters without a model")
        return None
    if kind not in KINDS:
        raise ValueError(f"unknown model {kind!r}; one of none, {', '.join(KINDS)}")
    return KINDS[kind](size, sleep, **params)
