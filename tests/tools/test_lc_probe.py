# SPDX-License-Identifier: GPL-2.0-only
"""lc-probe: what udev is told about a device."""

import pathlib
import random
import re
import struct
import uuid
import zlib

import pytest

from lib import host, oldlayout
from lib.tools import (
    CLASSES,
    MIB,
    SLOT,
    Disk,
    Image,
    expect,
    lc_format,
    make_mbr,
    make_md,
    preload,
    run_tool,
)

UUID_AT = 24
CRC = "--checksum=crc32c"
DAMAGED = {"cache": {"ID_FS_TYPE": "lc_cache", "ID_FS_USAGE": "other"},
           "backing": {"ID_FS_TYPE": "lc_backing", "ID_FS_USAGE": "raid"}}
ANYWAY = [f"--force={refused}" for refused in CLASSES]
# A RAID member whose superblock (1.2) is at byte 4096.
MD_12 = (struct.pack("<IIII", 0xa92b4efc, 1, 0, 0).ljust(128, b"\0")
         + struct.pack("<QQQ", 2048, 4096, 8))


def probe(path):
    """What both builds say, as a dictionary."""
    said = [expect(run_tool("probe", path, san=san), 0).out for san in (False, True)]
    assert said[0] == said[1]
    lines = said[0].splitlines()
    assert all(re.fullmatch(r"ID_FS_[A-Z_]+=[^\n\0]+", line) for line in lines), lines
    return dict(line.split("=", 1) for line in lines)


def half(name, kind, **more):
    """What is said of a whole half."""
    return {**DAMAGED[kind], "ID_FS_VERSION": "1", "ID_FS_UUID": name, "ID_FS_UUID_ENC": name,
            **more}


@pytest.fixture(name="images")
def fixture_images(pair):
    """Formats the pair; returns the images of SSD and hard disk, and its UUID."""
    def make(*options):
        expect(lc_format(pair, CRC, "--yes", *options), 0)
        ssd, hdd = (Image(disk.path) for disk in pair)
        return ssd, hdd, str(uuid.UUID(bytes=ssd.read(UUID_AT, 16)))

    return make


@pytest.fixture(name="older")
def fixture_older(pair, images):
    """A pair in place of older tools, with an ext4 in the volume."""
    def make(kib=95 * 1024):
        host.run("mkfs.ext4", "-q", pair[1].dev, f"{kib}K")
        ssd, hdd, name = images("--in-place")
        oldlayout.make_older(ssd.path, hdd.path)
        host.run("blockdev", "--flushbufs", pair[1].dev)
        return ssd, hdd, name

    return make


@pytest.mark.parametrize("options", [(), ("--in-place",)], ids=["default", "in-place"])
def test_both_halves(pair, images, options):
    """A pair in each layout; taken apart, neither is one."""
    ssd, hdd, name = images("-L", "my music", *options)
    names = {"ID_FS_LABEL": "my_music", "ID_FS_LABEL_ENC": r"my\x20music"}
    assert probe(pair[0].dev) == probe(ssd.path) == half(name, "cache", **names)
    assert probe(pair[1].dev) == probe(hdd.path) == half(name, "backing", **names)
    expect(run_tool("detach", "--backing", pair[1].dev, pair[0].dev), 0)
    assert probe(pair[0].dev) == probe(pair[1].dev) == {}


def test_neither(disks, tmp_path):
    """Empty, other contents, too small, not there: nothing, and no failure."""
    disk = disks("disk")
    assert probe(disk.dev) == {}
    make_mbr(disk, 2048, 4096)
    assert probe(disk.dev) == {}
    host.run("mkfs.ext4", "-q", disk.dev)
    assert probe(disk.dev) == {}
    assert probe(Disk(tmp_path / "small", 2048).path) == probe(tmp_path / "missing") == {}


def test_usage():
    """One device."""
    for words in ((), ("a", "b"), ("--help",)):
        expect(run_tool("probe", *words), 2, "give one device")


def test_no_half_costs_little(disks):
    """Of a disk that is no half, 36 KiB are read at most; zeros have to be looked at most."""
    disk = disks("disk", 512 * MIB)
    stat = pathlib.Path("/sys/class/block", pathlib.Path(disk.dev).name, "stat")
    before = int(stat.read_text(encoding="ascii").split()[2])
    expect(run_tool("probe", disk.dev), 0)
    assert 0 < int(stat.read_text(encoding="ascii").split()[2]) - before <= 36 * 2


