# SPDX-License-Identifier: GPL-2.0-only
"""Writes that are under way while the case goes on."""

import os
import threading

from . import wait
from .disk import Device
from .faulty import BLOCK


class Write(threading.Thread):
    """A direct write that is under way; `within` the block in bytes, if it is a part of one."""

    def __init__(self, path, block, data, fua=False, within=0):
        super().__init__(daemon=True)
        self.path, self.offset, self.data = path, block * BLOCK + within, data
        self.flags = os.RWF_DSYNC if fua else 0
        self.error = None
        self.start()

    def run(self):
        try:
            with Device(self.path) as raw:
                view = memoryview(raw.buffer)[:len(self.data)]
                view[:] = self.data
                assert os.pwritev(raw.handle, [view], self.offset, self.flags) == len(view)
        except OSError as error:
            self.error = error

    def over(self):
        """It ends, well or not; whether well."""
        self.join(wait.limit(120))
        assert not self.is_alive(), "a write does not end"
        return self.error is None

    def finish(self):
        """It ends well."""
        assert self.over(), self.error
