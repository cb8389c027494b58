# SPDX-License-Identifier: GPL-2.0-only
"""Sparse images of immutable 4 KiB chunks, and writes cut to fit them.

An image is a plain dict {chunk number: bytes}; a missing chunk reads as zeros.
Because chunks are never changed in place, two images share what they have in
common, a snapshot is a copy of the dict, and a recorded write costs one copy of
its data however many images it is later applied to.
"""

from __future__ import annotations

import hashlib

SECTOR = 512
CHUNK = 4096
ZERO = bytes(CHUNK)

Chunks = dict[int, bytes]
Piece = tuple[int, int, bytes]  # chunk number, start within it, data


class Write:
    """One recorded write or zeroing; immutable but for its order and durability."""

    __slots__ = ("order", "offset", "length", "pieces", "hole", "durable")

    def __init__(
        self, offset: int, length: int, pieces: list[Piece], hole: tuple[int, int] | None = None
    ):
        self.order = 0
        self.offset = offset
        self.length = length
        self.pieces = pieces
        self.hole = hole  # whole chunks [first, end) that become zero
        self.durable = False  # FUA: no crash may take it back

    @classmethod
    def of_data(cls, offset: int, buf) -> Write:
        """A write of @buf (anything with the buffer protocol)."""
        length = len(buf)
        if length == CHUNK and not offset % CHUNK:
            return cls(offset, length, [(offset // CHUNK, 0, bytes(buf))])
        pieces = []
        view = memoryview(buf)
        pos = 0
        while pos < length:
            chunk, start = divmod(offset + pos, CHUNK)
            n = min(CHUNK - start, length - pos)
            pieces.append((chunk, start, view[pos : pos + n].tobytes()))
            pos += n
        return cls(offset, length, pieces)

    @classmethod
    def of_zeros(cls, offset: int, length: int) -> Write:
        """A zeroing of any size, in constant space."""
        end = offset + length
        first = -(-offset // CHUNK)
        last = end // CHUNK
        if first > last:  # inside one chunk
            return cls(offset, length, [(last, offset % CHUNK, bytes(length))])
        pieces = []
        if offset % CHUNK:
            pieces.append((first - 1, offset % CHUNK, bytes(first * CHUNK - offset)))
        if end % CHUNK:
            pieces.append((last, 0, bytes(end % CHUNK)))
        return cls(offset, length, pieces, (first, last) if first < last else None)

    def apply(self, chunks: Chunks) -> None:
        """Put this write into an image."""
        if self.hole:
            for chunk in _chunks_in(chunks, *self.hole):
                del chunks[chunk]
        for chunk, start, data in self.pieces:
            if len(data) == CHUNK:
                chunks[chunk] = data
            else:
                old = chunks.get(chunk, ZERO)
                chunks[chunk] = old[:start] + data + old[start + len(data) :]

    def share(self, src: Chunks, dst: Chunks) -> None:
        """Make what this write touched the same in @dst as it is in @src."""
        if self.hole:
            for chunk in _chunks_in(dst, *self.hole):
                del dst[chunk]
            for chunk in _chunks_in(src, *self.hole):
                dst[chunk] = src[chunk]
        for chunk, _, _ in self.pieces:
            data = src.get(chunk)
            if data is None:
                dst.pop(chunk, None)
            else:
                dst[chunk] = data

    def part(self, first: int, end: int) -> Write:
        """The sectors [first, end) of this write, counted from its own start."""
        offset = self.offset + first * SECTOR
        length = (end - first) * SECTOR
        if self.hole or not self.pieces:
            return Write.of_zeros(offset, length)
        data = b"".join(piece[2] for piece in self.pieces)
        return Write.of_data(offset, memoryview(data)[first * SECTOR : end * SECTOR])


def _chunks_in(chunks: Chunks, first: int, end: int) -> list[int]:
    """Allocated chunks in [first, end), in whichever way visits fewer of them."""
    if end - first <= len(chunks):
        return [c for c in range(first, end) if c in chunks]
    return [c for c in chunks if first <= c < end]


def read_into(chunks: Chunks, offset: int, buf) -> None:
    """Fill @buf from an image."""
    length = len(buf)
    if length == CHUNK and not offset % CHUNK:
        buf[:] = chunks.get(offset // CHUNK, ZERO)
        return
    pos = 0
    while pos < length:
        chunk, start = divmod(offset + pos, CHUNK)
        n = min(CHUNK - start, length - pos)
        data = chunks.get(chunk, ZERO)
        buf[pos : pos + n] = data if n == CHUNK else data[start : start + n]
        pos += n


def read(chunks: Chunks, offset: int, length: int) -> bytes:
    """A range of an image as bytes."""
    buf = bytearray(length)
    read_into(chunks, offset, memoryview(buf))
    return bytes(buf)


def digest(chunks: Chunks) -> str:
    """Hash of an image's content; chunks of zeros count as not written."""
    total = hashlib.sha256()
    for chunk in sorted(chunks):
        data = chunks[chunk]
        if data != ZERO:
            total.update(chunk.to_bytes(8, "little"))
            total.update(data)
    return total.hexdigest()
