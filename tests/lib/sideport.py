# SPDX-License-Identifier: GPL-2.0-only
"""Boots that have one more port, over which a case tells events as they happen.

For data that is shown while the guest runs (the demo) or must not be lost if it hangs later (the
benchmark). Rates are measured in such boots, so their clock must run on while an emulated CPU
is busy.
"""

import json
import os
import pathlib
import socket
import threading

from . import vm


class Side(threading.Thread):
    """Takes the guest's events until QEMU hangs up; sends `first` to each client."""

    def __init__(self, name, take, first=None):
        super().__init__(daemon=True)
        self.port = name
        self.take = take
        self.first = first
        self.listener = socket.socket(socket.AF_UNIX)
        self.path = f"/tmp/{name}-{os.getpid()}"  # socket names must be short
        self.listener.bind(self.path)
        self.listener.listen(1)

    def run(self):
        """Until QEMU hangs up."""
        connection = self.listener.accept()[0]
        with connection, connection.makefile("rb") as lines:
            if self.first is not None:
                connection.sendall(json.dumps(self.first).encode() + b"\n")
            for line in lines:
                self.take(json.loads(line))

    def close(self):
        """No more."""
        self.listener.close()
        pathlib.Path(self.path).unlink(missing_ok=True)


class Boot(vm.Boot):
    """A boot with a Side, and with emulated disks as the caller wants them."""

    def __init__(self, *args, side, disks):
        super().__init__(*args)
        self.side = side
        self.disk_options = disks

    def start_recorder(self):
        """Both disks, of the sizes that the case asks for."""
        from disks import Disks  # pylint: disable=import-outside-toplevel
        sizes = {disk.name: disk.size for disk in self.cases[0].disks}
        self.recorder = Disks(**self.disk_options, **sizes).start()

    def command(self, path):
        """QEMU's command line and the port."""
        words = super().command(path)
        # With ACPI comes a clock that runs on while an emulated CPU is busy: rates need it.
        kernel = words.index("-append") + 1
        words[kernel] = words[kernel].replace(" acpi=off", "")
        return [*words,
                "-chardev", f"socket,id=side,path={self.side.path}",
                "-device", f"virtserialport,bus=harness.0,chardev=side,name={self.side.port}"]


def perform(boot, side):
    """Boot once, events included; returns the outcome of the only case."""
    side.start()
    try:
        outcome = boot.run()[boot.cases[0].name]
        side.join(10)
    finally:
        side.close()
    return outcome
