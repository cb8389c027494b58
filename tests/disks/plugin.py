# SPDX-License-Identifier: GPL-2.0-only
"""The emulated disks as an nbdkit Python plugin: exports `ssd`, `hdd` and `clock`.

A read of `clock` gives 8 bytes, little-endian: where in the order of all events of both disks it
stands. So a program in the guest can say where its own requests stand.

    nbdkit -f -U NBD_SOCKET python tests/disks/plugin.py control=CONTROL_SOCKET \\
        ssd=1G hdd=8T hdd-model=hdd ssd-model=ssd ssd-model.rate=200e6

Parameters
    control=PATH         where to listen for control requests (control.py)
    DISK=SIZE            size of `ssd` or `hdd`, with K, M, G or T (default 1G, 4G); also of `hdd0`
                         to `hdd9`, which are there if this is given, before the other parameters
    DISK-model=KIND      none, hdd, ssd or drive (models.py; default none)
    DISK-model.NAME=X    a parameter of that model
    cache=SIZE           volatile bytes a disk holds before it writes back by itself
    preheat=SIZE         touch so much memory first: for runs whose speed is measured
    save=PATH            folder for states saved with `save-state`
    ready-fd=N           write one byte there once both sockets are being listened on

nbdkit must stay in the foreground (-f): the control thread starts after its fork.
"""

from __future__ import annotations

import gc
import os
import re
import sys

import nbdkit

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from disks import control  # noqa: E402
from disks.image import CHUNK, SECTOR  # noqa: E402
from disks.recorder import CACHE_BYTES, IoError, Recorder  # noqa: E402

API_VERSION = 2
MAX_REQUEST = 32 << 20

sizes = {"ssd": 1 << 30, "hdd": 4 << 30}
kinds: dict[str, str] = {}
model_params: dict[str, dict[str, float]] = {}
settings: dict[str, str] = {}
recorder: Recorder


class Clock:
    """The export that is no disk."""

    name = "clock"
    size = 8 * SECTOR


CLOCK = Clock()


def config(key, value):
    disk, _, rest = key.partition("-")
    if key in sizes or re.fullmatch(r"hdd\d", key):
        sizes[key] = nbdkit.parse_size(value)
    elif disk in sizes and rest == "model":
        kinds[disk] = value
    elif disk in sizes and rest.startswith("model."):
        model_params.setdefault(disk, {})[rest.removeprefix("model.")] = float(value)
    elif key in ("control", "cache", "preheat", "save", "ready-fd"):
        settings[key] = value
    else:
        raise RuntimeError(f"unknown parameter {key}")


def config_complete():
    global recorder
    cache = nbdkit.parse_size(settings["cache"]) if "cache" in settings else CACHE_BYTES
    recorder = Recorder(sizes, cache, settings.get("save"))
    for disk in sizes:
        recorder.model(disk, kinds.get(disk, "none"), **model_params.get(disk, {}))


def after_fork():
    gc.disable()  # nothing here is cyclic; a collection would walk every chunk
    if "preheat" in settings:
        preheat(nbdkit.parse_size(settings["preheat"]) // CHUNK)
    if "control" in settings:
        control.serve(recorder, settings["control"])
    if "ready-fd" in settings:
        os.write(int(settings["ready-fd"]), b"\n")


def preheat(chunks):
    """Make the heap big: a page's first touch costs more than the write it serves."""
    fill = memoryview(b"x" * CHUNK)
    held = [fill.tobytes() for _ in range(chunks)]
    held.clear()


def thread_model():
    return nbdkit.THREAD_MODEL_PARALLEL


def list_exports(readonly, is_tls):
    return [*sizes, CLOCK.name]


def default_export(readonly, is_tls):
    return "ssd"


def open(readonly):  # nbdkit chose the name
    name = nbdkit.export_name()
    if name == CLOCK.name:
        return CLOCK
    if name not in recorder.disks:
        raise RuntimeError(f"no export {name!r}; one of {', '.join(sizes)}")
    return recorder.disks[name]


def get_size(disk):
    return disk.size


def block_size(disk):
    return (512, 4096, MAX_REQUEST)


def is_rotational(disk):
    return disk.name == "hdd"


def _is_disk(disk):
    return disk is not CLOCK


can_write = can_flush = can_trim = can_zero = can_fast_zero = _is_disk


def can_multi_conn(disk):
    return True


def can_fua(disk):
    return nbdkit.FUA_NONE if disk is CLOCK else nbdkit.FUA_NATIVE


def can_cache(disk):
    return nbdkit.CACHE_NONE


def pread(disk, buf, offset, flags):
    if disk is CLOCK:
        buf[:] = recorder.clock().to_bytes(8, "little").ljust(len(buf), b"\0")
        return
    try:
        recorder.read(disk, buf, offset)
    except IoError as err:
        nbdkit.set_error(err.errno)
        raise


def pwrite(disk, buf, offset, flags):
    try:
        recorder.write(disk, buf, offset, bool(flags & nbdkit.FLAG_FUA))
    except IoError as err:
        nbdkit.set_error(err.errno)
        raise


def flush(disk, flags):
    try:
        recorder.flush(disk)
    except IoError as err:
        nbdkit.set_error(err.errno)
        raise


def trim(disk, count, offset, flags):
    try:
        recorder.trim(disk, offset, count, bool(flags & nbdkit.FLAG_FUA))
    except IoError as err:
        nbdkit.set_error(err.errno)
        raise


def zero(disk, count, offset, flags):
    try:
        recorder.zero(disk, offset, count, bool(flags & nbdkit.FLAG_FUA))
    except IoError as err:
        nbdkit.set_error(err.errno)
        raise
