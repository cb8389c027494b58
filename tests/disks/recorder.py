# SPDX-License-Identifier: GPL-2.0-only
"""Emulated disks with a volatile write cache, seen together and cut off together.

The model
* A write is volatile from its completion until a flush of that disk that started
  after this completion has itself completed. A FUA write is durable on completion.
* A write in service (delayed by a model or a fault) when the power goes is volatile
  too: it may have arrived, wholly, in part or not at all, but was never acknowledged.
* Writes of all disks stand in one order, that of their completion. So do arrivals, answers and
  the readings of the clock, which a guest takes to say what it has been promised when.
* At a cut each disk's volatile writes meet the fate the policy draws for them
  (crash.py); what is left, applied in order to the durable image, is the crash state.
  From then on every command fails with EIO until `restore` makes the crash state the
  content of the disks, all of it durable.
* Reads see the newest completed write.
* As a drive writes its cache back by itself, the oldest volatile writes become durable
  once a disk has more than `cache_bytes` of them. That is also what bounds memory.
* TRIM and WRITE ZEROES are volatile like any write; trimmed sectors read as zeros.

A journal (journal.py) remembers a stretch of all this. Later, and as often as wanted, the disks
can be put into any state that a crash at any point of it may have left.

Not modelled: see crash.py; nor link loss that drops commands without an error, command
timeouts and resets, and a cache that writes newer data back before older (a write that
was kept over one that was dropped has the same effect).
"""

from __future__ import annotations

import base64
import errno as errnos
import itertools
import random
import threading
import zlib
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from . import crash, image, journal, models
from .image import SECTOR, Chunks, Write

OPS = ("read", "write", "flush", "trim", "zero")
CHANGING = ("write", "flush", "trim", "zero")
CACHE_BYTES = 256 << 20
SAVED_BYTES = 256 << 20
APPLY = ("none", "all", "torn", "lie")


class IoError(OSError):
    """A command the disk fails; errno says how."""

    def __init__(self, code: int):
        super().__init__(code, errnos.errorcode.get(code, str(code)))


@dataclass
class Fault:
    """Fail or delay chosen commands."""

    id: int
    disk: str | None  # None: any
    op: str  # one of OPS, or "any"
    start: int
    end: int
    skip: int  # let so many matching commands pass first
    count: int  # then hit so many; -1: all
    errno: int  # 0: only delay
    delay: float
    apply: str  # what a failing write leaves behind, or `lie`: nothing is done, all seems well
    hits: int = 0
    lifted: threading.Event = field(default_factory=threading.Event)

    def matches(self, disk: str, op: str, offset: int, length: int) -> bool:
        """Whether this command is to be hit; counts it if so."""
        if self.disk not in (None, disk) or self.op not in ("any", op) or not self.count:
            return False
        if op != "flush" and not (offset < self.end and self.start < offset + length):
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.count > 0:
            self.count -= 1
        self.hits += 1
        return True

    def describe(self) -> dict:
        """For the `faults` reply."""
        return {k: v for k, v in vars(self).items() if k != "lifted"}


@dataclass
class Arm:
    """A cut that waits for its moment."""

    commands: int
    seed: int
    policy: str
    disk: str | None
    ops: tuple[str, ...]


