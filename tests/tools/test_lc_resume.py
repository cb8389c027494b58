# SPDX-License-Identifier: GPL-2.0-only
"""lc-resume, with a stand-in for libdevmapper."""

import contextlib
import os
import pathlib
import threading
import time

import pytest

from lib import oldlayout
from lib.tools import HIGH, MIB, dump, expect, lc_format, make_newer, mklog, run_tool

MARK_VERSION_AT = 72


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


def test_resume_takes_a_line_of_lctab(pair, fake, tmp_path):
    """With a name only; the command line's options count more. What is bad is told, and nothing
    is started.
    """
    assert lc_format(pair).code == 0
    tab = tmp_path / "lctab"
    fake.env["LCTAB"] = str(tab)
    expect(fake.tool("resume", "lc0"), 1, "cannot be read", "no SSD is named")
    tab.write_text(f"# volumes\nlc0 {pair[0].dev} {pair[1].dev} noauto,buffers=16,idle_seal_ms=7\n"
                   f"lc1 {pair[0].dev}\nlc2 nvme0n1\n", encoding="ascii")
    expect(fake.tool("resume", "lc2"), 1, "line 4", "lc2: has no line in")
    expect(fake.tool("resume"), 2, "or only NAME")
    assert not fake.log()
    numbers = [os.stat(disk.dev).st_rdev for disk in pair]
    ssd, hdd = (f"{os.major(number)}:{os.minor(number)}" for number in numbers)
    assert fake.tool("resume", "-o", "buffers=32", "lc0").code == 0
    assert f"create lc0 0 {95 * 2048} lc {hdd} {ssd} 4 idle_seal_ms 7 buffers 32" in fake.log()


def test_resume_of_a_line_finds_the_hard_disk(pair, fake, tmp_path):
    """The line names the SSD only."""
    assert lc_format(pair).code == 0
    (tmp_path / "lctab").write_text(f"lc1 {pair[0].dev} -\n", encoding="ascii")
    fake.env["LCTAB"] = str(tmp_path / "lctab")
    assert fake.tool("resume", "lc1").code == 0
    assert [line for line in fake.log() if line.startswith("create lc1 ")]


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
    (lambda p: mark(p, "owner=7", epoch=5, owner=8),
     "mark is of life 5 and owner 8, the superblock of life 5 and owner 7"),
    (lambda p: mark(p, "owner=7 mark_owner=6", epoch=4, owner=7), "with a copy of this cache"),
    (lambda p: mark(p, epoch=5, forge=f"{MARK_VERSION_AT}:0"), "mark version 0"),
    (lambda p: None, "not formatted"),
    (lambda p: make_newer(*p), "newer dm-lc"),
    (lambda p: mklog(p[0].path, f"sb volume={200 * 2048}\nmark file={p[1].path}\n"),
     "when it was formatted"),
    (lambda p: mklog(p[0].path, "sb copies=2\n"), "superblock is damaged"),
], ids=["wrong", "abandoned", "mark-ahead", "old-clean", "old-drained", "old-stopped",
        "forked", "forked-earlier", "mark-version", "unformatted", "newer", "smaller",
        "no-superblock"])
def test_resume_refuses(pair, fake, prepare, says):
    """With reason; nothing is created and nothing written."""
    prepare(pair)
    before = [disk.digest() for disk in pair]
    expect(fake.tool("resume", "lc0", pair[0].dev, pair[1].dev), 1, says)
    assert not fake.log()
    assert [disk.digest() for disk in pair] == before


def test_resume_needs_something_that_tells_the_disk(pair, fake):
    """No mark and no identity: only with the fingerprint of a clean stop, or before any life."""
    def resume(facts, *args):
        mklog(pair[0].path, f"sb volume={96 * 2048} no_mark=1 {facts}\n")
        return fake.tool("resume", *args, "lc0", pair[0].dev, pair[1].dev)
    expect(resume("epoch=2"), 1, "nothing tells whether a disk is the right one")
    assert not fake.log()
    done = resume("epoch=2", "--print-table")
    assert done.code == 0 and done.out == f"0 {96 * 2048} lc {pair[1].dev} {pair[0].dev}\n"
    assert resume("epoch=0", "--print-table").code == 0
    assert resume("epoch=2 clean=1").code == 0 and fake.log()


