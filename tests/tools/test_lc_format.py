# SPDX-License-Identifier: GPL-2.0-only
"""lc-format: what it writes, what it refuses, what it asks."""

import dataclasses
import hashlib
import os
import pty
import random
import struct

import pytest

from lib import host
from lib.tools import (
    CLASSES,
    MIB,
    SEGMENT,
    SLOT,
    Disk,
    add_partitions,
    cache_on,
    dump,
    expect,
    lc_format,
    make_mbr,
    make_md,
    make_newer,
    make_paired,
    mklog,
    run_tool,
)


def test_format_default_layout(pair):
    """Mark at the start, volume behind it, the table line alone on stdout."""
    done = expect(lc_format(pair, "--label", "music", "-o", "buffers=16", san=True), 0)
    sectors = (96 - 1) * 2048
    assert done.out == f"0 {sectors} lc {pair[1].dev} {pair[0].dev} 2 buffers 16\n"
    found = dump(pair[0].path)
    assert [copy["state"] for copy in found["copies"]] == ["good"] * 3
    block = found["superblock"]
    assert block["data_offset"] == MIB and block["mark_offset"] == 0
    assert block["volume_sectors"] == sectors and block["checksum"] in ("xxh64", "crc32c")
    assert block["label"] == "music" and block["options"] == "buffers 16"
    assert int(block["generation"], 16) and not block["clean"] and block["epoch"] == 0
    assert pair[1].read(0, 8) == pair[1].read(MIB // 2, 8) == b"dmlc-mk\n"
    assert run_tool("check", pair[0].dev, "--backing", pair[1].dev, san=True).code == 0


@pytest.mark.parametrize(("text", "checksum"), [
    ("vendor_id\t: x\nflags\t\t: fpu sse4_2 pclmulqdq avx\nbugs\t\t: none\n", "crc32c"),
    ("flags\t\t: fpu pclmulqdq sse4_2\n", "crc32c"),
    ("flags\t\t: fpu sse4_2 vpclmulqdq\n\nflags\t\t: sse4_2 pclmulqdq\n", "xxh64"),
    ("flags\t\t: fpu pclmulqdq sse4_1\n", "xxh64"),
    ("vendor_id\t: User Mode Linux\nflags\t\t: fpu sse4_2 pclmulqdq\n", "xxh64"),
    ("Features\t: fp asimd aes pmull sha1 crc32 atomics\n", "crc32c"),
    ("Features\t: fp asimd aes pmull sha1\n", "xxh64"),
    ("isa\t\t: rv64imafdc\n", "xxh64"),
    ("", "xxh64"),
])
def test_format_chooses_the_checksum(pair, tmp_path, text, checksum):
    """That for which this machine's processors have instructions; what is asked for wins."""
    told = tmp_path / "cpuinfo"
    told.write_text(text, encoding="ascii")
    under = ("unshare", "--mount", "sh", "-ec", 'mount --bind "$1" /proc/cpuinfo; shift; exec "$@"',
             "sh", told)
    expect(lc_format(pair, san=True, under=under), 0)
    assert dump(pair[0].path)["superblock"]["checksum"] == checksum
    other = "xxh64" if checksum == "crc32c" else "crc32c"
    expect(lc_format(pair, "--force=paired", "--checksum", other, under=under), 0)
    assert dump(pair[0].path)["superblock"]["checksum"] == other


def test_format_keeps_data_in_place(pair):
    """Every byte stays, but that the first MiB is at the end, and the mark in its place."""
    # Bytes that are the same in each run: of random ones some look like a file system.
    pair[1].write(0, random.Random(1).randbytes(95 * MIB))
    before = hashlib.sha256(pair[1].read(0, 95 * MIB)).digest()
    expect(lc_format(pair, "--in-place", "--checksum", "crc32c", "--segment-size", "64K"), 0)
    moved = pair[1].read(95 * MIB, MIB) + pair[1].read(MIB, 94 * MIB)
    assert hashlib.sha256(moved).digest() == before
    block = dump(pair[0].path)["superblock"]
    assert block["in_place"] and block["data_offset"] == 0 and block["mark_offset"] == 0
    assert block["incompat"] == "short_sums moved_head"
    assert block["segment_bytes"] == SEGMENT and block["checksum"] == "crc32c"


def test_format_without_mark_needs_an_identity(pair):
    """--no-mark: refused for a disk that nothing would tell from another one."""
    before = [disk.digest() for disk in pair]
    expect(lc_format(pair, "--in-place", "--no-mark"), 1, "has no serial number")
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


@dataclasses.dataclass
class Refusal:
    """A state of the devices lc-format says no to."""

    name: str
    prepare: object
    says: str
    force: str = None
    options: tuple = ()


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
    done = expect(lc_format(pair, *case.options, san=True), 1, case.says)
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
        expect(lc_format(pair, *(f"--force={name}" for name in CLASSES)), 1, f"mounted on {where}")
        assert [disk.digest() for disk in pair] == before
    finally:
        host.run("umount", where)


def test_format_refuses_what_is_too_small(disks):
    """Neither can be forced."""
    big, small, tiny = disks("big"), disks("small", 2 * MIB), disks("tiny", MIB)
    before = [disk.digest() for disk in (big, small, tiny)]
    force = [f"--force={name}" for name in CLASSES]
    expect(lc_format((small, big), *force), 1, "too small")
    expect(lc_format((big, tiny), *force), 1, "too small")
    assert [disk.digest() for disk in (big, small, tiny)] == before


def test_format_refuses_one_device_twice(pair):
    """SSD = HDD, by another name too."""
    before = pair[0].digest()
    link = pair[0].path.parent / "other-name"
    link.symlink_to(pair[0].dev)
    for name in (pair[0].dev, link):
        expect(run_tool("format", "--backing", name, pair[0].dev, "--yes"), 1, "same device")
    assert pair[0].digest() == before


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
        expect(run_tool("format", "--backing", disk.dev, f"{disk.dev}p1"), 1, "part of the other")
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
        done = expect(answer(pair, text), 1, "not confirmed")
        assert pair[0].dev in done.err and pair[1].dev in done.err and "64 MiB" in done.err
    assert [disk.digest() for disk in pair] == before
    assert answer(pair, "yes\n").code == 0
    assert answer(pair, "yes\n").code == 1
    assert "Type 'yes'" not in answer(pair, "", "--yes", "--force=paired").err