def test_label_of_a_stranger(images):
    """A label of control characters makes no other line."""
    ssd, hdd, name = images()
    oldlayout.change(hdd, oldlayout.MARK, 0, MIB // 2, label=b"a\nID_FS_TYPE=ext4\x1b=\"'\\")
    said = probe(hdd.path)
    assert said["ID_FS_TYPE"] == "lc_backing" and said["ID_FS_UUID"] == name
    assert said["ID_FS_LABEL_ENC"].startswith(r"a\x0aID_FS_TYPE=ext4\x1b"), said
    assert probe(ssd.path) == half(name, "cache")


@pytest.mark.parametrize("state", [1, 2, 3, 4], ids=["paired", "abandoned", "attaching",
                                                     "detaching"])
def test_any_state_is_a_half(images, state):
    """The disk cannot be used by itself, even while some of its first MiB is back."""
    _, hdd, name = images()
    oldlayout.change(hdd, oldlayout.MARK, 0, MIB // 2, state=state)
    assert probe(hdd.path) == half(name, "backing")
    hdd.write(4096, MD_12)
    assert probe(hdd.path) == (half(name, "backing") if state > 2 else {})


def test_newer_format(images):
    """Its type and its version, but not what another version may keep elsewhere."""
    ssd, hdd, _ = images()
    oldlayout.change(ssd, oldlayout.SB, 0, version=9)
    oldlayout.change(hdd, oldlayout.MARK, 0, MIB // 2, version=12)
    assert probe(ssd.path) == {**DAMAGED["cache"], "ID_FS_VERSION": "9"}
    assert probe(hdd.path) == {**DAMAGED["backing"], "ID_FS_VERSION": "12"}
    oldlayout.change(ssd, oldlayout.SB, 0, MIB // 2, version=1, incompat=1 << 40)
    assert probe(ssd.path) == {**DAMAGED["cache"], "ID_FS_VERSION": "1"}


def test_damaged_copies(images):
    """One good copy is enough, wherever; none: the type alone, because the device is not empty."""
    ssd, hdd, name = images()
    for image, kind in ((ssd, "cache"), (hdd, "backing")):
        first = image.read(0)
        for damage in (bytes(SLOT), first[:64] + b"\xff" + first[65:]):
            image.write(0, damage)
            assert probe(image.path) == half(name, kind)
        image.write(MIB // 2 + 64, b"\xff")
        if kind == "cache":
            assert probe(image.path) == half(name, kind)
            image.write(oldlayout.field(first, oldlayout.SB, "end_offset") + 64, b"\xff")
        assert probe(image.path) == DAMAGED[kind]
        image.write(0, bytes(SLOT))
        assert probe(image.path) == {}


def test_unreadable_places(pair, images, tmp_path):
    """A bad place is passed by; a device that cannot be read at all is told apart from an empty
    one, and is not asked again and again.
    """
    _, _, name = images()
    bad = tmp_path / "bad"
    env = preload("bad_blocks", BAD_BLOCKS=str(bad), BAD_BLOCKS_OF=pair[1].dev)
    bad.write_text("0\n", encoding="ascii")
    done = run_tool("probe", pair[1].dev, env=env)
    assert done.code == 0 and f"ID_FS_UUID={name}" in done.out, done
    bad.write_text(f"0\n{MIB // 2}\n", encoding="ascii")
    done = run_tool("probe", pair[1].dev, env=env)
    assert done.code == 1 and not done.out and done.err.count("read of") == 2, done


def test_used_for_something_else_since(pair, images):
    """Others who leave a copy as it is: in front of it, or between the two."""
    for image in images()[:2]:
        image.write(0, random.Random(1).randbytes(SLOT))
        assert probe(image.path) == {}, "the second copy is old"
    for image in images(*ANYWAY)[:2]:
        image.write(4096, MD_12)
        assert probe(image.path) == {}, "md's superblock 1.2 is behind our first copy"
    assert pair


def add_gpt(image):
    """A GPT with one partition, as programs write it that leave the first 440 bytes alone."""
    last = image.size // 512 - 1
    entry = struct.pack("<16s16sQQQ72s", b"t" * 16, b"p" * 16, 2048, last - 40, 0, b"")
    entries = entry.ljust(128 * 128, b"\0")

    def header(at, other, where):
        fields = [b"EFI PART", 0x10000, 92, 0, 0, at, other, 34, last - 34, b"d" * 16, where, 128,
                  128, zlib.crc32(entries)]
        form = "<8sIIIIQQQQ16sQIII"
        fields[3] = zlib.crc32(struct.pack(form, *fields))
        return struct.pack(form, *fields).ljust(512, b"\0")

    image.write(440, struct.pack("<IH16s48xH", 0, 0, bytes(4) + b"\xee" + bytes(3)
                                 + struct.pack("<II", 1, last), 0xaa55))
    image.write(512, header(1, last, 2) + entries)
    image.write((last - 32) * 512, entries + header(last, 1, last - 32))


def test_repartitioned_since(images):
    """The magic at the very beginning may outlive a new table, and so does the second copy."""
    for image in images()[:2]:
        add_gpt(image)
        assert "PTTYPE=gpt" in host.run("blkid", "-p", "-o", "export", image.path)
        assert probe(image.path) == {}, image.path


def test_copied_elsewhere(images, tmp_path):
    """At another place, as a disk with a half in a partition, or on a device that ends too soon:
    a part of something.
    """
    for image in images()[:2]:
        data = image.read(0, image.size)
        for kind, bytes_ in (("behind", bytes(MIB) + data), ("short", data[:-MIB]),
                             ("file", data[:16 * MIB])):
            path = tmp_path / kind
            path.write_bytes(bytes_)
            assert probe(path) == {}, (image.path, kind)


def test_member_below_a_half(images):
    """A RAID1 with its superblock at the end: the array is the half, its members are not; the same
    superblock inside belongs to the volume.
    """
    ssd, hdd, name = images()
    for image, kind in ((ssd, "cache"), (hdd, "backing")):
        with open(image.path, "r+b") as file:
            file.truncate(image.size + MIB)
        assert probe(image.path) == half(name, kind), "it has grown"
        grown = Image(image.path)
        make_md(grown)
        assert probe(image.path) == {}
    inside = struct.pack("<IIII", 0xa92b4efc, 0, 90, 0)
    with open(hdd.path, "r+b") as file:
        file.truncate(hdd.size)
    hdd.write((hdd.size & ~0xffff) - 0x10000, inside.ljust(SLOT, b"\0"))
    assert probe(hdd.path) == half(name, "backing"), "md 0.90 in the volume"


def test_older_layout(older):
    """The mark is at the end, and what libblkid finds is the volume's."""
    ssd, hdd, name = older()
    assert "ext4" in host.run("blkid", "-p", hdd.path)
    assert probe(ssd.path) == half(name, "cache") and probe(hdd.path) == half(name, "backing")
    hdd.write(hdd.size - MIB, bytes(SLOT))
    assert probe(hdd.path) == half(name, "backing"), "one copy is enough"


def test_older_mark_is_left_behind(older):
    """A file system over the whole disk was made on the bare disk, later."""
    _, hdd, _ = older()
    mark = hdd.read(hdd.size - MIB, MIB)
    host.run("mkfs.ext4", "-q", "-F", hdd.path)
    hdd.write(hdd.size - MIB, mark)
    assert probe(hdd.path) == {}


def test_older_mark_below_a_new_table(older):
    """A table over the whole disk, whose copy at the end left a mark whole."""
    _, hdd, _ = older()
    add_gpt(hdd)
    assert probe(hdd.path) == {}


def test_pair_inside_a_volume(older, images, pair):
    """In a volume cached in place by an older tool: the disk is the outer pair's."""
    _, hdd, name = older()
    mark = hdd.read(hdd.size - MIB, MIB)
    with open(hdd.path, "r+b") as file:
        file.truncate(hdd.size - MIB)
    host.run("losetup", "--set-capacity", pair[1].dev)
    inner = images(*ANYWAY)[2]
    assert probe(hdd.path) == half(inner, "backing")
    with open(hdd.path, "r+b") as file:
        file.truncate(hdd.size)
    hdd.write(hdd.size - MIB, mark)
    assert probe(hdd.path) == half(name, "backing")


@pytest.mark.parametrize("seed", range(4))
def test_hostile_contents(images, older, seed):
    """Whatever the bytes are, right sums included: an answer, in time, and no other lines."""
    rng = random.Random(seed)
    ssd, hdd, _ = older() if seed % 2 else images()
    end = hdd.size - MIB
    for image, places in ((ssd, (0, MIB // 2)), (hdd, (0, MIB // 2, end, end + MIB // 2))):
        good = {place: image.read(place) for place in places}
        for _ in range(12):
            for place, block in good.items():
                block = bytearray(block)
                for _ in range(rng.randrange(1, 5)):
                    at = rng.randrange(8, 400)
                    block[at:at + 8] = rng.choice((rng.randbytes(8), b"\xff" * 8, bytes(8)))
                image.write(place, oldlayout.sealed(bytes(block)))
            said = probe(image.path)
            assert set(said) <= {"ID_FS_TYPE", "ID_FS_USAGE", "ID_FS_VERSION", "ID_FS_UUID",
                                 "ID_FS_UUID_ENC", "ID_FS_LABEL", "ID_FS_LABEL_ENC"}
