# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of the tools share: loop devices, hand-made images, libdevmapper's stand-in."""

import dataclasses
import hashlib
import json
import os
import pathlib
import re
import struct
import subprocess

from . import host

# The tools of another tree if they are to be tested, see lib/toolmutants.py.
USERLAND = pathlib.Path(os.environ.get("LC_USERLAND") or host.TOP / "userland")
MIB = 1 << 20
SLOT = 4096
SEGMENT = 65536
CUT = 99
SB_VERSION_AT = 136
# Refused by lc-format; the classes --force takes.
CLASSES = ("ssd-signature", "dirty-cache", "hdd-signature", "paired", "fs-at-end", "same-disk",
           "other-path", "roles")


@dataclasses.dataclass
class Done:
    """A tool that ended."""

    code: int
    out: str
    err: str


def run_tool(name, *args, san=False, env=None, stdin=subprocess.DEVNULL, under=()):
    """Run lc-NAME, below the command `under`; every test looks at the exit code itself."""
    binary = USERLAND / ("build-san" if san else "build") / f"lc-{name}"
    done = subprocess.run([*under, binary, *map(str, args)], stdin=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=120,
                          env={**os.environ, **(env or {})})
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def expect(done, code, *says):
    """A tool must have ended with this code, and have said all of this on standard error."""
    missing = [text for text in says if text not in done.err]
    assert done.code == code and not missing, f"not told: {missing}; {done}"
    return done


class Image:
    """The bytes of a disk in a file."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.size = self.path.stat().st_size

    def read(self, offset, length=SLOT):
        """Some bytes."""
        with open(self.path, "rb") as image:
            image.seek(offset)
            return image.read(length)

    def write(self, offset, data):
        """Change some bytes."""
        with open(self.path, "r+b") as image:
            image.seek(offset)
            image.write(data)


class Disk(Image):
    """A sparse file, and a loop device on it while it is attached."""

    def __init__(self, path, size):
        with open(path, "wb") as image:
            image.truncate(size)
        super().__init__(path)
        self.dev = None

    def attach(self, *options):
        """Give it a loop device."""
        self.dev = host.run("losetup", "--find", "--show", *options, self.path).strip()
        return self

    def detach(self):
        """Take the loop device away."""
        if self.dev:
            host.run("losetup", "--detach", self.dev)
        self.dev = None

    def digest(self):
        """Of all bytes."""
        with open(self.path, "rb") as image:
            return hashlib.file_digest(image, "sha256").hexdigest()

    def write(self, offset, data):
        """Behind the loop device's back; it shares the page cache."""
        super().write(offset, data)
        if self.dev:
            host.run("blockdev", "--flushbufs", self.dev)

    def written(self):
        """Bytes ever written to the loop device."""
        stat = pathlib.Path("/sys/class/block", os.path.basename(self.dev), "stat")
        return int(stat.read_text(encoding="ascii").split()[6]) * 512


def mklog(image, script):
    """Write a cache image by hand, see userland/tests/mklog.c."""
    subprocess.run([USERLAND / "build/tests/mklog", image], input=script, text=True, check=True)


def lc_format(pair, *options, **kwargs):
    """lc-format of a pair."""
    return run_tool("format", *options, "--backing", pair[1].dev, pair[0].dev, **kwargs)


def dump(path, *options, san=True):
    """lc-dump as a dictionary."""
    done = run_tool("dump", "--json", *options, path, san=san)
    assert done.code == 0, done.err
    return json.loads(done.out)


def make_mbr(disk, start, sectors):
    """A DOS partition table with one partition."""
    entry = struct.pack("<B3sB3sII", 0, b"\0\0\0", 0x83, b"\0\0\0", start, sectors)
    disk.write(0, bytes(440) + b"dmlc\0\0" + entry + bytes(48) + b"\x55\xaa")


def make_md(disk):
    """A RAID member whose superblock (1.0) is near the end."""
    sector = (disk.size // 512 - 16) & ~7
    block = struct.pack("<IIII", 0xa92b4efc, 1, 0, 0) + os.urandom(16)
    disk.write(sector * 512, block.ljust(128, b"\0") + struct.pack("<QQQ", 0, 4096, sector))


def cache_on(script):
    """A cache image on the SSD."""
    return lambda ssd, hdd: mklog(ssd.path, script)


def make_newer(ssd, _hdd):
    """A cache of a later format version."""
    mklog(ssd.path, "sb epoch=1 clean=1\n")
    say_newer(ssd)


def say_newer(ssd):
    """Both superblocks in front are of a later format version."""
    for copy in (0, MIB // 2):
        ssd.write(copy + SB_VERSION_AT, struct.pack("<I", 99))


def make_paired(ssd, hdd, *options):
    """Format the pair, then forget the SSD."""
    assert lc_format((ssd, hdd), *options).code == 0
    ssd.write(0, bytes(MIB))
    ssd.write(63 * MIB, bytes(MIB))


def add_partitions(disk, *extents):
    """Tell the kernel, which may have been built without knowing partition tables."""
    for number, (start, sectors) in enumerate(extents, 1):
        if not os.path.exists(f"{disk.dev}p{number}"):
            host.run("addpart", disk.dev, number, start, sectors)


SAMPLE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\\\]|\\\\.)*",?)*)\})? (\S+)')
# All the kernel's keys, as of this version.
WHOLE_STATUS = (
    "mode rw dirty 500 cached 900 capacity 8000 segments 64 segment_bytes 1048576 free_segments "
    "60 buffers 8 buffers_used 2 head_seq 100 tail_seq 10 durable_seq 98 epoch 3 lost 0 refused 0 "
    "relogged 7 writeback idle index_bytes 65536 generation 00000000000000ff lanes 1 copies_local "
    "5 copies_remote 1 parked 4 parked_blocks 3 batches 6 promoted 11 bypassed_bytes "
    "65536 cache_mode writeback warmed 13 warm_left 0 ssd_writes 20 ssd_written_bytes 81920 "
    "ssd_read_bytes 40960 "
    "ssd_flushes 9 hdd_writes 30 hdd_written_bytes 122880 hdd_flushes 8 former_names -")


