# SPDX-License-Identifier: GPL-2.0-only
"""The tools in userland/, without a kernel module: loop devices, hand-made images, a stand-in
for libdevmapper."""

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import pty
import random
import re
import struct
import subprocess
import time

import pytest

from lib import host

USERLAND = host.TOP / "userland"
MIB = 1 << 20
SLOT = 4096
SEGMENT = 65536
SB_VERSION_AT = 136
MARK_VERSION_AT = 72
# Refused by lc-format; the classes --force takes.
CLASSES = ("ssd-signature", "dirty-cache", "hdd-signature", "paired", "fs-at-end", "same-disk",
           "other-path", "roles")


@dataclasses.dataclass
class Done:
    """A tool that ended."""

    code: int
    out: str
    err: str


def run_tool(name, *args, san=False, env=None, stdin=subprocess.DEVNULL):
    """Run lc-NAME; every test looks at the exit code itself."""
    binary = USERLAND / ("build-san" if san else "build") / f"lc-{name}"
    done = subprocess.run([binary, *map(str, args)], stdin=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=120,
                          env={**os.environ, **(env or {})})
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session", autouse=True)
def built_tools():
    """Both builds: the plain one and the one with sanitizers."""
    host.run("make", "-s", "-C", USERLAND, "helpers")
    host.run("make", "-s", "-C", USERLAND, "helpers", "SAN=1")


class Disk:
    """A sparse file, and a loop device on it while it is attached."""

    def __init__(self, path, size):
        self.path = pathlib.Path(path)
        self.size = size
        self.dev = None
        with open(self.path, "wb") as image:
            image.truncate(size)

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

    def read(self, offset, length):
        """Some bytes."""
        with open(self.path, "rb") as image:
            image.seek(offset)
            return image.read(length)

    def write(self, offset, data):
        """Change some bytes behind the loop device's back; it shares the page cache."""
        with open(self.path, "r+b") as image:
            image.seek(offset)
            image.write(data)
        if self.dev:
            host.run("blockdev", "--flushbufs", self.dev)

    def written(self):
        """Bytes ever written to the loop device."""
        stat = pathlib.Path("/sys/class/block", os.path.basename(self.dev), "stat")
        return int(stat.read_text(encoding="ascii").split()[6]) * 512


@pytest.fixture(name="disks")
def fixture_disks(tmp_path):
    """Makes attached disks and takes them away again."""
    made = []

    def make(name, size=64 * MIB, *options):
        made.append(Disk(tmp_path / name, size).attach(*options))
        return made[-1]

    yield make
    for disk in made:
        disk.detach()


@pytest.fixture(name="pair")
def fixture_pair(disks):
    """An SSD and a hard disk, both empty."""
    return disks("ssd"), disks("hdd", 96 * MIB)


def mklog(image, script):
    """Write a cache image by hand, see userland/tests/mklog.c."""
    subprocess.run([USERLAND / "build/tests/mklog", image], input=script, text=True, check=True)


def lc_format(pair, *options, **kwargs):
    """lc-format of a pair."""
    return run_tool("format", *options, "--backing", pair[1].dev, pair[0].dev, **kwargs)


# -- lc-format: what it writes ---------------------------------------------------------------------

