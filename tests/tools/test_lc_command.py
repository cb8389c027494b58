# SPDX-License-Identifier: GPL-2.0-only
"""What all commands have: help, man pages, completion, installation."""

import contextlib
import os
import re

from lib import host
from lib.tools import (
    CLASSES,
    USERLAND,
    run_tool,
)

COMMANDS = ("format", "resume", "flush", "status", "remove", "dump", "check")


def test_help_version_man_and_completion():
    """Every option of --help is in the man page and in the completion."""
    completion = (USERLAND / "completion/lc.bash").read_text(encoding="ascii")
    for command in COMMANDS:
        assert run_tool(command, "--version").out.startswith("lc (dm-lc) ")
        done = run_tool(command, "--help", san=True)
        assert done.code == 0 and done.out.startswith(f"Usage: lc-{command}")
        page = (USERLAND / f"man/lc-{command}.8").read_text(encoding="ascii")
        for option in re.findall(r"--[a-z][a-z-]+", done.out):
            assert option.replace("-", "\\-") in page, f"{option} is not in lc-{command}.8"
            assert option in completion, f"{option} is not in the completion"
    page = (USERLAND / "man/lc-format.8").read_text(encoding="ascii")
    for name in CLASSES:
        assert name.replace("-", "\\-") in page


def test_install(tmp_path):
    """One binary, links, pages, completion."""
    host.run("make", "-s", "-C", USERLAND, "install", f"DESTDIR={tmp_path}", "PREFIX=/usr")
    for command in COMMANDS:
        assert os.readlink(tmp_path / f"usr/sbin/lc-{command}") == "lc"
        assert (tmp_path / f"usr/share/man/man8/lc-{command}.8").is_file()
    assert (tmp_path / "usr/share/bash-completion/completions/lc").is_file()
    with contextlib.suppress(FileNotFoundError):
        host.run("bash", "-n", tmp_path / "usr/share/bash-completion/completions/lc")
