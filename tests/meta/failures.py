# SPDX-License-Identifier: GPL-2.0-only
"""Cases that must fail (or skip); test_meta.py asserts that they do, and why.

None of them needs the module: what is tested here is the harness.
"""

import os
import pathlib
import select

from lclib import Disk, case, pattern
from lclib.disk import Device

SSD = (Disk("ssd", "16M"),)
# What does not depend on the kernel is shown on the one that boots faster.
STOCK = ("stock",)


@case(module="")
def passes(ctx):
    """The control: this one passes."""
    ctx.figure("answer", 42)


@case(module="", kernels=STOCK)
def skips(ctx):
    """A case that cannot run says so, with its reason."""
    ctx.skip("because this is a test of skipping")


@case(module="", kernels=STOCK)
def is_wrong(_):
    """An assertion that does not hold."""
    assert 1 + 1 == 3, "arithmetic"


@case(module="", kernels=STOCK)
def ends_early(_):
    """A case whose process goes away without a verdict."""
    os._exit(0)


@case(module="", kernels=STOCK, disks=SSD)
def finds_wrong_data(ctx):
    """One flipped bit is found and named."""
    with Device(ctx.ssd) as ssd:
        model = pattern.Model(ssd, ctx.seed, count=64)
        model.write(0, 64)
        model.check()
        spoilt = bytearray(ssd.read(17 * 512, 512))
        spoilt[100] ^= 1
        ssd.write(17 * 512, bytes(spoilt))
        model.check()


@case(module="", kernels=STOCK, disks=SSD)
def finds_alien_data(ctx):
    """A sector written to the wrong place is found and named."""
    with Device(ctx.ssd) as ssd:
        model = pattern.Model(ssd, ctx.seed, count=64)
        model.write(0, 64)
        ssd.write(5 * 512, ssd.read(9 * 512, 512))
        model.check()


@case(module="", kernels=STOCK, timeout=5)
def hangs(_):
    """Waits for ever: the guest's own limit ends it."""
    select.select([], [], [])


@case(module="")
def warns(_):
    """A WARNING in the kernel log."""
    with open("/dev/kmsg", "wb") as log:
        log.write(b"<4>WARNING: CPU: 0 PID: 1 at a place that does not exist\n")


@case(module="", kernels=STOCK)
def says_bug(_):
    """A KASAN report in the kernel log."""
    with open("/dev/kmsg", "wb") as log:
        log.write(b"<3>BUG: KASAN: use-after-free in nothing_at_all+0x0/0x10\n")


@case(module="", kernels=STOCK, disks=SSD)
def leaves_a_device(ctx):
    """A mapped device left behind."""
    from lclib import dm  # pylint: disable=import-outside-toplevel
    dm.Device("forgotten", dm.linear(ctx.ssd)).create()


@case(module="", kernels=STOCK)
def panics(_):
    """The kernel panics."""
    pathlib.Path("/proc/sysrq-trigger").write_text("c", encoding="ascii")


@case(module="", kernels=STOCK)
def restarts(_):
    """The guest goes away without a panic and without a verdict."""
    pathlib.Path("/proc/sysrq-trigger").write_text("b", encoding="ascii")
    select.select([], [], [])


@case(module="", kernels=("debug",))
def leaks(_):
    """The kernel forgets memory."""
    from lclib import sh  # pylint: disable=import-outside-toplevel
    sh.run("insmod", "/opt/dm-lc/meta/leak.ko")
    sh.run("rmmod", "leak")


@case(module="", kernels=("kcsan",), long=True)
def races(_):
    """Two threads of the kernel change one word without a lock."""
    from lclib import kmsg, sh, wait  # pylint: disable=import-outside-toplevel
    log = kmsg.Log()
    sh.run("insmod", "/opt/dm-lc/meta/dm-lc-race.ko")
    try:
        wait.until(lambda: kmsg.faults(log.fresh()), 60, "the race is reported")
    finally:
        sh.run("rmmod", "dm_lc_race")


@case(module="")
def comes_last(_):
    """Passes, in a fresh boot, whatever happened before it."""