def samples_of(text):
    """{(name, labels): value} of the text format."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert (name, labels) not in found, line
            found[name, labels] = float(value)
    return found


class FakeDm:
    """The folder userland/tests/fake_dm.c lives by."""

    STATUS = ("mode rw dirty {dirty} cached 900 capacity 8000 head_seq {head} tail_seq {tail} "
              "generation 00000000000000ff writeback {writeback} shiny 7")

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.env = {"LD_PRELOAD": str(USERLAND / "build/tests/fake_dm.so"),
                    "FAKE_DM": str(folder)}

    def put(self, name, text=""):
        """Set one fact."""
        (self.folder / name).write_text(text + "\n", encoding="ascii")

    def volume(self, *states):
        """A running volume and its states, (dirty, head, tail), one for each look."""
        self.put("name", "lc0")
        self.put("table", "/dev/hdd /dev/ssd")
        self.put("status", "\n".join(
            self.STATUS.format(dirty=dirty, head=head, tail=tail, writeback="draining")
            for dirty, head, tail in states))

    def log(self):
        """What the tools asked for."""
        path = self.folder / "log"
        return path.read_text(encoding="ascii").splitlines() if path.exists() else []

    def tool(self, name, *args):
        """Run a tool on it."""
        return run_tool(name, *args, env=self.env)


def slot_at(segment, slot, nr_segments=None):
    """Byte address; segment numbers below the ring's size are their own positions."""
    position = segment % nr_segments if nr_segments else segment
    return MIB + position * SEGMENT + slot * SLOT


def check(disk, *options):
    """lc-check with the sanitizers on; without --repair it must not write."""
    before = disk.digest()
    done = run_tool("check", *options, disk.path, san=True)
    if "--repair" not in options:
        assert disk.digest() == before
    return done


def assert_repairs(disk):
    """Damage is found, repaired, and then it is whole."""
    assert check(disk).code == 4
    done = check(disk, "--repair")
    assert done.code == 1, done.out + done.err
    again = check(disk)
    assert again.code == 0, again.out
    return done, again


LOG = ("sb epoch=1 first=1 tail=1 tail_segment=1\n"
       "data segment=1 slot=0 seq=1 durable=0 blocks=10,11,12\n"
       "data segment=1 slot=4 seq=2 durable=1 blocks=20,21\n"
       "data segment=1 slot=7 seq=3 durable=2 blocks=30,31,32,33\n"
       "data segment=2 slot=0 seq=4 durable=3 blocks=10,41\n")


def run_of(disk):
    """First and last seq of what replay would find."""
    log = dump(disk.path)["log"]
    return log["first_seq"], log["last_seq"]


CLEAN = ("sb epoch=2 first=9 tail=1 tail_segment=1 clean=1 next=5 head=3 items=3\n"
         + LOG.split("\n", 1)[1].replace(" seq=", " epoch=1 first=1 seq=")
         + "ckpt items=18:11:1,19:12:1,21:20:0\n")


# Blocks 50, 51, 60 and 61 are promoted, in two groups.
PROMOTED = ("sb epoch=2 first=5 tail=1 tail_segment=1 clean=1 promoted=1 next=5 head=3 items=7\n"
            + LOG.split("\n", 1)[1].replace(" seq=", " epoch=1 first=1 seq=")
            + "group segment=2 slot=3 seq=4 epoch=1 first=1 blocks=50,-,51\n"
            "group segment=2 slot=7 seq=4 epoch=1 first=1 blocks=60,61\n"
            "ckpt items=18:11:1,19:12:1,21:20:16,36:50:8,38:51:24,40:60:136,41:61:8\n")


HIGH = 1 << 61
LANES_AT = "lanes=1 tail=100 tail_segment=10 first=1"
LANES = (f"sb epoch=1 {LANES_AT}\n"
         "data segment=10 slot=0 seq=100 durable=99 cut=10 lane=0 blocks=1,2\n"
         "data segment=11 slot=0 seq=101 durable=99 cut=10 lane=1 blocks=3,4\n"
         "data segment=10 slot=3 seq=102 durable=101 cut=10 lane=0 blocks=5,6\n"
         "data segment=11 slot=3 seq=103 durable=101 cut=10 lane=1 blocks=7\n"
         "data segment=11 slot=5 seq=104 durable=103 cut=10 lane=1 blocks=8\n"
         "data segment=10 slot=6 seq=105 durable=104 cut=10 lane=0 blocks=9\n"
         "data segment=12 slot=0 seq=106 durable=105 cut=12 lane=0 blocks=10\n")


def preload(name, **env):
    """The environment of a tool behind one of the stand-ins in userland/tests."""
    return {"LD_PRELOAD": str(USERLAND / f"build/tests/{name}.so"), **env}


def turning_link(folder, pair, which, other):
    """One disk of a pair behind a link, which a tool that opens it turns to another disk.

    Returns the names of the pair, and the tool's environment.
    """
    names, spare = [disk.dev for disk in pair], folder / "turned"
    names[which] = folder / "link"
    for path, disk in ((names[which], pair[which]), (spare, other)):
        path.unlink(missing_ok=True)
        path.symlink_to(disk.dev)
    return names, preload("flip_link", FLIP_PATH=str(names[which]), FLIP_TO=str(spare))
