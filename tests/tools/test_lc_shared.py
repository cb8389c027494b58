# SPDX-License-Identifier: GPL-2.0-only
"""The code that the tools share with the module."""

import os
import subprocess
import time

import pytest

from lib import host
from lib.tools import (
    USERLAND,
)


def helper(name, *args, san=True):
    """Run one of userland/tests; it prints its seed."""
    binary = USERLAND / ("build-san" if san else "build") / "tests" / name
    print(host.run(binary, *args))


def test_format_codec():
    """Known checksums, round trips, flipped bits, hostile blocks."""
    helper("format_test", 60, os.environ.get("LC_SEED") or int(time.time()))


def test_replay_of_random_lives():
    """Rules R1-R7 of dm-lc/format/replay.c against a model of what was durable."""
    helper("replay_test", 20000, os.environ.get("LC_SEED") or int(time.time()))


def test_replay_of_far_numbers():
    """Numbers that do not fit into what replay keeps of a header; logs as large as can be."""
    helper("narrow_test")


# Each breaks one rule of replay.c; one of the two tests above must notice.
MUTANTS = {
    "R1-L2": ("life->end_seq = limit;", "life->end_seq = ~0ULL;"),
    "R1-later-epochs": ("if (epoch_first < limit)", "if (0)"),
    "R1-lone-header-L2": ("if (sb->lives[*lives - 1].first_seq < *limit)", "if (0)"),
    "R1-forgets-lives": ("if (next > sb->tail_seq)", "if (0)"),
    "R2-rewritten": ("return segment > other ? -1 : 1;", "return segment < other ? -1 : 1;"),
    "R3-tail": ("u64 expect = sb->tail_seq;", "u64 expect = 1;"),
    "R4-gap-L1": ("if (r->seq == expect)", "if (r->seq >= expect)"),
    "R5-L4": ("r->durable > durable", "r->durable < durable"),
    "R6-L9": ("return -ESTALE;", ";"),
    "R7-leftovers": ("life->end_segment = later;", "life->end_segment = LC_REPLAY_NONE;"),
    "boundary-too-early": ("if (r->keep && r->boundary >= next)", "if (r->keep)"),
    "boundary-too-low": ("if (r->keep && segment >= next)", "if (0)"),
    "next-segment": ("result->next_segment = lc_replay_segment(log, r) + 1",
                     "result->next_segment = lc_replay_segment(log, r)"),
    # What is kept of a header has fewer bits than the header.
    "narrow-durable": ("return distance < LC_REPLAY_NONE ? distance + 1 : LC_REPLAY_NONE;",
                       "return distance + 1;"),
    "narrow-durable-by-one": ("return distance < LC_REPLAY_NONE ? distance + 1 : LC_REPLAY_NONE;",
                              "return distance < 1ULL << 32 ? distance + 1 : LC_REPLAY_NONE;"),
    "narrow-durable-below-tail": ("if (durable_seq < log->tail_seq)", "if (0)"),
    "narrow-boundary": ("return back < LC_REPLAY_FAR_BACK ? back : LC_REPLAY_FAR_BACK;",
                   "return back;"),
    "narrow-seq": ("if (r->seq == expect)", "if ((u32)r->seq == (u32)expect)"),
    "narrow-end-seq": ("return r->seq < life->end_seq", "return (u32)r->seq < (u32)life->end_seq"),
    "narrow-order": ("return x->seq < y->seq ? -1 : 1;",
                     "return (u32)x->seq < (u32)y->seq ? -1 : 1;"),
    "narrow-life": (".life = number,", ".life = (u16)number % 40000,"),
    "narrow-epoch": ("if (life->epoch != epoch)\n\t\treturn life->epoch < epoch ? -1 : 1;",
                     "if ((u32)life->epoch != (u32)epoch)\n"
                     "\t\treturn (u32)life->epoch < (u32)epoch ? -1 : 1;"),
    "narrow-place": ("distance >= log->nr_segments", "(u32)distance >= log->nr_segments"),
    "forgotten-life": ("if (log->lives[log->by_epoch[i]].segment <= last)", "if (log->nr_told)"),
    "unsorted-chains": ("if (nr_runs > 1)", "if (nr_runs > 1 && stack[0].first)"),
}


@pytest.mark.parametrize("rule", MUTANTS)
def test_replay_mutants(rule, tmp_path):
    """Without the rule one of the tests fails: it proves something."""
    source = (host.TOP / "dm-lc/format/replay.c").read_text(encoding="ascii")
    old, new = MUTANTS[rule]
    assert source.count(old) == 1, "replay.c has changed: adapt the mutant"
    mutant = tmp_path / "replay.c"
    mutant.write_text(source.replace(old, new), encoding="ascii")
    codes = []
    for test in ("narrow_test", "replay_test"):
        host.run("gcc", "-O2", "-w", "-D_GNU_SOURCE", f"-I{USERLAND}/kernel",
                 f"-I{host.TOP}/dm-lc/format", USERLAND / f"tests/{test}.c", mutant,
                 USERLAND / "build/format/csum.o", USERLAND / "build/format/format.o",
                 USERLAND / "build/crc32c.o", "-o", tmp_path / test)
        done = subprocess.run([tmp_path / test, "30000", "1"], capture_output=True, check=False)
        codes.append(done.returncode)
    assert 1 in codes, "the mutant survived"
