# SPDX-License-Identifier: GPL-2.0-only
"""The parts of the harness that need no guest: log scanner, parsers, checks.

meta/ proves the whole, with guests; this proves the pieces, in a second.
"""

import subprocess

import pytest

from checks import test_check
from lclib import kmsg, pattern, status
from lib import apt, host, payload

FAULTS = (
    "WARNING: CPU: 1 PID: 77 at drivers/md/dm.c:100 dm_x+0x1/0x2 [dm_mod]",
    "WARNING: possible circular locking dependency detected",
    "WARNING: possible recursive locking detected",
    "WARNING: suspicious RCU usage",
    "BUG: KASAN: slab-use-after-free in lc_map+0x10/0x20 [dm_lc]",
    "BUG: sleeping function called from invalid context at mm/page_alloc.c:1",
    "BUG: unable to handle page fault for address: ffff",
    "UBSAN: shift-out-of-bounds in dm-lc/index.c:3:4",
    "INFO: task dmsetup:123 blocked for more than 120 seconds.",
    "watchdog: BUG: soft lockup - CPU#0 stuck for 22s!",
    "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "refcount_t: underflow; use-after-free.",
    "list_del corruption. prev->next should be x, but was y",
    "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "ODEBUG: free active (active state 0) object: x object type: work_struct",
    "general protection fault, probably for non-canonical address",
)
HARMLESS = (
    "device-mapper: ioctl: 4.47.0-ioctl (2022-07-28) initialised: dm-devel@redhat.com",
    "dm_lc: loading out-of-tree module taints kernel.",
    "kmemleak: Kernel memory leak detector initialized (mem pool available: 35328)",
    "XFS (dm-0): Mounting V5 Filesystem",
    "clocksource: Watchdog remote CPU 1 read timed out",
    "dmlc-harness: case warns.BUG: starts",
)


@pytest.mark.parametrize("line", FAULTS)
def test_fault_is_seen(line):
    """Each kind of report that the kernel can make."""
    assert kmsg.faults(["before", line, "after"])[0] == line


@pytest.mark.parametrize("line", HARMLESS)
def test_harmless_line_is_no_fault(line):
    """What a healthy guest says."""
    assert kmsg.faults([line]) == []


def test_status_parser():
    """Pairs, and what is not pairs."""
    assert status.parse("0 8 lc mode rw dirty 5") == {"mode": "rw", "dirty": 5}
    for bad in ("0 8 linear", "0 8 lc mode", "0 8 lc dirty 1 dirty 2"):
        with pytest.raises(ValueError):
            status.parse(bad)


def test_pattern_names_what_it_finds():
    """Version, foreign bytes, zeroes, and a sector torn inside."""
    good = pattern.sector(7, 9, 3)
    assert len(good) == 512 and pattern.describe(good) == "seed 7 sector 9 version 3"
    assert pattern.describe(bytes(512)) == "zeroes"
    assert "foreign" in pattern.describe(b"x" * 512)
    assert "torn" in pattern.describe(good[:256] + pattern.sector(7, 9, 4)[256:])


def test_names_are_ordered_as_versions():
    """7.10 is newer than 7.9."""
    names = ["linux-source-7.10", "linux-source-7.9", "linux-source-6.12"]
    assert sorted(names, key=apt.version_key) == [names[2], names[1], names[0]]


def test_modules_come_in_loading_order():
    """What a module needs stands before it, once."""
    table = {"a.ko": ["b.ko", "c.ko"], "b.ko": ["c.ko"], "c.ko": []}
    assert payload.with_needs(table, ["a.ko", "b.ko"]) == ["c.ko", "b.ko", "a.ko"]


def test_long_function_is_measured():
    """The length check counts what is between the braces."""
    text = "int f(void)\n{\n" + "\tx();\n" * 101 + "}\n"
    assert list(test_check.functions(text)) == [(2, 101)]


def test_sparse_sees_a_wrong_endian(tmp_path):
    """The sparse that make check uses complains where it must."""
    source = tmp_path / "wrong.c"
    source.write_text("typedef unsigned int __attribute__((bitwise)) le;\n"
                      "int f(le x);\nint f(le x) { return x; }\n", encoding="ascii")
    done = subprocess.run([host.TESTS / "checks/sparse", "-D__CHECK_ENDIAN__", source], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert "incorrect type in return expression" in done.stdout
