# SPDX-License-Identifier: GPL-2.0-only
"""Coming and going: reload, suspend, remove, second users, under load."""

import contextlib
import os
import pathlib
import re
import subprocess
import tempfile

from lclib import case, dm, kmsg, sh, wait
from lclib.calls import Calls
from lclib.disk import MIB, image
from lclib.faulty import BLOCK, Holding, check, content, fill, slot_sector
from lclib.lc import LcStack, check_log, crash_with_log
from lclib.registry import Disk

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
SMALL = (Disk("ssd", "8M"), Disk("hdd", "32M"))
LOAD = ("--ioengine=libaio", "--direct=1", "--bs=4k", "--iodepth=8", "--numjobs=4",
        "--verify=crc32c", "--verify_fatal=1", "--verify_backlog=256", "--size=16M",
        "--offset_increment=16M", "--time_based", "--fsync=32", "--output-format=terse")


def start_load(path, seconds):
    """Four verified jobs for a while, in the background."""
    return sh.start("fio", "--name=load", f"--filename={path}", "--rw=randwrite",
                    f"--runtime={seconds}", *LOAD)


def memory(name):
    """A line of /proc/meminfo, in bytes."""
    lines = pathlib.Path("/proc/meminfo").read_text(encoding="ascii")
    return int(re.search(rf"^{name}: +(\d+) kB$", lines, re.M)[1]) << 10


