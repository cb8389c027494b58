# SPDX-License-Identifier: GPL-2.0-only
"""Which files of C code use which, and whether any form a circle.

A unit is X.c with X.h.  It uses another one if it includes its header, or names a function or an
object that the other one defines for all.  All take {path: text}, with paths below one top.  An
include is looked for beside its file first, then from the top.
"""

import posixpath
import re

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[ \t]*(.*?)[ \t]*$", re.M)
QUOTED = re.compile(r'"[^"]+"')
IN_BRACKETS = re.compile(r"<[^>]+>")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
# In kernel style what is defined for all begins in the first column, and so does its brace.
FUNCTION = re.compile(r"^(?!static\b|typedef\b)\w[\w \t*]*?\b(\w+)\([^;{}]*\)\n\{", re.M)
OBJECT = re.compile(r"^(?:const )?(?:struct )?\w+ \**(\w+)(?:\[\w*\])? = ", re.M)
# To declare a function or an object is not to use it.
DECLARATION = re.compile(r"^(?!static\b)\w[^;{}#]*;", re.M)


def unit_of(name):
    """Of a file."""
    return name.rpartition(".")[0]


def code_of(text):
    """Without comments, strings and what is included."""
    return STRING.sub('""', INCLUDE.sub("", COMMENT.sub("", text)))


def definitions(files):
    """{name: unit} of the functions and objects that are not static."""
    found = {}
    for name, text in files.items():
        if name.endswith(".c"):
            code = code_of(text)
            for one in FUNCTION.findall(code) + OBJECT.findall(code):
                found[one] = unit_of(name)
    return found


def includes(files):
    """(path, what it includes, the unit of that or None), for each include.

    None stands for what is not in @files.
    """
    units = {unit_of(path) for path in files}
    for path, text in files.items():
        for what in INCLUDE.findall(COMMENT.sub("", text)):
            name = what[1:-1]
            places = []
            if QUOTED.fullmatch(what):
                places = [posixpath.join(posixpath.dirname(path), name), name]
            elif IN_BRACKETS.fullmatch(what):
                places = [name]
            found = [unit_of(posixpath.normpath(place)) for place in places]
            yield path, what, next((unit for unit in found if unit in units), None)


def unresolved(files):
    """Includes of which nobody can say what they use: a line each.

    A name in brackets that is not in @files is the kernel's or the library's.
    """
    return [f"{path} includes {what}, which is not found" for path, what, unit in includes(files)
            if not unit and not IN_BRACKETS.fullmatch(what)]


def climbing(files):
    """As unresolved(), but only what leaves the top or is no plain name.

    For files that may include those of other folders, found through the compiler's options.
    """
    return [f"{path} includes {what}, which is not found" for path, what, unit in includes(files)
            if not unit and (not re.fullmatch(r'["<].*[">]', what)
                             or ".." in what[1:-1].split("/"))]


def uses(files):
    """{unit: the units it uses}."""
    defined = definitions(files)
    found = {unit_of(path): set() for path in files}
    for path, _, unit in includes(files):
        if unit:
            found[unit_of(path)].add(unit)
    for path, text in files.items():
        code = code_of(text)
        if path.endswith(".h"):
            code = DECLARATION.sub("", code)
        found[unit_of(path)] |= {defined[word] for word in set(re.findall(r"\w+", code))
                                 if word in defined}
    for unit, others in found.items():
        others.discard(unit)
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

    @files: in folders of one level.  @ranks: tuples of folders, from the lowest to the highest; a
    folder uses itself and lower ones, and "" is the top.  Names of units are unique over all
    folders.  What is included in quotes must be in @files.
    """
    rank = {folder: number for number, folders in enumerate(ranks) for folder in folders}
    home = {}
    problems = unresolved(files)
    for path in sorted(files):
        folder, _, name = path.rpartition("/")
        if folder not in rank:
            problems.append(f"{path}: its folder has no rank")
        elif home.setdefault(unit_of(name), folder) != folder:
            problems.append(f"{path}: {home[unit_of(name)]}/ has a file of this name")
    for unit, others in sorted(uses(files).items()):
        folder = posixpath.dirname(unit)
        for other in sorted(others):
            above = posixpath.dirname(other)
            if above != folder and rank.get(above, 0) >= rank.get(folder, len(ranks)):
                problems.append(f"{unit if folder else f'./{unit}'} uses "
                                f"{other if above else f'./{other}'}")
    return problems
