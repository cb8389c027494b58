# SPDX-License-Identifier: GPL-2.0-only
"""Device mapper as cases say it: tables, and devices as context managers."""

import contextlib

from . import sh, wait
from .disk import Device as Raw


def sectors(path):
    """The size of a block device in 512-byte sectors."""
    with Raw(path, direct=False) as raw:
        return raw.size // 512


class Target:
    """One line of a table without its start."""

    def __init__(self, kind, length, *args):
        self.kind = kind
        self.length = length
        self.args = [str(arg) for arg in args]

    def line(self, start):
        """The line at that start sector."""
        return " ".join([str(start), str(self.length), self.kind, *self.args])


def linear(device, length=None, offset=0):
    """All of a device, or a piece of it."""
    return Target("linear", length or sectors(device) - offset, device, offset)


def error(length):
    """Every access fails."""
    return Target("error", length)


def zero(length):
    """Reads as zeroes, swallows writes."""
    return Target("zero", length)


def flakey(device, up, down, *features, length=None):
    """Good for `up` seconds, then for `down` seconds as the features say."""
    args = [device, 0, up, down]
    if features:
        args += [len(features), *features]
    return Target("flakey", length or sectors(device), *args)


def delay(device, read_ms, write_ms=None, length=None):
    """Each access takes that much longer."""
    args = [device, 0, read_ms]
    if write_ms is not None:
        args += [device, 0, write_ms]
    return Target("delay", length or sectors(device), *args)


def lc(backing, cache, length, **options):
    """The target under test; options become `<#args> key value ...`."""
    args = [backing, cache]
    if options:
        args.append(2 * len(options))
        for key, value in options.items():
            args += [key, value]
    return Target("lc", length, *args)


def table(*targets):
    """The targets one behind the other, as dmsetup reads them."""
    lines = []
    start = 0
    for target in targets:
        lines.append(target.line(start))
        start += target.length
    return "\n".join(lines) + "\n"


class Device:
    """A mapped device: created on entry, removed on exit."""

    def __init__(self, name, *targets):
        self.name = name
        self.targets = targets
        self.path = f"/dev/mapper/{name}"

    def __enter__(self):
        self.create()
        return self

    def __exit__(self, kind, *_):
        if self.exists():
            # What went wrong before must not be hidden by a device still in use.
            self.remove() if kind is None else sh.result("dmsetup", "remove", self.name)

    def create(self):
        """dmsetup create with the targets given."""
        sh.run("dmsetup", "create", self.name, input=table(*self.targets))

    def exists(self):
        """Whether device mapper knows this name."""
        return sh.result("dmsetup", "info", self.name)[0] == 0

    def remove(self):
        """dmsetup remove; a file that was closed a moment ago may still be on its way out.

        The last reference on it may be that of an asynchronous read or write, which a worker drops.
        """
        wait.until(lambda: self.opened() == 0, 60, f"{self.name} is not in use any more")
        sh.run("dmsetup", "remove", self.name)

    def opened(self):
        """How often it is open; mapped devices on it count, too."""
        return int(sh.run("dmsetup", "info", "-c", "--noheadings", "-o", "open", self.name))

    def suspend(self, *options):
        """dmsetup suspend; options such as --noflush."""
        sh.run("dmsetup", "suspend", *options, self.name)

    def resume(self):
        """dmsetup resume."""
        sh.run("dmsetup", "resume", self.name)

    @contextlib.contextmanager
    def paused(self, *options):
        """Suspended inside the block."""
        self.suspend(*options)
        try:
            yield self
        finally:
            self.resume()

    def load(self, *targets):
        """Put a new table into the inactive slot."""
        sh.run("dmsetup", "load", self.name, input=table(*targets))

    def reload(self, *targets):
        """A new table in place of the live one."""
        self.load(*targets)
        with self.paused():
            pass

    def message(self, *words):
        """dmsetup message at sector 0; returns the answer."""
        return sh.run("dmsetup", "message", self.name, 0, *words)

    def status(self, *options):
        """The raw status lines."""
        return sh.run("dmsetup", "status", *options, self.name)

    def table(self):
        """The live table as dmsetup prints it."""
        return sh.run("dmsetup", "table", self.name)

    def open(self, **kwargs):
        """The device for direct I/O."""
        return Raw(self.path, **kwargs)


def names():
    """All mapped devices there are now."""
    listing = sh.run("dmsetup", "ls")
    return [line.split()[0] for line in listing.splitlines() if "\t" in line]


def target_version(kind):
    """The version the kernel announces for a target, or None."""
    for line in sh.run("dmsetup", "targets").splitlines():
        name, _, version = line.partition(" ")
        if name == kind:
            return version.strip()
    return None