def dump(path, *options, san=True):
    """lc-dump as a dictionary."""
    done = run_tool("dump", "--json", *options, path, san=san)
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_format_default_layout(pair):
    """Mark at the start, volume behind it, the table line alone on stdout."""
    done = lc_format(pair, "--label", "music", "-o", "buffers=16", san=True)
    assert done.code == 0, done.err
    sectors = (96 - 1) * 2048
    assert done.out == f"0 {sectors} lc {pair[1].dev} {pair[0].dev} 2 buffers 16\n"
    found = dump(pair[0].path)
    assert [copy["state"] for copy in found["copies"]] == ["good"] * 3
    block = found["superblock"]
    assert block["data_offset"] == MIB and block["mark_offset"] == 0
    assert block["volume_sectors"] == sectors and block["checksum"] == "xxh64"
    assert block["label"] == "music" and block["options"] == "buffers 16"
    assert int(block["generation"], 16) and not block["clean"] and block["epoch"] == 0
    assert pair[1].read(0, 8) == pair[1].read(MIB // 2, 8) == b"dmlc-mk\n"
    assert run_tool("check", pair[0].dev, "--backing", pair[1].dev, san=True).code == 0


def test_format_keeps_data_in_place(pair):
    """Every byte stays, but that the first MiB is at the end, and the mark in its place."""
    # Bytes that are the same in each run: of random ones some look like a file system.
    pair[1].write(0, random.Random(1).randbytes(95 * MIB))
    before = hashlib.sha256(pair[1].read(0, 95 * MIB)).digest()
    done = lc_format(pair, "--in-place", "--checksum", "crc32c", "--segment-size", "64K")
    assert done.code == 0, done.err
    moved = pair[1].read(95 * MIB, MIB) + pair[1].read(MIB, 94 * MIB)
    assert hashlib.sha256(moved).digest() == before
    block = dump(pair[0].path)["superblock"]
    assert block["in_place"] and block["data_offset"] == 0 and block["mark_offset"] == 0
    assert block["incompat"] == "short_sums moved_head"
    assert block["segment_bytes"] == SEGMENT and block["checksum"] == "crc32c"


def test_format_without_mark_needs_an_identity(pair):
    """--no-mark: refused for a disk that nothing would tell from another one."""
    before = [disk.digest() for disk in pair]
    done = lc_format(pair, "--in-place", "--no-mark")
    assert done.code == 1 and "has no serial number" in done.err, done.err
    assert [disk.digest() for disk in pair] == before


@pytest.mark.parametrize("layout", [(), ("--in-place",)], ids=["default", "in-place"])
def test_format_work_is_constant(disks, layout):
    """1 GiB and a sparse 8 TiB: the same number of bytes written, on both devices (item 9)."""
    counts = []
    for size in (1 << 30, 8 << 40):
        pair = disks(f"ssd{size}", size), disks(f"hdd{size}", size)
        before = [disk.written() for disk in pair]
        assert lc_format(pair, *layout).code == 0
        counts.append([disk.written() - old for disk, old in zip(pair, before)])
        for disk in pair:
            disk.detach()
    assert counts[0] == counts[1]
    assert counts[0][0] == 2 * MIB + 3 * SLOT
    assert counts[0][1] == (2 * MIB - 512 + 3 * SLOT if layout else 2 * MIB + 2 * SLOT)


def test_format_wipes_old_signatures(pair):
    """Nothing finds an old file system on either device afterwards."""
    host.run("mkfs.ext4", "-q", pair[0].dev)
    host.run("mkfs.ext4", "-q", pair[1].dev)
    assert lc_format(pair, "--force=ssd-signature", "--force=hdd-signature").code == 0
    for disk in pair:
        assert not host.run("wipefs", "--noheadings", disk.dev).strip()


def test_format_discard(pair):
    """--discard: what was in the middle of the SSD is gone too."""
    pair[0].write(30 * MIB, b"x" * MIB)
    assert lc_format(pair, "--discard").code == 0
    assert pair[0].read(30 * MIB, MIB) == bytes(MIB)


# -- lc-format: what it refuses --------------------------------------------------------------------

@dataclasses.dataclass
class Refusal:
    """A state of the devices lc-format says no to."""

    name: str
    prepare: object
    says: str
    force: str = None
    options: tuple = ()


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
    for copy in (0, MIB // 2):
        ssd.write(copy + SB_VERSION_AT, struct.pack("<I", 99))


def make_paired(ssd, hdd, *options):
    """Format the pair, then forget the SSD."""
    assert lc_format((ssd, hdd), *options).code == 0
    ssd.write(0, bytes(MIB))
    ssd.write(63 * MIB, bytes(MIB))


REFUSALS = [
    Refusal("ssd-ext4", lambda s, h: host.run("mkfs.ext4", "-q", s.dev), "holds ext4",
            "ssd-signature"),
    Refusal("ssd-swap", lambda s, h: host.run("mkswap", s.dev), "holds swap", "ssd-signature"),
    Refusal("ssd-table", lambda s, h: make_mbr(s, 2048, 1000), "dos partition table",
            "ssd-signature"),
    Refusal("ssd-raid", lambda s, h: make_md(s), "linux_raid_member", "ssd-signature"),
    Refusal("ssd-unclean", cache_on("sb epoch=1\n"), "not stopped cleanly", "dirty-cache"),
    Refusal("ssd-dirty", cache_on("sb epoch=1 clean=1 items=1 next=9 head=3\nckpt items=1:1:1\n"),
            "not on its hard disk yet", "dirty-cache"),
    Refusal("ssd-bad-checkpoint", cache_on("sb epoch=1 clean=1 items=1 next=9 head=3\n"),
            "checkpoint is damaged", "dirty-cache"),
    Refusal("ssd-newer", make_newer, "damaged or newer", "dirty-cache"),
    Refusal("hdd-ext4", lambda s, h: host.run("mkfs.ext4", "-q", h.dev), "use --in-place",
            "hdd-signature"),
    Refusal("hdd-table", lambda s, h: make_mbr(h, 2048, 1000), "use --in-place",
            "hdd-signature"),
    Refusal("hdd-paired", make_paired, "is paired with cache", "paired"),
    Refusal("hdd-paired-end", lambda s, h: make_paired(s, h, "--in-place"),
            "is paired with cache", "paired"),
    Refusal("hdd-bad-mark", lambda s, h: h.write(0, b"dmlc-mk\nxxxx"),
            "damaged or newer dm-lc mark", "paired"),
    Refusal("in-place-ext4", lambda s, h: host.run("mkfs.ext4", "-q", h.dev),
            "1048576 bytes too far", "fs-at-end", ("--in-place",)),
    Refusal("in-place-swap", lambda s, h: host.run("mkswap", h.dev), "cannot be told",
            "fs-at-end", ("--in-place",)),
    Refusal("in-place-table", lambda s, h: make_mbr(h, 2048, 96 * 2048 - 2048),
            "bytes too far", "fs-at-end", ("--in-place",)),
    Refusal("in-place-raid", lambda s, h: make_md(h), "cannot be told", "fs-at-end",
            ("--in-place",)),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.name)
def test_format_refuses(pair, case):
    """Reason and remedy are told, not a byte is written, and exactly one class overrules it."""
    case.prepare(*pair)
    before = [disk.digest() for disk in pair]
    done = lc_format(pair, *case.options, san=True)
    assert done.code == 1 and case.says in done.err, done.err
    assert f"--force={case.force}" in done.err and "nothing was written" in done.err
    others = [f"--force={name}" for name in CLASSES if name != case.force]
    assert lc_format(pair, *case.options, *others, "--yes").code == 1
    assert [disk.digest() for disk in pair] == before
    assert lc_format(pair, *case.options, f"--force={case.force}").code == 0


@pytest.mark.parametrize("which", [0, 1], ids=["ssd", "hdd"])
def test_format_refuses_a_device_in_use(pair, which):
    """O_EXCL, and no class overrules it."""
    before = [disk.digest() for disk in pair]
    holder = os.open(pair[which].dev, os.O_RDONLY | os.O_EXCL)
    try:
        done = lc_format(pair, *(f"--force={name}" for name in CLASSES))
    finally:
        os.close(holder)
    assert done.code == 1 and "in use" in done.err and pair[which].dev in done.err
    assert [disk.digest() for disk in pair] == before


def test_format_refuses_a_mounted_device(pair, tmp_path):
    """It says where it is mounted."""
    host.run("mkfs.ext4", "-q", pair[1].dev)
    where = tmp_path / "mnt"
    where.mkdir()
    host.run("mount", "-o", "ro", pair[1].dev, where)
    try:
        before = [disk.digest() for disk in pair]
        done = lc_format(pair, *(f"--force={name}" for name in CLASSES))
        assert done.code == 1 and f"mounted on {where}" in done.err
        assert [disk.digest() for disk in pair] == before
    finally:
        host.run("umount", where)


def test_format_refuses_what_is_too_small(disks):
    """Neither can be forced."""
    big, small, tiny = disks("big"), disks("small", 2 * MIB), disks("tiny", MIB)
    before = [disk.digest() for disk in (big, small, tiny)]
    force = [f"--force={name}" for name in CLASSES]
    done = lc_format((small, big), *force)
    assert done.code == 1 and "too small" in done.err
    done = lc_format((big, tiny), *force)
    assert done.code == 1 and "too small" in done.err
    assert [disk.digest() for disk in (big, small, tiny)] == before


def test_format_refuses_one_device_twice(pair):
    """SSD = HDD, by another name too."""
    before = pair[0].digest()
    link = pair[0].path.parent / "other-name"
    link.symlink_to(pair[0].dev)
    for name in (pair[0].dev, link):
        done = run_tool("format", "--backing", name, pair[0].dev, "--yes")
        assert done.code == 1 and "same device" in done.err
    assert pair[0].digest() == before


def add_partitions(disk, *extents):
    """Tell the kernel, which may have been built without knowing partition tables."""
    for number, (start, sectors) in enumerate(extents, 1):
        if not os.path.exists(f"{disk.dev}p{number}"):
            host.run("addpart", disk.dev, number, start, sectors)


def test_format_refuses_parts_of_one_disk(tmp_path):
    """A disk and its partition never; two partitions with a class of their own."""
    disk = Disk(tmp_path / "disk", 160 * MIB)
    first = struct.pack("<B3sB3sII", 0, b"\0\0\0", 0x83, b"\0\0\0", 2048, 64 * 2048)
    second = struct.pack("<B3sB3sII", 0, b"\0\0\0", 0x83, b"\0\0\0", 80 * 2048, 64 * 2048)
    disk.write(0, bytes(440) + b"dmlc\0\0" + first + second + bytes(32) + b"\x55\xaa")
    disk.attach("--partscan")
    try:
        add_partitions(disk, (2048, 64 * 2048), (80 * 2048, 64 * 2048))
        before = disk.digest()
        done = run_tool("format", "--backing", disk.dev, f"{disk.dev}p1")
        assert done.code == 1 and "part of the other" in done.err
        done = run_tool("format", "--backing", f"{disk.dev}p2", f"{disk.dev}p1")
        assert done.code == 1 and "--force=same-disk" in done.err
        assert disk.digest() == before
        done = run_tool("format", "--backing", f"{disk.dev}p2", f"{disk.dev}p1",
                        "--force=same-disk")
        assert done.code == 0, done.err
        partuuid = dump(f"{disk.dev}p1")["superblock"]["backing_partuuid"]
        assert partuuid == "636c6d64-02"
        done = run_tool("resume", "--print-table", "x", f"{disk.dev}p1")
        assert done.out.split()[3:5] == [f"{disk.dev}p2", f"{disk.dev}p1"], done.err
    finally:
        disk.detach()


def test_format_accepts_what_is_no_reason(pair):
    """A clean cache without dirty data, and a file system that ends early, are fine."""
    mklog(pair[0].path, "sb epoch=1 clean=1 items=1 next=9 head=3\nckpt items=1:1:0\n")
    host.run("mkfs.ext4", "-q", pair[1].dev, f"{95 * 1024}k")
    assert lc_format(pair, "--in-place").code == 0


@pytest.mark.parametrize("args", [
    ("--segment-size=96K",), ("--segment-size=8M",), ("--checksum=md5",), ("--no-mark",),
    ("--label=" + "x" * 64,), ("--force=all",), ("-o", "buffers"), ("--bogus",),
], ids=lambda args: args[0])
def test_format_refuses_odd_arguments(pair, args):
    """Before anything is opened."""
    before = [disk.digest() for disk in pair]
    assert lc_format(pair, *args, san=True).code == 2
    assert [disk.digest() for disk in pair] == before


def answer(pair, text, *options):
    """lc-format at a terminal where a person types `text`."""
    ours, theirs = pty.openpty()
    os.write(ours, text.encode())
    try:
        return lc_format(pair, *options, stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)


def test_format_asks_at_a_terminal(pair):
    """Only a whole yes will do; --yes does not ask; refusals are not asked about."""
    before = [disk.digest() for disk in pair]
    for text in ("no\n", "y\n", "YES\n", "\n", "\x04"):
        done = answer(pair, text)
        assert done.code == 1 and "not confirmed" in done.err
        assert pair[0].dev in done.err and pair[1].dev in done.err and "64 MiB" in done.err
    assert [disk.digest() for disk in pair] == before
    assert answer(pair, "yes\n").code == 0
    assert answer(pair, "yes\n").code == 1
    assert "Type 'yes'" not in answer(pair, "", "--yes", "--force=paired").err


# -- device mapper's side, with a stand-in for libdevmapper ----------------------------------------

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


@pytest.fixture(name="fake")
def fixture_fake(tmp_path):
    """No device yet."""
    return FakeDm(tmp_path / "dm")


def test_resume_finds_the_hard_disk(pair, fake):
    """By its mark: loop devices have no identity.  Options on the line win over stored ones."""
    assert lc_format(pair, "-o", "buffers=16", "-o", "writeback=off").code == 0
    done = fake.tool("resume", "-o", "buffers=32", "-o", "writeback=", "-o", "idle_seal_ms=5",
                     "lc0", pair[0].dev)
    assert done.code == 0, done.err
    numbers = [os.stat(disk.dev).st_rdev for disk in pair]
    ssd, hdd = (f"{os.major(number)}:{os.minor(number)}" for number in numbers)
    assert (f"create lc0 0 {95 * 2048} lc {hdd} {ssd} "
            "4 buffers 32 idle_seal_ms 5") in fake.log()
    uuid = dump(pair[0].path)["superblock"]["cache_uuid"]
    assert f"uuid LC-{uuid}" in fake.log()


def mark(pair, facts="", **values):
    """Rewrite the pair as one with odd facts in superblock and mark."""
    words = " ".join(f"{key}={value}" for key, value in values.items())
    mklog(pair[0].path,
          f"sb epoch=5 volume={95 * 2048} {facts}\nmark file={pair[1].path} {words}\n")


@pytest.mark.parametrize("prepare, says", [
    (lambda p: lc_format((p[0], p[1])) and p[1].write(0, bytes(MIB)), "not the hard disk"),
    (lambda p: mark(p, epoch=5, state=2), "out of date"),
    (lambda p: mark(p, epoch=6), "has seen life 6"),
    (lambda p: mark(p, "clean=1", epoch=4), "was used in life 5"),
    (lambda p: mark(p, "mark_epoch=4", epoch=3), "was used in life 4"),
    (lambda p: mark(p, "clean_epoch=3", epoch=1), "was used in life 3"),
    (lambda p: mark(p, epoch=5, forge=f"{MARK_VERSION_AT}:0"), "mark version 0"),
    (lambda p: None, "not formatted"),
    (lambda p: make_newer(*p), "newer dm-lc"),
    (lambda p: mklog(p[0].path, f"sb volume={200 * 2048}\nmark file={p[1].path}\n"),
     "when it was formatted"),
    (lambda p: mklog(p[0].path, "sb copies=2\n"), "superblock is damaged"),
], ids=["wrong", "abandoned", "mark-ahead", "old-clean", "old-drained", "old-stopped",
        "mark-version", "unformatted", "newer", "smaller", "no-superblock"])
def test_resume_refuses(pair, fake, prepare, says):
    """With reason; nothing is created and nothing written."""
    prepare(pair)
    before = [disk.digest() for disk in pair]
    done = fake.tool("resume", "lc0", pair[0].dev, pair[1].dev)
    assert done.code == 1 and says in done.err, done.err
    assert not fake.log()
    assert [disk.digest() for disk in pair] == before


def test_resume_needs_something_that_tells_the_disk(pair, fake):
    """No mark and no identity: only with the fingerprint of a clean stop, or before any life."""
    def resume(facts, *args):
        mklog(pair[0].path, f"sb volume={96 * 2048} no_mark=1 {facts}\n")
        return fake.tool("resume", *args, "lc0", pair[0].dev, pair[1].dev)
    done = resume("epoch=2")
    assert done.code == 1 and "nothing tells whether a disk is the right one" in done.err
    assert not fake.log()
    done = resume("epoch=2", "--print-table")
    assert done.code == 0 and done.out == f"0 {96 * 2048} lc {pair[1].dev} {pair[0].dev}\n"
    assert resume("epoch=0", "--print-table").code == 0
    assert resume("epoch=2 clean=1").code == 0 and fake.log()


def test_resume_refuses_names_and_doubles(pair, fake, disks):
    """A name that is taken, the kernel's no, an SSD in use, two disks that fit."""
    assert lc_format(pair).code == 0
    fake.put("refuse", "the kernel has its reasons")
    done = fake.tool("resume", "lc0", pair[0].dev)
    assert done.code == 1 and "the kernel has its reasons" in done.err
    (fake.folder / "refuse").unlink()
    copy = disks("copy", 96 * MIB)
    copy.write(0, pair[1].read(0, MIB))
    done = fake.tool("resume", "lc0", pair[0].dev)
    assert done.code == 1 and "more than one disk fits" in done.err
    assert copy.dev in done.err and pair[1].dev in done.err
    copy.detach()
    holder = os.open(pair[0].dev, os.O_RDONLY | os.O_EXCL)
    assert "in use" in fake.tool("resume", "lc0", pair[0].dev).err
    os.close(holder)
    assert fake.tool("resume", "lc0", pair[0].dev, pair[0].dev).code == 1
    assert fake.tool("resume", "lc0", pair[0].dev).code == 0
    done = fake.tool("resume", "lc0", pair[0].dev)
    assert done.code == 1 and "name is taken" in done.err


def test_old_name_is_explained(fake):
    """Whoever names a volume as it was called before is told how it is called now."""
    fake.volume((500, 100, 10))
    status = (fake.folder / "status").read_text(encoding="ascii").strip()
    fake.put("status", status + " former_names a\\x20b,music,12")
    for tool in ("status", "flush", "remove"):
        for name in ("a b", "a\\x20b", "music", "12"):
            done = fake.tool(tool, name)
            assert done.code == 1 and f"{name}: no such device: the volume was renamed to lc0" \
                in done.err.replace("\\\\", "\\"), done.err
        for name in ("usic", "music,12", "1", "a", "-"):
            done = fake.tool(tool, name)
            assert done.code == 1 and "renamed" not in done.err, done.err
    assert not fake.log()
    shown = json.loads(fake.tool("status", "--json", "lc0").out)[0]["status"]
    assert shown["former_names"].endswith(",music,12")
    fake.put("status", status + " former_names 12")
    assert json.loads(fake.tool("status", "--json").out)[0]["status"]["former_names"] == "12"


def test_flush_waits_for_the_tail(fake):
    """Until the head of the first look is behind the tail, however much comes after it."""
    fake.volume((500, 100, 10), (600, 110, 40), (700, 130, 99), (700, 140, 100), (1, 1, 1))
    done = fake.tool("flush", "lc0")
    assert done.code == 0, done.err
    assert fake.log() == ["message lc0 flush", "message lc0 writeback"]
    assert "written to the hard disk" in done.out
    assert "tail_seq 1 " in (fake.folder / "status").read_text(encoding="ascii")


def test_flush_of_buffers_only(fake):
    """No draining."""
    fake.volume((500, 100, 10))
    assert fake.tool("flush", "--buffers", "lc0").code == 0
    assert fake.log() == ["message lc0 flush"]


def test_flush_refuses(fake):
    """A broken volume, another target, a suspended one, none."""
    assert "no such device" in fake.tool("flush", "lc0").err
    fake.volume((500, 100, 10))
    fake.put("status", "mode fail dirty 1 head_seq 2 tail_seq 1")
    done = fake.tool("flush", "lc0")
    assert done.code == 1 and "mode fail" in done.err
    fake.put("suspended")
    assert "is suspended" in fake.tool("flush", "lc0").err
    fake.put("target", "linear")
    done = fake.tool("flush", "lc0")
    assert done.code == 1 and "not an lc device" in done.err


def test_remove(fake):
    """Flushes first, refuses while in use, --no-flush leaves the data."""
    fake.volume((5, 10, 1), (0, 10, 1))
    fake.put("open", "1")
    done = fake.tool("remove", "lc0")
    assert done.code == 1 and "in use" in done.err and not fake.log()
    fake.put("open", "0")
    assert fake.tool("remove", "lc0").code == 0
    assert fake.log() == ["message lc0 flush", "message lc0 writeback", "remove lc0"]
    fake.volume((5, 10, 1))
    assert fake.tool("remove", "--no-flush", "lc0").code == 0
    assert fake.log()[3:] == ["remove lc0"]


def test_status(fake):
    """A table, all of one, JSON; keys of later kernels are shown."""
    assert "No lc volume" in fake.tool("status").out
    fake.volume((500, 100, 10))
    assert "rw" in fake.tool("status").out.splitlines()[1]
    assert "shiny" in fake.tool("status", "lc0").out
    status = json.loads(fake.tool("status", "--json").out)[0]["status"]
    assert status["dirty"] == 500 and status["shiny"] == 7
    assert status["generation"] == "00000000000000ff"


# -- lc-dump and lc-check, on images made by hand --------------------------------------------------

@pytest.fixture(name="image")
def fixture_image(tmp_path):
    """A cache image in a file, made by a script for mklog."""
    disk = Disk(tmp_path / "image", 16 * MIB)

    def make(script):
        mklog(disk.path, script)
        return disk

    return make


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


def test_check_of_a_good_log(image):
    """No damage."""
    disk = image(LOG)
    done = check(disk)
    assert done.code == 0 and "11 data slots verified" in done.out, done.out
    assert run_of(disk) == (1, 4)


def test_check_torn_tail_is_no_damage(image):
    """Data or header missing above the durable seq: the log just ends there."""
    disk = image(LOG)
    disk.write(slot_at(2, 1), b"torn")
    done = check(disk)
    assert done.code == 0 and "record 4 was not completely written" in done.out.lower()
    disk = image(LOG)
    disk.write(slot_at(2, 0) + 104, b"torn")
    assert check(disk).code == 0
    assert run_of(disk) == (1, 3)


def test_check_bad_slot(image):
    """Named by sectors; after the repair they are recorded as lost."""
    disk = image(LOG)
    disk.write(slot_at(1, 6) + 100, b"rot")
    done = check(disk)
    assert done.code == 4 and "  sectors 168-175" in done.out, done.out
    _, again = assert_repairs(disk)
    assert "  sectors 168-175" in again.out
    entry = dump(disk.path, "--entries")["records"][1]["entry_list"][1]
    assert (entry["mask"], entry["lost"]) == (0, 255)


def test_check_bad_slot_that_was_overwritten(image):
    """Damage, but nothing is lost: block 10 is in record 4 again."""
    disk = image(LOG)
    disk.write(slot_at(1, 1), b"rot")
    done = check(disk)
    assert done.code == 4 and "Lost" not in done.out
    _, again = assert_repairs(disk)
    assert "Lost" not in again.out


def test_check_damage_hides_no_durable_records(image):
    """One bad header in the only segment: those behind it tell that it was durable (L4, L13)."""
    disk = image("sb epoch=1\n" + "".join(
        f"data segment=1 slot={2 * n} seq={n + 1} durable={n} blocks={n}\n" for n in range(8)))
    assert check(disk).code == 0 and run_of(disk) == (1, 8)
    disk.write(slot_at(1, 6) + 104, b"rot")
    done = check(disk)
    assert done.code == 4 and "record 4 is missing" in done.out, done.out
    assert_repairs(disk)
    assert run_of(disk) == (1, 8)


@pytest.mark.parametrize("slot, seq, last", [(0, 1, 4), (4, 2, 4), (7, 3, 4)])
def test_check_damaged_header(image, slot, seq, last):
    """At the start, in the middle and at the end of a segment: the records behind come back."""
    disk = image(LOG)
    disk.write(slot_at(1, slot) + 104, b"rot")
    assert run_of(disk)[1] < seq
    done = check(disk)
    assert done.code == 4 and f"record {seq} is missing" in done.out, done.out
    assert "segment 1" in done.out
    done, _ = assert_repairs(disk)
    assert "not known" in done.out
    assert run_of(disk) == (1, last)


def test_check_lost_segment(image):
    """All of a segment in the middle: its seqs become empty records."""
    disk = image(LOG + "data segment=3 slot=0 seq=5 durable=4 blocks=50\n")
    disk.write(slot_at(2, 0), bytes(SEGMENT))
    assert_repairs(disk)
    assert run_of(disk) == (1, 5)


LIVES = ("sb epoch=2 first=5 tail=1 tail_segment=1\n"
         "data segment=1 slot=0 seq=1 epoch=1 first=1 durable=0 blocks=10,11,12\n"
         "data segment=1 slot=4 seq=2 epoch=1 first=1 durable=1 blocks=20,21\n"
         "data segment=1 slot=7 seq=3 epoch=1 first=1 durable=2 blocks=30\n"
         "data segment=1 slot=9 seq=4 epoch=1 first=1 durable=3 blocks=40\n"
         "data segment=2 slot=0 seq=5 durable=4 blocks=50\n"
         "data segment=2 slot=2 seq=6 durable=5 blocks=60\n"
         "data segment=3 slot=0 seq=7 durable=6 blocks=70\n")


@pytest.mark.parametrize("rotten", [
    ((2, 0), (2, 2)), ((1, 9), (2, 0)), ((1, 0), (1, 4), (1, 7), (1, 9)), ((1, 9),), ((2, 0),),
], ids=["new-life", "both-ends", "old-life", "end-of-old", "start-of-new"])
def test_check_keeps_lives_apart(image, rotten):
    """A placeholder takes the place of no record of another life that is whole (R7)."""
    disk = image(LIVES)
    good = {(r["segment"], r["slot"]): r for r in dump(disk.path, "--entries")["records"]}
    for segment, slot in rotten:
        disk.write(slot_at(segment, slot) + 104, b"rot")
        del good[segment, slot]
    assert_repairs(disk)
    assert run_of(disk) == (1, 7)
    after = {(r["segment"], r["slot"]): r for r in dump(disk.path, "--entries")["records"]}
    for place, record in good.items():
        after[place]["hidden"] = record["hidden"]
        assert after[place] == record


def test_check_never_wraps_onto_the_tail(image):
    """No room for the missing record in a full ring: the tail's segment is not free."""
    disk = image("sb epoch=1\n")
    ring = dump(disk.path)["superblock"]["nr_segments"]
    full = ",".join(str(block) for block in range(SEGMENT // SLOT - 1))
    mklog(disk.path, "sb epoch=2 first=" + str(ring + 2) + "\n" + "".join(
        f"data segment={n} slot=0 seq={n} epoch=1 first=1 durable={n - 1} blocks={full}\n"
        for n in range(1, ring + 1)))
    assert run_of(disk) == (1, ring)
    before = disk.read(MIB, ring * SEGMENT)
    done = check(disk, "--repair")
    assert done.code == 4 and f"no room for a record in place of the missing {ring + 1}" in done.err
    assert disk.read(MIB, ring * SEGMENT) == before


def test_check_does_not_bring_back_what_is_not_durable(image):
    """A gap above the durable seq ends the log; what is behind stays dead (P2)."""
    disk = image(LOG + "data segment=2 slot=3 seq=5 durable=3 blocks=50\n"
                 "data segment=2 slot=5 seq=6 durable=3 blocks=60\n")
    disk.write(slot_at(1, 4), b"rot")
    disk.write(slot_at(2, 3), b"torn")
    assert_repairs(disk)
    assert run_of(disk) == (1, 4)


def test_check_hole_of_several_records(image):
    """k records missing from n slots: placeholders cover exactly the hole."""
    disk = image(LOG)
    for slot in (0, 4):
        disk.write(slot_at(1, slot), b"rot")
    assert_repairs(disk)
    assert run_of(disk) == (1, 4)
    records = dump(disk.path, "--records")["records"]
    assert [(r["seq"], r["slot"], r["type"]) for r in records[:3]] == [
        (1, 0, "range"), (2, 1, "data"), (3, 7, "data")]


def test_check_foreign_generation_and_lap(image):
    """Records of another format run or lap do not exist, however good they look."""
    other = LOG.replace("sb ", "sb generation=99 ")
    mklog(image("sb epoch=1\n").path, other)
    disk = image("sb epoch=1 first=1\n")
    assert check(disk).code == 0 and run_of(disk) == (1, 0)
    disk = image(LOG.replace("sb ", "sb epoch=2 first=1 ") + "sb epoch=1 first=1\n")
    disk = image("sb epoch=1\n" + LOG.split("\n", 1)[1].replace("segment=1 ", "segment=226 "))
    assert run_of(disk) == (1, 0)


RECORD_TYPE_AT, RECORD_FLAGS_AT, RECORD_BACKING_AT = 114, 115, 128 + 5


@pytest.mark.parametrize("durable", [3, 4], ids=["end", "middle"])
@pytest.mark.parametrize("forged", [f"{RECORD_TYPE_AT}:0", f"{RECORD_TYPE_AT}:3",
                                    f"{RECORD_FLAGS_AT}:1", f"{RECORD_BACKING_AT}:1"])
def test_check_unknown_record(image, forged, durable):
    """The kernel does not start from it, so it is no good log; and it is not overwritten."""
    disk = image(LOG.replace("durable=3", f"durable=3 forge={forged}") +
                 ("data segment=3 slot=0 seq=5 durable=4 blocks=50\n" if durable == 4 else ""))
    before = disk.digest()
    done = check(disk)
    assert done.code == 4 and "segment 2, slot 0: " in done.out, done.out
    assert "a record of a newer dm-lc" in done.out and "beyond repair" in done.err
    assert check(disk, "--repair").code == 4 and disk.digest() == before
    assert "does not know" in dump(disk.path)["log"]["verdict"]


def test_check_unknown_record_behind_the_lap(image):
    """What is not of this lap or format run is not looked at, whatever its type."""
    for old in (LOG.replace("sb ", "sb generation=99 "), LOG.replace("segment=2", "segment=228")):
        disk = image(old.replace("durable=3", f"durable=3 forge={RECORD_TYPE_AT}:9") +
                     "sb epoch=1\n")
        assert check(disk).code == 0


@pytest.mark.parametrize("kind", [2, 4, 5], ids=["zero", "range-zero", "range-lost"])
def test_check_entry_nobody_writes(image, kind):
    """The kernel refuses it in the log, and does not look at it behind the end."""
    entry_type_at = 128 + 7
    line = (f"data segment=2 slot=0 seq=4 durable=3 blocks=10 forge={entry_type_at}:2\n"
            if kind == 2 else f"range segment=2 slot=0 seq=4 durable=3 type={kind}\n")
    rest = LOG.rsplit("\n", 2)[0] + "\n"
    disk = image(rest + line)
    before = disk.digest()
    done = check(disk)
    assert done.code == 4 and f"never writes: type {kind}" in done.out, done.out
    assert check(disk, "--repair").code == 4 and disk.digest() == before
    assert check(image(rest + line.replace("seq=4", "seq=6"))).code == 0


def test_check_wrap(image):
    """A log whose segments go around the ring."""
    disk = image("sb epoch=1\n")
    ring = dump(disk.path)["superblock"]["nr_segments"]
    first = 3 * ring - 1
    mklog(disk.path, f"sb epoch=1 first=1 tail=70 tail_segment={first}\n"
          f"data segment={first} slot=0 seq=70 durable=69 blocks=1\n"
          f"data segment={first + 1} slot=0 seq=71 durable=70 blocks=2\n"
          f"data segment={first + 2} slot=0 seq=72 durable=71 blocks=3\n")
    assert check(disk).code == 0 and run_of(disk) == (70, 72)
    disk.write(slot_at(first + 1, 0, ring) + 99, b"rot")
    assert check(disk).code == 4
    assert_repairs(disk)
    assert run_of(disk) == (70, 72)


def test_check_hidden_records_of_a_later_life(image):
    """They lie behind a good record where no life writes: that one stays, and is not doubled."""
    disk = image("sb epoch=2 first=5 tail=1 tail_segment=1\n"
                 "data segment=1 slot=0 seq=1 epoch=1 first=1 blocks=1\n"
                 "data segment=1 slot=2 seq=2 epoch=1 first=1 blocks=2\n"
                 "data segment=3 slot=0 seq=3 epoch=1 first=1 blocks=3\n"
                 "data segment=3 slot=9 seq=15 epoch=2 first=5 blocks=4\n")
    before = disk.digest()
    assert run_of(disk) == (1, 3)
    done = check(disk, "--repair")
    assert done.code == 4 and disk.digest() == before, done.out
    # Nothing was done, so nothing was tried again.
    assert done.err.count("no room for a record in place of the missing 4") == 1, done.err


def test_check_first_header_of_a_dead_record(image):
    """It says nothing about those of a later life behind it: they are led to again."""
    disk = image("sb epoch=2 first=5 tail=1 tail_segment=1\n"
                 "data segment=1 slot=0 seq=1 epoch=1 first=1 blocks=1\n"
                 "data segment=1 slot=2 seq=2 epoch=1 first=1 blocks=2\n"
                 "data segment=1 slot=4 seq=3 epoch=1 first=1 blocks=3\n"
                 "data segment=1 slot=6 seq=4 epoch=1 first=1 blocks=4\n"
                 "data segment=2 slot=0 seq=5 epoch=1 first=1 blocks=9\n"
                 "data segment=2 slot=5 seq=6 epoch=2 first=5 blocks=6\n"
                 "data segment=2 slot=7 seq=7 epoch=2 first=5 blocks=7\n"
                 "data segment=3 slot=0 seq=8 epoch=2 first=5 durable=7 blocks=8\n")
    done, _ = assert_repairs(disk)
    assert done.out.count("REPAIR: record") == 1 and run_of(disk) == (1, 8), done.out


def test_check_later_life_behind_the_run(image):
    """Replay sees its record there, so the one before it does not exist: a gap to be filled."""
    disk = image("sb epoch=2 first=5 tail=1 tail_segment=1\n"
                 "data segment=1 slot=0 seq=1 epoch=1 first=1 blocks=1\n"
                 "data segment=1 slot=2 seq=2 epoch=1 first=1 blocks=2\n"
                 "data segment=1 slot=4 seq=3 epoch=1 first=1 blocks=3\n"
                 "data segment=2 slot=0 seq=4 epoch=1 first=1 blocks=4\n"
                 "data segment=2 slot=5 seq=6 epoch=2 first=5 blocks=6\n")
    assert_repairs(disk)
    assert run_of(disk) == (1, 4)


def test_check_superblock_copies(image):
    """Any one bad copy is rewritten; with both front ones gone nothing can be."""
    for copy in range(3):
        disk = image(LOG)
        at = dump(disk.path)["superblock"]["end_offset"] if copy == 2 else copy * MIB // 2
        disk.write(at + 300, b"rot")
        done, _ = assert_repairs(disk)
        assert f"superblock copy {copy}" in done.out
        assert [c["state"] for c in dump(disk.path)["copies"]] == ["good"] * 3
    disk = image(LOG)
    disk.write(300, b"rot")
    disk.write(MIB // 2 + 300, b"rot")
    assert check(disk).code == 4
    assert check(disk, "--repair").code == 4


def test_check_superblock_older_than_the_log(image):
    """Records of a later life: the superblock lost an update; nothing is touched (L9)."""
    for flags in ("", " clean=1 head=1"):
        disk = image(f"sb epoch=1 first=1{flags}\n"
                     "data segment=1 slot=0 seq=1 epoch=2 first=1 blocks=1\n")
        before = disk.digest()
        done = check(disk)
        assert done.code == 4 and "superblock is an old one" in done.out
        assert check(disk, "--repair").code == 4 and disk.digest() == before


CLEAN = ("sb epoch=2 first=9 tail=1 tail_segment=1 clean=1 next=5 head=3 items=3\n"
         + LOG.split("\n", 1)[1].replace(" seq=", " epoch=1 first=1 seq=")
         + "ckpt items=18:11:1,19:12:1,21:20:0\n")


def test_check_checkpoint(image):
    """A good one; rot in it, and rot in what it names, gives it up for the log."""
    disk = image(CLEAN.replace("first=9", "first=5"))
    done = check(disk)
    assert done.code == 0 and "3 blocks in the checkpoint" in done.out, done.out
    at = dump(disk.path)["superblock"]["ckpt_offset"]
    disk.write(at + 70, b"rot")
    assert_repairs(disk)
    assert not dump(disk.path)["superblock"]["clean"] and run_of(disk) == (1, 4)
    disk = image(CLEAN.replace("first=9", "first=5"))
    disk.write(slot_at(1, 2), b"rot")
    done = check(disk)
    assert done.code == 4 and "only here" in done.out and "  sectors 88-95" in done.out
    assert_repairs(disk)


def test_check_bad_checkpoint_loses_no_records(image):
    """A clean stop made them durable, though no header says so: rot there is not a torn tail."""
    lines = CLEAN.replace("epoch=2 first=9", "epoch=1 first=1")
    disk = image(re.sub(r" durable=\d+", " durable=0", lines))
    assert check(disk).code == 0
    at = dump(disk.path)["superblock"]["ckpt_offset"]
    disk.write(at + 70, b"rot")
    disk.write(slot_at(2, 2), b"rot")
    assert_repairs(disk)
    assert not dump(disk.path)["superblock"]["clean"] and run_of(disk) == (1, 4)
    assert "Lost: 8 sectors" in check(disk).out


def test_check_names_the_bad_checkpoint_block(image):
    """The number is that of the block, also if what is wrong is inside."""
    disk = image(CLEAN.replace("first=9", "first=5").replace("18:11:1", "99999999:11:1"))
    done = check(disk)
    assert done.code == 4 and "checkpoint block 0: an entry is out of bounds" in done.out


def bad_blocks(tmp_path, *slots):
    """The environment of a tool that cannot read some slots, until they are written."""
    path = tmp_path / "bad-blocks"
    path.write_text("".join(f"{slot_at(*slot)}\n" for slot in slots), encoding="ascii")
    return {"LD_PRELOAD": str(USERLAND / "build/tests/bad_blocks.so"), "BAD_BLOCKS": str(path)}


@pytest.mark.parametrize("slot", [(2, 2), (1, 7), (2, 3), (3, 0)],
                         ids=["torn-or-not", "header", "end-of-chain", "behind-the-end"])
def test_check_unreadable_slot(image, tmp_path, slot):
    """A start takes it as torn; here it is damage, and a repair makes it readable."""
    disk = image(LOG)
    env = bad_blocks(tmp_path, slot)
    done = run_tool("check", disk.path, env=env)
    assert done.code == 4 and "cannot be read: a start takes it as torn" in done.out
    done = run_tool("check", "--repair", disk.path, env=env)
    assert done.code == 1 and "written anew, empty" in done.out, done.out
    assert run_tool("check", disk.path, env=env).code == 0
    assert run_of(disk) == (1, 4)


HIGH = 1 << 61


@pytest.mark.parametrize("facts", [
    f"epoch={HIGH}", f"first={HIGH} tail={HIGH}", f"tail_segment={HIGH}", f"tail={HIGH + 1}",
    f"clean=1 next={HIGH} head=1", f"clean=1 next=1 tail_segment={HIGH} head={HIGH}",
], ids=["epoch", "first-seq", "tail-segment", "tail-seq", "next-seq", "head"])
def test_numbers_too_high_for_another_life(pair, fake, facts):
    """A start would write a superblock that nobody can read: refused, and told by lc-check."""
    lines = f"sb volume={95 * 2048} {facts}\nmark file={pair[1].path}\n"
    mklog(pair[0].path, lines)
    before = [disk.digest() for disk in pair]
    done = fake.tool("resume", "lc0", pair[0].dev, pair[1].dev)
    assert done.code == 1 and "too high for another life" in done.err, done.err
    for options in ((), ("--repair",)):
        done = run_tool("check", *options, pair[0].path, san=True)
        assert done.code == 4 and "too high for another life" in done.out, done.out
    assert not fake.log() and [disk.digest() for disk in pair] == before
    for number in (HIGH, HIGH + 1):
        lines = lines.replace(str(number), str(HIGH - 1))
    mklog(pair[0].path, lines)
    assert run_tool("check", pair[0].path, san=True).code == 0
    assert fake.tool("resume", "lc0", pair[0].dev, pair[1].dev).code == 0


def test_check_log_too_high_for_another_life(image):
    """The superblock's numbers would do, those of the log do not."""
    disk = image(f"sb epoch=1 tail={HIGH - 1} first={HIGH - 1}\n"
                 f"data segment=1 slot=0 seq={HIGH - 1} durable={HIGH - 2} blocks=1\n")
    assert run_of(disk) == (HIGH - 1, HIGH - 1)
    done = check(disk)
    assert done.code == 4 and "too high for another life" in done.out, done.out


def test_check_mark(image, tmp_path):
    """A bad copy is repaired, an abandoned or a foreign mark cannot be."""
    hdd = Disk(tmp_path / "hdd", 513 * MIB)
    disk = image(LOG + f"mark file={hdd.path}\n")
    with_hdd = ("--backing", hdd.path)
    assert check(disk, *with_hdd).code == 0
    hdd.write(100, b"rot")
    assert check(disk, *with_hdd).code == 4
    assert check(disk, "--repair", *with_hdd).code == 1
    assert check(disk, *with_hdd).code == 0
    for facts, says in (("state=2", "went on without"), ("epoch=9", "has seen life 9")):
        disk = image(LOG + f"mark file={hdd.path} {facts}\n")
        done = check(disk, *with_hdd)
        assert done.code == 4 and says in done.out
        assert check(disk, "--repair", *with_hdd).code == 4


@pytest.mark.parametrize("facts", ["", "clean=1 next=5 head=3", "mark_epoch=1", "clean_epoch=1"])
def test_check_old_disk(image, tmp_path, facts):
    """A copy of the hard disk from before a life that it was used in: said, and not repaired."""
    hdd = Disk(tmp_path / "hdd", 513 * MIB)
    disk = image(LOG.replace("sb ", f"sb {facts} ") + f"mark file={hdd.path} epoch=0\n")
    before = [disk.digest(), hdd.digest()]
    done = check(disk, "--repair", "--backing", hdd.path)
    assert done.code == 4 and "is an old copy" in done.out, done.out
    assert "was used in life 1" in done.out, done.out
    assert [disk.digest(), hdd.digest()] == before


def test_check_start_that_was_cut(image, tmp_path):
    """Superblocks of a life that never began, and the mark of the one before: no damage."""
    hdd = Disk(tmp_path / "hdd", 513 * MIB)
    log = LOG.replace("sb epoch=1 first=1", "sb epoch=3 first=5 mark_epoch=1")
    disk = image(log.replace("\ndata", "\ndata epoch=1 first=1") +
                 f"mark file={hdd.path} epoch=1\n")
    done = check(disk, "--backing", hdd.path)
    assert done.code == 0, done.out


@pytest.mark.parametrize("nr_lost, said, suspect", [(2, 2, 0), (224, 224, 0), (0xffffffff, 0, 1)])
def test_check_says_what_the_mark_lost(image, tmp_path, nr_lost, said, suspect):
    """Each range; or once that there is no list, instead of one nobody wrote."""
    hdd = Disk(tmp_path / "hdd", 513 * MIB)
    disk = image(LOG + f"mark file={hdd.path} state=2 nr_lost={nr_lost}\n")
    done = check(disk, "--backing", hdd.path)
    assert done.code == 4
    assert done.out.count("records as lost: sectors ") == said, done.out
    assert done.out.count("All of the volume is suspect") == suspect, done.out


def test_check_of_a_hard_disk_that_shrank(image, tmp_path):
    """Told, and nothing is written behind its end: not even an image in a file grows."""
    hdd = Disk(tmp_path / "hdd", MIB // 2)
    disk = image(LOG + f"mark file={hdd.path}\n")
    os.truncate(hdd.path, MIB // 2)
    done = check(disk, "--repair", "--backing", hdd.path)
    assert done.code == 4 and "when it was formatted" in done.out
    assert hdd.path.stat().st_size == MIB // 2


def test_check_refuses(pair):
    """In use: 8.  Not a cache: 8, and what it is instead.  Bad arguments: 16."""
    assert lc_format(pair).code == 0
    holder = os.open(pair[0].dev, os.O_RDONLY | os.O_EXCL)
    done = run_tool("check", pair[0].dev)
    os.close(holder)
    assert done.code == 8 and "in use" in done.err
    host.run("mkswap", pair[1].dev)
    done = run_tool("check", pair[1].dev)
    assert done.code == 8 and "swap" in done.err
    assert run_tool("check").code == 16


def test_dump_says_what_it_found_instead(pair):
    """Exit 1, in libblkid's words or ours."""
    done = run_tool("dump", pair[0].dev, san=True)
    assert done.code == 1 and "nothing that is recognised" in done.err
    host.run("mkfs.ext4", "-q", "-L", "music", pair[0].dev)
    done = run_tool("dump", pair[0].dev, san=True)
    assert done.code == 1 and 'ext4 "music"' in done.err
    assert lc_format(pair, "--force=ssd-signature").code == 0
    done = run_tool("dump", pair[1].dev)
    assert done.code == 1 and "name the SSD" in done.err


def test_dump_human(image):
    """Every record on its line."""
    out = run_tool("dump", "--segments", "--entries", image(LOG).path, san=True).out
    assert "verdict: unbroken" in out and "seq 3  type data" in out and "block 33" in out


def test_hostile_images(image, tmp_path):
    """Random damage, superblock sealed or not: an answer and no sanitizer's word."""
    seed = int(os.environ.get("LC_SEED") or time.time())
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(40):
        disk = image(rng.choice((LOG, CLEAN)))
        for _ in range(rng.randrange(1, 12)):
            at = rng.choice((0, MIB // 2, slot_at(1, rng.randrange(16)), slot_at(2, 0),
                             slot_at(rng.randrange(40), 0), 15 * MIB))
            disk.write(at + rng.randrange(SLOT), rng.randbytes(rng.randrange(1, 64)))
        assert run_tool("dump", "--entries", disk.path, san=True).code in (0, 1)
        code = check(disk).code
        assert code in (0, 4, 8)
        after = check(disk, "--repair").code
        assert after in ((0,) if code == 0 else (1, 4, 8))
        if after == 1:
            assert check(disk).code == 0


# -- logs of several lanes -------------------------------------------------------------------------

SEG_SLOTS = SEGMENT // SLOT
LANES_AT = "lanes=1 tail=100 tail_segment=10 first=1"
LANES = (f"sb epoch=1 {LANES_AT}\n"
         "data segment=10 slot=0 seq=100 durable=99 cut=10 lane=0 blocks=1,2\n"
         "data segment=11 slot=0 seq=101 durable=99 cut=10 lane=1 blocks=3,4\n"
         "data segment=10 slot=3 seq=102 durable=101 cut=10 lane=0 blocks=5,6\n"
         "data segment=11 slot=3 seq=103 durable=101 cut=10 lane=1 blocks=7\n"
         "data segment=11 slot=5 seq=104 durable=103 cut=10 lane=1 blocks=8\n"
         "data segment=10 slot=6 seq=105 durable=104 cut=10 lane=0 blocks=9\n"
         "data segment=12 slot=0 seq=106 durable=105 cut=12 lane=0 blocks=10\n")


def places_of(disk):
    """Of each record in the run: place, type and cut."""
    return {r["seq"]: (r["segment"], r["slot"], r["type"], r["cut"])
            for r in dump(disk.path, "--records")["records"] if r["in_run"]}


@pytest.mark.parametrize("rotten, said", [
    (((10, 0),), {100: (10, 0, "data", 10)}),
    (((11, 0),), {101: (11, 0, "data", 10)}),
    (((10, 3),), {102: (10, 3, "data", 10)}),
    (((11, 5),), {104: (11, 5, "range", 10)}),
    (((10, 6),), {105: (10, 6, "range", 10)}),
    (((11, 0), (10, 3)), {101: (11, 0, "data", 10), 102: (10, 3, "data", 10)}),
    (((10, 0), (11, 0)), {100: (10, 0, "data", 10), 101: (11, 0, "data", 10)}),
    (((10, 3), (11, 3)), {102: (10, 3, "data", 10), 103: (11, 3, "data", 10)}),
    (((10, 0), (10, 3)), {100: (10, 0, "range", 10), 102: (10, 1, "data", 10)}),
    (((11, 3), (11, 5)), {103: (11, 3, "range", 10), 104: (11, 4, "range", 10)}),
])
def test_check_lanes_damaged_header(image, rotten, said):
    """Each hole gets a seq that fits, no matter whose; the records behind come back."""
    disk = image(LANES)
    assert check(disk).code == 0 and run_of(disk) == (100, 106)
    good = places_of(disk)
    for segment, slot in rotten:
        disk.write(slot_at(segment, slot) + 104, b"rot")
    assert_repairs(disk)
    assert run_of(disk) == (100, 106)
    assert places_of(disk) == {**good, **said}


def test_check_lanes_lost_segment(image):
    """All of one of two that were open side by side."""
    disk = image(LANES)
    disk.write(slot_at(11, 0), bytes(SEGMENT))
    assert check(disk).code == 4
    assert_repairs(disk)
    # 103 would fit behind 102 as well, but the seqs of a segment go on rising.
    assert places_of(disk)[103] == (11, 1, "range", 10) and run_of(disk) == (100, 106)


def test_check_lanes_hidden_in_the_lower_segment(image):
    """The run ends in the higher segment: what tells of damage is behind it by seq only."""
    for cut, code in ((10, 4), (11, 0)):
        # With the cut 11 record 101 says that the lower one was closed: nobody looks there.
        disk = image(f"sb generation={cut} epoch=1 {LANES_AT}\n"
                     "data segment=10 slot=0 seq=100 durable=99 cut=10 blocks=1\n"
                     f"data segment=11 slot=0 seq=101 durable=99 cut={cut} blocks=2\n"
                     "data segment=10 slot=2 seq=102 durable=99 cut=10 blocks=3\n"
                     "data segment=10 slot=4 seq=103 durable=102 cut=10 blocks=4\n")
        assert check(disk).code == 0 and run_of(disk) == (100, 103)
        disk.write(slot_at(10, 2) + 104, b"rot")
        done = check(disk)
        assert done.code == code and run_of(disk) == (100, 101)
        if code:
            assert "record 102 is missing, but all up to 102" in done.out, done.out
            assert_repairs(disk)


def test_check_lanes_hole_for_what_is_below_the_tail(image):
    """No missing seq fits: one that replay ignores does; or nothing is changed."""
    disk = image(f"sb epoch=1 {LANES_AT}\n"
                 "data segment=11 slot=0 seq=100 durable=99 cut=10 blocks=1\n"
                 "data segment=10 slot=0 seq=98 durable=97 cut=10 blocks=2\n"
                 "data segment=10 slot=2 seq=101 durable=100 cut=10 blocks=3\n"
                 "data segment=11 slot=2 seq=102 durable=101 cut=10 blocks=4\n")
    disk.write(slot_at(10, 0) + 104, b"rot")
    assert_repairs(disk)
    assert run_of(disk) == (100, 102)
    records = dump(disk.path, "--records")["records"]
    assert [(r["seq"], r["slot"]) for r in records if r["segment"] == 10] == [(99, 0), (101, 2)]
    disk = image(f"sb generation=5 epoch=1 {LANES_AT.replace('100', '1').replace('=10 ', '=8 ')}\n"
                 "data segment=9 slot=0 seq=1 cut=8 blocks=1\n"
                 "data segment=8 slot=4 seq=2 durable=1 cut=8 blocks=3\n"
                 "data segment=9 slot=2 seq=3 durable=2 cut=8 blocks=3\n")
    before = disk.digest()
    done = check(disk, "--repair")
    assert done.code == 4 and "the hole of 4 slots in segment 8 cannot be filled" in done.err
    assert disk.digest() == before


CUTS = (f"sb epoch=1 {LANES_AT} clean=1 next=107 head=13 items=3\n" + LANES.split("\n", 1)[1]
        + "ckpt items=161:1:1,167:9:1 cuts=192:106\n")


def test_checkpoint_with_cuts(image):
    """They are no blocks, whatever their bytes look like, and are shown."""
    disk = image(CUTS)
    done = check(disk)
    assert done.code == 0 and "2 blocks in the checkpoint" in done.out, done.out
    found = dump(disk.path, "--segments")
    assert found["cuts"] == [{"segment": 12, "seq": 106}]
    assert found["superblock"]["incompat"] == "lanes short_sums"
    assert "cuts:\n  segment 12  seq 106" in run_tool("dump", "-s", disk.path, san=True).out
    for words, features in (("", "short_sums"), (" long_sums=1", "none"),
                            (" long_sums=1 lanes=1", "lanes")):
        other = CLEAN.replace("sb ", f"sb{words} ", 1)
        assert dump(image(other).path)["superblock"]["incompat"] == features


@pytest.mark.parametrize("cuts, says", [
    ("193:106", "an entry is out of bounds"), ("192:99", "an entry is out of bounds"),
    ("192:108", "an entry is out of bounds"), ("160:100", "a cut is not above the tail"),
    ("208:107", "a cut is not above the tail"), ("192:106,192:107", "it names a cut twice"),
], ids=["inside", "below-tail", "above-next", "at-tail", "at-head", "twice"])
def test_check_bad_cuts(image, cuts, says):
    """What the kernel refuses; without the checkpoint the log says the same."""
    nr = 2 + len(cuts.split(","))
    disk = image(CUTS.replace("192:106", cuts).replace("items=3", f"items={nr}"))
    done = check(disk)
    assert done.code == 4 and says in done.out, done.out
    assert_repairs(disk)
    assert run_of(disk) == (100, 106)


def test_check_cuts_of_one_lane(image):
    """Without the feature they are no entries at all."""
    disk = image(CUTS.replace("lanes=1", "lanes=0"))
    done = check(disk)
    assert done.code == 4 and "an entry is out of bounds" in done.out, done.out


def test_format_takes_no_cut_for_lost_sectors(pair):
    """A high seq in the place of mask and lost is no data that would be lost."""
    high = 1 << 55
    mklog(pair[0].path, f"sb epoch=1 lanes=1 clean=1 items=2 next={high + 1} head=9\n"
          f"ckpt items=1:1:0 cuts=32:{high}\n")
    assert lc_format(pair).code == 0


class LanesLog:
    """A random log of several lanes: lives of which each ended by a power cut.

    What is in `records` got a seq; `whole` those whose header is on the media. In a life
    all up to its `durable` are whole, of the others the cut has left any.
    """

    def __init__(self, rng):
        self.rng = rng
        self.records, self.whole, self.harm = [], [], []
        self.cuts = []          # (segment, lowest seq in it or behind)
        self.next_segment = rng.randrange(1, 5)
        self.last = rng.randrange(200)
        self.epoch = 0
        for _ in range(rng.choice((1, 1, 2))):
            self.live(rng.randrange(2, 5))

    def turn(self):
        """All segments are closed: the next one is a cut."""
        self.lanes = [None] * len(self.lanes)
        self.cut = self.next_segment
        self.cuts.append((self.cut, self.last + 1))

    def write(self):
        """A record in one of the lanes."""
        lane = self.rng.randrange(len(self.lanes))
        blocks = self.rng.choice((0, 1, 1, 2, 3, self.rng.randrange(1, SEG_SLOTS)))
        if self.lanes[lane] and self.lanes[lane][1] + 1 + blocks > SEG_SLOTS:
            self.lanes[lane] = None
        if not self.lanes[lane]:
            if self.next_segment - self.cut >= self.round:
                self.turn()
            self.lanes[lane] = [self.next_segment, 0]
            self.next_segment += 1
        segment, slot = self.lanes[lane]
        self.last += 1
        self.lanes[lane][1] += 1 + blocks
        self.records.append({"seq": self.last, "segment": segment, "slot": slot, "blocks": blocks,
                             "epoch": self.epoch, "first": self.first, "cut": self.cut,
                             "lane": lane, "durable": self.durable})

    def live(self, nr_lanes):
        """Some writes and flushes, and a power cut."""
        self.epoch += 1
        self.first = self.last + 1
        self.durable = self.last
        self.lanes = [None] * nr_lanes
        self.round = self.rng.randrange(nr_lanes, 3 * nr_lanes)
        self.turn()
        begin = len(self.records)
        for _ in range(self.rng.randrange(5, 60)):
            what = self.rng.randrange(20)
            if what < 3:
                self.durable = self.last
            elif what == 3:
                self.turn()
            else:
                self.write()
        self.power_cut(self.records[begin:])

    def power_cut(self, records):
        """What was not flushed is there or not; the log ends before the first that is not."""
        broken = False
        for record in records:
            fate = self.rng.randrange(8) if record["seq"] > self.durable else 0
            record["torn"] = fate == 7 and record["blocks"] > 0
            if fate != 6:
                self.whole.append(record)
            broken |= fate == 6 or record["torn"]
            record["dead"] = broken
        alive = [record for record in self.records if not record["dead"]]
        self.last = max((record["seq"] for record in alive), default=self.first - 1)
        self.next_segment = max((record["segment"] for record in alive), default=0) + 1
        self.cuts = [cut for cut in self.cuts if cut[1] <= self.last]

    def script(self, number):
        """For mklog: the superblock, and all headers and data that are on the media."""
        below = [cut for cut in self.cuts if cut[1] <= self.durable]
        self.tail = self.rng.choice(below) if below else (1, self.first)
        lines = [f"sb generation={number} epoch={self.epoch} first={self.first} lanes=1 "
                 f"tail={self.tail[1]} tail_segment={self.tail[0]}"]
        for record in self.whole:
            words = " ".join(f"{key}={record[key]}" for key in (
                "seq", "segment", "slot", "epoch", "first", "cut", "lane", "durable"))
            blocks = ",".join(str(self.rng.randrange(99)) for _ in range(record["blocks"]))
            lines.append(f"data {words} torn={int(record['torn'])} blocks={blocks}" if blocks
                         else f"range {words} block=200")
        return "\n".join(lines) + "\n"

    def told(self, rotten):
        """The highest seq that is known to be durable."""
        return max([self.first - 1] + [r["durable"] for r in self.whole if r not in rotten
                                       and r["epoch"] == self.epoch])

    def choose(self):
        """One to three records, all of them below what the others say was durable."""
        needed = [r for r in self.whole if not r["dead"] and r["seq"] >= self.tail[1]]
        for _ in range(100 if needed else 0):
            rotten = self.rng.sample(needed, min(len(needed), self.rng.randrange(1, 4)))
            if max(r["seq"] for r in rotten) <= self.told(rotten):
                return rotten
        return None


def records_of(disk):
    """By place; what a repair changes of a good record is only who comes to see it."""
    found = {(r["segment"], r["slot"]): r
             for r in dump(disk.path, "--entries", san=False)["records"]}
    for record in found.values():
        del record["hidden"]
    return found


def assert_cuts(records):
    """Each record tells the truth about where those of higher seqs are."""
    lowest = 1 << 62
    for record in sorted(records, key=lambda record: -record["seq"]):
        if record["in_run"]:
            assert (record["cut"] or record["segment"]) <= min(lowest, record["segment"]), record
            lowest = min(lowest, record["segment"])


def test_check_random_lanes(image):
    """Damaged headers below the durable seq: told, repaired, and no good record is lost."""
    seed = int(os.environ.get("LC_SEED") or time.time())
    print(f"seed {seed}")
    rng = random.Random(seed)
    for number in range(1, 26):
        log = LanesLog(rng)
        disk = image(log.script(number))
        done = check(disk)
        assert done.code == 0, f"log {number}: {done.out}"
        rotten = log.choose()
        if not rotten:
            continue
        good = records_of(disk)
        for record in rotten:
            place = record["segment"], record["slot"]
            disk.write(slot_at(*place) + 104, b"rot")
            del good[place]
        print(f"log {number}: rotten {[(r['seq'], r['segment'], r['slot']) for r in rotten]}")
        assert_repairs(disk)
        durable = log.told(rotten)
        first, last = run_of(disk)
        assert first == log.tail[1] and last >= durable, (first, last, durable)
        after = records_of(disk)
        for place, record in good.items():
            if record["in_run"] and record["seq"] <= durable:
                assert after[place] == record, place
        assert_cuts(after.values())


# -- the code the tools share with the module ------------------------------------------------------

def helper(name, *args, san=True):
    """Run one of userland/tests; it prints its seed."""
    binary = USERLAND / ("build-san" if san else "build") / "tests" / name
    print(host.run(binary, *args))


def test_format_codec():
    """Known checksums, round trips, flipped bits, hostile blocks."""
    helper("format_test", 60, os.environ.get("LC_SEED") or int(time.time()))


def test_replay_of_random_lives():
    """Rules R1-R7 of dm-lc/replay.c against a model of what was durable."""
    helper("replay_test", 20000, os.environ.get("LC_SEED") or int(time.time()))


def test_replay_of_far_numbers():
    """Numbers that do not fit into what replay keeps of a header; logs as large as can be."""
    helper("narrow_test")


# Each breaks one rule of replay.c; one of the two tests above must notice.
MUTANTS = {
    "R1-L2": ("life->end_seq = limit;", "life->end_seq = ~0ULL;"),
    "R1-later-epochs": ("if (epoch_first < limit)", "if (0)"),
    "R1-lone-header-L2": ("if (sb->lives[*lives - 1].first_seq < *limit)", "if (0)"),
    "R1-forgets-lives": ("if (next > sb->tail_seq)", "if (0)"),
    "R2-rewritten": ("return segment > other ? -1 : 1;", "return segment < other ? -1 : 1;"),
    "R3-tail": ("u64 expect = sb->tail_seq;", "u64 expect = 1;"),
    "R4-gap-L1": ("if (r->seq == expect)", "if (r->seq >= expect)"),
    "R5-L4": ("r->durable > durable", "r->durable < durable"),
    "R6-L9": ("return -ESTALE;", ";"),
    "R7-leftovers": ("life->end_segment = later;", "life->end_segment = LC_REPLAY_NONE;"),
    "cut-too-early": ("if (r->keep && r->cut >= next)", "if (r->keep)"),
    "cut-too-low": ("if (r->keep && segment >= next)", "if (0)"),
    "next-segment": ("result->next_segment = lc_replay_segment(log, r) + 1",
                     "result->next_segment = lc_replay_segment(log, r)"),
    # What is kept of a header has fewer bits than the header.
    "narrow-durable": ("return distance < LC_REPLAY_NONE ? distance + 1 : LC_REPLAY_NONE;",
                       "return distance + 1;"),
    "narrow-durable-by-one": ("return distance < LC_REPLAY_NONE ? distance + 1 : LC_REPLAY_NONE;",
                              "return distance < 1ULL << 32 ? distance + 1 : LC_REPLAY_NONE;"),
    "narrow-durable-below-tail": ("if (durable_seq < log->tail_seq)", "if (0)"),
    "narrow-cut": ("return back < LC_REPLAY_FAR_BACK ? back : LC_REPLAY_FAR_BACK;",
                   "return back;"),
    "narrow-seq": ("if (r->seq == expect)", "if ((u32)r->seq == (u32)expect)"),
    "narrow-end-seq": ("return r->seq < life->end_seq", "return (u32)r->seq < (u32)life->end_seq"),
    "narrow-order": ("return x->seq < y->seq ? -1 : 1;",
                     "return (u32)x->seq < (u32)y->seq ? -1 : 1;"),
    "narrow-life": (".life = number,", ".life = (u16)number % 40000,"),
    "narrow-epoch": ("if (life->epoch != epoch)\n\t\treturn life->epoch < epoch ? -1 : 1;",
                     "if ((u32)life->epoch != (u32)epoch)\n"
                     "\t\treturn (u32)life->epoch < (u32)epoch ? -1 : 1;"),
    "narrow-place": ("distance >= log->nr_segments", "(u32)distance >= log->nr_segments"),
    "forgotten-life": ("if (log->lives[log->by_epoch[i]].segment <= last)", "if (log->nr_told)"),
    "unsorted-chains": ("if (nr_runs > 1)", "if (nr_runs > 1 && stack[0].first)"),
}


@pytest.mark.parametrize("rule", MUTANTS)
def test_replay_mutants(rule, tmp_path):
    """Without the rule one of the tests fails: it proves something."""
    source = (host.TOP / "dm-lc/replay.c").read_text(encoding="ascii")
    old, new = MUTANTS[rule]
    assert source.count(old) == 1, "replay.c has changed: adapt the mutant"
    mutant = tmp_path / "replay.c"
    mutant.write_text(source.replace(old, new), encoding="ascii")
    codes = []
    for test in ("narrow_test", "replay_test"):
        host.run("gcc", "-O2", "-w", "-D_GNU_SOURCE", f"-I{USERLAND}/kernel",
                 f"-I{host.TOP}/dm-lc", USERLAND / f"tests/{test}.c", mutant,
                 USERLAND / "build/shared/csum.o", USERLAND / "build/shared/format.o",
                 USERLAND / "build/crc32c.o", "-o", tmp_path / test)
        done = subprocess.run([tmp_path / test, "30000", "1"], capture_output=True, check=False)
        codes.append(done.returncode)
    assert 1 in codes, "the mutant survived"


# -- the rest --------------------------------------------------------------------------------------

COMMANDS = ("format", "resume", "flush", "status", "remove", "dump", "check")


def test_help_version_man_and_completion():
    """Every option of --help is in the man page and in the completion."""
    completion = (USERLAND / "completion/lc.bash").read_text(encoding="ascii")
    for command in COMMANDS:
        assert run_tool(command, "--version").out.startswith("lc (dm-lc) ")
        done = run_tool(command, "--help", san=True)
        assert done.code == 0 and done.out.startswith(f"Usage: lc-{command}")
        page = (USERLAND / f"man/lc-{command}.8").read_text(encoding="ascii")
        for option in re.findall(r"--[a-z][a-z-]+", done.out):
            assert option.replace("-", "\\-") in page, f"{option} is not in lc-{command}.8"
            assert option in completion, f"{option} is not in the completion"
    page = (USERLAND / "man/lc-format.8").read_text(encoding="ascii")
    for name in CLASSES:
        assert name.replace("-", "\\-") in page


def test_install(tmp_path):
    """One binary, links, pages, completion."""
    host.run("make", "-s", "-C", USERLAND, "install", f"DESTDIR={tmp_path}", "PREFIX=/usr")
    for command in COMMANDS:
        assert os.readlink(tmp_path / f"usr/sbin/lc-{command}") == "lc"
        assert (tmp_path / f"usr/share/man/man8/lc-{command}.8").is_file()
    assert (tmp_path / "usr/share/bash-completion/completions/lc").is_file()
    with contextlib.suppress(FileNotFoundError):
        host.run("bash", "-n", tmp_path / "usr/share/bash-completion/completions/lc")
