# SPDX-License-Identifier: GPL-2.0-only
"""Reads return the data that was written: through the volume, over a restart, on the HDD."""

from lclib import case, sh
from lclib.lc import LcStack, bare_volume
from lclib.registry import Disk
from lclib.scatter import partly_odd

# These take memory at any multiple of four bytes, which newer kernels let through to no others.
SCSI_PAIR = (Disk("ssd", "32M", bus="scsi"), Disk("hdd", "96M", bus="scsi"))
MODEL = "/tmp/model.versions"
MODEL_RUN = "/opt/dm-lc/bin/model"


def model(verb, path, *options):
    """The byte-exact model: run operations, or verify a device against it."""
    sh.run(MODEL_RUN, verb, "--dev", path, "--model", MODEL, *options)


def fresh_model():
    """Forget an earlier case's model."""
    sh.run("rm", "-f", MODEL)


def run_model(ctx, ops, *, format=(), smallest=512, **options):  # pylint: disable=redefined-builtin
    """Operations against the model, in three lives, and then on the HDD alone.

    Half of the bios have their memory in odd pieces, where the kernel lets such through.
    """
    fresh_model()
    # In place the volume shows what an earlier case left there: the model begins with zeroes.
    sh.run("blkdiscard", "--zeroout", ctx.hdd)
    stack = LcStack(ctx.hdd, ctx.ssd, format=format, **options)
    with stack as lc, partly_odd(lc.path, ctx.seed) as path:
        model("run", path, "--ops", ops // 2, "--seed", ctx.seed, "--discards")
        model("verify", lc.path)
    with stack as lc, partly_odd(lc.path, ctx.seed + 1) as path:
        model("verify", path)
        model("run", path, "--ops", ops - ops // 2, "--discards")
        model("verify", lc.path)
        ctx.figure("epoch", lc.fields()["epoch"])
        lc.drain()
        assert lc.fields()["dirty"] == 0, lc.fields()
        model("verify", lc.path)
    with bare_volume(ctx.hdd, "--in-place" in format) as bare:
        model("verify", bare.path)
    with stack as lc:
        assert lc.fields()["dirty"] == 0, lc.fields()
        model("verify", lc.path)
    ctx.figure("operations", ops)
    ctx.figure("smallest", smallest)


@case(kernels=("stock",), disks=(Disk("ssd", "32M"), Disk("hdd", "96M")), timeout=240, sampled=3)
def model_small_cache(ctx):
    """20,000 operations of 512 bytes and up, the log wrapping many times, byte by byte."""
    run_model(ctx, 20000, buffers=8)


@case(kernels=("debug",), disks=SCSI_PAIR, timeout=150)
def model_debug(ctx):
    """5,000 operations against the byte-exact model, reads verified, debug kernel."""
    run_model(ctx, 5000, buffers=8, verify_reads="on")


@case(kernels=("debug",), disks=SCSI_PAIR, timeout=900, long=True)
def model_100k(ctx):
    """100,000 operations against the byte-exact model, the log wrapping, debug kernel."""
    run_model(ctx, 100000)


@case(kernels=("stock",), disks=(Disk("ssd", "32M"), Disk("hdd", "96M")), timeout=240, sampled=3)
def model_small_segments_in_place(ctx):
    """The same in place, smallest segments, few buffers, crc32c, reads verified."""
    run_model(ctx, 20000, format=("--in-place", "--segment-size=64K", "--checksum=crc32c"),
              buffers=4, verify_reads="on")


@case(kernels=("stock",), disks=(Disk("ssd", "32M"), Disk("hdd", "96M", logical=4096,
                                                              physical=4096)), timeout=240)
def model_4kn_backing(ctx):
    """The same on a HDD with 4 KiB logical blocks."""
    run_model(ctx, 10000, smallest=4096)


@case(kernels=("stock",), disks=(Disk("ssd", "32M", logical=4096, physical=4096),
                                 Disk("hdd", "96M")), timeout=240, sampled=3)
def model_4kn_cache(ctx):
    """The same with an SSD of 4 KiB logical blocks: small reads are bounced."""
    run_model(ctx, 10000)


FIO_JOBS = ("--ioengine=libaio", "--direct=1", "--bsrange=512-1M", "--bs_unaligned=0",
            "--iodepth=8", "--numjobs=4", "--verify=crc32c", "--verify_fatal=1",
            "--verify_backlog=64", "--group_reporting", "--output-format=terse")


def fio_verified(ctx, path, *words):
    """Four jobs, each on its own fifth of the data, mixed block sizes, every block verified."""
    return sh.run("fio", "--name=mixed", f"--filename={path}", "--rw=randwrite",
                  "--size=40M", "--offset_increment=40M", f"--randseed={ctx.seed}",
                  "--allrandrepeat=1", *FIO_JOBS, *words)


def five_times_the_cache(ctx, format):  # pylint: disable=redefined-builtin
    """fio over five times the cache, again after a restart, again on the HDD itself."""
    stack = LcStack(ctx.hdd, ctx.ssd, format=format)
    with stack as lc:
        fio_verified(ctx, lc.path, "--do_verify=1")
    with stack as lc:
        fio_verified(ctx, lc.path, "--verify_only")
        lc.drain()
    with bare_volume(ctx.hdd, "--in-place" in format) as bare:
        fio_verified(ctx, bare.path, "--verify_only")


@case(kernels=("stock",), disks=(Disk("ssd", "34M"), Disk("hdd", "256M")), timeout=300)
def fio_mark_first(ctx):
    """Four verified jobs, 512 B to 1 MiB, data five times the cache; volume behind the mark."""
    five_times_the_cache(ctx, ())


@case(kernels=("stock",), disks=(Disk("ssd", "34M"), Disk("hdd", "256M")), timeout=300)
def fio_in_place(ctx):
    """Four verified jobs, 512 B to 1 MiB, data five times the cache; volume in place."""
    five_times_the_cache(ctx, ("--in-place",))
