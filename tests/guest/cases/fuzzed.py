# SPDX-License-Identifier: GPL-2.0-only
"""Table lines and messages that somebody got wrong, made from a seed.

Each one is taken, or refused with a reason in the kernel log and nothing has changed. Most are
made so that it is known which; what the reason must say is with how they are made.
"""

import errno
import random
import re

from lclib import case, dm, kmsg
from lclib.dmioctl import INACTIVE, LOAD, OF_INACTIVE, READ_ONLY, table
from lclib.registry import Disk
from lclib.small import NAME, Volume

PAIR = (Disk("ssd", "64M"), Disk("hdd", "128M"))
# Lowest and highest value; and up to which one there is no need to be patient.
NUMBERS = {"buffers": (4, 65536, 8), "high_watermark": (1, 99, 99),
           "low_watermark": (0, 98, 98), "writeback_batch": (64, 1048576, 200),
           "writeback_depth": (1, 256, 4), "idle_seal_ms": (0, 3600000, 3600000),
           "ssd_patience_ms": (0, 3600000, 3600000), "bypass_kb": (0, 1048576, 1048576)}
MODES = ("writeback", "writethrough", "writearound")
SWITCHES = ("writeback", "verify_reads", "read_cache", "warm")
# Bytes that are in no name and no number, and that device mapper splits no words at.
STRANGE = "".join(chr(n) for n in (*range(1, 9), *range(14, 32), 127)) + "%$`'\"*;#&|<>(){}~é語"
NO_DEVICE = ("/dev/nothing", "/dev/null", "/", "999:999", "-1:0", "0:0", ":", "%s%n",
             "/dev/" + "d" * 3000, "/dev/mapper/" + NAME + "x")


def strange_word(rng):
    """A word that means nothing, now and then a very long one."""
    length = rng.choice((1, 2, 5, 12, 40, 40, 200, 3000))
    return "x" + "".join(rng.choice(STRANGE + "abz019_=:/.") for _ in range(length - 1))


def bad_number(rng, low, high):
    """A text that is no number, or a number out of this range."""
    return rng.choice((str(low - 1), str(high + 1), "-1", f"-{low}", f"{low}x", f"0x{high:x}",
                       "1e1", f"{low}.0", str(2**32 + low), str(2**64 + low), "9" * 400, "+", "++9",
                       "on", "１６", strange_word(rng)))


def bad_option(rng):
    """(name, value, what the reason says)."""
    kind = rng.randrange(5)
    if kind == 4:
        value = rng.choice(("on", "1", "Writeback", "write", "writearoundx", strange_word(rng)))
        return "cache_mode", value, ("Option cache_mode must be writeback, writethrough or "
                                     "writearound")
    if kind == 0:
        name = rng.choice((strange_word(rng), "Buffers", "buffer", "given", "flush", "-",
                           "writeback_", rng.choice(list(NUMBERS)).upper()))
        return name, rng.choice(("1", "on", strange_word(rng))), "Unknown option"
    if kind == 1:
        value = rng.choice(("ON", "0", "1", "yes", "offf", "o", strange_word(rng)))
        name = rng.choice(SWITCHES)
        return name, value, f"Option {name} must be on or off"
    name = rng.choice(list(NUMBERS))
    low, high, _ = NUMBERS[name]
    return name, bad_number(rng, low, high), f"Option {name} must be a number from {low} to {high}"


def good_options(rng):
    """Some options with values that are taken."""
    chosen = {name: rng.choice((low, top, rng.randint(low, top)))
              for name, (low, _, top) in NUMBERS.items() if rng.random() < 0.3}
    if "high_watermark" in chosen or "low_watermark" in chosen:
        chosen["high_watermark"] = rng.randint(1, 99)
        chosen["low_watermark"] = rng.randrange(chosen["high_watermark"])
    chosen.update((name, rng.choice(("on", "off"))) for name in SWITCHES if rng.random() < 0.5)
    if rng.random() < 0.3:
        chosen["cache_mode"] = rng.choice(MODES)
    pairs = list(chosen.items())
    rng.shuffle(pairs)
    return pairs


def words_of(pairs):
    """As a table line has them; none need not be counted."""
    return [str(2 * len(pairs)), *(str(word) for pair in pairs for word in pair)] if pairs else []


class Line:
    """A table line: its words, the length of the target, and what becomes of it."""

    def __init__(self, words, length, reason=None, flags=0):
        self.words = words
        self.length = length
        self.reason = reason   # None: it is taken; "": either
        self.flags = flags

    def __str__(self):
        return f"0 {self.length} lc {' '.join(self.words)}"[:500] + f" ({self.flags})"


