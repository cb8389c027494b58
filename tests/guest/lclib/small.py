# SPDX-License-Identifier: GPL-2.0-only
"""A small volume with known data, driven by ioctls: for cases that start it by the hundred."""

import contextlib
import errno
import os
import struct

from . import dm, sh, status
from .disk import MIB
from .disk import Device as Raw
from .dmioctl import (
    CLEAR,
    CREATE,
    INFO,
    LOAD,
    NO_FS,
    RESUME,
    SUSPEND,
    SUSPENDED,
    TABLE,
    Control,
    request,
    table,
)
from .pattern import Model

NAME = "lc0"
SSD, HDD = 5 * MIB, 8 * MIB
SECTORS = 512


class Ask:
    """An ioctl that can be sent again, though the kernel answers in what it was given."""

    def __init__(self, control, command, buffer):
        self.control = control
        self.command = command
        self.asked = bytes(buffer)
        self.buffer = buffer

    def rewind(self):
        """Before each sending."""
        self.buffer[:] = self.asked

    def __call__(self):
        self.control.send(self.command, self.buffer)


class Volume:
    """A volume on pieces of the disks, driven by ioctls, whose first sectors are known."""

    def __init__(self, ctx, segment="64K", ssd=SSD):
        self.ctx = ctx
        self.control = Control()
        self.disks = contextlib.ExitStack()
        self.cache = dm.Device("small_ssd", dm.linear(ctx.ssd, ssd // 512))
        self.backing = dm.Device("small_hdd", dm.linear(ctx.hdd, HDD // 512))
        self.segment = segment
        self.length = (HDD - MIB) // 512
        self.path = ""
        self.model = None

    def __enter__(self):
        for disk in (self.cache, self.backing):
            self.disks.enter_context(disk)
            with disk.open() as raw:
                raw.wipe()
        sh.run("lc-format", "--force=roles", f"--segment-size={self.segment}", "--backing",
               self.backing.path, self.cache.path)
        self.create()
        self.start()
        with self.open() as raw:
            self.model = Model(raw, self.ctx.seed, count=SECTORS)
            self.model.write(0, SECTORS)  # an earlier case may have left something
            for _ in range(40):
                self.model.write(*self.model.pick(64))
            raw.flush()
        return self

    def __exit__(self, kind, *_):
        if kind:
            sh.result("dmsetup", "remove", "--force", NAME)
        else:
            self.remove()
        self.disks.close()

    def target(self, **options):
        """Few buffers, nothing in the background."""
        return dm.lc(self.backing.path, self.cache.path, self.length,
                     **{"buffers": 4, "writeback_batch": 64, "writeback_depth": 1,
                        "idle_seal_ms": 0, "writeback": "off", **options})

    def table(self, **options):
        """That, as LOAD takes it."""
        return table(self.target(**options))

    def ask(self, command, data=b"", targets=0, flags=0):
        """An ioctl ready to be sent, any number of times."""
        return Ask(self.control, command, request(NAME, data, targets, flags))

    def create(self):
        """A device without a table."""
        number, _ = self.control.call(CREATE, NAME)
        self.path = f"/dev/dm-{os.minor(number)}"

    def load(self, **options):
        """A table into the inactive slot."""
        self.control.call(LOAD, NAME, self.table(**options), targets=1)

    def start(self):
        """The device runs."""
        self.load()
        self.resume()

    def resume(self):
        """Takes the loaded table."""
        self.control.call(RESUME, NAME)

    def suspend(self):
        """As dmsetup does."""
        self.control.call(SUSPEND, NAME, flags=SUSPENDED | NO_FS)

    def flags(self):
        """Of the device."""
        buffer = request(NAME)
        self.control.send(INFO, buffer)
        return struct.unpack_from("<I", buffer, 28)[0]

    def exists(self):
        """Whether device mapper knows it."""
        try:
            self.flags()
        except OSError as error:
            assert error.errno == errno.ENXIO, error
            return False
        return True

    def clear(self):
        """Nothing in the inactive slot."""
        self.control.call(CLEAR, NAME)

    def remove(self):
        """A clean stop if it runs."""
        self.control.remove(NAME)

    def open(self):
        """For direct I/O."""
        return Raw(self.path)

    def fields(self):
        """The status."""
        return status.parse(self.control.status(NAME))

    def check(self):
        """All that was written is there; nothing was lost on the way."""
        fields = self.fields()
        assert fields["mode"] == "rw" and not fields["lost"] and not fields["refused"], fields
        with self.open() as raw:
            self.model.check(device=raw)

    def check_bare(self):
        """The same of what is on the hard disk, after a stop."""
        with Raw(self.backing.path) as raw:
            self.model.check(device=raw, shift=MIB // 512)

    def line(self, flags=0):
        """The table; OF_INACTIVE: that of the inactive slot."""
        return self.control.status(NAME, TABLE | flags)
