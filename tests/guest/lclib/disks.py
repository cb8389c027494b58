# SPDX-License-Identifier: GPL-2.0-only
"""The guest's side of the emulated disks: cut the power, inject faults, count commands.

Requests go to the host over a virtio-serial port (tests/disks/control.py). What they do
to the disks happens behind the kernel's back: nothing may be cached when it does.
"""

import itertools
import json
import os
import pathlib
import select

PORT = "dmlc.disks"


class Refused(Exception):
    """The disks did not do what was asked."""


def find_port(name=PORT):
    """The device of the port."""
    for entry in pathlib.Path("/sys/class/virtio-ports").glob("*/name"):
        if entry.read_text(encoding="ascii").strip() == name:
            return f"/dev/{entry.parent.name}"
    raise LookupError(f"no port named {name}")


class Disks:
    """`disks.arm(after_commands=9)` asks for "arm"; '_' stands for '-'."""

    def __init__(self, path=None, timeout=120):
        self.port = os.open(path or find_port(), os.O_RDWR | os.O_CLOEXEC)
        self.timeout = timeout
        self.tags = itertools.count(1)
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Give the port back: one may hold it at a time."""
        os.close(self.port)

    def request(self, do, **args):
        """Send one request, return its reply."""
        tag = f"{os.getpid()}.{next(self.tags)}"
        # A line break first: an earlier user may have left half a line.
        data = b"\n" + json.dumps({"do": do, "tag": tag, **args}).encode() + b"\n"
        while data:
            data = data[os.write(self.port, data) :]
        while True:
            reply = json.loads(self.line(do))
            if reply.pop("tag", None) == tag:
                break  # anything else answers an earlier user
        if not reply.pop("ok"):
            raise Refused(f"{do}: {reply['error']}")
        return reply

    def line(self, do):
        """The next line from the host."""
        while b"\n" not in self.rest:
            if not select.select([self.port], [], [], self.timeout)[0]:
                raise Refused(f"{do}: no answer within {self.timeout} s")
            part = os.read(self.port, 65536)
            if not part:
                raise Refused(f"{do}: the host hung up")
            self.rest += part
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def __getattr__(self, name):
        return lambda **args: self.request(name.replace("_", "-"), **args)

    def power(self):
        """Whether the disks have power."""
        return self.state()["power"] == "on"
