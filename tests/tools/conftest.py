# SPDX-License-Identifier: GPL-2.0-only
"""Fixtures of the tests of the tools."""

import pytest

from lib import host
from lib.tools import MIB, USERLAND, Disk, FakeDm, mklog


@pytest.fixture(scope="session", autouse=True)
def built_tools():
    """Both builds: the plain one and the one with sanitizers."""
    host.run("make", "-s", "-C", USERLAND, "helpers")
    host.run("make", "-s", "-C", USERLAND, "helpers", "SAN=1")


@pytest.fixture(name="disks")
def fixture_disks(tmp_path):
    """Makes attached disks and takes them away again."""
    made = []

    def make(name, size=64 * MIB, *options):
        made.append(Disk(tmp_path / name, size).attach(*options))
        return made[-1]

    yield make
    for disk in made:
        disk.detach()


@pytest.fixture(name="pair")
def fixture_pair(disks):
    """An SSD and a hard disk, both empty."""
    return disks("ssd"), disks("hdd", 96 * MIB)


@pytest.fixture(name="fake")
def fixture_fake(tmp_path):
    """No device yet."""
    return FakeDm(tmp_path / "dm")


@pytest.fixture(name="image")
def fixture_image(tmp_path):
    """A cache image in a file, made by a script for mklog."""
    disk = Disk(tmp_path / "image", 16 * MIB)

    def make(script):
        mklog(disk.path, script)
        return disk

    return make
