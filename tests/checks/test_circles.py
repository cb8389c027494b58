# SPDX-License-Identifier: GPL-2.0-only
"""The checks of who uses whom see what they must."""

import pytest

from lib import circles

INNOCENT = {
    "low.h": "int low(void);\n",
    "low.c": '/* as high() */\n#include "low.h"\n\nint low(void)\n{\n\treturn 1;\n}\n',
    "high.h": '#include "low.h"\n\nint high(void);\nextern const struct kind a_kind;\n',
    "high.c": '#include "high.h"\n\nstatic int own(void)\n{\n\treturn low();\n}\n\n'
              "int high(void)\n{\n\treturn own();\n}\n\n"
              'const struct kind a_kind = {\n\t.name = "low",\n};\n',
    "high-part.c": '#include "high.h"\n\nint main(void)\n{\n\treturn high();\n}\n',
}


@pytest.mark.parametrize("name, old, new, found", [
    ("low.c", "", "", []),
    ("low.c", '#include "low.h"', '#include "low.h"\n#include "high.h"', ["high", "low", "high"]),
    ("low.c", "return 1", "return high()", ["high", "low", "high"]),
    ("low.c", "return 1", "return a_kind.size", ["high", "low", "high"]),
    ("low.c", "return 1", 'return use("high") + own()', []),
    ("low.h", "int low(void);", "static inline int low_too(void)\n{\n\treturn high();\n}",
     ["high", "low", "high"]),
    ("low.h", "int low(void);", "#define low_too() \\\n\thigh()\n", ["high", "low", "high"]),
    ("low.h", "int low(void);", "int high(void);\nextern const struct kind a_kind;", []),
    ("low.h", "int low", '#include "elsewhere.h"\nint low', []),
    ("high.c", "return own", "return main() + own", ["high", "high-part", "high"]),
], ids=["none", "header", "call", "object", "text", "inline", "macro", "declaration",
        "other-folder", "family"])
def test_circle_is_found(name, old, new, found):
    """Files that include or call each other, and only these, are a circle."""
    files = {**INNOCENT, name: INNOCENT[name].replace(old, new, 1)}
    assert circles.circle(circles.uses(files)) == found


@pytest.mark.parametrize("change, found", [
    ({}, []),
    ({"other.h": "int low(void);\n"}, ["other.h: there is no other.c"]),
    ({"low.h": "int lower(void);\n"}, ["low.c: low is not declared in low.h"]),
    ({"high.h": "int high(void);\n"}, ["high.c: a_kind is not declared in high.h"]),
    ({"high-part.c": "int high_part(void)\n{\n\treturn 1;\n}\n"},
     ["high-part.c: high_part is not declared in high-part.h"]),
], ids=["none", "header", "function", "object", "family"])
def test_misplaced_declaration_is_found(change, found):
    """A header without its source, and a function that the header of its source does not have."""
    assert circles.misplaced({**INNOCENT, **change}) == found


def test_declarations_of_the_kernel_are_its_own():
    """What stands in for a function of the kernel is declared in a header of the kernel's name."""
    files = {"crc.c": "int crc(void)\n{\n\treturn 1;\n}\n"}
    assert circles.misplaced(files, "int crc(void);\n") == []
    assert circles.misplaced(files, "int crc32(void);\n")


LAYERS = {
    "low/a.h": "int a(void);\n",
    "low/a.c": '#include "low/a.h"\n\nint a(void)\n{\n\treturn 1;\n}\n',
    "left/b.c": '#include "low/a.h"\n\nint b(void)\n{\n\treturn a();\n}\n',
    "right/c.c": "int c(void)\n{\n\treturn a();\n}\n",
    "d.c": '#include "left/b.h"\n\nint d(void)\n{\n\treturn b() + c();\n}\n',
}


@pytest.mark.parametrize("change, found", [
    ({}, []),
    ({"low/a.c": '#include "left/b.h"\n'}, ["low/a uses left/b"]),
    ({"low/a.c": '#include "../left/b.h"\n'}, ["low/a uses left/b"]),
    ({"low/a.c": '#include "../low/../d.h" /* as left/b.h */\n'}, ["low/a uses ./d"]),
    ({"low/a.c": "#include <left/b.h>\n"}, ["low/a uses left/b"]),
    ({"low/a.c": '  # include  "left/b.h"\n'}, ["low/a uses left/b"]),
    ({"low/a.c": '#include "a.h"\n#include <linux/bio.h>\n'}, []),
    ({"low/a.c": '#include "../../top/left/b.h"\n'},
     ['low/a.c includes "../../top/left/b.h", which is not found']),
    ({"low/a.c": '#include "b.h"\n'}, ['low/a.c includes "b.h", which is not found']),
    ({"low/a.c": "#include HIGH\n"}, ["low/a.c includes HIGH, which is not found"]),
    ({"low/a.c": "int a(void)\n{\n\treturn d();\n}\n"}, ["low/a uses ./d"]),
    ({"low/a.h": "int d(void);\n"}, []),
    ({"low/a.h": "int d(void);\nstatic inline int e(void)\n{\n\treturn d();\n}\n"},
     ["low/a uses ./d"]),
    ({"low/a.h": "static inline int e(void) { return d(); }\n"}, ["low/a uses ./d"]),
    ({"low/a.h": "#define e d\n"}, ["low/a uses ./d"]),
    ({"left/b.c": "int b(void)\n{\n\treturn c();\n}\n"}, ["left/b uses right/c"]),
    ({"odd/e.c": ""}, ["odd/e.c: its folder has no rank"]),
    ({"right/a.h": ""}, ["right/a.h: low/ has a file of this name"]),
], ids=["none", "header", "parent", "parents", "brackets", "spaces", "own-and-kernel", "outside",
        "no-file", "macro-name", "call", "declaration", "inline", "inline-line", "macro", "side",
        "folder", "name"])
def test_arrows_that_go_up(change, found):
    """Found is each use of what is not below."""
    ranks = (("low",), ("left", "right"), ("",))
    assert circles.upward({**LAYERS, **change}, ranks) == found


@pytest.mark.parametrize("line, found", [
    ('#include "elsewhere.h"', []),
    ("#include <unistd.h>", []),
    ('#include "../life/x.h"', ['a.c includes "../life/x.h", which is not found']),
    ("#include HEADER", ["a.c includes HEADER, which is not found"]),
], ids=["folder", "library", "parent", "macro-name"])
def test_climbing_include_is_found(line, found):
    """Where options of the compiler find other folders, only a plain name is let pass."""
    assert circles.climbing({"a.c": f"{line}\n"}) == found
