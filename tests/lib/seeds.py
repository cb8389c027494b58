# SPDX-License-Identifier: GPL-2.0-only
"""Inputs of the fuzzers that are worth keeping.

Those that once showed a bug are files with a name, in tests/fuzz/corpus/TARGET/.  The others,
which only reach what no other input reaches, are in one archive, tests/fuzz/seeds/TARGET.tar.xz.
"""

import hashlib
import io
import lzma
import pathlib
import tarfile

from . import host

CORPUS = host.TESTS / "fuzz/corpus"
SEEDS = host.TESTS / "fuzz/seeds"


def targets():
    """Which have seeds."""
    return sorted(path.name.removesuffix(".tar.xz") for path in SEEDS.glob("*.tar.xz"))


def archive(target):
    """Path of a target's archive."""
    return SEEDS / f"{target}.tar.xz"


def pack(target, folder):
    """Write a target's archive from the files of a folder; equal files give equal bytes."""
    known = {path.read_bytes() for path in (CORPUS / target).glob("*.bin")}
    inputs = {path.read_bytes() for path in pathlib.Path(folder).iterdir()} - known
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in sorted((hashlib.sha256(data).hexdigest()[:10], data)
                                 for data in inputs):
            entry = tarfile.TarInfo(f"{name}.bin")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    archive(target).write_bytes(lzma.compress(packed.getvalue(), preset=9))
    return len(inputs)


def unpack(target, folder):
    """All inputs of a target, with and without names, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in (CORPUS / target).glob("*.bin"):
        (folder / path.name).write_bytes(path.read_bytes())
    with tarfile.open(archive(target)) as tar:
        for entry in tar:
            (folder / pathlib.PurePath(entry.name).name).write_bytes(tar.extractfile(entry).read())
