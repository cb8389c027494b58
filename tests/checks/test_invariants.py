# SPDX-License-Identifier: GPL-2.0-only
"""Each numbered invariant has one home, is explained, and what is cited exists."""

import pytest

from lib import host, invariants

from .test_check import report, some

DESIGN = ("* **XX1** A rule.\n* **XX2** Another.\n* **X-a** With a letter.\n* **X** A letter.\n"
          "   * - L1\n     - A sequence.\n")
GUIDE = "P1 Durable\n    A promise.\n"
HEADER = ("/*\n *  XX1 A rule.\n *  XX2 Another, as said (L1, P1).\n *  X-a With a letter.\n"
          " *  X  A letter.\n */\n")
# Words, and what is no citation.
WORDS = ("/*\n *  A block is none (X, X-a, XX1; or A, if B).\n"
         " *  I am none, by f(A, B) and (X-ray).\n *  Z-ab (I/O), (7 MB, all-Z-a).\n */\n")


def test_invariants():
    """Of module and tools, with docs/design.rst."""
    files = {str(path.relative_to(host.TOP)): path.read_text(encoding="utf-8")
             for path in some("dm-lc/*.[ch]", "userland/*.[ch]")}
    docs = host.TOP / "docs"
    report(invariants.problems(files, (docs / "design.rst").read_text(encoding="utf-8"),
                               (docs / "dm-lc.rst").read_text(encoding="utf-8")))


def test_invariants_that_are_sound():
    """What the violations below start from."""
    assert not invariants.problems({"a.h": HEADER, "words.c": WORDS}, DESIGN, GUIDE)


@pytest.mark.parametrize(("files", "design", "said"), [
    ({"a.h": HEADER, "b.h": "/*\n *  XX1 Again.\n */\n"}, DESIGN, "XX1 is stated in a.h and b.h"),
    ({"a.h": HEADER, "b.h": "/*\n *  XX3 New.\n */\n"}, DESIGN,
     "XX3 is stated in b.h and not explained in design.rst"),
    ({"a.c": "/*\n *  XX1 It.\n */\n", "a.h": HEADER.replace("XX1", "x")}, DESIGN,
     "XX1 is stated in a.c, not in a header"),
    ({"a.h": HEADER}, DESIGN + "* **XX9** Old.\n",
     "XX9 is explained in design.rst and stated nowhere"),
    ({"a.h": HEADER, "b.h": "/*\n *  X-a Again.\n */\n"}, DESIGN, "X-a is stated in a.h and b.h"),
    ({"a.h": HEADER, "b.h": "/*\n *  X-b New.\n */\n"}, DESIGN,
     "X-b is stated in b.h and not explained in design.rst"),
    ({"a.h": HEADER, "b.h": "/*\n *  Z  New.\n */\n"}, DESIGN,
     "Z is stated in b.h and not explained in design.rst"),
    ({"a.c": "/*\n *  X-a It.\n */\n", "a.h": HEADER.replace("X-a", "x")}, DESIGN,
     "X-a is stated in a.c, not in a header"),
    ({"a.c": "/*\n *  X  It.\n */\n", "a.h": HEADER.replace("X  ", "x ")}, DESIGN,
     "X is stated in a.c, not in a header"),
    ({"a.h": HEADER}, DESIGN + "* **X-c** Old.\n",
     "X-c is explained in design.rst and stated nowhere"),
    ({"a.h": HEADER}, DESIGN + "* **Z** Old.\n", "Z is explained in design.rst and stated nowhere"),
    ({"a.h": HEADER, "b.c": "/* Under the lock (XX1, X-d). */\n"}, DESIGN,
     "b.c cites X-d, which is nowhere"),
    ({"a.h": HEADER, "b.c": "/* Under the lock (XX1, Z). */\n"}, DESIGN,
     "b.c cites Z, which is nowhere"),
    ({"a.h": HEADER}, DESIGN + "   * - XX2\n", "XX2 is twice in design.rst"),
    ({"a.h": HEADER, "b.c": "/* Under the lock (XX1, L7). */\n"}, DESIGN,
     "b.c cites L7, which is nowhere"),
], ids=["twice", "not-explained", "not-in-a-header", "nowhere", "letter-twice",
        "letter-not-explained", "lone-not-explained", "letter-not-in-a-header",
        "lone-not-in-a-header", "letter-nowhere", "lone-nowhere", "letter-cited", "lone-cited",
        "of-two-kinds", "cited"])
def test_invariants_violated(files, design, said):
    """The check fails for each kind of violation, and says which."""
    assert invariants.problems(files, design, GUIDE) == [said]
