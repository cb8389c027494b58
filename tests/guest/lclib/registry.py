# SPDX-License-Identifier: GPL-2.0-only
"""The register of guest cases, read by the host to plan and by the guest to run."""

import dataclasses
import zlib

CASES = {}
MIB = 1 << 20
UNITS = {"K": 1 << 10, "M": MIB, "G": 1 << 30, "T": 1 << 40}


class Skip(Exception):
    """Raised by a case that cannot run here; the text says why."""


def size_bytes(text):
    """512, "64K", "256M", "1G" or "8T" in bytes."""
    text = str(text)
    if text[-1] in UNITS:
        return int(text[:-1]) * UNITS[text[-1]]
    return int(text)


@dataclasses.dataclass(frozen=True)
class Disk:
    """A disk the guest must have; found in the guest by its serial number."""

    name: str
    size: str = "256M"
    kind: str = "raw"            # raw: a sparse file; recorded: tests/disks (ssd, hdd, clock)
    cache: str = "unsafe"        # QEMU's cache=; all but writethrough show a volatile cache
    bps: int = 0                 # throttle, bytes per second
    iops: int = 0                # throttle, requests per second
    logical: int = 512
    physical: int = 512
    bus: str = "virtio"          # or scsi, nvme
    rotation: int = 0            # scsi: 0 says nothing, 1 an SSD, else turns a minute
    model: str = ""              # recorded: the time model

    @property
    def serial(self):
        """Cases that share a boot may have different disks of one name, but no recorded ones."""
        if self.kind == "recorded":
            return self.name
        return f"{self.name}-{zlib.crc32(repr(self).encode()):08x}"

    @property
    def wwn(self):
        """The world wide name of a scsi disk."""
        return 0x5000C500 << 32 | zlib.crc32(self.serial.encode())


@dataclasses.dataclass(frozen=True)
class Case:
    """One guest case and what it needs."""

    name: str
    function: object
    kernels: tuple
    disks: tuple
    timeout: int
    module: str      # "dm-lc", "dm-lc-kunit", or "" for none
    smp: int
    memory: str
    long: tuple      # kernels on which it runs only with --long
    append: str      # more kernel parameters
    fault: tuple     # device, what goes wrong, required behaviour; or empty
    no_memory: bool  # the kernel may say that an allocation failed
    cores: bool      # the processors are cores of one, with a cache in common
    nodes: int       # memory nodes that share processors and memory evenly; 0: the machine's one
    icount: bool     # the clock counts instructions: one a nanosecond
    hibernates: bool  # the machine may be reset, and goes on with an image of its memory
    network: bool    # of a server case: the machine has a network card, see Server.beside()
    sampled: int     # in a run of everything it is left to other seeds, but for one of so many

    @property
    def about(self):
        """The first line of the case's description."""
        return self.function.__doc__.strip().splitlines()[0]


def case(kernels=("stock", "debug"), disks=(), timeout=120, module="dm-lc", smp=2,
         memory="1G", long=(), append="", fault=(), no_memory=False, cores=False, nodes=0,
         icount=False, hibernates=False, network=False, sampled=1):
    """Register the function below as a guest case; it must have a docstring.

    `long` (True, or names of kernels) keeps it for --long.  `fault` (device, what goes
    wrong, required behaviour) puts it into the table of faults in docs/coverage.rst.
    `sampled`: a run of everything has it with one of so many seeds, because it takes half a
    minute or more.
    `no_memory` forgives the kernel's reports of allocations that failed.
    `timeout` is in seconds on the stock kernel; the debug kernel gets three times that.
    """
    def register(function):
        name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        if not function.__doc__:
            raise ValueError(f"case {name} does not say what it proves")
        if name in CASES:
            raise ValueError(f"two cases are called {name}")
        only_long = tuple(kernels) if long is True else tuple(long)
        CASES[name] = Case(name, function, tuple(kernels), tuple(disks), timeout, module, smp,
                           memory, only_long, append, tuple(fault), no_memory, cores,
                           nodes, icount, hibernates, network, sampled)
        return function
    return register


def load(folder):
    """Import every case file of a folder."""
    import importlib.util  # pylint: disable=import-outside-toplevel
    import sys  # pylint: disable=import-outside-toplevel
    for path in sorted(folder.glob("*.py")):
        name = f"{folder.name}.{path.stem}"
        if path.stem.startswith("_") or name in sys.modules:
            continue
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
