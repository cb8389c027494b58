# SPDX-License-Identifier: GPL-2.0-only
"""What docs/dm-lc.rst tells an administrator to type, taken from there and typed."""

import contextlib
import pathlib
import re
import textwrap

from lclib import case, sh
from lclib.disk import drop_caches
from lclib.lc import LcStack, bare_volume
from lclib.registry import Disk

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
GUIDE = pathlib.Path(__file__).parents[2] / "dm-lc.rst"
TITLE = "A disk that was changed without its cache"
MOUNT = pathlib.Path("/mnt/volume")
# So that a bare mount changes nothing that the volume has not changed, but the tables' start.
MKFS = ("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0")


def section():
    """The text of the way out, up to the next section."""
    text = GUIDE.read_text(encoding="utf-8")
    return re.search(rf"\n{TITLE}\n-+\n(.*?)\n[^\n]+\n[-=]{{3,}}\n", text, re.S)[1]


def blocks_of(text):
    """Its blocks of commands, as they stand there."""
    return [textwrap.dedent(block).strip()
            for block in re.findall(r"::\n\n((?: {6}.*\n|\n)+)", text)]


class Typist:
    """Types what the guide says, with this machine's devices and numbers in place of its own."""

    def __init__(self, ctx):
        dump = sh.run("lc-dump", ctx.ssd)
        self.sectors, self.offset = (
            int(re.search(rf"^ *{name}\W+(\d+)", dump, re.M)[1])
            for name in ("volume_sectors", "data_offset"))
        self.moved = "moved_head" in dump
        self.cow = None
        self.names = (("/dev/nvme0n1", ctx.ssd), ("/dev/sdb", ctx.hdd),
                      ("VOLUME_SECTORS", str(self.sectors)), ("REST", str(self.sectors - 2048)))

    def type(self, text, code=0):
        """In a shell that remembers $cow; returns what is printed."""
        for name, here in self.names:
            assert name != here
            text = re.sub(rf"{name}\b", here, text)
        script = f"cow={self.cow or ''}\nset -e\n{text}\nset +e\necho \"cow=$cow\""
        printed = sh.run("sh", "-c", script, code=code)
        found = re.search(r"^cow=(\S+)$", printed, re.M)
        self.cow = found and found[1] or self.cow
        return printed


@contextlib.contextmanager
def places():
    """/srv and /mnt to write to."""
    sh.run("modprobe", "loop")
    for path in "/srv", "/mnt":
        sh.run("mount", "-t", "tmpfs", "tmpfs", path)
    for name in "view", "disk", "volume":
        pathlib.Path("/mnt", name).mkdir()
    try:
        yield
    finally:
        # Lazily: what went wrong must not be hidden by a file that is still in use.
        sh.run("umount", "--lazy", "/srv", "/mnt")


@contextlib.contextmanager
def mounted(path):
    """The file system of the volume, or of the bare disk."""
    sh.run("mount", path, MOUNT)
    try:
        yield MOUNT
    finally:
        sh.run("umount", MOUNT)


def changed_disk(ctx, layout):
    """A clean stop with dirty data; then the bare disk is mounted and written to."""
    stack = LcStack(ctx.hdd, ctx.ssd, format=layout, writeback="off")
    with stack as lc:
        sh.run(*MKFS, lc.path)
        with mounted(lc.path) as root:
            (root / "both").write_bytes(b"both" * 50_000)
        lc.drain()
        with mounted(lc.path) as root:
            (root / "in-cache").write_bytes(b"kept" * 100_000)
    with bare_volume(ctx.hdd, bool(layout)) as bare, mounted(bare.path) as root:
        (root / "on-disk").write_bytes(b"newer" * 10_000)
    drop_caches()
    code, said = sh.result("lc-resume", "lc0", ctx.ssd, ctx.hdd)
    assert code, said
    said = sh.run("dmesg")
    assert "was changed while the cache was detached" in said
    assert TITLE in GUIDE.read_text(encoding="utf-8")
    return stack


def compared(typist, lines):
    """Step 4: both sides are mounted, and diff names the file that only one of them has."""
    fsck, *mounts, diff = lines.splitlines()
    typist.type(fsck, code=None)    # what it finds is for the administrator to judge
    for line in mounts:
        typist.type(line)
    printed = typist.type(diff, code=None)
    assert "Only in /mnt/view: in-cache" in printed, printed
    assert "Only in /mnt/disk: on-disk" in printed, printed
    found = pathlib.Path("/mnt/view/in-cache").read_bytes()
    assert found == b"kept" * 100_000
    assert pathlib.Path("/mnt/disk/on-disk").read_bytes() == b"newer" * 10_000
    return found


def take_away(typist, text):
    """What step 6 has in its sentence: the devices go."""
    said = re.findall(r"``((?:umount|dmsetup|losetup) [^`]+)``", text.partition("\n6. ")[2])
    assert [line.split()[0] for line in said] == ["umount", "dmsetup", "losetup"], said
    typist.type("\n".join(said))


def extracted(typist, script):
    """Step 1: the image is sparse and as large as the volume."""
    typist.type(script)
    image = pathlib.Path("/srv/music.img").stat()
    assert image.st_size == typist.sectors * 512, image
    assert 0 < image.st_blocks < typist.sectors, image
    assert "data" in pathlib.Path("/srv/music.map").read_text(encoding="ascii")


@case(kernels=("stock",), disks=PAIR, timeout=180)
def way_out_of_a_changed_disk(ctx):
    """The guide's lines bring out what only the cache has; the disk is kept, and paired anew."""
    text = section()
    extract, linear, _, lay, look, anew = blocks_of(text)
    with places():
        lc = changed_disk(ctx, ())
        typist = Typist(ctx)
        assert typist.offset == 2048 * 512 and not typist.moved, vars(typist)
        extracted(typist, extract)
        typist.type(linear)
        typist.type(lay)
        only_there = compared(typist, look)
        take_away(typist, text)
        typist.type(anew)
        lc.activate()
        with mounted(lc.path) as root:
            (root / "in-cache").write_bytes(only_there)
            assert (root / "both").read_bytes() == b"both" * 50_000
            assert (root / "on-disk").read_bytes() == b"newer" * 10_000
        lc.remove()


@case(kernels=("stock",), disks=PAIR, timeout=180)
def way_out_of_a_changed_disk_in_place(ctx):
    """The same in place, by the lines for a moved head; the view is kept, and paired anew."""
    text = section()
    extract, _, linear, lay, look, anew = blocks_of(text)
    with places():
        lc = changed_disk(ctx, ("--in-place",))
        typist = Typist(ctx)
        assert typist.moved, vars(typist)
        extracted(typist, extract)
        typist.type(linear)
        typist.type(lay)
        compared(typist, look)
        take_away(typist, text)
        # Step 5: the loop of step 3, with music-disk as its target.
        typist.type(linear.replace(" --readonly", ""))
        typist.type(re.search(r"^while .*", lay, re.M | re.S)[0].replace("music-view",
                                                                         "music-disk"))
        typist.type("dmsetup remove music-disk")
        typist.type(anew.replace("lc-format ", "lc-format --in-place "))
        lc.activate()
        with mounted(lc.path) as root:
            assert (root / "both").read_bytes() == b"both" * 50_000
            assert (root / "in-cache").read_bytes() == b"kept" * 100_000
        lc.remove()
