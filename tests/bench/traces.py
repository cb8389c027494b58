# SPDX-License-Identifier: GPL-2.0-only
"""Traces for the benchmark: read, cut, written for fio and for the simulator, and simulated.

A part of a trace is its first requests. Blocks drawn by a hash would be another way to make a trace
shorter. But they tear the trace's streams, and the cache for them is no larger than a few segments.

Beginning and end of a request are rounded down to blocks of 4 KiB, as if its partition were
aligned: nearly all of cp is in partitions that begin within a block. Requests that follow one
another without a gap still do so.
"""

import dataclasses
import itertools
import lzma
import re
import struct
import subprocess

from disks.drive import DriveModel
from lib import host

SECTORS = 8                  # of a block
SEGMENT = 256                # blocks
LEAST_SEGMENTS = 16          # lc-format takes no fewer
RECORD = struct.Struct("<IIIHHQQ")
READS, WRITES = (0x28, 0x88), (0x2a, 0x8a)
SHARPER = ("rpm", "rate", "link_rate")                                   # more of it is faster
SOONER = ("seek_ms", "track_ms", "command_us", "flush_us", "patience_ms")
# The simulator's names of the systems.
MODELS = {"dm-lc": "lc", "dm-writeboost": "writeboost", "dm-cache": "dm-cache",
          "bcache": "bcache"}


@dataclasses.dataclass(frozen=True)
class Trace:
    """One that the benchmark knows."""

    file: str
    share: float             # of the cache in the distinct blocks of what is replayed


TRACES = {"cp": Trace("cloudphysics-small.vscsi.xz", 0.20), "P6": Trace("arc-P6.lis.zst", 0.10)}


def in_blocks(write, sector, sectors):
    """(write, first block, blocks) of a request."""
    first = sector // SECTORS
    return write, first, max(1, (sector + sectors) // SECTORS - first)


def read_vscsi(data):
    """The reads and writes of records of 32 bytes."""
    for _, length, _, command, _, sector, _ in RECORD.iter_unpack(
            data[:len(data) // RECORD.size * RECORD.size]):
        if length and command in READS + WRITES:
            yield in_blocks(command in WRITES, sector, (length + 511) // 512)


def read_lis(data):
    """Lines of first sector, number of sectors and two numbers more: all are reads."""
    for line in data.decode("ascii").splitlines():
        first, count, _, _ = map(int, line.split())
        if count:
            yield in_blocks(False, first, count)


def load(path):
    """All requests of a file."""
    if path.suffix == ".xz":
        data = lzma.decompress(path.read_bytes())
    else:
        data = subprocess.run(["zstd", "-dcq", path], stdout=subprocess.PIPE, check=True).stdout
    return (read_vscsi if ".vscsi" in path.suffixes else read_lis)(data)


def footprint(requests):
    """How many blocks they touch."""
    return len({block for _, first, nr in requests for block in range(first, first + nr)})


def segments(blocks, share):
    """The cache for so many blocks, in segments of the log."""
    return max(LEAST_SEGMENTS, round(blocks * share / SEGMENT))


def save_iolog(path, requests):
    """As fio reads it; the file in it is none (replay_redirect)."""
    with open(path, "w", encoding="ascii") as file:
        file.write("fio version 2 iolog\nvolume add\nvolume open\n")
        for write, block, nr in requests:
            file.write(f"volume {'write' if write else 'read'} {block * 4096} {nr * 4096}\n")
        file.write("volume close\n")


def save_vscsi(path, requests):
    """As the simulator reads it."""
    path.write_bytes(b"".join(
        RECORD.pack(0, nr * 4096, 1, WRITES[0] if write else READS[0], 1, block * SECTORS, 0)
        for write, block, nr in requests))


def simulate(path, blocks, slots):
    """{system: % of the blocks read that its model had, and SSD blocks written for each}."""
    host.run("make", "-s", "-C", host.TESTS / "sim")
    words = [host.BUILD / "sim/sim", "--models", ",".join(MODELS.values())]
    # The simulator has models in an order of its own.
    order = re.findall(r" ([\w-]+) \|", host.run(*words, "--head").partition("|")[2])
    cells = re.findall(r"([\d.]+) / ([\d.]+) \|",
                       host.run(*words, path, f"{(slots + 0.5) / blocks:.9f}"))
    found = dict(zip(order, cells, strict=True))
    return {system: {"hit": float(found[name][0]), "written": float(found[name][1])}
            for system, name in MODELS.items()}


def faster(params, by):
    """A time model whose clock runs so many times as fast."""
    return {name: value * by if name in SHARPER else value / by if name in SOONER else value
            for name, value in params.items()}


def prepare(folder, source, wanted):
    """({trace: what the guest has to know}, files for the guest, {trace: simulate()})."""
    about, files, simulated = {}, [], {}
    for name, trace in TRACES.items():
        if f"trace_{name}" not in wanted["jobs"]:
            continue
        if not (source / trace.file).exists():
            raise SystemExit(f"bench: no {trace.file} in {source}")
        requests = list(itertools.islice(load(source / trace.file), wanted["trace_requests"]))
        blocks = footprint(requests)
        cache = segments(blocks, trace.share)
        kib = [sum(nr * 4 for write, _, nr in requests if write == kind) for kind in (False, True)]
        about[name] = {"requests": len(requests), "blocks": blocks, "segments": cache,
                       "share": trace.share, "read_kib": kib[0], "written_kib": kib[1]}
        files.append(folder / f"{name}.iolog")
        save_iolog(files[-1], requests)
        save_vscsi(folder / f"{name}.vscsi", requests)
        simulated[name] = simulate(folder / f"{name}.vscsi", blocks, cache * SEGMENT)
    return about, files, simulated


def models(wanted):
    """The time models of both disks, as fast as the plan wants them for traces."""
    by = wanted["trace_speed"]
    return {"ssd": faster(wanted["ssd_model"], by),
            "hdd": faster({**DriveModel.params, **wanted["hdd_model"]}, by)}


def add_simulated(results, simulated):
    """Put what was simulated beside what was measured."""
    for result in results:
        found = simulated.get(result["job"].removeprefix("trace_"), {}).get(result["system"])
        if found and result["figures"]:
            result["figures"]["simulated"] = found