@contextlib.contextmanager
def little_memory(available):
    """A file in RAM takes all but so many bytes."""
    with tempfile.TemporaryDirectory() as folder:
        sh.run("mount", "-t", "tmpfs", "-o", "size=100%", "tmpfs", folder)
        try:
            with open(f"{folder}/hog", "wb") as hog:
                at = 0
                while (spare := memory("MemAvailable") - available) > 0:
                    step = min(max(spare // 2, 1 << 20), 64 << 20)
                    os.posix_fallocate(hog.fileno(), at, step)
                    at += step
            yield
        finally:
            sh.run("umount", folder)


@case(kernels=("stock",), disks=SMALL)
def long_log_is_refused_without_ram(ctx):
    """A start that RAM does not suffice for says what it takes, and nobody is killed for it."""
    with LcStack(ctx.hdd, ctx.ssd, format=("--segment-size=64K",), writeback="off",
                 idle_seal_ms=0) as lc:
        crash = crash_with_log(lc, 300)
        log = kmsg.Log()
        log.fresh()
        with little_memory(memory("MemTotal") // 16 - (6 << 20)):
            ctx.figure("MiB available", memory("MemAvailable") >> 20)
            code, output = sh.result("lc-resume", lc.name, lc.cache, lc.backing)
        assert code, output
        said = "\n".join(log.fresh())
        assert re.search(r"the log has \d+ record headers or more: a start takes 1 MiB of RAM",
                         said), said
        assert "Out of memory" not in said, said
        assert image(ctx.ssd) == crash[ctx.ssd], "the refused start has written"
        lc.activate(writeback="off")
        check_log(lc, 300)


@case(kernels=("stock",), disks=PAIR, timeout=400, sampled=3)
def hundred_rounds(ctx):
    """100 rounds of suspend, resume, reload, messages and remove under a verified load."""
    rounds_under_load(ctx, 5)


@case(kernels=("debug",), disks=PAIR, timeout=200)
def ten_rounds_debug(ctx):
    """10 such rounds on the debug kernel."""
    rounds_under_load(ctx, 1, 10)


@case(kernels=("debug",), disks=PAIR, timeout=900, long=True)
def hundred_rounds_debug(ctx):
    """100 such rounds on the debug kernel."""
    rounds_under_load(ctx, 5)


def rounds_under_load(ctx, lives, each=20):
    """Lives of some rounds each; the volume is removed in between."""
    stack = LcStack(ctx.hdd, ctx.ssd)
    rounds = 0
    for life in range(lives):
        with stack as lc:
            load = start_load(lc.path, 600)
            try:
                wait_for_writes(lc, load)
                for _ in range(each):
                    step(lc, rounds)
                    assert load.poll() is None, load.communicate()[0]
                    assert lc.fields()["mode"] == "rw", lc.fields()
                    rounds += 1
                # In use: it must refuse, and go on.  The jobs close it between two passes.
                with open(lc.path, "rb"):
                    assert sh.result("dmsetup", "remove", lc.name)[0] != 0
                wait_for_writes(lc, load)
            finally:
                load.terminate()
                output, _ = load.communicate()
            assert "verify" not in output.lower() or "bad" not in output.lower(), output
        ctx.figure("lives", life + 1)
    ctx.figure("rounds", rounds)


def wait_for_writes(lc, load):
    """Until the load has written more than it has by now."""
    before = lc.fields()["head_seq"]
    lc.wait(lambda fields: load.poll() is not None or fields["head_seq"] > before, 120,
            "records of the load")
    assert load.poll() is None, load.communicate()[0]


def step(lc, number):
    """One round: something different each time."""
    kind = number % 5
    if kind == 0:
        sh.run("dmsetup", "suspend", lc.name)
        sh.run("dmsetup", "resume", lc.name)
    elif kind == 1:
        lc.reload_with(buffers=4 + number % 70, writeback_depth=1 + number % 8)
    elif kind == 2:
        sh.run("dmsetup", "suspend", "--noflush", "--nolockfs", lc.name)
        sh.run("dmsetup", "resume", lc.name)
    elif kind == 3:
        sh.run("dmsetup", "message", lc.name, "0", "writeback")
        sh.run("dmsetup", "message", lc.name, "0", "high_watermark", 50 + number % 40)
        sh.run("dmsetup", "message", lc.name, "0", "flush")
    else:
        lc.reload_with()


@case(disks=PAIR)
def table_round_trips(ctx):
    """`dmsetup table` recreates the volume, messages included."""
    stack = LcStack(ctx.hdd, ctx.ssd, buffers=8, low_watermark=20)
    with stack as lc:
        sh.run("dmsetup", "message", lc.name, "0", "writeback", "off")
        sh.run("dmsetup", "message", lc.name, "0", "idle_seal_ms", "250")
        before = lc.table()
        for word in ("buffers 8", "low_watermark 20", "writeback off", "idle_seal_ms 250"):
            assert word in before, before
    sh.run("dmsetup", "create", stack.name, "--table", before)
    after = stack.table()
    stack.remove()
    assert before == after, (before, after)


@case(disks=PAIR)
def bad_options(ctx):
    """Each bad option is refused by name and range; nothing is created."""
    stack = LcStack(ctx.hdd, ctx.ssd)
    with stack as lc:
        words = lc.table().split()
    base = f"0 {words[1]} lc {words[3]} {words[4]}"
    for tail, text in ((" 2 buffers 3", "buffers"), (" 2 buffers 4x", "buffers"),
                       (" 2 writeback maybe", "writeback"), (" 2 nonsense 1", "Unknown option"),
                       (" 4 buffers 8 buffers 9", "twice"), (" 1 buffers", "without a value"),
                       (" 3 buffers 8", "does not match"), (" x", "does not match"),
                       (" 4 low_watermark 60 high_watermark 50", "low_watermark")):
        sh.run("dmesg", "--clear")
        assert sh.result("dmsetup", "create", "bad", "--table", base + tail)[0] != 0, tail
        assert not pathlib.Path("/dev/mapper/bad").exists()
        assert text in sh.run("dmesg"), (tail, sh.run("dmesg"))
    with stack as lc:
        for message in (("buffers", "8"), ("high_watermark", "0"), ("nonsense",),
                        ("writeback", "perhaps")):
            assert sh.result("dmsetup", "message", lc.name, "0", *message)[0] != 0, message


@case(disks=PAIR)
def messages_have_older_names(ctx):
    """`sync` and `flush` make durable what was written, `drain` and `writeback` write it back."""
    with LcStack(ctx.hdd, ctx.ssd, writeback="off", idle_seal_ms=0) as lc, lc.open() as raw:
        for block, name in enumerate(("sync", "flush")):
            raw.write(block * BLOCK, content(block, name))
            before = lc.fields()
            lc.message(name)
            after = lc.fields()
            assert after["durable_seq"] >= before["head_seq"] and after["dirty"] == block + 1, after
        for block, name in enumerate(("drain", "writeback")):
            raw.write(block * BLOCK, content(block, name))
            assert lc.fields()["dirty"], name
            lc.message(name)
            lc.wait(lambda fields: not fields["dirty"], what=f"the end of the {name}")
        for name in ("sync now", "drain on", "synch"):
            assert sh.result("dmsetup", "message", lc.name, "0", *name.split())[0], name


@case(disks=(*PAIR, Disk("ssd2", "64M"), Disk("hdd2", "128M")))
def second_user_is_refused(ctx):
    """Another mapped device asking for the same SSD or HDD gets EBUSY; others work beside."""
    first = LcStack(ctx.hdd, ctx.ssd, name="one")
    other = LcStack(ctx.hdd2, ctx.ssd2, name="two")
    with first as one, other as two:
        length = one.table().split()[1]
        for backing, cache in ((ctx.hdd, ctx.ssd), (ctx.hdd2, ctx.ssd), (ctx.hdd, ctx.ssd2)):
            code, _ = sh.result("dmsetup", "create", "three", "--table",
                                f"0 {length} lc {backing} {cache}")
            assert code != 0
        for volume in (one, two):
            sh.run("dd", "if=/dev/urandom", f"of={volume.path}", "bs=1M", "count=4",
                   "oflag=direct")
            assert volume.fields()["mode"] == "rw"


@case(disks=(*PAIR, Disk("ssd2", "64M"), Disk("hdd2", "128M")))
def neighbour_does_not_start(ctx):
    """Of two volumes in one table the second is refused when both are resumed: both let go."""
    one = LcStack(ctx.hdd, ctx.ssd, name="one", writeback="off")
    two = LcStack(ctx.hdd2, ctx.ssd2, name="two")
    with one as lc, lc.open() as raw:
        fill(raw, 0, 2000, "one")
        first = lc.table().split()
    with two as lc, lc.open() as raw:
        fill(raw, 0, 1, "two")
        second = lc.table().split()
    with dm.Raw(ctx.hdd2) as hdd:
        fill(hdd, 256, 1, "mounted behind your back")
    # What the first one's writeback does at once.
    table = dm.table(dm.lc(*first[3:5], int(first[1]), high_watermark=1, low_watermark=0),
                     dm.lc(*second[3:5], int(second[1])))
    for _ in range(5):
        code, output = sh.result("dmsetup", "create", "both", input=table)
        assert code != 0 and not dm.Device("both").exists(), output
    with one as lc, lc.open() as raw:
        check(raw, range(2000), "one")


def sleeps(process):
    """Whether a program sleeps in the kernel and cannot be interrupted."""
    text = pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii")
    return text.rpartition(")")[2].split()[0] == "D"


@case(disks=(*PAIR, Disk("ssd2", "64M"), Disk("hdd2", "128M")))
def hung_ssd_stops_no_other_volume(ctx):
    """While an SSD hangs at a table load, another volume is loaded, used and removed (D20)."""
    with dm.Device("below", dm.linear(ctx.ssd)) as below, \
            LcStack(ctx.hdd, below.path, name="one") as one:
        line = one.table()
        one.remove()
        two = LcStack(ctx.hdd2, ctx.ssd2, name="two")
        two.format()
        below.suspend()
        load = sh.start("dmsetup", "create", "one", "--table", line)
        try:
            wait.until(lambda: sleeps(load), 60, "the load reads the superblock")
            other = sh.start("sh", "-ec", f"lc-resume two {ctx.ssd2} {ctx.hdd2};"
                             f"dd if=/dev/zero of={two.path} bs=1M count=4 oflag=direct;"
                             "dmsetup remove two")
            # Another load for the same devices waits for the first one, and finds it in use.
            same = sh.start("dmsetup", "create", "same", "--table", line)
            wait.until(lambda: other.poll() is not None, 60, "the other volume is through")
            assert not other.returncode, other.communicate()[0]
            assert load.poll() is None and same.poll() is None, "the SSD does not hang"
        finally:
            below.resume()
        sh.finish(load, 60)
        output, _ = same.communicate(timeout=wait.limit(60))
        assert same.returncode, output
        assert one.fields()["mode"] == "rw"


def whole_life(cache, backing, name):
    """Another volume is loaded, used and removed, while something else hangs."""
    life = sh.start("sh", "-ec", f"lc-resume {name} {cache} {backing};"
                    f"dd if=/dev/zero of=/dev/mapper/{name} bs=1M count=4 oflag=direct;"
                    f"dmsetup remove {name}")
    wait.until(lambda: life.poll() is not None, 60, "the other volume is through")
    assert not life.returncode, life.communicate()[0]


@case(disks=(*PAIR, Disk("ssd2", "64M"), Disk("hdd2", "128M")))
def hung_ssd_at_removal_stops_no_other_volume(ctx):
    """While a removal waits for an SSD that hangs, another volume is loaded, used and removed; the
    hung one then stops cleanly (D20)."""
    two = LcStack(ctx.hdd2, ctx.ssd2, name="two")
    two.format()
    one = LcStack(ctx.hdd, "/dev/mapper/below", name="one", writeback="off", idle_seal_ms=0)
    with dm.Device("below", dm.linear(ctx.ssd)) as below:
        with one, one.open() as raw:
            fill(raw, 0, 20, "kept")
            raw.close()
            wait.until(lambda: one.opened() == 0, 60, "one is closed")
            below.suspend("--noflush", "--nolockfs")
            try:
                with Calls("lc_volume_postsuspend") as stops:
                    removal = sh.start("dmsetup", "remove", "one")
                    wait.until(lambda: stops.count() and sleeps(removal), 60,
                               "the removal waits for the SSD")
                whole_life(ctx.ssd2, ctx.hdd2, "two")
                assert removal.poll() is None, "the removal did not wait for the SSD"
            finally:
                below.resume()
            sh.finish(removal, 60)
        with one, one.open() as raw:
            assert one.fields()["dirty"] == 20, one.fields()
            check(raw, range(20), "kept")


@case(disks=(*PAIR, Disk("ssd2", "64M"), Disk("hdd2", "128M"), Disk("ssd3", "64M"),
             Disk("hdd3", "128M")))
def hung_teardown_stops_no_other_volume(ctx):
    """A volume is freed because another target of its table does not start, and waits for a copy
    that its SSD keeps: another volume is loaded, used and removed meanwhile (D20)."""
    three = LcStack(ctx.hdd3, ctx.ssd3, name="three")
    three.format()
    with Holding("ssd1", ctx.ssd) as ssd, Holding("hdd-of-two", ctx.hdd2) as hdd:
        one = LcStack(ctx.hdd, ssd.path, name="one", writeback="off")
        with one as lc, lc.open() as raw:
            fill(raw, 0, 20, "one")
            first = lc.table().split()
        with LcStack(hdd.path, ctx.ssd2, name="two") as lc:
            second = lc.table().split()
        with dm.Raw(hdd.path) as raw:
            raw.write(0, bytes(MIB))    # the mark
        table = dm.table(dm.lc(*first[3:5], int(first[1]), high_watermark=1, low_watermark=0),
                         dm.lc(*second[3:5], int(second[1])))
        # The first target copies while the second one looks for its mark, the second copy of it.
        ssd.hold(slot_sector(ssd.path, b"one 0\n") * 512, BLOCK)
        hdd.hold(MIB // 2, BLOCK)
        with Calls("lc_volume_teardown") as frees:
            create = sh.start("dmsetup", "create", "both", stdin=subprocess.PIPE)
            create.stdin.write(table)
            create.stdin.close()
            wait.until(lambda: ssd.held() and hdd.held(), 60, "a copy, and the look for a mark")
            hdd.heal()
            wait.until(frees.count, 60, "the first volume is being freed")
        whole_life(ctx.ssd3, ctx.hdd3, "three")
        assert create.poll() is None, "nothing waited for the SSD"
        ssd.heal()
        wait.until(lambda: create.poll() is not None, 60, "the end of the load")
        assert create.returncode, "a table was taken whose second target has no mark"
        with one as lc, lc.open() as raw:
            check(raw, range(20), "one")


@case(disks=PAIR)
def pair_serves_one_target_of_a_table(ctx):
    """A table with two targets on one pair is refused (D20); the pair starts afterwards."""
    with LcStack(ctx.hdd, ctx.ssd) as lc:
        line = lc.table().split()
        lc.remove()
        target = dm.lc(*line[3:5], int(line[1]))
        code, output = sh.result("dmsetup", "create", "both", input=dm.table(target, target))
        assert code and not dm.Device("both").exists(), output
        lc.activate()
        assert lc.fields()["mode"] == "rw"


@case(kernels=("stock",), disks=(Disk("ssd", "2T"), Disk("hdd", "4T")))
def index_above_half_of_the_memory(ctx):
    """An SSD whose index would take more than half of the RAM is refused, with the figure."""
    lc = LcStack(ctx.hdd, ctx.ssd)
    lc.format()
    log = kmsg.Log()
    code, output = sh.result("lc-resume", lc.name, ctx.ssd, ctx.hdd)
    assert code and not lc.exists(), output
    said = log.fresh()
    assert any(re.search(r"index of \d+ MiB of RAM, more than half of the \d+ MiB", text)
               for text in said), said


@case(disks=PAIR)
def begin_is_not_zero(ctx):
    """The volume behind another target in one table reads and writes its own sectors."""
    stack = LcStack(ctx.hdd, ctx.ssd)
    with stack as lc:
        line = lc.table().split(maxsplit=2)
        with lc.open() as raw:
            raw.write(0, b"first block of the volume".ljust(4096, b"."))
    length = int(line[1])
    table = f"0 2048 zero\n2048 {length} {line[2]}\n"
    sh.run("dmsetup", "create", "shifted", input=table)
    try:
        with dm.Device("shifted").open() as raw:
            assert raw.read(2048 * 512, 4096).startswith(b"first block of the volume")
            raw.write(2048 * 512 + 4096, b"second".ljust(4096, b"."))
            assert raw.read(2048 * 512 + 4096, 4096).startswith(b"second")
    finally:
        sh.run("dmsetup", "remove", "shifted")
    with stack as lc, lc.open() as raw:
        assert raw.read(4096, 4096).startswith(b"second")


@case(disks=PAIR)
def index_memory(ctx):
    """At most 16 bytes of RAM for each block the cache can hold; 20 with verify_reads."""
    with LcStack(ctx.hdd, ctx.ssd) as lc:
        fields = lc.fields()
        per_block = int(fields["index_bytes"]) / int(fields["capacity"])
        ctx.figure("bytes_per_block", round(per_block, 2))
        assert per_block <= 16, per_block
        lc.message("verify_reads", "on")
        fields = lc.fields()
        per_block = int(fields["index_bytes"]) / int(fields["capacity"])
        ctx.figure("bytes_per_block_verified", round(per_block, 2))
        assert 16 < per_block <= 20, per_block
