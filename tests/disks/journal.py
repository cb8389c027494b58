# SPDX-License-Identifier: GPL-2.0-only
"""A stretch of the disks' common history, and the crash states in it.

A journal holds what the disks held when it began, and every write and flush that succeeded since,
each with two places in the one order of all events of all disks: where it arrived and where it
was answered. From that it makes the state of any point of the order, again and again:

* not there: what arrived behind the point
* durable: what was answered when a flush of the same disk arrived that was answered by the
  point; and FUA writes that were answered by it
* volatile: all else, commands in service at the point included. Their fates are drawn by
  crash.py, from the same seed in the same way as those of a cut.

This is the model of recorder.py, with one difference: the cache never writes back by itself.

`lose` is for tests of the code that judges: it makes durable writes vanish, so that a promise of
the disk is broken.
"""

from __future__ import annotations

import io
import json
import lzma
import tarfile
from dataclasses import dataclass

from . import image
from .image import Chunks, Write

State = dict[str, tuple[Chunks, list[Write]]]  # by disk: the durable image, volatile writes


@dataclass(slots=True)
class Command:
    """A write (also of zeros) or a flush that succeeded."""

    disk: str
    begun: int
    ended: int
    fua: bool
    write: Write | None  # None: a flush


class Journal:
    """What happened since it began."""

    def __init__(self, base: State):
        self.base = {
            name: (dict(durable), [again(w, w.order, w.durable) for w in volatile])
            for name, (durable, volatile) in base.items()
        }
        self.commands: list[Command] = []  # in the order of their answers

    def wrote(self, disk: str, begun: int, ended: int, write: Write, fua: bool) -> None:
        """A write was answered."""
        self.commands.append(Command(disk, begun, ended, fua, write))

    def flushed(self, disk: str, begun: int, ended: int) -> None:
        """A flush was answered."""
        self.commands.append(Command(disk, begun, ended, False, None))

    def events(self) -> list[tuple]:
        """(begun, ended, disk, offset, length, fua) of every command; a flush has length 0."""
        return [
            (c.begun, c.ended, c.disk, *((c.write.offset, c.write.length) if c.write else (0, 0)),
             c.fua)
            for c in self.commands
        ]  # fmt: skip

    def at(self, point: int, lose: dict[str, int] | None = None) -> State:
        """The state at a point; `lose`: so many of a disk's newest durable writes vanish."""
        state: State = {}
        for name, (durable, volatile) in self.base.items():
            chunks = dict(durable)
            writes = self._writes(name, point, volatile)
            if lose and lose.get(name):
                sure = [write for write in writes if write.durable][-lose[name] :]
                writes = [write for write in writes if write not in sure]
            while writes and writes[0].durable:
                writes.pop(0).apply(chunks)
            state[name] = chunks, writes
        return state

    def _writes(self, name: str, point: int, before: list[Write]) -> list[Write]:
        """The writes there are at a point, in their order, and which of them are durable."""
        mine = [c for c in self.commands if c.disk == name and c.begun <= point]
        covered = max((c.begun for c in mine if not c.write and c.ended <= point), default=0)
        writes = [again(w, w.order, w.durable or w.order < covered) for w in before]
        served = []
        for command in mine:
            if command.write and command.ended <= point:
                durable = command.fua or command.ended < covered
                writes.append(again(command.write, command.ended, durable))
            elif command.write:
                served.append(command)
        served.sort(key=lambda command: command.begun)
        writes += [again(c.write, point + 1 + i, False) for i, c in enumerate(served)]
        return writes


def again(write: Write, order: int, durable: bool) -> Write:
    """The same write with another place in the order; the data is shared."""
    copy = Write(write.offset, write.length, write.pieces, write.hole)
    copy.order = order
    copy.durable = durable
    return copy


def archive(path, images: dict[str, tuple[int, Chunks]], files: dict[str, bytes],
            about: dict) -> None:
    """Save a state so that it can be looked at and resumed: a .tar.xz of images and files."""
    members = {f"{name}.img": image.read(chunks, 0, size) for name, (size, chunks) in
               images.items()}
    members |= files
    members["about.json"] = (json.dumps(about, indent=1) + "\n").encode()
    with lzma.open(path, "wb") as out, tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in sorted(members.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
