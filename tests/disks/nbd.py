# SPDX-License-Identifier: GPL-2.0-only
"""A small NBD client, so that the disks can be tested without a VM or other packages.

Fixed newstyle handshake with NBD_OPT_GO, simple replies. send() and receive() allow any
number of commands in flight. Not supported: TLS, structured replies, block status.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct

READ, WRITE, DISC, FLUSH, TRIM, CACHE, ZEROES = range(7)
FUA = 1
_OPT_GO = 7
_REP_ACK, _REP_INFO = 1, 3
_REQUEST = struct.Struct(">IHHQQI")
_REPLY = struct.Struct(">IIQ")


class NbdError(OSError):
    """A command failed on the server's side."""


class Client:
    """One connection to one export."""

    def __init__(self, path: str, export: str, timeout: float = 60):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        self._socket.connect(str(path))
        self._handle = 0
        self._reads: dict[int, int] = {}
        self.size = 0
        self._handshake(export.encode())

    def _exactly(self, n: int) -> bytearray:
        buf = bytearray(n)
        view = memoryview(buf)
        while view:
            got = self._socket.recv_into(view)
            if not got:
                raise ConnectionError("NBD server hung up")
            view = view[got:]
        return buf

    def _handshake(self, export: bytes) -> None:
        magic, option_magic, _ = struct.unpack(">8s8sH", self._exactly(18))
        if (magic, option_magic) != (b"NBDMAGIC", b"IHAVEOPT"):
            raise ConnectionError("not an NBD server")
        body = struct.pack(">I", len(export)) + export + struct.pack(">H", 0)
        option = b"IHAVEOPT" + struct.pack(">II", _OPT_GO, len(body)) + body
        self._socket.sendall(struct.pack(">I", 3) + option)
        while True:
            _, _, kind, length = struct.unpack(">QIII", self._exactly(20))
            data = self._exactly(length)
            if kind == _REP_ACK:
                return
            if kind != _REP_INFO:
                raise ConnectionError(f"export refused: {bytes(data[4:]).decode(errors='replace')}")
            if struct.unpack_from(">H", data)[0] == 0:
                self.size, self.flags = struct.unpack_from(">QH", data, 2)

    def send(self, kind: int, offset: int = 0, length: int = 0, data=b"", flags: int = 0) -> int:
        """Send a command without waiting; returns its handle."""
        self._handle += 1
        if kind == READ:
            self._reads[self._handle] = length
        header = _REQUEST.pack(0x25609513, flags, kind, self._handle, offset, length or len(data))
        if len(data) > 65536:
            self._socket.sendall(header)
            self._socket.sendall(data)
        else:
            self._socket.sendall(header + bytes(data))
        return self._handle

    def receive(self) -> tuple[int, int, bytearray]:
        """The next reply: handle, errno (0: success), data."""
        _, error, handle = _REPLY.unpack(self._exactly(_REPLY.size))
        length = self._reads.pop(handle, 0)
        return handle, error, self._exactly(length) if length and not error else bytearray()

    def _command(self, *args, **kwargs) -> bytearray:
        handle = self.send(*args, **kwargs)
        answered, error, data = self.receive()
        if answered != handle:
            raise ConnectionError("reply to another command: do not mix with send()")
        if error:
            raise NbdError(error, os.strerror(error))
        return data

    def read(self, offset: int, length: int) -> bytes:
        """READ."""
        return bytes(self._command(READ, offset, length))

    def write(self, offset: int, data, fua: bool = False) -> None:
        """WRITE."""
        self._command(WRITE, offset, data=data, flags=FUA if fua else 0)

    def flush(self) -> None:
        """FLUSH."""
        self._command(FLUSH)

    def trim(self, offset: int, length: int) -> None:
        """TRIM."""
        self._command(TRIM, offset, length)

    def zero(self, offset: int, length: int) -> None:
        """WRITE ZEROES."""
        self._command(ZEROES, offset, length)

    def close(self) -> None:
        """Disconnect."""
        with contextlib.suppress(OSError):
            self.send(DISC)
        self._socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc) -> None:
        self.close()
