# SPDX-License-Identifier: GPL-2.0-only
"""lc-format and lc-resume: which devices they take, and that they write to no other."""

import os
import pathlib
import re
import struct
import subprocess
import zlib

import pytest

from lclib import ondisk
from lib import host
from lib.tools import (
    CLASSES,
    MIB,
    SB_VERSION_AT,
    add_partitions,
    cache_on,
    expect,
    lc_format,
    make_mbr,
    make_md,
    mklog,
    run_tool,
    turning_link,
)

ALL = [f"--force={name}" for name in CLASSES]
MARK_VERSION_AT = 72
NEWER = 2, 99, 0xffffffff


def digests(*disks):
    """Of all bytes of each."""
    return [disk.digest() for disk in disks]


def queue(disk, name, value):
    """Set an attribute of a loop device's queue."""
    path = pathlib.Path("/sys/class/block", os.path.basename(disk.dev), "queue", name)
    path.write_text(value, encoding="ascii")


def grow(disk, size):
    """A larger disk from now on."""
    os.truncate(disk.path, size)
    disk.size = size
    host.run("losetup", "--set-capacity", disk.dev)


def format_older(ssd, hdd):
    """A pair in place as it was before there was a moved head.  Returns the last MiB, the mark."""
    assert lc_format((ssd, hdd), "--in-place", "--checksum=crc32c").code == 0
    end = hdd.size - MIB
    for at in (0, MIB // 2, ssd.size - MIB):
        ssd.write(at, ondisk.older_superblock(ssd.read(at, 4096), end))
    marks = [ondisk.older_mark(hdd.read(at, 4096), end + at) for at in (0, MIB // 2)]
    hdd.write(0, hdd.read(end, MIB))
    hdd.write(end, b"".join(mark.ljust(MIB // 2, b"\0") for mark in marks))
    return hdd.read(end, MIB)


def signatures(disk, offset=0):
    """The types libblkid finds from a byte on."""
    words = ["blkid", "-p", "-o", "export", "-O", str(offset), disk.dev] if offset else \
        ["wipefs", "--noheadings", "--output", "TYPE", disk.dev]
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False).stdout.split()


# -- roles -----------------------------------------------------------------------------------------

def swap_by_rotation(pair):
    """The SSD turns, the hard disk does not."""
    queue(pair[0], "rotational", "1")
    queue(pair[1], "rotational", "0")
    return pair


@pytest.mark.parametrize("swapped, says", [
    (swap_by_rotation, "is rotational"),
    (lambda pair: (pair[1], pair[0]), "is larger (96 MiB) than the backing device"),
], ids=["rotational", "larger"])
def test_format_refuses_swapped_roles(pair, swapped, says):
    """Device names that moved: a class of its own, and both are shown without a terminal."""
    given = swapped(pair)
    before = digests(*pair)
    done = expect(lc_format(given, "--yes"), 1, says, "--force=roles")
    for line, disk in (("SSD", given[0]), ("hard disk", given[1])):
        assert re.search(rf"^{line} +{disk.dev}: \d+ MiB", done.err, re.M), done.err
    others = [word for word in ALL if word != "--force=roles"]
    assert lc_format(given, *others).code == 1
    assert digests(*pair) == before
    done = lc_format(given, "--force=roles")
    assert done.code == 0 and re.search(rf"^SSD +{given[0].dev}", done.err, re.M), done.err


@pytest.mark.parametrize("options", [(), ("--in-place",)], ids=["default", "in-place"])
def test_format_refuses_a_hard_disk_of_a_pair_as_ssd(disks, options):
    """The mark of another pair counts on the SSD as well, in both layouts."""
    other, ssd, hdd = disks("other", 32 * MIB), disks("ssd"), disks("hdd", 96 * MIB)
    assert lc_format((other, ssd), *options).code == 0
    before = digests(ssd, hdd)
    expect(lc_format((ssd, hdd)), 1, f"{ssd.dev}: is paired with cache", "--force=paired")
    assert digests(ssd, hdd) == before
    assert lc_format((ssd, hdd), "--force=paired").code == 0


@pytest.mark.parametrize("options", [(), ("--in-place",)], ids=["default", "in-place"])
def test_format_refuses_a_dirty_cache_as_hard_disk(disks, options):
    """A superblock counts on the hard disk as well."""
    ssd, hdd = disks("ssd"), disks("hdd", 64 * MIB)
    cache_on("sb epoch=1\n")(hdd, None)
    before = digests(ssd, hdd)
    expect(lc_format((ssd, hdd), *options), 1, f"{hdd.dev}: it was not stopped cleanly",
           "--force=dirty-cache")
    assert digests(ssd, hdd) == before
    assert lc_format((ssd, hdd), *options, "--force=dirty-cache").code == 0


def test_format_leaves_no_superblock_on_a_hard_disk(disks):
    """A disk that has been a cache does not pass for a damaged one ever after."""
    pair = disks("ssd"), disks("hdd", 64 * MIB)
    cache_on("sb epoch=1\n")(pair[1], None)
    host.run("blockdev", "--flushbufs", pair[1].dev)
    assert lc_format(pair, "--force=dirty-cache").code == 0
    expect(lc_format(pair, "--force=paired"), 0)


def put_version(disk, version, *places):
    """Another format version; a newer one may sum its blocks differently."""
    for place in places:
        disk.write(place, struct.pack("<I", version))


def newer_superblock(*copies):
    """A clean cache of which these copies are newer; the version is all that speaks for it."""
    def prepare(disk, version, _scratch):
        # A file, and a loop device that has seen nothing of it yet.
        mklog(disk.path, "sb epoch=1 clean=1\n")
        host.run("blockdev", "--flushbufs", disk.dev)
        front = MIB // 2
        third = disk.size - MIB
        put_version(disk, version, *(((0, front, third)[copy] + SB_VERSION_AT) for copy in copies))
        if copies == (2,):
            for at in (0, front):
                disk.write(at, bytes(4096))
    return prepare


def newer_mark(at_end, *copies):
    """A mark of which these copies are newer, and no other copy is left."""
    def prepare(disk, version, scratch):
        at = disk.size - MIB if at_end else 0
        mklog(scratch, f"sb epoch=1\nmark file={disk.path} offset={at}\n")
        for copy in (0, 1):
            place = at + copy * MIB // 2
            if copy in copies:
                put_version(disk, version, place + MARK_VERSION_AT)
            else:
                disk.write(place, bytes(4096))
    return prepare


@pytest.mark.parametrize("role", [0, 1], ids=["ssd", "hdd"])
@pytest.mark.parametrize("prepare, says, force", [
    (newer_superblock(0, 1, 2), "newer dm-lc superblock", "dirty-cache"),
    (newer_superblock(0), "newer dm-lc superblock", "dirty-cache"),
    (newer_superblock(1), "newer dm-lc superblock", "dirty-cache"),
    (newer_superblock(2), "newer dm-lc superblock", "dirty-cache"),
    (newer_mark(False, 0, 1), "newer dm-lc mark at byte 0", "paired"),
    (newer_mark(False, 1), "newer dm-lc mark at byte 0", "paired"),
    (newer_mark(True, 0, 1), "newer dm-lc mark at byte ", "paired"),
    (newer_mark(True, 1), "newer dm-lc mark at byte ", "paired"),
], ids=["superblock", "superblock-first", "superblock-second", "superblock-end",
        "mark", "mark-second", "mark-end", "mark-end-second"])
def test_format_knows_newer_versions_in_both_roles(disks, tmp_path, prepare, says, force, role):
    """A newer superblock is one on the hard disk, too, and a newer mark one on the SSD."""
    pair = disks("ssd"), disks("hdd", 64 * MIB)
    scratch = tmp_path / "scratch"
    scratch.write_bytes(b"")
    os.truncate(scratch, 64 * MIB)
    others = [word for word in ALL if word != f"--force={force}"]
    for version in NEWER:
        prepare(pair[role], version, scratch)
        before = digests(*pair)
        done = lc_format(pair, *others, "--yes", san=version == NEWER[0])
        assert done.code == 1, (version, done.err)
        told = re.findall(rf"^lc-format: {pair[role].dev}: .*{says}.*--force={force}\b", done.err,
                          re.M)
        assert told, done.err
        assert digests(*pair) == before, version
    expect(lc_format(pair, f"--force={force}"), 0)
    assert lc_format(pair, "--force=paired").code == 0, "something newer is left behind"


# -- signatures ------------------------------------------------------------------------------------

def make_gpt(disk):
    """A GUID partition table with its backup at the end."""
    last = disk.size // 512 - 1
    entry = os.urandom(32) + struct.pack("<QQQ", 2048, 4095, 0)
    entries = entry.ljust(128 * 128, b"\0")
    for here, there, table in ((1, last, 2), (last, 1, last - 32)):
        def header(crc, here=here, there=there, table=table):
            return struct.pack("<8sIIIIQQQQ16sQIII", b"EFI PART", 0x10000, 92, crc, 0, here, there,
                               34, last - 33, b"g" * 16, table, 128, 128, zlib.crc32(entries))
        disk.write(here * 512, header(zlib.crc32(header(0))).ljust(512, b"\0"))
        disk.write(table * 512, entries)
    pmbr = struct.pack("<B3sB3sII", 0, b"\0\2\0", 0xee, b"\xff\xff\xff", 1, last)
    disk.write(0, bytes(446) + pmbr + bytes(48) + b"\x55\xaa")
    assert "gpt" in signatures(disk)


@pytest.mark.parametrize("make", [make_md, make_gpt], ids=["raid-at-end", "gpt"])
@pytest.mark.parametrize("which", [0, 1], ids=["ssd", "hdd"])
def test_format_leaves_no_signature_at_either_end(pair, make, which):
    """What a RAID member or a partition table keeps at the end is gone too."""
    make(pair[which])
    expect(lc_format(pair, f"--force={('ssd', 'hdd')[which]}-signature"), 0)
    assert not signatures(pair[which])


def test_format_leaves_no_contents_in_the_volume(pair, tmp_path):
    """A file system at 1 MiB, where the volume begins, is refused, and gone if that is forced."""
    image = tmp_path / "ext4"
    host.run("mkfs.ext4", "-q", image, "32M")
    pair[1].write(MIB, image.read_bytes())
    before = digests(*pair)
    expect(lc_format(pair), 1, "ext4 where the volume begins", "--force=hdd-signature")
    assert digests(*pair) == before
    assert lc_format(pair, "--force=hdd-signature").code == 0
    assert not signatures(pair[1], MIB)
    assert pair[1].read(MIB, MIB) == bytes(MIB)


def test_format_keeps_the_volume_of_a_replaced_ssd(disks, pair):
    """--force=paired in the same layout: the volume is what it was."""
    assert lc_format(pair).code == 0
    data = os.urandom(95 * MIB)
    pair[1].write(MIB, data)
    host.run("mkfs.ext4", "-q", "-E", f"offset={MIB}", pair[1].dev, "64M")
    data = pair[1].read(MIB, 95 * MIB)
    expect(lc_format((disks("new"), pair[1]), "--force=paired"), 0)
    assert pair[1].read(MIB, 95 * MIB) == data


def partitioned(tmp_path, disks):
    """A disk with one partition that the kernel knows, and an SSD."""
    disk = disks("hdd", 96 * MIB)
    disk.detach()
    make_mbr(disk, 8192, 65536)
    disk.attach("--partscan")
    add_partitions(disk, (8192, 65536))
    return disks("ssd"), disk


def test_format_forgets_partitions(tmp_path, disks):
    """No node of a partition that is gone stays behind; while one is open, nothing is written."""
    pair = partitioned(tmp_path, disks)
    part = f"{pair[1].dev}p1"
    before = digests(*pair)
    holder = os.open(part, os.O_RDONLY)
    expect(lc_format(pair, "--force=hdd-signature"), 1, "partition 1 of it is in use")
    assert digests(*pair) == before and os.path.exists(part)
    os.close(holder)
    assert lc_format(pair, "--force=hdd-signature").code == 0
    assert not pathlib.Path("/sys/class/block", os.path.basename(part)).exists()


# -- two names of one storage ----------------------------------------------------------------------

def loop_over(path, *options):
    """Another loop device."""
    return host.run("losetup", "--find", "--show", *options, path).strip()


@pytest.mark.parametrize("options, force", [
    ((), None), (("--offset", 8 * MIB), None),
], ids=["whole", "part"])
def test_format_refuses_a_loop_device_over_the_other(pair, options, force):
    """SSD and hard disk on the same bytes; the chain is printed."""
    over = loop_over(pair[1].dev, *options)
    try:
        before = digests(*pair)
        done = run_tool("format", "--backing", pair[1].dev, over, *ALL)
        name = os.path.basename(over), os.path.basename(pair[1].dev)
        assert done.code == 1 and f"{name[0]} on {name[1]}" in done.err, done.err
        assert "same storage" in done.err
        # Nor may a third device use one of them.
        expect(lc_format(pair, *ALL), 1, f"is used by another device: {name[0]} on {name[1]}")
        assert digests(*pair) == before
    finally:
        host.run("losetup", "--detach", over)
    assert force is None and lc_format(pair).code == 0


def test_format_refuses_nested_loops_over_one_file(pair):
    """Two loop devices over parts of one file, one of them through a third."""
    first = loop_over(pair[1].path, "--offset", 16 * MIB)
    second = loop_over(first, "--offset", 16 * MIB)
    try:
        before = digests(pair[1])
        done = run_tool("format", "--backing", pair[1].dev, second, *ALL)
        assert done.code == 1 and "same storage" in done.err and " on file " in done.err, done.err
        assert digests(pair[1]) == before
    finally:
        host.run("losetup", "--detach", second)
        host.run("losetup", "--detach", first)


def test_format_takes_apart_parts_of_one_file(disks, tmp_path):
    """They are on one disk, which has its own class."""
    disk = disks("both", 160 * MIB)
    ssd = loop_over(disk.path, "--sizelimit", 64 * MIB)
    hdd = loop_over(disk.path, "--offset", 64 * MIB)
    try:
        expect(run_tool("format", "--backing", hdd, ssd), 1, "--force=same-disk")
        assert run_tool("format", "--backing", hdd, ssd, "--force=same-disk").code == 0
    finally:
        host.run("losetup", "--detach", ssd)
        host.run("losetup", "--detach", hdd)


@pytest.mark.parametrize("tool", ["format", "resume"])
def test_refuses_what_is_mounted_under_another_name(pair, fake, tmp_path, tool):
    """A file system mounted through a loop device, which claims nothing on the disk."""
    host.run("mkfs.ext4", "-q", pair[1].dev, "64M")
    if tool == "resume":
        # Of now, nothing on it could be mounted.
        format_older(*pair)
    over = loop_over(pair[1].path)
    where = tmp_path / "mnt"
    where.mkdir()
    host.run("mount", "-o", "ro", over, where)
    try:
        before = digests(*pair)
        if tool == "format":
            done = lc_format(pair, *ALL)
        else:
            done = fake.tool("resume", "lc0", pair[0].dev, pair[1].dev)
        assert done.code == 1 and f"mounted on {where}" in done.err, done.err
        assert os.path.basename(over) in done.err and not fake.log()
        assert digests(*pair) == before
    finally:
        host.run("umount", where)
        host.run("losetup", "--detach", over)


# -- one descriptor --------------------------------------------------------------------------------

@pytest.mark.parametrize("which", [0, 1], ids=["ssd", "hdd"])
def test_format_writes_to_what_was_checked(disks, pair, tmp_path, which):
    """A link that is turned to another disk between check and write changes nothing."""
    precious = disks("precious", 96 * MIB)
    host.run("mkfs.ext4", "-q", precious.dev)
    before = digests(precious)
    for first, then in ((precious, pair[which]), (pair[which], precious)):
        given = list(pair)
        given[which] = first
        names, env = turning_link(tmp_path, given, which, then)
        run_tool("format", "--backing", names[1], names[0], "--force=roles", "--force=paired",
                 env=env)
        assert os.readlink(names[which]) == then.dev
        assert digests(precious) == before


def test_resume_gives_the_kernel_what_was_checked(pair, fake, tmp_path):
    """By number: the name may lead elsewhere by then."""
    assert lc_format(pair).code == 0
    link = tmp_path / "link"
    link.symlink_to(pair[1].dev)
    done = fake.tool("resume", "lc0", pair[0].dev, link)
    numbers = [os.stat(disk.dev).st_rdev for disk in pair]
    ssd, hdd = (f"{os.major(number)}:{os.minor(number)}" for number in numbers)
    assert done.code == 0 and f"create lc0 0 {95 * 2048} lc {hdd} {ssd}" in fake.log(), fake.log()


def test_table_line_quotes_blanks(pair, tmp_path):
    """As device mapper's parser takes them."""
    links = [tmp_path / "an ssd", tmp_path / "back\\slash"]
    for link, disk in zip(links, pair):
        link.symlink_to(disk.dev)
    ssd, hdd = str(links[0]).replace(" ", "\\ "), str(links[1]).replace("\\", "\\\\")
    line = f"0 {95 * 2048} lc {hdd} {ssd}\n"
    assert run_tool("format", "--backing", links[1], links[0]).out == line
    assert run_tool("resume", "--print-table", "x", links[0], links[1]).out == line


# -- what cannot be used ---------------------------------------------------------------------------

@pytest.mark.parametrize("which", [0, 1], ids=["ssd", "hdd"])
@pytest.mark.parametrize("how", ["losetup", "blockdev"])
def test_read_only_devices_are_refused_first(pair, fake, which, how):
    """Nothing is written to the other one either, and no life begins."""
    def protect(wanted):
        if how == "blockdev":
            host.run("blockdev", "--setro" if wanted else "--setrw", pair[which].dev)
        else:
            pair[which].detach()
            pair[which].attach(*(["--read-only"] if wanted else []))

    try:
        protect(True)
        before = digests(*pair)
        done = expect(lc_format(pair, *ALL), 1, f"{pair[which].dev}: is read-only")
        assert "--setrw" in done.err and digests(*pair) == before
        protect(False)
        assert lc_format(pair).code == 0
        protect(True)
        for words in ((), (pair[1].dev,)):
            expect(fake.tool("resume", "lc0", pair[0].dev, *words), 1, "is read-only")
        done = run_tool("check", "--repair", pair[0].dev, "--backing", pair[1].dev)
        assert done.code == 8 and "is read-only" in done.err, done.err
        assert not fake.log()
    finally:
        protect(False)  # a loop device stays so when it is detached


@pytest.mark.parametrize("which", [0, 1], ids=["ssd", "hdd"])
def test_character_devices_are_refused(pair, which):
    """Device DAX is one: memory without block I/O."""
    names, before = [disk.dev for disk in pair], digests(*pair)
    names[which] = "/dev/null"
    done = run_tool("format", "--backing", names[1], names[0], *ALL)
    assert done.code == 1 and "/dev/null: not a block device; name one" in done.err, done.err
    assert digests(*pair) == before


def test_large_blocks_are_refused(disks):
    """Logical blocks above 4 KiB, where the kernel has them."""
    ssd, hdd = disks("ssd"), disks("hdd", 96 * MIB)
    hdd.detach()
    try:
        hdd.attach("--sector-size", "8192")
    except Exception:  # pylint: disable=broad-except
        pytest.skip("this kernel has no loop devices with such blocks")
    before = digests(ssd)
    expect(lc_format((ssd, hdd), *ALL), 1, "logical blocks above 4096")
    assert digests(ssd) == before


# -- a disk that has grown -------------------------------------------------------------------------

def test_format_finds_the_mark_of_a_smaller_disk(disks, fake):
    """A pair in place whose disk has grown is refused, and its mark does not outlive a new one."""
    first, second, hdd = disks("first"), disks("second"), disks("hdd", 96 * MIB)
    host.run("mkfs.ext4", "-q", hdd.dev, "95M")
    marked = format_older(first, hdd)
    grow(hdd, 256 * MIB)
    hdd.write(95 * MIB, marked)
    host.run("blockdev", "--flushbufs", hdd.dev)
    expect(fake.tool("resume", "lc0", first.dev, hdd.dev), 0)
    done = expect(lc_format((second, hdd), "--in-place"), 1, "--force=paired")
    assert f"mark at byte {95 * MIB}" in done.err or "never started" in done.err
    expect(lc_format((second, hdd), "--in-place", "--force=paired"), 0)
    assert b"dmlc-mk\n" not in hdd.read(95 * MIB, MIB)
    done = fake.tool("resume", "lc1", first.dev, hdd.dev)
    assert done.code == 1 and re.search("bears the mark of cache|is not the hard disk", done.err)


# -- options ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("words, says", [
    (["bufers=16"], "Unknown option"), (["lanes=-3"], "lanes must be a number from 0 to 128"),
    (["buffers=3"], "from 4 to 65536"), (["writeback=maybe"], "must be on or off"),
    (["low_watermark=70"], "must be below high_watermark"),
], ids=lambda value: value[0] if isinstance(value, list) else "")
def test_options_are_those_of_the_module(pair, fake, words, says):
    """What the kernel would refuse at every start is refused at once, with its words."""
    options = [word for pair_of in words for word in ("-o", pair_of)]
    before = digests(*pair)
    expect(lc_format(pair, *options, san=True), 2, says)
    assert digests(*pair) == before
    assert lc_format(pair).code == 0
    done = fake.tool("resume", *options, "lc0", pair[0].dev, pair[1].dev)
    assert done.code == 1 and says in done.err and not fake.log(), done.err


def test_options_that_are_kept_and_bad_can_be_dropped(pair, fake):
    """An older lc-format kept whatever it was given."""
    assert lc_format(pair, "-o", "lanes=3").code == 0
    first = pathlib.Path(pair[0].path).read_bytes()[:MIB]
    assert b"lanes 3" in first
    expect(fake.tool("resume", "-o", "lanes=500", "lc0", pair[0].dev, pair[1].dev), 1, "-o KEY=")
    assert fake.tool("resume", "-o", "lanes=", "lc0", pair[0].dev, pair[1].dev).code == 0


def test_remove_outlasts_a_probe(fake):
    """udev opens a device when it was closed: that is no reason to refuse."""
    fake.volume((0, 10, 1))
    fake.put("open", "1\n1\n0")
    done = fake.tool("remove", "lc0")
    assert done.code == 0 and fake.log()[-1] == "remove lc0", done.err
