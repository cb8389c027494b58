# SPDX-License-Identifier: GPL-2.0-only
"""Images somebody damaged on purpose (tests/fuzz/mkimages.c), activated by the module."""

import contextlib
import json
import pathlib
import shutil
import struct

from lclib import case, dm, sh
from lclib.disk import Device, loop

MKIMAGES = "/opt/dm-lc/bin/mkimages"
AT_ONCE = 25                    # images in the guest's memory
STEP = 64 << 10
COPIES = (0, 512 << 10)         # front copies of the superblock
VOLUME_SECTORS = 248            # their field
ANY_LENGTH = 2048


def make(folder, count, seed):
    """Images 0 to count - 1 of a seed; what the manifest says of each."""
    sh.run(MKIMAGES, folder, "--count", count, "--seed", seed)
    lines = (folder / "manifest.jsonl").read_text(encoding="ascii").splitlines()
    return [json.loads(line) for line in lines]


def volume_length(path):
    """Sectors of the volume by either front copy, damaged or not; never nothing."""
    with open(path, "rb") as image:
        for copy in COPIES:
            image.seek(copy)
            block = image.read(4096)
            if block.startswith(b"dmlc-sb"):
                length = struct.unpack_from("<Q", block, VOLUME_SECTORS)[0]
                if 0 < length < 1 << 40:
                    return length
    return ANY_LENGTH


def use(path):
    """Read all of it, which fails where sectors are lost; write here and there."""
    with Device(path) as volume:
        for at in range(0, volume.size, STEP):
            with contextlib.suppress(OSError):
                volume.read(at, min(STEP, volume.size - at))
        with contextlib.suppress(OSError):
            for at in range(0, volume.size - 4096, volume.size // 8 // 4096 * 4096 + 4096):
                volume.write(at, b"\x5a" * 4096)
            volume.flush()


def activate(folder, image):
    """Start, use, drain and stop one image; True if it started."""
    length = volume_length(folder / image["ssd"])
    with loop(folder / image["ssd"]) as ssd, loop(folder / image["hdd"]) as hdd:
        table = dm.table(dm.lc(hdd, ssd, length, ssd_patience_ms=0))
        code, text = sh.result("dmsetup", "create", "lc0", input=table)
        if code:
            assert image["changes"], f"a good image was refused: {image}\n{text}"
            return False
        try:
            use("/dev/mapper/lc0")
            sh.run("dmsetup", "status", "lc0")
            sh.result("dmsetup", "message", "lc0", "0", "writeback")
        finally:
            sh.run("dmsetup", "remove", "lc0")
    return True


def activate_all(ctx, count):
    """Each of them ends, and not all of them alike."""
    started = refused = 0
    folder = pathlib.Path("/tmp/images")
    for turn in range(count // AT_ONCE):
        for image in make(folder, AT_ONCE, ctx.seed + turn):
            if activate(folder, image):
                started += 1
            else:
                refused += 1
        shutil.rmtree(folder)
    ctx.figure("started", started)
    ctx.figure("refused", refused)
    assert started and refused


@case(timeout=240, memory="1G", sampled=3)
def some_images(ctx):
    """A few dozen hostile images: refused with a message or started, nothing else."""
    activate_all(ctx, 50)


@case(kernels=("debug",), timeout=3000, memory="1G", long=True)
def thousand_images(ctx):
    """A thousand hostile images with KASAN."""
    activate_all(ctx, 1000)
