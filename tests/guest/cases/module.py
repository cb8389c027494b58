# SPDX-License-Identifier: GPL-2.0-only
"""The module as such."""

from lclib import case, dm, sh


@case()
def loads_and_unloads(_):
    """modprobe announces the target lc; rmmod takes it away."""
    assert dm.target_version("lc")
    sh.run("rmmod", "dm_lc")
    assert dm.target_version("lc") is None
    sh.run("modprobe", "dm-lc")
