# SPDX-License-Identifier: GPL-2.0-only
"""The benchmark in the guest: runs the plan that the host sends, tells each result at once.

No test run selects this case: it names no kernel.
"""

import contextlib
import json
import os
import pathlib
import sys

from lclib import Disk, case, sh
from lclib.disks import Disks

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

PORT = "dmlc.bench"
WRITEBOOST = pathlib.Path("/opt/dm-lc/bench/dm-writeboost.ko")


class Host:
    """The other side: takes events, gave the plan."""

    def __init__(self, port):
        self.port = port
        line = b""
        while not line.endswith(b"\n"):
            line += port.read(65536) or b""
        self.plan = json.loads(line)

    def send(self, kind, **fields):
        """One event."""
        data = json.dumps({"kind": kind, **fields}).encode() + b"\n"
        while data:
            data = data[self.port.write(data):]


def measure(ctx, hdds=("hdd",)):
    """Take the plan, perform it.  Several hard disks make one striped array."""
    from lcbench import common, load, perform, systems  # pylint: disable=import-outside-toplevel
    os.environ["PATH"] += ":/opt/dm-lc/bin"
    host = Host(ctx.port(PORT))
    for module in (*systems.MODULES, "loop"):
        sh.run("modprobe", module)
    if WRITEBOOST.exists():
        sh.run("insmod", WRITEBOOST)
    load.load_module(host.plan["profile"])
    perform.begin(host.send)
    hdd = common.striped([getattr(ctx, name) for name in hdds]) if len(hdds) > 1 else ctx.hdd
    where = {"ram": common.ram_disks(host.plan["ram_disk"]), "emulated": (ctx.ssd, hdd)}
    disks = Disks()
    with contextlib.closing(disks):
        given = common.Bench("", "", host.plan, ctx.seed, disks, hdds)
        perform.perform(host.send, given, where)
    if len(hdds) > 1:
        sh.run("dmsetup", "remove", common.ARRAY)
    load.unload_module()
    host.send("end")


DISKS = (Disk("ssd", "512M", kind="recorded"), Disk("hdd", "8G", kind="recorded"))
# tsc=reliable: the kernel would take the HPET for its clock, the block layer reads the clock for
# every bio, and with an emulated CPU that was up to a fifth of all profiled time.
APPEND = "tsc=reliable"


# Cores: between processors without a common cache the scheduler does not move a task that wakes up.
# So the workers of a system queue on the processor of the task that woke them, while another one is
# idle.
@case(kernels=(), disks=DISKS, timeout=3600, memory="4G", append=APPEND, cores=True)
def bench(ctx):
    """Everything side by side."""
    measure(ctx)


@case(kernels=(), disks=DISKS, timeout=3600, memory="4G", append=APPEND, smp=1, icount=True)
def bench_counted(ctx):
    """Instruction counts, on a processor whose every instruction takes a nanosecond."""
    measure(ctx)


@case(kernels=(), disks=DISKS, timeout=1800, memory="4G", append=APPEND, smp=4, cores=True)
def bench_locks(ctx):
    """What only a kernel with lock_stat can count."""
    measure(ctx)


TRACED = (DISKS[0], Disk("hdd", "32G", kind="recorded"))


@case(kernels=(), disks=TRACED, timeout=7200, memory="4G", append=APPEND, cores=True)
def bench_traces(ctx):
    """Traces, whose addresses reach further than the other jobs'."""
    measure(ctx)


ARRAY = tuple(f"hdd{number}" for number in range(4))


@case(kernels=(), disks=(DISKS[0], *(Disk(name, "1G", kind="recorded") for name in ARRAY)),
      timeout=1800, memory="4G", append=APPEND, cores=True)
def bench_array(ctx):
    """Jobs whose hard disk is a striped array."""
    measure(ctx, ARRAY)
