# SPDX-License-Identifier: GPL-2.0-only
"""Numbered rules: where each one is stated, explained and cited.

An invariant is stated in the head of one header of the module or the tools, as a line
" *  XX1 Text", and explained in docs/design.rst, as "* **XX1** Text".  A hazard is a row of the
table there, a promise a term of docs/dm-lc.rst.  Comments cite all three in parentheses.

The name of an invariant may also be like X-a, or one letter.  One letter could be a word.  So two
spaces follow it where it is stated, and it is cited as an item of a list: (X) or (XX1, X).
"""

import collections
import re

NUMBER = r"[A-Z]{1,2}\d+"
LETTER = r"[A-Z]{1,2}-[a-z]"
STATED = re.compile(rf"^ \*  ({NUMBER}(?= )|{LETTER}(?= )|[A-Z](?=  )) {{1,2}}[A-Za-z`]", re.M)
EXPLAINED = re.compile(rf"^\* \*\*({NUMBER}|{LETTER}|[A-Z])\*\*", re.M)
HAZARD = re.compile(rf"^   \* - ({NUMBER})$", re.M)
PROMISE = re.compile(r"^(P\d) [A-Z]", re.M)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
CITED = re.compile(rf"\b{NUMBER}\b|(?<![\w-]){LETTER}(?![\w-])")
# After a word they hold the arguments of a function.
LIST = re.compile(r"(?<!\w)\(([^()]*)\)")


def cited(text):
    """The names in parentheses in the comments of a file."""
    found = set()
    for comment in COMMENT.findall(text):
        for inner in re.findall(r"\(([^()]*)\)", comment):
            found.update(CITED.findall(inner))
        for inner in LIST.findall(comment):
            found.update(item for item in re.split(r"[,;]\s*", inner)
                         if re.fullmatch("[A-Z]", item))
    return found


def problems(files, design, guide):
    """What is wrong; @files: names and texts, the others are texts."""
    stated = collections.defaultdict(list)
    for name, text in files.items():
        for number in STATED.findall(text):
            stated[number].append(name)
    explained = EXPLAINED.findall(design)
    hazards = HAZARD.findall(design)
    known = set(stated) | set(hazards) | set(PROMISE.findall(guide))
    found = [f"{number} is stated in {' and '.join(where)}"
             for number, where in stated.items() if len(where) > 1]
    found += [f"{number} is stated in {name}, not in a header"
              for number, where in stated.items() for name in where if name.endswith(".c")]
    found += [f"{number} is stated in {stated[number][0]} and not explained in design.rst"
              for number in stated if number not in explained]
    found += [f"{number} is explained in design.rst and stated nowhere"
              for number in explained if number not in stated]
    found += [f"{number} is twice in design.rst" for number, count
              in collections.Counter(explained + hazards).items() if count > 1]
    found += [f"{name} cites {number}, which is nowhere" for name, text in files.items()
              for number in sorted(cited(text) - known)]
    return found
