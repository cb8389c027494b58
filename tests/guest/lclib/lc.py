# SPDX-License-Identifier: GPL-2.0-only
"""An lc volume over two devices, built with the project's own tools."""

from . import dm, sh, status, wait
from .disk import MIB, image, put
from .disk import Device as Raw

MIB_SECTORS = 2048


def bare_volume(backing, in_place, name="bare"):
    """The volume's places on the backing device, without the cache; see dm-lc/format/place.h."""
    length = dm.sectors(backing) // 8 * 8 - MIB_SECTORS
    if not in_place:
        return dm.Device(name, dm.linear(backing, length, MIB_SECTORS))
    return dm.Device(name, dm.linear(backing, MIB_SECTORS, length),
                     dm.linear(backing, length - MIB_SECTORS, MIB_SECTORS))


RECORD_STEP = 32768     # from one record of crash_with_log() to the next, on the volume


def crash_with_log(lc, records, blocks=1):
    """Stop the volume as a power cut would: its log has so many records of fsync, of `blocks` each.

    Returns what is on the disks, {path: bytes}.
    """
    with lc.open() as raw:
        for record in range(records):
            raw.write(record * RECORD_STEP, record.to_bytes(4, "little") * 1024 * blocks)
            raw.flush()
    crash = {path: image(path) for path in (lc.cache, lc.backing)}
    lc.remove()
    for path, data in crash.items():
        put(path, data)
    return crash


def check_log(lc, records):
    """What crash_with_log() has written is there."""
    with lc.open() as raw:
        for record in range(records):
            assert raw.read(record * RECORD_STEP, 4096) == record.to_bytes(4, "little") * 1024, \
                record


class LcStack(dm.Device):
    """Formats on first entry, resumes, and removes on exit.

    Keyword arguments are target options (`writeback="off"`); `format` holds the
    options of lc-format, such as ("--in-place", "--segment-size=1M").
    """

    def __init__(self, backing, cache, name="lc0", format=(), **options):  # pylint: disable=redefined-builtin
        super().__init__(name)
        self.backing = str(backing)
        self.cache = str(cache)
        self.format_options = tuple(format)
        self.options = options
        self.formatted = False

    def __enter__(self):
        if not self.formatted:
            self.format()
        self.activate()
        return self

    def __exit__(self, kind, *_):
        if self.exists():
            self.remove() if kind is None else sh.result("dmsetup", "remove", "--force", self.name)

    def start(self):
        """As on entry, where the case removes it itself."""
        return self.__enter__()

    def format(self, wipe=True):
        """lc-format; with wipe, whatever an earlier case left is cleared first."""
        if wipe:
            for path in (self.backing, self.cache):
                with Raw(path) as raw:
                    raw.wipe(2 * MIB)   # also where a volume begins: lc-format looks there
        self.formatted = True
        return sh.run("lc-format", *self.format_options, "--backing", self.backing, self.cache)

    def activate(self, find=False, **options):
        """lc-resume; with find, the backing device is left for the tool to find."""
        words = [f"{key}={value}" for key, value in {**self.options, **options}.items()]
        flags = [flag for word in words for flag in ("-o", word)]
        devices = [self.cache] if find else [self.cache, self.backing]
        return sh.run("lc-resume", *flags, self.name, *devices)

    def reload_with(self, **options):
        """Load the same volume with other options and swap the tables."""
        words = self.table().split()
        self.load(dm.lc(words[3], words[4], int(words[1]), **options))
        self.resume()

    def fields(self):
        """The status line as a dict."""
        return status.parse(self.status())

    def settle(self):
        """Discards whose commands have ended are over, too: a suspend waits for them."""
        with self.paused():
            pass

    def drain(self):
        """lc-flush: everything to the HDD."""
        return sh.run("lc-flush", self.name)

    def wait(self, condition, timeout=60, what="a status"):
        """Until condition(fields) is true; returns the fields."""
        def check():
            fields = self.fields()
            return fields if condition(fields) else None
        try:
            return wait.until(check, timeout, what)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.status()}") from error