def test_resume_refuses_names_and_doubles(pair, fake, disks):
    """A name that is taken, the kernel's no, an SSD in use, two disks that fit."""
    assert lc_format(pair).code == 0
    fake.put("refuse", "the kernel has its reasons")
    expect(fake.tool("resume", "lc0", pair[0].dev), 1, "the kernel has its reasons")
    (fake.folder / "refuse").unlink()
    copy = disks("copy", 96 * MIB)
    copy.write(0, pair[1].read(0, MIB))
    done = expect(fake.tool("resume", "lc0", pair[0].dev), 1, "more than one disk fits")
    assert copy.dev in done.err and pair[1].dev in done.err
    copy.detach()
    holder = os.open(pair[0].dev, os.O_RDONLY | os.O_EXCL)
    assert "in use" in fake.tool("resume", "lc0", pair[0].dev).err
    os.close(holder)
    assert fake.tool("resume", "lc0", pair[0].dev, pair[0].dev).code == 1
    assert fake.tool("resume", "lc0", pair[0].dev).code == 0
    expect(fake.tool("resume", "lc0", pair[0].dev), 1, "name is taken")


MISSING = "modprobe: FATAL: Module dm-lc not found in directory /lib/modules/6.1"
REJECTED = "modprobe: ERROR: could not insert 'dm_lc': "


