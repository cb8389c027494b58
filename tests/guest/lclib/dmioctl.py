# SPDX-License-Identifier: GPL-2.0-only
"""Device mapper without programs: for cases that start volumes by the hundred."""

import errno
import fcntl
import os
import struct

from . import wait

HEADER = struct.Struct("<3I7iQ128s129s7x")
TARGET = struct.Struct("<QQiI16s")
MESSAGE = struct.Struct("<Q")
SIZE = 16384
CREATE, REMOVE, SUSPEND, INFO, LOAD, CLEAR, STATUS, SEND = 3, 4, 6, 7, 9, 10, 12, 14
RESUME = SUSPEND
# Flags of the header.
READ_ONLY, SUSPENDED, TABLE, INACTIVE, NO_FS, NO_FLUSH, OF_INACTIVE = (
    1 << 0, 1 << 1, 1 << 4, 1 << 6, 1 << 10, 1 << 11, 1 << 12)
CODE = 3 << 30 | HEADER.size << 16 | 0xfd << 8


def request(name, data=b"", targets=0, flags=0):
    """What an ioctl is given, and answers in."""
    buffer = bytearray(SIZE)
    HEADER.pack_into(buffer, 0, 4, 0, 0, SIZE, HEADER.size, targets, 0, flags, 0, 0, 0,
                     name.encode(), b"")
    buffer[HEADER.size:HEADER.size + len(data)] = data
    return buffer


def answer(buffer):
    """(number of the device, what came back) in a request that was sent."""
    fields = HEADER.unpack_from(buffer)
    return fields[10], bytes(buffer[fields[4]:])


def table(target):
    """A table of that target alone, for LOAD; args may hold any bytes (surrogateescape)."""
    words = " ".join(target.args).encode(errors="surrogateescape")
    data = words.ljust(len(words) // 8 * 8 + 8, b"\0")
    return TARGET.pack(0, target.length, 0, TARGET.size + len(data), target.kind.encode()) + data


def message(text):
    """A message to the target at sector 0, for SEND; text may be bytes."""
    return MESSAGE.pack(0) + (text if isinstance(text, bytes) else text.encode()) + b"\0"


class Control:
    """/dev/mapper/control; errors are OSError."""

    def __init__(self):
        self.handle = os.open("/dev/mapper/control", os.O_RDWR | os.O_CLOEXEC)

    def call(self, command, name, data=b"", targets=0, flags=0):
        """One ioctl; (number of the device, what came back)."""
        buffer = request(name, data, targets, flags)
        self.send(command, buffer)
        return answer(buffer)

    def send(self, command, buffer):
        """One ioctl with what request() made, and nothing around it."""
        fcntl.ioctl(self.handle, CODE | command, buffer, True)

    def create(self, name, target):
        """A device with a table of one target, running; the path of its node."""
        number, _ = self.call(CREATE, name)
        try:
            self.call(LOAD, name, table(target), targets=1)
            self.call(RESUME, name)
        except OSError:
            self.call(REMOVE, name)
            raise
        return f"/dev/dm-{os.minor(number)}"

    def status(self, name, flags=0):
        """The status line of the only target, as dmsetup prints it; TABLE: the table's."""
        _, data = self.call(STATUS, name, flags=flags)
        start, length, _, _, kind = TARGET.unpack_from(data)
        words = data[TARGET.size:].partition(b"\0")[0].decode()
        return f"{start} {length} {kind.rstrip(bytes(1)).decode()} {words}"

    def message(self, name, text):
        """A message to the target at sector 0."""
        self.call(SEND, name, message(text))

    def remove(self, name):
        """Remove the device; a task that has just closed it may not be done with it yet."""
        def gone():
            try:
                self.call(REMOVE, name)
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                return False
            return True
        wait.until(gone, 60, f"{name} is not in use any more")
