# SPDX-License-Identifier: GPL-2.0-only
"""lc-latency with bpftrace itself: does it name the stage that is slow?"""

import json
import re

from lclib import Disk, case, wait
from lib import host

DISKS = (Disk("hdd", "512M", bus="scsi", rotation=7200),
         Disk("ssd", "256M", bus="scsi", rotation=1))
DELAY = 400         # ms: more than an emulated machine needs for any other stage
COMMITS = 40
WRITES = 4000       # whose instructions are counted
OUT = "/root/latency.json"
PROGRAM = host.TOP / "userland/latency/lc-latency.bt"


def histograms(ctx):
    """{map: buckets, by key if it has keys} of its output."""
    found = {}
    for line in filter(None, ctx.run(f"cat {OUT}").splitlines()):
        said = json.loads(line)
        if said["type"] == "hist":
            found.update((name.lstrip("@"), data) for name, data in said["data"].items())
    return found


def median(buckets):
    """The lower end of the bucket that has the middle of all."""
    half = sum(bucket["count"] for bucket in buckets) / 2
    for bucket in buckets:
        half -= bucket["count"]
        if half <= 0:
            return bucket.get("min", 0)
    return 0


def trace(ctx):
    """Start lc-latency; returns when it traces."""
    ctx.run(f"systemd-run --unit=latency -p StandardOutput=file:{OUT} "
            "$(command -v lc-latency) --json music")
    # It says that it attaches its probes before it does; each has a descriptor then.
    probes = len(re.findall(r"^tracepoint:", PROGRAM.read_text(encoding="ascii"), re.M))
    wait.until(lambda: int(ctx.run("ls -l /proc/$(pidof bpftrace)/fd 2> /dev/null | "
                                   "grep -c perf_event || true")) >= probes,
               600 * ctx.scale, "bpftrace traces")


def stop_tracing(ctx):
    """End it; its output is complete then."""
    ctx.run("systemctl kill -s INT --kill-whom=all latency; "
            "while systemctl is-active -q latency; do sleep 1; done", limit=300)


@case(kernels=("server",), disks=DISKS, timeout=1200, module="", memory="2G", long=True)
def slow_stage_is_named(ctx):
    """If writes of the SSD take longer than all else, their stage does; the drain is seen, too."""
    ctx.install()
    ssd = ctx.path("ssd")
    ctx.run(f"echo 0 $(blockdev --getsz {ssd}) delay {ssd} 0 0 {ssd} 0 {DELAY} {ssd} 0 0 | "
            "dmsetup create slow")
    ctx.run(f"lc-format --yes -o writeback=off --backing {ctx.path('hdd')} /dev/mapper/slow && "
            f"lc-resume music /dev/mapper/slow {ctx.path('hdd')}")
    trace(ctx)
    ctx.run(f"dd if=/dev/zero of=/dev/mapper/music bs=4k count={COMMITS} oflag=direct,dsync && "
            "dd if=/dev/mapper/music of=/dev/null bs=4k count=8 iflag=direct && "
            "lc-flush music", limit=900)
    stop_tracing(ctx)
    found = histograms(ctx)
    medians = {name: median(buckets) for name, buckets in found.items()
               if re.match(r"us_\d", name)}
    ctx.figure("medians", medians)
    slow = medians.pop("us_3_write_to_ssd")
    assert slow >= DELAY * 1000 / 2 > max(medians.values()), (slow, medians)
    assert sum(bucket["count"] for bucket in found["us_3_write_to_ssd"]) >= COMMITS
    assert set(medians) >= {"us_1_wait_for_writers", "us_2_turn_and_sum", "us_6_read_from_ssd",
                            "us_7_write_to_hdd", "us_8_batch"}, medians
    assert "read_us_ram" in found or "read_us_ssd" in found, found.keys()
    assert any("F" in kind for kind in found["bio_us"]), found["bio_us"].keys()


def instructions(ctx, flags):
    """Of a 4 KiB write, dd's own among them: the guest's clock counts them."""
    spent = ctx.run("start=$(date +%s%N) && dd if=/dev/zero of=/dev/mapper/music bs=4k "
                    f"count={WRITES} oflag={flags} status=none && echo $(($(date +%s%N) - start))",
                    limit=600)
    return round(int(spent) / WRITES)


@case(kernels=("server",), disks=(), timeout=2400, module="", memory="2G", smp=1, icount=True,
      long=True)
def overhead_is_counted(ctx):
    """What lc-latency adds to a write and to a synced one, in instructions; once it has ended, they
    take what they took before.
    """
    ctx.install()
    ctx.run("modprobe brd rd_nr=2 rd_size=262144 && lc-format --yes -o writeback=off "
            "--backing /dev/ram0 /dev/ram1 && lc-resume music /dev/ram1 /dev/ram0")
    instructions(ctx, "direct")
    figures = {}
    for when in ("before", "traced", "after"):
        if when == "traced":
            trace(ctx)
        figures[when] = [instructions(ctx, flags) for flags in ("direct", "direct,dsync")]
        if when == "traced":
            stop_tracing(ctx)
    ctx.figure("instructions of a write and of a synced one", figures)
    for before, traced, after in zip(*figures.values()):
        assert traced > before and after < before * 1.05, figures
