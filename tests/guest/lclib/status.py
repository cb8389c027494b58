# SPDX-License-Identifier: GPL-2.0-only
"""The parser of lc's status line."""


def parse(line):
    """`<start> <len> lc key value key value ...` as a dict; numbers become int."""
    words = line.split()
    if len(words) < 3 or words[2] != "lc":
        raise ValueError(f"not a status line of an lc device: {line!r}")
    pairs = words[3:]
    if len(pairs) % 2:
        raise ValueError(f"a key without a value in: {line!r}")
    fields = {}
    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
        if key in fields:
            raise ValueError(f"{key} twice in: {line!r}")
        fields[key] = int(value) if value.lstrip("-").isdigit() else value
    return fields