class Lines:
    """Makes table lines."""

    def __init__(self, rng, volume, tiny):
        self.rng = rng
        self.devices = [volume.backing.path, volume.cache.path]
        self.length = volume.length
        self.tiny = tiny
        self.kinds = [self.good, self.count, self.option, self.twice, self.odd, self.watermarks,
                      self.device, self.wrong_device, self.too_few, self.wrong_length,
                      self.read_only, self.scrambled]

    def make(self):
        """One of any kind."""
        return self.rng.choice(self.kinds)()

    def line(self, options, reason=None, devices=None, length=None, flags=0):
        """With good values for all that are not given."""
        return Line([*(self.devices if devices is None else devices), *options],
                    self.length if length is None else length, reason, flags)

    def good(self):
        """Taken."""
        return self.line(words_of(good_options(self.rng)))

    def count(self):
        """The number of arguments lies."""
        words = words_of(good_options(self.rng)) or ["0"]
        right = len(words) - 1
        words[0] = self.rng.choice((str(right + 1), str(right + 2), str(2**32 + right), "-2", "x",
                                    f"{right}x", "99999999999999999999", strange_word(self.rng)))
        return self.line(words, "Number of option arguments does not match")

    def option(self):
        """One bad option, somewhere among good ones of other names."""
        name, value, reason = bad_option(self.rng)
        pairs = [pair for pair in good_options(self.rng) if pair[0] != name]
        pairs.insert(self.rng.randint(0, len(pairs)), (name, value))
        return self.line(words_of(pairs), re.escape(reason))

    def twice(self):
        """One option again."""
        pairs = good_options(self.rng) or [("buffers", 4)]
        pairs.append(self.rng.choice(pairs))
        return self.line(words_of(pairs), "Option given twice")

    def odd(self):
        """A name without a value."""
        words = [*words_of(good_options(self.rng)), "buffers"]
        if len(words) == 1:
            words = ["1", "buffers"]
        words[0] = str(len(words) - 1)
        return self.line(words, "Option without a value")

    def watermarks(self):
        """The low one is not below the high one."""
        high = self.rng.randint(1, 98)
        pairs = [("high_watermark", high), ("low_watermark", self.rng.randint(high, 98))]
        return self.line(words_of(pairs), "low_watermark must be below high_watermark")

    def device(self):
        """One device is none."""
        devices = list(self.devices)
        which = self.rng.randrange(2)
        devices[which] = self.rng.choice(NO_DEVICE)
        return self.line([], f"Cannot open {('backing', 'cache')[which]} device", devices)

    def wrong_device(self):
        """Not the devices of this volume, or not in this order."""
        backing, cache = self.devices
        tiny_backing, tiny_cache = self.tiny
        devices, reason = self.rng.choice((
            ((cache, cache), "are the same"), ((backing, backing), "are the same"),
            ((cache, backing), "no usable superblock|in use by another"),
            ((tiny_backing, cache), "Backing device is smaller|in use by another"),
            ((backing, tiny_cache), "Cache device is smaller|in use by another")))
        return self.line(words_of(good_options(self.rng)), reason, devices)

    def too_few(self):
        """No devices, or one."""
        return self.line([], "Expected <backing dev> <cache dev>",
                         self.devices[:self.rng.randrange(2)])

    def wrong_length(self):
        """Not the length of the volume; device mapper itself refuses none at all."""
        length = self.rng.choice((0, 1, 8, self.length - 1, self.length + 1, self.length * 2,
                                  2**40, 2**55))
        return self.line([], "Table length|zero-length|too large", length=length)

    def read_only(self):
        """A table that cannot be written through."""
        return self.line([], "Read-only tables are not supported", flags=READ_ONLY)

    def scrambled(self):
        """Words of a good line, some changed at random: who knows."""
        line = self.good()
        for _ in range(self.rng.randint(1, 4)):
            at = self.rng.randrange(len(line.words))
            line.words[at:at + 1] = self.rng.choice(
                ([], [strange_word(self.rng)], [line.words[at]] * 2,
                 [f"\\{line.words[at]}"], [line.words[at] + "\\"],
                 [f"{line.words[at]}\udcff\udc80"], [self.rng.choice(line.words)]))
            if not line.words:
                break
        line.reason = ""
        return line


def make_message(rng):
    """(text, what the reason says; None: it is taken; "": either)."""
    kind = rng.randrange(7)
    if kind == 0:
        return rng.choice(("flush", "writeback", "list lost", "list refused",
                           f"list lost {rng.randrange(1 << 40)}",
                           f"writeback_batch {rng.randint(64, 200)}",
                           f"writeback_depth {rng.randint(1, 4)}",
                           f"idle_seal_ms {rng.randint(0, 3600000)}",
                           f"ssd_patience_ms {rng.randint(0, 3600000)}", "writeback on",
                           "verify_reads on", "verify_reads off", "read_cache on",
                           "read_cache off", "  flush  ", "writeback\toff", "\\flush")), None
    if kind == 1:
        name, value, reason = bad_option(rng)
        return f"{name} {value}", "by loading a table" if name == "buffers" else re.escape(reason)
    if kind == 2:
        tail = rng.choice(("", " all", " lost x", " lost -1", " lost 1 2", " refused 1x", " LOST",
                           " lost 99999999999999999999", f" {strange_word(rng)}"))
        return f"list{tail}", "expected"
    if kind == 3:
        return rng.choice(("buffers 8", "buffers 4")), "by loading a table"
    if kind == 4:
        words = [rng.choice(("flush", "writeback", "status", strange_word(rng)))
                 for _ in range(rng.choice((3, 4, 1500)))]
        return " ".join(words)[:8000], "unknown message"
    if kind == 5:
        return strange_word(rng), "unknown message"
    words = [rng.choice((strange_word(rng), "flush", "list", "lost", "on", "9", "@", "\\", "",
                         "high_watermark", "low_watermark"))
             for _ in range(rng.randrange(5))]
    return " ".join(words)[:8000], ""


