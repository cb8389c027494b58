# SPDX-License-Identifier: GPL-2.0-only
"""Which files of C code use which, and whether any form a circle.

A unit is X.c with X.h.  It uses another one if it includes its header, or names a function or an
object that the other one defines for all.  All take {file name: text}, of one folder if nothing
else is said.
"""

import re

INCLUDE = re.compile(r'^#include "(?:\w+/)?([\w-]+)\.h"', re.M)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
# In kernel style what is defined for all begins in the first column, and so does its brace.
FUNCTION = re.compile(r"^(?!static\b|typedef\b)\w[\w \t*]*?\b(\w+)\([^;{}]*\)\n\{", re.M)
OBJECT = re.compile(r"^(?:const )?(?:struct )?\w+ \**(\w+)(?:\[\w*\])? = ", re.M)


def unit_of(name):
    """Of a file."""
    return name.rpartition(".")[0]


def code_of(text):
    """Without comments and strings."""
    return STRING.sub('""', COMMENT.sub("", text))


def definitions(files):
    """{name: unit} of the functions and objects that are not static."""
    found = {}
    for name, text in files.items():
        if name.endswith(".c"):
            code = code_of(text)
            for one in FUNCTION.findall(code) + OBJECT.findall(code):
                found[one] = unit_of(name)
    return found


def uses(files):
    """{unit: the units it uses}."""
    defined = definitions(files)
    units = {unit_of(name) for name in files}
    found = {unit: set() for unit in units}
    for name, text in files.items():
        unit = unit_of(name)
        found[unit] |= set(INCLUDE.findall(COMMENT.sub("", text))) & units
        if name.endswith(".c"):
            found[unit] |= {defined[word] for word in set(re.findall(r"\w+", code_of(text)))
                            if word in defined}
        found[unit].discard(unit)
    return found


def circle(arrows):
    """One circle in {unit: the units it uses}, from a unit back to itself; [] if there is none."""
    clean = set()

    def walk(unit, way):
        if unit in way:
            return way[way.index(unit):] + [unit]
        if unit in clean:
            return []
        for other in sorted(arrows.get(unit, ())):
            found = walk(other, [*way, unit])
            if found:
                return found
        clean.add(unit)
        return []

    for unit in sorted(arrows):
        found = walk(unit, [])
        if found:
            return found
    return []


def misplaced(files, kernels=""):
    """What is wrong with the names of headers: a line each.

    A header has the name of a .c file, and what that defines for all is declared there; what
    cmd-x.c defines may be declared in cmd.h.  @kernels: headers of the kernel's names, which
    declare what the kernel's do.
    """
    problems = [f"{name}: there is no {unit_of(name)}.c" for name in sorted(files)
                if name.endswith(".h") and f"{unit_of(name)}.c" not in files]
    for one, unit in sorted(definitions(files).items()):
        headers = [files.get(f"{stem}.h", "") for stem in (unit, unit.partition("-")[0])]
        if one != "main" and not any(re.search(rf"\b{one}\b", code_of(text))
                                     for text in (*headers, kernels)):
            problems.append(f"{unit}.c: {one} is not declared in {unit}.h")
    return problems


def upward(files, ranks):
    """Uses of what is not below: a line each.

    @files: {path: text}, in folders of one level.  @ranks: tuples of folders, from the lowest to
    the highest; a folder uses itself and lower ones, and "" is the top.  Names of units are unique
    over all folders.
    """
    rank = {folder: number for number, folders in enumerate(ranks) for folder in folders}
    home = {}
    problems = []
    for path in sorted(files):
        folder, _, name = path.rpartition("/")
        if folder not in rank:
            problems.append(f"{path}: its folder has no rank")
        elif home.setdefault(unit_of(name), folder) != folder:
            problems.append(f"{path}: {home[unit_of(name)]}/ has a file of this name")
    arrows = uses({path.rpartition("/")[2]: text for path, text in files.items()})
    for unit, folder in sorted(home.items()):
        for other in sorted(arrows[unit]):
            if home[other] != folder and rank[home[other]] >= rank[folder]:
                problems.append(f"{folder or '.'}/{unit} uses {home[other] or '.'}/{other}")
    return problems