@pytest.mark.parametrize("printed, code, says", [
    (MISSING, 1, ("there is no module dm-lc for this kernel", "dkms")),
    (f"{REJECTED}Key was rejected by service", 1, ("Key was rejected by service", "Secure Boot",
                                                   "mokutil --import")),
    (f"{REJECTED}Operation not permitted", 1, ("Operation not permitted", "mokutil --import")),
    (f"{REJECTED}Exec format error\nmore", 1, ("cannot be loaded", "Exec format error", "dmesg")),
    (f"{REJECTED}\x1b[2J", 1, (r"\x1b[2J",)),
    ("", 1, ("modprobe prints no reason",)),
    ("", 0, ("is loaded now",)),
], ids=["missing", "key", "lockdown", "other", "escaped", "silent", "late"])
def test_resume_tells_why_there_is_no_module(pair, fake, tmp_path, printed, code, says):
    """The kernel knows no such target: what modprobe prints is the reason, with its remedy."""
    assert lc_format(pair).code == 0
    script = tmp_path / "modprobe"
    script.write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/asked\ncat {tmp_path}/printed >&2\n"
                      f"exit {code}\n", encoding="ascii")
    script.chmod(0o755)
    (tmp_path / "printed").write_text(printed and printed + "\n", encoding="ascii")
    fake.env["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    fake.put("refuse", "reload ioctl on lc0 failed: Invalid argument")
    asked = tmp_path / "asked"
    expect(fake.tool("resume", "lc0", pair[0].dev), 1, "Invalid argument")
    assert not asked.exists()
    fake.put("no-target")
    expect(fake.tool("resume", "lc0", pair[0].dev), 1, "Invalid argument", *says)
    assert asked.read_text(encoding="ascii") == "dm-lc\n"


@pytest.mark.parametrize("facts", [
    f"epoch={HIGH}", f"first={HIGH} tail={HIGH}", f"tail_segment={HIGH}", f"tail={HIGH + 1}",
    f"clean=1 next={HIGH} head=1", f"clean=1 next=1 tail_segment={HIGH} head={HIGH}",
], ids=["epoch", "first-seq", "tail-segment", "tail-seq", "next-seq", "head"])
def test_numbers_too_high_for_another_life(pair, fake, facts):
    """A start would write a superblock that nobody can read: refused, and told by lc-check."""
    lines = f"sb volume={95 * 2048} {facts}\nmark file={pair[1].path}\n"
    mklog(pair[0].path, lines)
    before = [disk.digest() for disk in pair]
    expect(fake.tool("resume", "lc0", pair[0].dev, pair[1].dev), 1, "too high for another life")
    for options in ((), ("--repair",)):
        done = run_tool("check", *options, pair[0].path, san=True)
        assert done.code == 4 and "too high for another life" in done.out, done.out
    assert not fake.log() and [disk.digest() for disk in pair] == before
    for number in (HIGH, HIGH + 1):
        lines = lines.replace(str(number), str(HIGH - 1))
    mklog(pair[0].path, lines)
    assert run_tool("check", pair[0].path, san=True).code == 0
    assert fake.tool("resume", "lc0", pair[0].dev, pair[1].dev).code == 0


def test_resume_of_what_runs(pair, fake, disks):
    """--running-ok: fine if the name is this pair's; another one's, or another target, is not."""
    assert lc_format(pair).code == 0
    ssd, hdd = pair[0].dev, pair[1].dev
    assert fake.tool("resume", "--running-ok", "lc0", ssd, hdd).code == 0
    before = fake.log()
    for names in ((ssd,), (ssd, hdd)):
        done = fake.tool("resume", "--running-ok", "lc0", *names)
        assert done.code == 0 and done.out == "lc0: runs already, as this pair\n", done
        expect(fake.tool("resume", "lc0", *names), 1, "name is taken")
    other = disks("other").dev
    for names in ((other,), (other, hdd), (ssd, other), (hdd, ssd), (ssd, "/dev/gone")):
        expect(fake.tool("resume", "--running-ok", "lc0", *names), 1, "name is taken")
    fake.put("target", "linear")
    expect(fake.tool("resume", "--running-ok", "lc0", ssd, hdd), 1, "name is taken")
    assert fake.log() == before


def test_resume_tells_the_ways_out(pair, fake, tmp_path):
    """A device that a path names is not there: which one, and what can be done about each."""
    assert lc_format(pair).code == 0
    ssd, hdd = tmp_path / "no-ssd", tmp_path / "no-hdd"
    ways = ("three ways out: 1. attach", "/etc/lctab", "2. if it has another name", "daemon-reload",
            "systemctl start")
    done = fake.tool("resume", "lc0", ssd, pair[1].dev)
    expect(done, 1, f"{ssd}: the SSD of volume lc0 is not there; nothing was started", *ways,
           f"3. if the SSD is lost, and with it what only it held: lc-detach --force=cache-missing "
           f"--backing {pair[1].dev}")
    assert "hard disk" not in done.err and len(done.err.splitlines()) == 4, done.err
    expect(fake.tool("resume", "lc0", ssd), 1, "--backing HDD,")
    done = fake.tool("resume", "lc0", pair[0].dev, hdd)
    expect(done, 1, f"{hdd}: the hard disk of volume lc0 is not there; nothing was started", *ways,
           "3. if the hard disk is lost: lc-dump --extract")
    assert "the SSD of" not in done.err and len(done.err.splitlines()) == 4, done.err
    done = fake.tool("resume", "lc0", ssd, hdd)
    expect(done, 1, f"{ssd}: the SSD of", f"{hdd}: the hard disk of", *ways, "lc-detach")
    assert len(done.err.splitlines()) == 5, done.err
    make_newer(*pair)
    expect(fake.tool("resume", "lc0", ssd), 1, "the SSD of volume lc0 is not there",
           f"{pair[0].dev}: is the SSD of a pair, formatted by a newer dm-lc", "tools and module")
    assert not [line for line in fake.log() if line.startswith("create")]


@contextlib.contextmanager
def by_lc(name, disk):
    """The link of udev's rule to a disk."""
    link = pathlib.Path("/dev/disk/by-lc", name)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(disk.dev)
    try:
        yield link
    finally:
        link.unlink()


def number(disk):
    """MAJOR:MINOR"""
    device = os.stat(disk.dev).st_rdev
    return f"{os.major(device)}:{os.minor(device)}"


def test_resume_takes_no_copy(pair, disks, fake):
    """A link of by-lc leads to a copy of the SSD, or of the hard disk: the pair itself is taken,
    unless nothing tells it from the copy.
    """
    assert lc_format(pair, "--checksum=crc32c").code == 0
    ssd, hdd = pair
    copies = disks("copy", ssd.size), disks("clone", hdd.size)
    copies[0].write(0, ssd.read(0, ssd.size))
    copies[1].write(0, hdd.read(0, hdd.size))
    uuid = dump(ssd.dev)["superblock"]["cache_uuid"]
    with by_lc(f"{uuid}.cache", copies[0]) as cache, by_lc(f"{uuid}.backing", copies[1]) as backing:
        expect(fake.tool("resume", "lc0", cache, hdd.dev), 1, "holds the same cache as",
               "take it away", str(cache))
        oldlayout.change(ssd, oldlayout.SB, 0, MIB // 2, sb_seq=99)
        assert fake.tool("resume", "lc0", cache, hdd.dev).code == 0
        assert f"{number(hdd)} {number(ssd)}" in fake.log()[-1]
        assert "runs already" in fake.tool("resume", "--running-ok", "lc0", cache, backing).out
        assert fake.tool("remove", "--no-drain", "lc0").code == 0
        # These have no identity: nothing tells the disk from its copy.
        expect(fake.tool("resume", "lc0", cache, backing), 1, "more than one disk fits")
        copies[1].detach()
        assert fake.tool("resume", "lc0", cache, backing).code == 0
        assert f"{number(hdd)} {number(ssd)}" in fake.log()[-1]


def test_link_to_a_copy_that_was_left_behind(pair, disks, fake):
    """Of two SSDs the one that the hard disk fits is taken, though the other says a later life."""
    left = disks("left", pair[0].size)
    mark(pair, "owner=8 mark_owner=5", epoch=5, owner=8)
    mklog(left.path, f"sb epoch=6 owner=7 mark_owner=6 volume={95 * 2048}\n")
    uuid = dump(left.path)["superblock"]["cache_uuid"]
    for link in (left, pair[0]):
        with by_lc(f"{uuid}.cache", link) as cache, by_lc(f"{uuid}.backing", pair[1]) as backing:
            assert fake.tool("resume", "lc0", cache, backing).code == 0
            assert f"{number(pair[1])} {number(pair[0])}" in fake.log()[-1]
            assert fake.tool("remove", "--no-drain", "lc0").code == 0
    with by_lc(f"{uuid}.backing", pair[1]) as backing:
        expect(fake.tool("resume", "lc0", left.dev, backing), 1, "with a copy of this cache")


def test_link_of_another_pair(pair, disks, fake):
    """The hard disk of a line's UUID is the one of that UUID, whatever the SSD is."""
    assert lc_format(pair).code == 0
    others = disks("ssd2"), disks("hdd2", pair[1].size)
    assert lc_format(others).code == 0
    uuid = dump(others[0].dev)["superblock"]["cache_uuid"]
    with by_lc(f"{uuid}.backing", others[1]) as backing:
        expect(fake.tool("resume", "lc0", pair[0].dev, backing), 1, "belongs to cache")
        assert fake.tool("resume", "lc0", pair[0].dev, pair[1].dev).code == 0
        created = len(fake.log())
        expect(fake.tool("resume", "--running-ok", "lc0", pair[0].dev, backing), 1, "name is taken")
        assert len(fake.log()) == created


def test_link_among_many_pairs(pair, disks, fake):
    """However many other pairs are attached, the link stands for its own."""
    assert lc_format(pair).code == 0
    for other in range(5):
        assert lc_format((disks(f"ssd{other}"), disks(f"hdd{other}", pair[1].size))).code == 0
    copy = disks("clone", pair[1].size)
    uuid = dump(pair[0].dev)["superblock"]["cache_uuid"]
    # To a disk that is none, so that the link alone does not lead to the right one.
    with by_lc(f"{uuid}.backing", copy) as backing:
        assert fake.tool("resume", "lc0", pair[0].dev, backing).code == 0
        assert f"{number(pair[1])} {number(pair[0])}" in fake.log()[-1]


def test_running_volume_without_a_disk(pair, fake, tmp_path):
    """--running-ok: the SSD may have gone since, the hard disk not."""
    assert lc_format(pair).code == 0
    uuid = dump(pair[0].dev)["superblock"]["cache_uuid"]
    ssd = f"/dev/disk/by-lc/{uuid}.cache"
    assert fake.tool("resume", "lc0", *[disk.dev for disk in pair]).code == 0
    done = fake.tool("resume", "--running-ok", "lc0", ssd, pair[1].dev)
    assert done.code == 0 and "runs already" in done.out
    expect(fake.tool("resume", "--running-ok", "lc0", ssd.replace(uuid[:4], "0000"), pair[1].dev),
           1, "name is taken")
    fake.put("table", f"4095:4095 {number(pair[0])}")
    expect(fake.tool("resume", "--running-ok", "lc0", ssd), 1, "name is taken")


def test_resume_waits_for_the_hard_disk(pair, fake, tmp_path):
    """--wait: as long as said, and no longer than needed; then it is as without."""
    assert lc_format(pair).code == 0
    link = tmp_path / "late"

    def waits(words, appear):
        later = threading.Timer(1.5, appear)
        later.start()
        started = time.monotonic()
        done = fake.tool(*words)
        later.join()
        assert done.code == 0 and 1 < time.monotonic() - started < 60, done
        assert fake.log()[-1].startswith("create lc0 ")
        assert fake.tool("remove", "--no-drain", "lc0").code == 0

    expect(fake.tool("resume", "--wait=soon", "lc0", pair[0].dev), 2, "give seconds")
    expect(fake.tool("resume", "--wait=1", "lc0", pair[0].dev, link), 1, "is not there")
    device = pair[1].dev
    for option in ("--wait=100", "--wait=infinity"):
        waits(("resume", option, "lc0", pair[0].dev, link), lambda: link.symlink_to(device))
        link.unlink()
    pair[1].detach()
    waits(("resume", "--wait=100", "lc0", pair[0].dev), pair[1].attach)
    pair[1].detach()
    started = time.monotonic()
    expect(fake.tool("resume", "--wait=2", "lc0", pair[0].dev), 1, "was not found")
    assert time.monotonic() - started > 2