class Fuzzer:
    """Tells the volume what was made, and looks at what comes of it."""

    def __init__(self, ctx, volume):
        self.rng = random.Random(ctx.seed)
        self.volume = volume
        self.log = kmsg.Log()
        self.live = True
        self.taken = self.refused = 0

    def expect(self, what, error, reason):
        """Taken or refused as it must be, with a reason."""
        said = [line for line in self.log.fresh() if "device-mapper: " in line]
        told = "\n".join(said)
        assert (error is None) == (reason is None) or reason == "", (what, error, told)
        if error:
            self.refused += 1
            assert error.errno in (errno.EINVAL, errno.EBUSY, errno.EROFS, errno.ENOENT,
                                   errno.ENXIO, errno.ENODEV, errno.ENOTBLK,
                                   errno.ENAMETOOLONG), (what, error)
            assert any(re.search(reason, line) for line in said), (what, error, reason, told)
        else:
            self.taken += 1

    def load(self, line):
        """One table line, beside the live table if there is one."""
        volume = self.volume
        target = dm.Target("lc", line.length, *line.words)
        error = None
        self.log.fresh()
        try:
            volume.control.call(LOAD, NAME, table(target), targets=1, flags=line.flags)
        except OSError as caught:
            error = caught
        self.expect(str(line), error, line.reason)
        assert bool(volume.flags() & INACTIVE) == (error is None), str(line)
        if not error:
            self.again(volume.line(OF_INACTIVE))

    def again(self, printed):
        """What the kernel prints of a table that was taken is taken, and prints the same."""
        self.volume.clear()
        start, length, kind, *words = printed.split()
        assert (start, kind) == ("0", "lc"), printed
        again = table(dm.Target(kind, int(length), *words))
        self.volume.control.call(LOAD, NAME, again, targets=1)
        assert self.volume.line(OF_INACTIVE) == printed
        # Now and then it comes to power.
        if self.live and self.rng.random() < 0.2:
            self.volume.resume()
            assert self.volume.line() == printed
        else:
            self.volume.clear()

    def message(self):
        """One message to the running volume."""
        text, reason = make_message(self.rng)
        before = self.volume.line()
        error = None
        self.log.fresh()
        try:
            self.volume.control.message(NAME, text)
        except OSError as caught:
            error = caught
        self.expect(text[:500], error, reason)
        if error:
            assert self.volume.line() == before, (text[:500], before)


def fuzz(ctx, lines, messages):
    """Some for a running volume, some for a device without a table; then all is well."""
    with Volume(ctx) as volume, dm.Device("tiny_ssd", dm.linear(volume.cache.path, 2048)) as ssd, \
            dm.Device("tiny_hdd", dm.linear(volume.backing.path, 2048)) as hdd:
        fuzzer = Fuzzer(ctx, volume)
        made = Lines(fuzzer.rng, volume, (hdd.path, ssd.path))
        for _ in range(lines):
            fuzzer.load(made.make())
        for _ in range(messages):
            fuzzer.message()
        volume.check()
        volume.control.message(NAME, "flush")
        volume.remove()
        volume.create()
        fuzzer.live = False
        for _ in range(lines // 2):
            fuzzer.load(made.make())
        volume.start()
        volume.check()
    ctx.figure("taken", fuzzer.taken)
    ctx.figure("refused", fuzzer.refused)
    assert fuzzer.taken and fuzzer.refused


@case(disks=PAIR, timeout=120, long=("debug",), sampled=3)
def some_lines_and_messages(ctx):
    """Some hundred table lines and messages, right and wrong."""
    fuzz(ctx, 120, 150)


@case(disks=PAIR, timeout=600, long=True)
def many_lines_and_messages(ctx):
    """Thousands of them."""
    fuzz(ctx, 1000, 1500)


@case(kernels=("stock",), disks=PAIR, timeout=120)
def more_buffers_than_memory(ctx):
    """A table that asks for more write buffers than there is RAM is refused; nobody is killed."""
    def too_many():
        log.fresh()
        try:
            volume.load(buffers=65536)
        except OSError as error:
            assert error.errno == errno.ENOMEM, error
        else:
            raise AssertionError("4 GiB of buffers")
        said = "\n".join(log.fresh())
        assert re.search("lc: Cannot allocate", said) and "oom" not in said.lower(), said

    log = kmsg.Log()
    with Volume(ctx) as volume:
        too_many()
        volume.check()
        volume.remove()
        volume.create()
        too_many()
        volume.start()
        volume.check()
