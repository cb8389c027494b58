# SPDX-License-Identifier: GPL-2.0-only
"""The systems that are compared: each set up afresh over (SSD, HDD), and taken away again.

`hold` keeps everything in the cache, as far as the system can do that, until drain().
`options` says in words what was set, for the report.
"""

import contextlib
import errno
import os
import pathlib
import re

from lclib import sh, status, wait
from lclib.disk import Device as Raw
from lclib.dm import sectors

from . import load

NAME = "bench"
SLICE = "bench-slice"         # of the SSD, for jobs that want a smaller one
ABOVE = ("bench-above", "bench-above-2")  # devices over parts of the volume
MAPPED = f"/dev/mapper/{NAME}"
MIB = 1 << 20
DRAIN_SECONDS = 600


def is_held(path):
    """Whether the disk is in exclusive use, as by a mount or a volume."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL))
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return True
    return False


def write_sysfs(path, value):
    """One attribute."""
    pathlib.Path(path).write_text(str(value), encoding="ascii")


class System:
    """Base: something mapped over both disks."""

    name = ""
    caches = True
    options = ""

    def __init__(self, ssd, hdd, hold=True):
        self.ssd = str(ssd)
        self.hdd = str(hdd)
        self.hold = hold
        self.path = MAPPED
        self.warm_rounds = 0

    def __enter__(self):
        self.wipe()
        self.start()
        return self

    def wipe(self):
        """Nothing of an earlier system is to be recognised."""
        for path in (self.ssd, self.hdd):
            with Raw(path) as raw:
                raw.wipe()

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """dmsetup create, or what there is instead."""
        sh.run("dmsetup", "create", NAME, input=self.table())

    def restart(self):
        """Come back after stop(), with what was there."""
        self.start()

    def table(self):
        """The table line."""
        raise NotImplementedError

    def stop(self):
        """Take it away; a reader of ours may still be about to close it."""
        wait.until(lambda: sh.result("dmsetup", "remove", NAME)[0] == 0, 60, "device removed")

    def lose_power(self):
        """Take it away when its disks fail; what is on them stays."""
        self.stop()

    def status(self):
        """The words after the target's name."""
        return sh.run("dmsetup", "status", NAME).split()[3:]

    def message(self, *words):
        """dmsetup message."""
        sh.run("dmsetup", "message", NAME, 0, *words)

    def settle(self):
        """Wait for the end of background work, as a suspend does."""
        sh.run("dmsetup", "suspend", NAME)
        sh.run("dmsetup", "resume", NAME)

    def drain(self):
        """Everything dirty to the HDD; returns when it is there."""
        raise NotImplementedError

    def keep_reads(self):
        """Cache what is read, too; a system may do so anyway."""

    @classmethod
    def room(cls, size):
        """The bytes of an SSD that holds so many bytes of data; `size` in whole MiB."""
        raise NotImplementedError

    def warm(self, span):
        """Get the first `span` bytes of the volume into the cache, all of it written once."""
        load.run(self.path, order="seq", bs=65536, depth=8, span=span, count=span // 65536)
        self.warm_rounds += 1


class RawDisk(System):
    """No layer at all."""

    name = "raw"
    caches = False
    options = "the disk itself"

    def __init__(self, ssd, hdd, hold=True, slow=False):
        super().__init__(ssd, hdd, hold)
        self.path = self.hdd if slow else self.ssd

    def start(self):
        """It is there."""

    def stop(self):
        """It stays."""


class Linear(System):
    """The least a device-mapper target can do."""

    name = "dm-linear"
    caches = False
    options = "over the SSD, or over the HDD in jobs that end there"

    def __init__(self, ssd, hdd, hold=True, slow=False):
        super().__init__(ssd, hdd, hold)
        self.below = self.hdd if slow else self.ssd

    def table(self):
        return f"0 {sectors(self.below)} linear {self.below} 0\n"


class Zero(System):
    """Device mapper alone: a target that only ends each bio."""

    name = "dm-zero"
    caches = False
    options = "keeps nothing: what device mapper and the load itself take"

    def table(self):
        return f"0 {sectors(self.ssd)} zero\n"


class Lc(System):
    """The target under test."""

    name = "dm-lc"
    options = ("lc-format's defaults; writeback=off while nothing shall drain; read_cache=on for "
               "traces")
    checksum = ""     # lc-format's choice

    def start(self):
        flags = ["--checksum", self.checksum] if self.checksum else []
        sh.run("lc-format", "--force=roles", *flags, "--backing", self.hdd, self.ssd)
        self.restart()

    def restart(self, **more):
        options = {**({"writeback": "off"} if self.hold else {}), **more}
        flags = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        sh.run("lc-resume", *flags, NAME, self.ssd, self.hdd)

    def fields(self):
        """Its status line."""
        return status.parse(sh.run("dmsetup", "status", NAME))

    def drain(self):
        self.message("flush")
        self.message("writeback")
        wait.until(lambda: self.fields()["dirty"] == 0, DRAIN_SECONDS, "nothing dirty")

    def keep_reads(self):
        self.message("read_cache", "on")

    @classmethod
    def room(cls, size):
        """Beside the segments: superblocks and mark, and 12 bytes a block for the checkpoint."""
        return size + 2 * MIB + (size // 4096 * 12 // 65536 + 2) * 65536


class Writeboost(System):
    """dm-writeboost."""

    name = "dm-writeboost"
    options = ("writeback_threshold 0 (off) while nothing shall drain, 70 otherwise; "
               "drained by drop_caches after a suspend that empties its buffer; "
               "read_cache_threshold 127, the most, for traces")

    def table(self):
        more = "0" if self.hold else "2 writeback_threshold 70"
        return f"0 {sectors(self.hdd)} writeboost {self.hdd} {self.ssd} {more}\n"

    def drain(self):
        sh.run("dmsetup", "suspend", NAME)
        sh.run("dmsetup", "resume", NAME)
        self.message("drop_caches")

    def keep_reads(self):
        self.message("read_cache_threshold", 127)

    @classmethod
    def room(cls, size):
        """Its superblock."""
        return size + MIB


class Writecache(System):
    """dm-writecache in SSD mode."""

    name = "dm-writecache"
    options = ("4 KiB blocks, defaults otherwise; watermarks at 99 and 98 % while nothing shall "
               "drain; drained by the message flush")

    def table(self):
        more = "4 high_watermark 99 low_watermark 98" if self.hold else "0"
        return f"0 {sectors(self.hdd)} writecache s {self.hdd} {self.ssd} 4096 {more}\n"

    def drain(self):
        self.message("flush")


class DmCache(System):
    """dm-cache with policy smq."""

    name = "dm-cache"
    options = ("writeback, smq, 64 KiB blocks (lvm2's default), 1/32 of the SSD for metadata, at "
               "least 2 MiB; "
               "warmed until the working set is resident; drained by policy cleaner")
    block = 128
    slices = ("bench-meta", "bench-data")

    @staticmethod
    def metadata(whole):
        """The sectors of an SSD that are for metadata."""
        return max(2 * MIB // 512, whole // 32 & ~2047)

    @classmethod
    def room(cls, size):
        """Its metadata."""
        whole = size
        while whole - cls.metadata(whole // 512) * 512 < size:
            whole += MIB
        return whole

    def start(self):
        metadata = self.metadata(sectors(self.ssd))
        lines = (f"0 {metadata} linear {self.ssd} 0\n",
                 f"0 {sectors(self.ssd) - metadata} linear {self.ssd} {metadata}\n")
        for name, line in zip(self.slices, lines, strict=True):
            sh.run("dmsetup", "create", name, input=line)
        super().start()

    def table(self, policy="smq"):
        meta, data = (f"/dev/mapper/{name}" for name in self.slices)
        return (f"0 {sectors(self.hdd)} cache {meta} {data} {self.hdd} {self.block} "
                f"1 writeback {policy} 0\n")

    def stop(self):
        super().stop()
        for name in self.slices:
            sh.run("dmsetup", "remove", name)

    def warm(self, span):
        """smq takes a block in when it has been seen often enough."""
        for _ in range(12):
            super().warm(span)
            resident = int(self.status()[3].partition("/")[0])
            if resident * self.block * 512 >= span:
                break

    def drain(self):
        sh.run("dmsetup", "load", NAME, input=self.table("cleaner"))
        sh.run("dmsetup", "suspend", NAME)
        sh.run("dmsetup", "resume", NAME)
        wait.until(lambda: int(self.status()[10]) == 0, DRAIN_SECONDS, "nothing dirty")


class Bcache(System):
    """bcache in writeback mode."""

    name = "bcache"
    options = ("writeback, 4 KiB blocks, 512 KiB buckets (smaller on less than 512 MiB: "
               "128 KiB on 128 MiB), "
               "sequential_cutoff and congestion thresholds 0; writeback_running 0 while "
               "nothing shall drain; "
               "drained with writeback_percent 0; sequential_cutoff 4 MiB, its default, for traces")
    maker = "/opt/dm-lc/bench/make-bcache"

    @staticmethod
    def bucket(size):
        """The bytes of a bucket: it wants more than 512 of them."""
        return min(512, 1 << (size // MIB).bit_length() - 1) * 1024

    def start(self):
        bucket = self.bucket(sectors(self.ssd) * 512)
        text = sh.run(self.maker, "--block", "4096", "--bucket", f"{bucket // 1024}k",
                      "--writeback", "--wipe-bcache", "-C", self.ssd, "-B", self.hdd)
        self.set = pathlib.Path("/sys/fs/bcache") / re.search(r"Set UUID:\s+(\S+)", text)[1]
        self.restart()

    def restart(self):
        for path in (self.ssd, self.hdd):
            write_sysfs("/sys/fs/bcache/register", path)
        home = pathlib.Path("/sys/class/block") / pathlib.Path(self.hdd).name / "bcache"
        wait.until(lambda: (home / "dev").exists() and self.set.exists(), 60, "bcache attached")
        self.path = f"/dev/{(home / 'dev').resolve().name}"
        self.home = home
        wait.until(lambda: self.read("state") != "no cache", 60, "bcache has its cache")
        write_sysfs(home / "sequential_cutoff", 0)
        write_sysfs(home / "writeback_running", 0 if self.hold else 1)
        for name in ("congested_read_threshold_us", "congested_write_threshold_us"):
            write_sysfs(self.set / name, 0)

    def read(self, name):
        """An attribute of the volume."""
        return (self.home / name).read_text(encoding="ascii").strip()

    def lose_power(self):
        write_sysfs(self.home / "stop", 1)
        write_sysfs(self.set / "stop", 1)
        wait.until(lambda: not self.home.exists() and not self.set.exists()
                   and not pathlib.Path(self.path).exists(), 60, "bcache gone")
        # It lets go of its disks a little after its names are gone.
        wait.until(lambda: not is_held(self.ssd) and not is_held(self.hdd), 60, "disks released")

    def stop(self):
        self.lose_power()
        self.wipe()  # a superblock must not be found again

    def keep_reads(self):
        write_sysfs(self.home / "sequential_cutoff", 4 * MIB)

    @classmethod
    def room(cls, size):
        """About what journal, B+-tree and reserves take: 1/32, and 32 buckets."""
        return size + size // 32 // MIB * MIB + 32 * cls.bucket(size)

    def drain(self):
        write_sysfs(self.home / "writeback_percent", 0)
        write_sysfs(self.home / "writeback_running", 1)
        wait.until(lambda: self.read("state") == "clean", DRAIN_SECONDS, "state clean")


def clear():
    """Take away what a system left that failed half way."""
    for name in (*ABOVE, NAME):
        sh.result("dmsetup", "remove", "--force", name)
    for path in (*pathlib.Path("/sys/block").glob("*/bcache/stop"),
                 *pathlib.Path("/sys/fs/bcache").glob("*-*/stop")):
        with contextlib.suppress(OSError):  # it goes away with the one before it
            write_sysfs(path, 1)
    wait.until(lambda: not list(pathlib.Path("/sys/fs/bcache").glob("*-*")), 60, "bcache gone")
    for name in (*DmCache.slices, SLICE):
        sh.result("dmsetup", "remove", "--force", name)


ALL = (Lc, Writeboost, Writecache, DmCache, Bcache, Linear, Zero, RawDisk)
BY_NAME = {system.name: system for system in ALL}
MODULES = ("bcache", "dm-writecache", "dm-cache", "dm-cache-smq")
