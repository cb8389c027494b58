# SPDX-License-Identifier: GPL-2.0-only
"""The module's tracepoints, as its header has them."""

import re

from . import host


def events():
    """{name: its fields} of all."""
    source = (host.TOP / "dm-lc/store/trace.h").read_text(encoding="ascii")
    made = {name: set(re.findall(r"__field\(\w+, (\w+)\)", body)) for name, body in re.findall(
        r"^(?:TRACE_EVENT|DECLARE_EVENT_CLASS)\((lc_\w+),\n(.*?)^\);", source, re.M | re.S)}
    single = re.findall(r"^TRACE_EVENT\((lc_\w+),", source, re.M)
    of_classes = re.findall(r"^DEFINE_EVENT\((lc_\w+), (lc_\w+),", source, re.M)
    return {name: made[name] for name in single} | {name: made[kind] for kind, name in of_classes}
