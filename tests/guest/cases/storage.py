# SPDX-License-Identifier: GPL-2.0-only
"""Two names of one storage: refused with the chain between them, and nothing is written."""

import contextlib
import json
import os
import pathlib

from lclib import case, dm, kmsg, scsi, sh, wait
from lclib.disk import Device, loop, swap_on
from lclib.lc import LcStack
from lclib.registry import Disk

SECTORS = 2048  # of a MiB
DATA = b"\xa5" * 4096
PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
MEMBERS = (Disk("ssd", "64M"), Disk("one", "64M"), Disk("two", "64M"))
CLASSES = ("ssd-signature", "dirty-cache", "hdd-signature", "paired", "fs-at-end", "same-disk",
           "other-path", "roles")


def forced(*but):
    """All classes of refusal of lc-format are overruled, but these."""
    return [f"--force={name}" for name in CLASSES if name not in but]


def short(path):
    """The kernel's name of a device."""
    number = os.stat(path).st_rdev
    return os.path.basename(os.path.realpath(
        f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"))


class Watched:
    """The disks to which nothing may be written."""

    def __init__(self, *paths):
        self.paths = paths

    def written(self):
        """Sectors and commands of each, discards and flushes included."""
        stats = [pathlib.Path("/sys/class/block", short(path), "stat").read_text(encoding="ascii")
                 for path in self.paths]
        return [[stat.split()[i] for i in (4, 6, 11, 13)] for stat in stats]

    def refused(self, words, *says):
        """The command is refused in these words, and no disk has seen a write."""
        before = self.written()
        code, text = sh.result(*words)
        assert code in (1, 8), (words, code, text)
        for said in says:
            assert said in text, (words, said, text)
        assert self.written() == before, (words, text)

    def format_refused(self, ssd, hdd, *says, but=()):
        """lc-format with everything overruled but some classes."""
        self.refused(["lc-format", *forced(*but), "--backing", hdd, ssd], *says)


@contextlib.contextmanager
def opened(path):
    """Somebody has claimed the device."""
    handle = os.open(path, os.O_RDONLY | os.O_EXCL)
    try:
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def mounted(path, where="/mnt/other"):
    """A file system that is there already is mounted, and nothing is written to it."""
    os.makedirs(where, exist_ok=True)
    sh.run("mount", "-o", "ro,noload", path, where)
    try:
        yield where
    finally:
        sh.run("umount", where)


def works(ssd, hdd, *options):
    """The pair is taken; what is written comes back after a restart, and is on the hard disk."""
    stack = LcStack(hdd, ssd, format=("--force=roles", *options), writeback="off")
    stack.format()
    with stack, stack.open() as raw:
        raw.write(1 << 20, DATA)
        raw.flush()
    with stack:
        with stack.open() as raw:
            assert raw.read(1 << 20, 4096) == DATA
        stack.drain()
    with Device(hdd) as raw:
        assert raw.read(2 << 20, 4096) == DATA


@case(kernels=("stock",), disks=PAIR, timeout=90)
def mapped_parts_are_refused(ctx):
    """A disk and a part of it by dm-linear, parts that overlap, a loop device over one of them, a
    part that is swap or claimed; parts that lie apart are taken if that is wanted.
    """
    disks = Watched(ctx.ssd, ctx.hdd)
    disk = short(ctx.hdd)
    with dm.Device("low", dm.linear(ctx.hdd, 48 * SECTORS)) as low, \
            dm.Device("middle", dm.linear(ctx.hdd, 64 * SECTORS, 32 * SECTORS)) as middle, \
            dm.Device("high", dm.linear(ctx.hdd, 64 * SECTORS, 64 * SECTORS)) as high:
        disks.format_refused(low.path, ctx.hdd, f"{ctx.hdd}: in use: held by ")
        disks.format_refused(ctx.hdd, low.path, f"{ctx.hdd}: in use: held by ")
        chain = f"is on the same storage as the backing device: low on {disk}, middle on {disk}"
        disks.format_refused(low.path, middle.path, chain, "cannot be forced")
        with loop(low.path, "--offset", "8M") as over:
            disks.format_refused(over, middle.path,
                                 f"same storage as the backing device: {short(over)} on low on "
                                 f"{disk}, middle on {disk}", "cannot be forced")
        chain = f"is on the same disk as the backing device: low on {disk}, high on {disk}"
        disks.format_refused(low.path, high.path, chain, "--force=same-disk", but=("same-disk",))
        with loop(ctx.hdd) as over:
            # The disk is claimed by its parts.
            disks.format_refused(ctx.ssd, over, f"{over}: is in use through another name: "
                                 f"{short(over)} on {disk}, and ", "cannot be forced")
            with swap_on(low.path):
                disks.format_refused(ctx.ssd, over, f"and low on {disk} is in use")
            with opened(high.path):
                disks.format_refused(ctx.ssd, over, f"and high on {disk} is in use")
        works(low.path, high.path, "--force=same-disk", "--force=ssd-signature")


@case(kernels=("stock",), disks=PAIR, timeout=90)
def other_names_of_a_volume_are_refused(ctx):
    """While a volume runs, lc-format, lc-detach and lc-check --repair write to its disks through
    no other name.
    """
    with LcStack(ctx.hdd, ctx.ssd, writeback="off") as stack, loop(ctx.ssd) as ssd, \
            loop(ctx.hdd) as hdd:
        with stack.open() as raw:
            raw.write(0, b"\x11" * 4096)
            raw.flush()
        disks = Watched(ctx.ssd, ctx.hdd)
        for words in (["lc-format", *forced(), "--backing", hdd, ssd],
                      ["lc-detach", "--force=cache-missing", "--backing", hdd, ssd],
                      ["lc-detach", "--force=cache-missing", "--backing", hdd],
                      ["lc-check", "--repair", "--yes", "--backing", hdd, ssd],
                      ["lc-resume", "lc1", ssd, hdd]):
            disks.refused(words, "is in use through another name",
                          f"{short(hdd)} on {short(ctx.hdd)}, and {short(ctx.hdd)} is in use"
                          ": held by lc0")
        with stack.open() as raw:
            assert raw.read(0, 4096) == b"\x11" * 4096


def multipath(*paths, name="mpath"):
    """All paths in one group."""
    words = [word for path in paths for word in (path, 1000)]
    return dm.Device(name, dm.Target("multipath", dm.sectors(paths[0]), 0, 0, 1, 1, "round-robin",
                                     0, len(paths), 1, *words))


def check_bare_paths(ctx, disks, one, two):
    """Two paths to one disk without dm-multipath, told by their WWN."""
    names = f"{short(one)}, {short(two)}, which have one WWN"
    same = {"but": ("same-disk",)}
    other = {"but": ("other-path",)}
    disks.format_refused(one, two, f"is on the same storage as the backing device: {names}",
                         "two paths to one disk", "--force=same-disk", **same)
    with loop(two, "--offset", "16M") as over:
        disks.format_refused(one, over, f"{short(one)}, {short(over)} on {short(two)}, which have "
                             "one WWN", "--force=same-disk", **same)
    used = f"may be in use through another path: {names}"
    with opened(two):
        disks.format_refused(ctx.ssd, one, f"{one}: {used}", f"and {short(two)} is in use",
                             "--force=other-path", **other)
        disks.format_refused(one, ctx.hdd, f"{one}: {used}", "--force=other-path", **other)
    with swap_on(two):
        disks.format_refused(ctx.ssd, one, f"{one}: {used}", "--force=other-path", **other)
    sh.run("mkfs.ext4", "-q", two)
    with mounted(two) as where:
        disks.format_refused(ctx.ssd, one, f"{one}: {used}", f"is in use: mounted on {where}",
                             **other)
    with loop(two) as over, mounted(over) as where:
        disks.format_refused(ctx.ssd, one, f"{one}: may be in use through another path: "
                             f"{short(one)}, {short(over)} on {short(two)}, which have one WWN",
                             f"and {short(over)} is in use: mounted on {where}", **other)
    with multipath(two):
        disks.format_refused(ctx.ssd, one, f"{one}: {used}", "is in use: held by mpath", **other)
        disks.format_refused("/dev/mapper/mpath", one, f"mpath on {short(two)}, {short(one)}, "
                             "which have one WWN", **same)


def check_multipath(ctx, disks, one, two):
    """dm-multipath and its paths."""
    with multipath(one, two) as both:
        for path in (one, two):
            disks.format_refused(both.path, path, f"{path}: in use: held by mpath")
            disks.format_refused(path, both.path, f"{path}: in use: held by mpath")
            with loop(path, "--offset", "16M", "--sizelimit", "32M") as over:
                disks.format_refused(over, both.path, "same storage as the backing device: "
                                     f"{short(over)} on {short(path)}, mpath on {short(path)}",
                                     "cannot be forced")
        sh.run("mkfs.ext4", "-q", both.path, "32M")
        with loop(one, "--sizelimit", "32M") as over, mounted(over) as where:
            disks.format_refused(ctx.ssd, both.path, f"{both.path}: is in use through another "
                                 f"name: mpath on {short(one)}, and {short(over)} on {short(one)} "
                                 f"is in use: mounted on {where}", "cannot be forced")
        works(ctx.ssd, both.path, "--force=hdd-signature")


def check_second_life(ctx, disks, one, two):
    """A pair on one path while the other one is in use, and two volumes on two paths."""
    stack = LcStack(ctx.hdd, one, writeback="off")
    stack.format()
    line = sh.run("lc-resume", "--print-table", "lc0", two, ctx.hdd).split()
    with opened(two):
        disks.refused(["lc-resume", "lc0", one, ctx.hdd], "may be in use through another path",
                      "--print-table")
        sh.run("lc-resume", "--print-table", "lc0", one, ctx.hdd)
        disks.refused(["lc-detach", "--backing", ctx.hdd, one], "through another path",
                      "--force=other-path")
        disks.refused(["lc-check", "--repair", "--yes", "--backing", ctx.hdd, one],
                      "through another path")
    with stack, dm.Device("alias", dm.linear(ctx.hdd)) as alias:
        log = kmsg.Log()
        log.fresh()
        line[3] = alias.path
        disks.refused(["dmsetup", "create", "lc1", "--table", " ".join(line)])
        sh.result("dmsetup", "remove", "lc1")
        said = [entry for entry in log.fresh() if "in use by another lc volume under" in entry]
        assert said, "the constructor did not say why"


@contextlib.contextmanager
def two_paths():
    """Two SCSI disks over one store, with one WWN."""
    with scsi.debug(2, dev_size_mb=64, vpd_use_hostno=0) as (one, two):
        with Device(one) as raw:
            raw.write(0, b"\x33" * 4096)
        with Device(two) as raw:
            assert raw.read(0, 4096) == b"\x33" * 4096, "they are two disks"
            raw.wipe()
        yield one, two


@case(kernels=("stock",), disks=PAIR, timeout=120)
def uses_through_another_path_are_refused(ctx):
    """Of two paths to one disk: the one and the other, and what is mounted, swap, claimed or in a
    multipath device through the other, as their WWN tells.
    """
    with two_paths() as (one, two):
        check_bare_paths(ctx, Watched(ctx.ssd, ctx.hdd, one, two), one, two)


@case(kernels=("stock",), disks=PAIR, timeout=120)
def paths_to_one_disk_are_refused(ctx):
    """A multipath device and its paths, which is taken itself; a start while the other path is in
    use, and a second volume of one pair.
    """
    with two_paths() as (one, two):
        disks = Watched(ctx.ssd, ctx.hdd, one, two)
        check_multipath(ctx, disks, one, two)
        check_second_life(ctx, disks, one, two)


@contextlib.contextmanager
def raid1(*members):
    """An md array without metadata, made by hand."""
    sh.run("modprobe", "raid1")
    pathlib.Path("/sys/module/md_mod/parameters/new_array").write_text("md127", encoding="ascii")
    array = pathlib.Path("/sys/block/md127/md")

    def put(name, value):
        (array / name).write_text(str(value), encoding="ascii")

    put("metadata_version", "none")
    put("level", "raid1")
    put("raid_disks", len(members))
    for i, member in enumerate(members):
        number = os.stat(member).st_rdev
        put("new_dev", f"{os.major(number)}:{os.minor(number)}")
        put(f"dev-{short(member)}/offset", 8 * SECTORS)
        put(f"dev-{short(member)}/size", 48 << 10)
        put(f"dev-{short(member)}/slot", i)
    put("component_size", 48 << 10)
    put("resync_start", "none")
    put("array_state", "active")
    try:
        yield "/dev/md127"
    finally:
        put("array_state", "clear")


@case(kernels=("stock",), disks=MEMBERS, timeout=90)
def members_of_an_array_are_refused(ctx):
    """An md array and its members, what is mounted through one of them; the array itself is taken,
    and its members are written to through it alone.
    """
    disks = Watched(ctx.ssd, ctx.one, ctx.two)
    with raid1(ctx.one, ctx.two) as array:
        for member in (ctx.one, ctx.two):
            disks.format_refused(array, member, f"{member}: in use: held by md127")
            disks.format_refused(member, array, f"{member}: in use: held by md127")
            # 4 MiB of the array's data, which begins 8 MiB into the member.
            with loop(member, "--offset", "12M", "--sizelimit", "32M") as over:
                disks.format_refused(over, array, "same storage as the backing device: "
                                     f"{short(over)} on {short(member)}, md127 on {short(member)}",
                                     "cannot be forced")
        sh.run("mkfs.ext4", "-q", array)
        with loop(ctx.one, "--offset", "8M", "--sizelimit", "48M") as over, \
                mounted(over) as where:
            disks.format_refused(ctx.ssd, array, f"{array}: is in use through another name: "
                                 f"md127 on {short(ctx.one)}, and {short(over)} on "
                                 f"{short(ctx.one)} is in use: mounted on {where}")
        works(ctx.ssd, array, "--force=hdd-signature")
        sh.run("lc-check", ctx.ssd)
        shown = json.loads(sh.run("lc-dump", "--json", ctx.ssd))["superblock"]
        assert shown["volume_sectors"] <= 47 * SECTORS, shown
    for member in (ctx.one, ctx.two):
        with Device(member) as raw:
            assert raw.read((8 + 2) << 20, 4096) == DATA
    wait.until(lambda: not os.path.exists("/sys/block/md127"), 20, "the array goes")
