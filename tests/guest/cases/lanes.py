# SPDX-License-Identifier: GPL-2.0-only
"""Lanes: an open segment for each memory node, in machines that have several.

One writer a node, tied to one of its processors, each on blocks of its own. Almost all that they
write must be copied within their node (counters of the option `stats`), and what is read later
must be what they wrote: while it is in RAM, on the SSD, and after a start from the log.
"""

import pathlib

from lclib import Disk, case, sh
from lclib.disk import MIB
from lclib.faulty import BLOCK, fill
from lclib.lc import LcStack

DISKS = (Disk("ssd", size="400M"), Disk("hdd", size="512M"))
SHARE = 24  # MiB for each writer
WRITES = 1500
KNOWN = 8 * MIB // BLOCK    # blocks after which the speed of the SSD is known


def processor_of(node):
    """One processor of a memory node."""
    text = pathlib.Path(f"/sys/devices/system/node/node{node}/cpulist").read_text(encoding="ascii")
    return int(text.replace("-", ",").split(",")[0])


def writers(path, nodes, *words):
    """A fio job on each node, all at once."""
    jobs = []
    for node in range(nodes):
        jobs += [f"--name=node{node}", f"--filename={path}", f"--offset={node * SHARE}M",
                 f"--size={SHARE}M", f"--number_ios={WRITES}", "--rw=randwrite", "--bs=4k",
                 "--ioengine=libaio", "--iodepth=4", "--direct=1", "--verify=crc32c",
                 "--verify_fatal=1", f"--randseed={node + 1}",
                 f"--cpus_allowed={processor_of(node)}", *words]
    return sh.run("fio", *jobs)


def on_nodes(ctx, nodes):
    """The load on so many nodes; returns the share of blocks copied within theirs."""
    online = pathlib.Path("/sys/devices/system/node/online").read_text(encoding="ascii").strip()
    assert online == (f"0-{nodes - 1}" if nodes > 1 else "0"), online
    with LcStack(ctx.hdd, ctx.ssd, stats="on", buffers=16 * nodes, writeback="off") as lc:
        assert lc.fields()["lanes"] == nodes, lc.fields()
        # Little may wait for an SSD of unknown speed (D23), and a worker continues what is parked.
        with lc.open() as raw:
            fill(raw, nodes * SHARE * MIB // BLOCK, KNOWN, "known")
            raw.flush()
        before = lc.fields()
        writers(lc.path, nodes, "--do_verify=0")
        after = lc.fields()
        fields = {key: after[key] - before[key]
                  for key in ("copies_local", "copies_remote", "parked")}
        writers(lc.path, nodes, "--verify_only")
        sh.run("dmsetup", "suspend", lc.name)
        lc.remove()  # while suspended: no clean stop
        lc.activate()
        writers(lc.path, nodes, "--verify_only")
        lc.drain()
        writers(lc.path, nodes, "--verify_only")
    copies = fields["copies_local"] + fields["copies_remote"]
    assert copies >= nodes * WRITES, fields
    share = 100 * fields["copies_local"] / copies
    ctx.figure("copied within the node, percent", round(share, 2))
    ctx.figure("parked", fields["parked"])
    return share


@case(kernels=("stock",), disks=DISKS, timeout=240, nodes=1, memory="2G")
def one_node(ctx):
    """One memory node: one lane."""
    assert on_nodes(ctx, 1) == 100


@case(kernels=("stock",), disks=DISKS, timeout=240, nodes=2, smp=2, memory="2G")
def two_nodes(ctx):
    """Two memory nodes: at least 99 % of all copies stay within one."""
    assert on_nodes(ctx, 2) >= 99


@case(kernels=("stock",), disks=DISKS, timeout=400, nodes=4, smp=4, memory="2G", long=True)
def four_nodes(ctx):
    """Four memory nodes."""
    assert on_nodes(ctx, 4) >= 99


@case(kernels=("stock",), disks=DISKS, timeout=800, nodes=8, smp=8, memory="2G", long=True)
def eight_nodes(ctx):
    """Eight memory nodes."""
    assert on_nodes(ctx, 8) >= 99
