# SPDX-License-Identifier: GPL-2.0-only
"""What all jobs share: what a job is, what it is given, and the modelled disks."""

import contextlib
import dataclasses

from lclib import sh
from lclib.disk import Device
from lclib.dm import sectors

from .systems import BY_NAME, SLICE, Linear, RawDisk

MIB = 1 << 20
ARRAY = "array"
FLOOR = "dm-zero"            # no system: only for what counts the processors' work
EVERY = tuple(name for name in BY_NAME if name != FLOOR)
CACHES = tuple(name for name, system in BY_NAME.items() if system.caches)


@dataclasses.dataclass(frozen=True)
class Job:
    """One entry of the plan."""

    function: object
    disks: str              # ram, plain or modelled
    systems: tuple


@dataclasses.dataclass
class Bench:
    """What a job is given."""

    ssd: str
    hdd: str
    plan: dict
    seed: int
    disks: object = None    # control of the emulated disks
    hdds: tuple = ("hdd",)  # names there: of the hard disk, or those that it is striped over

    def system(self, name, hold=True, slow=False):
        """A system over this job's disks."""
        kind = BY_NAME[name]
        if kind in (Linear, RawDisk):
            return kind(self.ssd, self.hdd, hold, slow)
        return kind(self.ssd, self.hdd, hold)

    def part(self, size):
        """The same with only `size` bytes of the SSD."""
        return self.other_ssd(f"0 {size // 512} linear {self.ssd} 0\n")

    def stretched(self, size):
        """The same with an SSD of `size` bytes, of which only the beginning holds anything."""
        real = sectors(self.ssd)
        return self.other_ssd(f"0 {real} linear {self.ssd} 0\n"
                              f"{real} {size // 512 - real} zero\n")

    @contextlib.contextmanager
    def other_ssd(self, table):
        """The same with an SSD made of that."""
        sh.run("dmsetup", "create", SLICE, input=table)
        try:
            yield dataclasses.replace(self, ssd=f"/dev/mapper/{SLICE}")
        finally:
            sh.result("dmsetup", "remove", SLICE)  # clear() tries again


def striped(paths):
    """A striped array, with pieces as md has them."""
    each = min(sectors(path) for path in paths)
    sh.run("dmsetup", "create", ARRAY, input=f"0 {each * len(paths)} striped {len(paths)} 1024 "
           + " ".join(f"{path} 0" for path in paths) + "\n")
    return f"/dev/mapper/{ARRAY}"


def ram_disks(size):
    """brd allocates on first touch: touched here, so that no system pays for it."""
    sh.run("modprobe", "brd", "rd_nr=2", f"rd_size={size // 1024}", "max_part=0")
    for path in ("/dev/ram0", "/dev/ram1"):
        with Device(path) as raw:
            for place in range(0, raw.size, 4 * MIB):
                raw.write(place, bytes(4 * MIB))
    return "/dev/ram0", "/dev/ram1"


def latencies(got, kind):
    """The percentiles of one kind, in microseconds."""
    return {name: got[f"{kind}_{name}_ns"] / 1000
            for name in ("p500", "p900", "p990", "p999", "max") if f"{kind}_{name}_ns" in got}


def timed(bench, on=True):
    """Switch the time models of all disks on or off."""
    if not on:
        for disk in (*bench.hdds, "ssd"):
            bench.disks.model(disk=disk, kind="none")
        return
    bench.disks.model(disk="ssd", kind="ssd", **bench.plan["ssd_model"])
    model = bench.plan["hdd_model" if len(bench.hdds) == 1 else "array_model"]
    for disk in bench.hdds:
        bench.disks.model(disk=disk, kind=bench.plan["hdd_kind"], **model)