class Disk:
    """One disk: its images, its volatile writes, its counters."""

    COUNTERS = (
        "reads", "read_bytes", "writes", "write_bytes", "flushes", "fua",
        "trims", "trim_bytes", "zeroes", "zero_bytes",
        "errors", "destaged",
    )  # fmt: skip

    def __init__(self, name: str, size: int, cache_bytes: int = CACHE_BYTES):
        if size <= 0 or size % SECTOR:
            raise ValueError(f"size of {name} must be a multiple of {SECTOR}")
        self.name = name
        self.size = size
        self.cache_bytes = cache_bytes
        self.live: Chunks = {}
        self.durable: Chunks = {}
        self.crashed: Chunks | None = None
        self.volatile: deque[Write] = deque()
        self.volatile_bytes = 0
        self.pending: dict[int, tuple] = {}
        self.model: models.Model | None = None
        self.reset_stats()

    def reset_stats(self) -> None:
        """Set the counters to 0."""
        self.count = dict.fromkeys(self.COUNTERS, 0)

    def complete(self, write: Write) -> None:
        """A write is done: visible from now on, durable or volatile."""
        write.apply(self.live)
        if write.durable and not self.volatile:
            write.share(self.live, self.durable)
            return
        self.volatile.append(write)
        if not write.hole:
            self.volatile_bytes += write.length
        while self.volatile_bytes > self.cache_bytes:
            self.count["destaged"] += 1
            self._fold_oldest()

    def fold(self, order: int) -> None:
        """Writes up to @order are durable now."""
        volatile = self.volatile
        if volatile and volatile[-1].order <= order:
            for write in volatile:
                write.share(self.live, self.durable)
            volatile.clear()
            self.volatile_bytes = 0
            return
        while volatile and (volatile[0].order <= order or volatile[0].durable):
            self._fold_oldest()

    def _fold_oldest(self) -> None:
        write = self.volatile.popleft()
        write.apply(self.durable)
        if not write.hole:
            self.volatile_bytes -= write.length

    def crash(self, fates: list[crash.Fate]) -> dict:
        """Build the crash state; returns what became of the writes."""
        state = dict(self.durable)
        seen = {"kept": 0, "dropped": 0, "torn": 0}
        for write, fate in zip(self.volatile, fates, strict=True):
            if not fate:
                seen["dropped"] += 1
            elif fate == [(0, write.length // SECTOR)]:
                seen["kept"] += 1
                write.apply(state)
            else:
                seen["torn"] += 1
                for first, end in fate:
                    write.part(first, end).apply(state)
        self.crashed = state
        return {"volatile": len(self.volatile), **seen}

    def become(self, chunks: Chunks) -> None:
        """Power is back: @chunks is all there is, and it is durable."""
        self.live = chunks
        self.durable = dict(chunks)
        self.crashed = None
        self.volatile.clear()
        self.volatile_bytes = 0

    def resume(self, durable: Chunks, volatile: list[Write]) -> None:
        """The power never went: @volatile is in the cache, all of it visible."""
        self.become(durable)
        for write in volatile:
            self.complete(write)

    def images(self) -> dict[str, Chunks]:
        """The images that exist now."""
        found = {"live": self.live, "durable": self.durable}
        if self.crashed is not None:
            found["crash"] = self.crashed
        return found


class Recorder:
    """All disks, in one order. Every public method may be called from any thread."""

    def __init__(
        self, sizes: dict[str, int], cache_bytes: int = CACHE_BYTES, folder: str | None = None
    ):
        self.folder = Path(folder) if folder else None  # of saved states
        self.disks = {name: Disk(name, size, cache_bytes) for name, size in sizes.items()}
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._order = 0
        self._tickets = itertools.count()
        self._life = 0  # raised by cut, restore and revert: older commands fail
        self._dead = False
        self._cut_report: dict | None = None
        self._arm: Arm | None = None
        self._faults: list[Fault] = []
        self._fault_ids = itertools.count(1)
        self._snapshots: dict[str, dict] = {}
        self._trace: deque[tuple] | None = None
        self._journals: dict[str, journal.Journal] = {}
        self._journal: journal.Journal | None = None  # the one that is being written

    # ---- commands of the disks -------------------------------------------------

    def read(self, disk: Disk, buf, offset: int) -> None:
        """READ into @buf."""
        length = len(buf)
        with self._lock:
            self._arrive(disk, "read", offset, length, False)
            count = disk.count
            count["reads"] += 1
            count["read_bytes"] += length
            if disk.model is None and not self._faults:
                image.read_into(disk.live, offset, buf)
                return
            life = self._life
        self._serve(disk, "read", offset, length, life)
        with self._lock:
            self._check_life(disk, life)
            image.read_into(disk.live, offset, buf)

    def write(self, disk: Disk, buf, offset: int, fua: bool = False) -> None:
        """WRITE of @buf."""
        length = len(buf)
        with self._lock:
            count = disk.count
            count["writes"] += 1
            count["write_bytes"] += length
            if fua:
                count["fua"] += 1
            self._change(disk, "write", offset, length, fua, lambda: Write.of_data(offset, buf))

    def zero(self, disk: Disk, offset: int, length: int, fua: bool = False) -> None:
        """WRITE ZEROES."""
        with self._lock:
            disk.count["zeroes"] += 1
            disk.count["zero_bytes"] += length
            if fua:
                disk.count["fua"] += 1
            self._change(disk, "zero", offset, length, fua, lambda: Write.of_zeros(offset, length))

    def trim(self, disk: Disk, offset: int, length: int, fua: bool = False) -> None:
        """TRIM."""
        with self._lock:
            disk.count["trims"] += 1
            disk.count["trim_bytes"] += length
            self._change(disk, "trim", offset, length, fua, lambda: Write.of_zeros(offset, length))

    def flush(self, disk: Disk) -> None:
        """FLUSH: covers the writes that had completed when it started, and no other."""
        with self._lock:
            disk.count["flushes"] += 1
            self._arrive(disk, "flush", 0, 0, False)
            covered = self._now()
            if self._countdown(disk, "flush"):
                self._fire()
                self._fail(disk, errnos.EIO)
            if disk.model is None and not self._faults:
                self._flushed(disk, covered)
                return
            life = self._life
        fault = self._serve(disk, "flush", 0, 0, life)
        with self._lock:
            self._check_life(disk, life)
            if fault is None:
                self._flushed(disk, covered)

    def clock(self) -> int:
        """Where in the order this moment stands."""
        with self._lock:
            return self._now()

    # ---- their steps; the lock is held unless said otherwise -----------------------

    def _arrive(self, disk: Disk, op: str, offset: int, length: int, fua: bool) -> None:
        if self._dead:
            self._fail(disk, errnos.EIO)
        if offset % SECTOR or length % SECTOR or offset + length > disk.size:
            self._fail(disk, errnos.EINVAL)
        if self._trace is not None:
            self._trace.append((self._order, disk.name, op, offset, length, fua))

    def _change(self, disk: Disk, op: str, offset: int, length: int, fua: bool, make) -> None:
        self._arrive(disk, op, offset, length, fua)
        if self._countdown(disk, op):
            disk.pending[next(self._tickets)] = (make, fua)
            self._fire()
            self._fail(disk, errnos.EIO)
        begun = self._now()
        if disk.model is not None or self._faults:
            self._change_slowly(disk, op, offset, length, fua, make, begun)
        else:
            self._complete(disk, make(), fua, begun)

    def _change_slowly(
        self, disk: Disk, op: str, offset: int, length: int, fua, make, begun: int
    ) -> None:
        """_change() where the command takes time; drops the lock meanwhile."""
        life = self._life
        ticket = next(self._tickets)
        disk.pending[ticket] = (make, fua)
        self._lock.release()
        fault = None
        try:
            fault = self._serve(disk, op, offset, length, life, raising=False, fua=fua)
        finally:
            self._lock.acquire()
            disk.pending.pop(ticket, None)
        self._check_life(disk, life)
        if fault is None:
            self._complete(disk, make(), fua, begun)
            return
        if fault.apply == "lie":
            return
        if fault.apply == "all":
            self._complete(disk, make(), False, begun)
        elif fault.apply == "torn" and length > SECTOR:
            self._complete(disk, make().part(0, length // SECTOR // 2), False, begun)
        self._fail(disk, fault.errno)

    def _now(self) -> int:
        self._order += 1
        return self._order

    def _complete(self, disk: Disk, write: Write, fua: bool, begun: int = 0) -> None:
        write.order = self._now()
        write.durable = fua
        disk.complete(write)
        if self._journal:
            self._journal.wrote(disk.name, begun, write.order, write, fua)

    def _flushed(self, disk: Disk, begun: int) -> None:
        disk.fold(begun)
        if self._journal:
            self._journal.flushed(disk.name, begun, self._now())

    def _serve(
        self, disk: Disk, op: str, offset: int, length: int, life: int, raising: bool = True,
        fua: bool = False,
    ) -> Fault | None:
        """Delays of faults and of the model, without the lock; the fault that spoilt it."""
        spoilt = None
        with self._lock:
            hit = [f for f in self._faults if f.matches(disk.name, op, offset, length)]
        for fault in hit:
            if fault.delay:
                fault.lifted.wait(fault.delay)
            if fault.errno or fault.apply == "lie":
                spoilt = fault
                break
        if disk.model is not None and not (spoilt and spoilt.errno):
            disk.model.serve(op, offset, length, fua)
        if spoilt and spoilt.errno and raising:
            with self._lock:
                self._check_life(disk, life)
                self._fail(disk, spoilt.errno)
        return spoilt

    def _check_life(self, disk: Disk, life: int) -> None:
        if life != self._life:
            self._fail(disk, errnos.EIO)

    def _fail(self, disk: Disk, code: int) -> None:
        disk.count["errors"] += 1
        raise IoError(code)

    def _countdown(self, disk: Disk, op: str) -> bool:
        arm = self._arm
        if arm is None or op not in arm.ops or arm.disk not in (None, disk.name):
            return False
        arm.commands -= 1
        return arm.commands <= 0

    def _fire(self) -> None:
        arm = self._arm
        assert arm
        self._cut(arm.seed, arm.policy)

    def _cut(self, seed: int, policy: str) -> dict:
        chosen = crash.choose(seed, policy)
        for disk in self.disks.values():
            for ticket in sorted(disk.pending):
                make, fua = disk.pending[ticket]
                self._complete(disk, make(), False)
            disk.pending.clear()
        fates = crash.fates(seed, chosen, {n: list(d.volatile) for n, d in self.disks.items()})
        seen = {name: disk.crash(fates[name]) for name, disk in self.disks.items()}
        self._cut_report = {"seed": seed, "policy": chosen, "order": self._order, "disks": seen}
        self._dead = True
        self._arm = None
        self._new_life()
        return self._cut_report

    def _new_life(self) -> None:
        self._life += 1
        self._journal = None
        for disk in self.disks.values():
            disk.pending.clear()
        for fault in self._faults:
            fault.lifted.set()
            fault.lifted = threading.Event()
        self._changed.notify_all()

    def _disk(self, name: str) -> Disk:
        if name not in self.disks:
            raise ValueError(f"unknown disk {name!r}; one of {', '.join(self.disks)}")
        return self.disks[name]

    def _range(self, name: str, offset: int, length: int) -> Disk:
        disk = self._disk(name)
        if offset < 0 or length < 0 or offset + length > disk.size:
            raise ValueError(f"range outside of {name}")
        return disk

    # ---- requests ------------------------------------------------------------------

    def cut(self, seed: int = 0, policy: str = "random") -> dict:
        """Power off now. When off already: draw another crash from the same writes."""
        with self._lock:
            return self._cut(seed, policy)

    def restore(self) -> dict:
        """Power on: the disks hold the crash state."""
        with self._lock:
            if not self._dead:
                raise ValueError("the power is on")
            for disk in self.disks.values():
                assert disk.crashed is not None
                disk.become(disk.crashed)
            self._dead = False
            self._new_life()
            return self._state()

    def arm(
        self,
        after_commands: int,
        seed: int = 0,
        policy: str = "random",
        disk: str | None = None,
        ops: list[str] | None = None,
    ) -> dict:
        """Cut when so many more changing commands have arrived; the last one in flight."""
        chosen = tuple(ops or CHANGING)
        if after_commands < 1 or not set(chosen) <= set(CHANGING):
            raise ValueError(f"after_commands must be 1 or more, ops of {', '.join(CHANGING)}")
        crash.choose(seed, policy)
        with self._lock:
            if self._dead:
                raise ValueError("the power is off")
            if disk is not None:
                self._disk(disk)
            self._arm = Arm(after_commands, seed, policy, disk, chosen)
            return self._state()

    def disarm(self) -> dict:
        """Forget an armed cut."""
        with self._lock:
            self._arm = None
            return self._state()

    def state(self) -> dict:
        """Power, what is armed, the last cut."""
        with self._lock:
            return self._state()

    def _state(self) -> dict:
        return {
            "power": "off" if self._dead else "on",
            "armed": self._arm.commands if self._arm else None,
            "cut": self._cut_report,
            "order": self._order,
        }

    def wait(self, power: str, timeout: float = 60.0) -> dict:
        """Return when the power is `on` or `off`."""
        if power not in ("on", "off"):
            raise ValueError("power must be on or off")
        with self._lock:
            if not self._changed.wait_for(lambda: self._dead == (power == "off"), timeout):
                raise TimeoutError(f"power not {power} within {timeout:g} s")
            return self._state()

    def snapshot(self, name: str) -> dict:
        """Remember everything, volatile writes included. Chunks are shared, not copied."""
        with self._lock:
            self._snapshots[name] = {
                "dead": self._dead,
                "cut": self._cut_report,
                "disks": {
                    n: (
                        dict(d.live),
                        dict(d.durable),
                        dict(d.crashed) if d.crashed is not None else None,
                        list(d.volatile),
                    )
                    for n, d in self.disks.items()
                },
            }
            return {"snapshots": sorted(self._snapshots)}

    def revert(self, name: str) -> dict:
        """Back to a snapshot; commands in service fail."""
        with self._lock:
            if name not in self._snapshots:
                raise ValueError(f"no snapshot {name!r}")
            saved = self._snapshots[name]
            for n, (live, durable, crashed, volatile) in saved["disks"].items():
                disk = self.disks[n]
                disk.live = dict(live)
                disk.durable = dict(durable)
                disk.crashed = dict(crashed) if crashed is not None else None
                disk.volatile = deque(volatile)
                disk.volatile_bytes = sum(w.length for w in volatile if not w.hole)
            self._dead = saved["dead"]
            self._cut_report = saved["cut"]
            self._arm = None
            self._new_life()
            return self._state()

    def drop_snapshot(self, name: str) -> dict:
        """Forget a snapshot."""
        with self._lock:
            self._snapshots.pop(name, None)
            return {"snapshots": sorted(self._snapshots)}

    def wipe(self, disk: str | None = None) -> dict:
        """As new: all zeros."""
        with self._lock:
            if disk and self._dead:
                raise ValueError("the power is off: all disks or none")
            for d in [self._disk(disk)] if disk else self.disks.values():
                d.become({})
            self._dead = False
            self._new_life()
            return self._state()

    def journal_start(self, name: str) -> dict:
        """Remember all that happens from now on, until `journal-stop`, a cut or a new state."""
        with self._lock:
            if self._dead:
                raise ValueError("the power is off")
            base = {n: (d.durable, list(d.volatile)) for n, d in self.disks.items()}
            self._journal = self._journals[name] = journal.Journal(base)
            return {"order": self._now()}

    def journal_stop(self) -> dict:
        """Remember no more."""
        with self._lock:
            self._journal = None
            return {"order": self._now()}

    def journal_events(self, name: str) -> dict:
        """Its commands, see Journal.events()."""
        with self._lock:
            return {"events": self._get_journal(name).events()}

    def journal_drop(self, name: str | None = None) -> dict:
        """Forget one journal, or all."""
        with self._lock:
            for known in [name] if name else list(self._journals):
                self._journals.pop(known, None)
            return {"journals": sorted(self._journals)}

    def crash_state(
        self,
        name: str,
        point: int,
        seed: int = 0,
        policy: str = "random",
        fates: dict[str, list] | None = None,
        lose: dict[str, int] | None = None,
        tell: bool = False,
    ) -> dict:
        """Power off at a point of a journal, and on again.

        The fates are drawn, or those given; @tell: return them, and the writes they are of.
        @policy `warm`: the machine was restarted and the disks kept their power.
        """
        with self._lock:
            state = self._get_journal(name).at(point, lose)
            volatile = {n: writes for n, (_, writes) in state.items()}
            if policy == "warm":
                return self._warm(state)
            chosen = crash.choose(seed, policy)
            drawn = crash.fates(seed, chosen, volatile) if fates is None else {
                n: [[(first, end) for first, end in fate] for fate in fates[n]] for n in volatile
            }  # fmt: skip
            seen = {}
            for n, disk in self.disks.items():
                disk.durable, disk.volatile = state[n][0], deque(volatile[n])
                seen[n] = disk.crash(drawn[n])
                disk.become(disk.crashed or {})
            self._power_on()
            told = {
                n: [(w.offset, w.length, w.order, w.durable) for w in writes]
                for n, writes in volatile.items()
            }
            return {"policy": chosen, "disks": seen} | (
                {"fates": drawn, "writes": told} if tell else {}
            )

    def _warm(self, state: journal.State) -> dict:
        """The machine restarts: what is in the disks' caches stays there."""
        for n, disk in self.disks.items():
            disk.resume(*state[n])
        self._order = max([self._order, *(w.order for _, ws in state.values() for w in ws)])
        self._power_on()
        counts = {n: len(disk.volatile) for n, disk in self.disks.items()}
        return {"policy": "warm", "disks": {
            n: {"volatile": count, "kept": count, "dropped": 0, "torn": 0}
            for n, count in counts.items()
        }}  # fmt: skip

    def _power_on(self) -> None:
        self._dead = False
        self._arm = None
        self._new_life()

    def _get_journal(self, name: str) -> journal.Journal:
        if name not in self._journals:
            raise ValueError(f"no journal {name!r}")
        return self._journals[name]

    def save_state(self, name: str, files: dict[str, str], about: dict) -> dict:
        """Save what the disks hold now, and files (zlib, base64), for later; says where."""
        if not self.folder:
            raise ValueError("no folder to save states in")
        with self._lock:
            images = {n: (d.size, dict(d.live)) for n, d in self.disks.items()}
        if max(size for size, _ in images.values()) > SAVED_BYTES:
            raise ValueError("these disks are too large to be saved")
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{Path(name).name}.tar.xz"
        raw = {n: zlib.decompress(base64.b64decode(text)) for n, text in files.items()}
        journal.archive(path, images, raw, about)
        return {"path": str(path)}

    def stats(self) -> dict:
        """Counters of each disk since `reset-stats`, and what it holds now."""
        with self._lock:
            return {
                name: {
                    **disk.count,
                    "volatile": len(disk.volatile),
                    "volatile_bytes": disk.volatile_bytes,
                    "allocated": len(disk.live) * image.CHUNK,
                    "size": disk.size,
                }
                for name, disk in self.disks.items()
            }

    def reset_stats(self) -> dict:
        """Set the counters of all disks to 0."""
        with self._lock:
            for disk in self.disks.values():
                disk.reset_stats()
            return {}

    def trace(self, size: int | None = None) -> dict:
        """Keep the last @size commands (0: none); without @size, return those kept."""
        with self._lock:
            if size is not None:
                self._trace = deque(maxlen=size) if size else None
                return {}
            names = ("order", "disk", "op", "offset", "length", "fua")
            return {
                "commands": [dict(zip(names, entry, strict=True)) for entry in self._trace or ()]
            }

    def fault(
        self,
        disk: str | None = None,
        op: str = "any",
        offset: int = 0,
        length: int | None = None,
        count: int = -1,
        skip: int = 0,
        errno: str | int = "EIO",
        delay_ms: float = 0,
        apply: str = "none",
    ) -> dict:
        """Add a rule; errno 0 only delays, apply `lie` acknowledges what it does not do.

        Returns its id.
        """
        if op not in (*OPS, "any") or apply not in APPLY:
            raise ValueError(f"op of {', '.join(OPS)} or any; apply of {', '.join(APPLY)}")
        code = errno if isinstance(errno, int) else getattr(errnos, errno, None)
        if code is None:
            raise ValueError(f"unknown errno {errno!r}")
        if apply == "lie":
            code = 0
        with self._lock:
            if disk is not None:
                self._disk(disk)
            end = offset + length if length is not None else 1 << 63
            rule = Fault(
                next(self._fault_ids), disk, op, offset, end, skip, count, code,
                delay_ms / 1e3, apply,
            )  # fmt: skip
            self._faults.append(rule)
            return {"id": rule.id}

    def faults(self) -> dict:
        """All rules and how often each has hit."""
        with self._lock:
            return {"faults": [f.describe() for f in self._faults]}

    def fault_clear(self, id: int | None = None) -> dict:
        """Remove one rule or all; commands they delay go on at once."""
        with self._lock:
            gone = [f for f in self._faults if id in (None, f.id)]
            self._faults = [f for f in self._faults if f not in gone]
            for fault in gone:
                fault.lifted.set()
            return {"cleared": len(gone)}

    def corrupt(self, disk: str, offset: int, len: int = SECTOR, seed: int = 0) -> dict:
        """Flip 1 to 8 bits of the range in each sector it touches, on the medium."""
        with self._lock:
            d = self._range(disk, offset, len)
            first, end = offset // SECTOR, -(-(offset + len) // SECTOR)
            rng = random.Random(f"{seed}/{disk}/{offset}/{len}")
            for sector in range(first, end):
                mask = 0
                inside = range(8 * max(0, offset - sector * SECTOR),
                               8 * min(SECTOR, offset + len - sector * SECTOR))
                for bit in rng.sample(inside, rng.randint(1, 8)):
                    mask |= 1 << bit
                for chunks in d.images().values():
                    old = image.read(chunks, sector * SECTOR, SECTOR)
                    new = int.from_bytes(old, "little") ^ mask
                    data = new.to_bytes(SECTOR, "little")
                    Write.of_data(sector * SECTOR, data).apply(chunks)
            return {"sectors": end - first}

    def dump(self, disk: str, offset: int, len: int, image: str | None = None) -> dict:
        """Bytes of an image: live, durable or crash; by default what a reader would get."""
        with self._lock:
            chunks = self._image(self._range(disk, offset, len), image)
            return {"data": base64.b64encode(_read(chunks, offset, len)).decode()}

    def poke(self, disk: str, offset: int, data: str) -> dict:
        """Put base64 bytes on the medium behind everyone's back; not counted."""
        raw = base64.b64decode(data, validate=True)
        with self._lock:
            for chunks in self._range(disk, offset, len(raw)).images().values():
                Write.of_data(offset, raw).apply(chunks)
            return {}

    def digest(self, disk: str, image: str | None = None) -> dict:
        """Hash of an image; equal hashes, equal content."""
        with self._lock:
            return {"sha256": _digest(self._image(self._disk(disk), image))}

    def _image(self, disk: Disk, name: str | None) -> Chunks:
        images = disk.images()
        chosen = name or ("crash" if self._dead else "live")
        if chosen not in images:
            raise ValueError(f"no image {chosen!r} now; there is {', '.join(images)}")
        return images[chosen]

    def model(self, disk: str, kind: str, sleep: bool = True, **params: float) -> dict:
        """Set a disk's service-time model."""
        with self._lock:
            d = self._disk(disk)
            d.model = models.make(kind, d.size, sleep, **params)
            return {"params": d.model.p if d.model else {}}

    def model_time(self, reset: bool = False) -> dict:
        """Computed service time and commands of each disk that has a model."""
        with self._lock:
            return {n: d.model.time(reset) for n, d in self.disks.items() if d.model}


_read = image.read
_digest = image.digest
