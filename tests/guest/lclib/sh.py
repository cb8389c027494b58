# SPDX-License-Identifier: GPL-2.0-only
"""The only place in the guest that runs other programs."""

import shlex
import subprocess

from . import wait


class Failed(AssertionError):
    """A command ended otherwise than its caller said it must."""

    def __init__(self, argv, code, output):
        super().__init__(f"{shlex.join(argv)} ended with {code}: {output.strip()[-1500:]}")
        self.code = code
        self.output = output


def quiet_input(kwargs):
    """Nobody sits at the guest's console: a program that asks gets an end of file."""
    if "input" not in kwargs:
        kwargs.setdefault("stdin", subprocess.DEVNULL)
    return kwargs


def run(*argv, code=0, **kwargs):
    """Run a program that must end with `code` (None: any); returns what it printed."""
    argv = [str(arg) for arg in argv]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, **quiet_input(kwargs))
    if code is not None and done.returncode != code:
        raise Failed(argv, done.returncode, done.stdout)
    return done.stdout


def result(*argv, **kwargs):
    """Run a program that may fail; returns (exit code, output)."""
    argv = [str(arg) for arg in argv]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, **quiet_input(kwargs))
    return done.returncode, done.stdout


def start(*argv, **kwargs):
    """Start a program in the background; the caller waits for it or stops it."""
    argv = [str(arg) for arg in argv]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            errors="replace", **quiet_input(kwargs))


def finish(process, timeout=None):
    """Wait for start()'s program, which must succeed; returns what it printed."""
    output, _ = process.communicate(timeout=timeout and wait.limit(timeout))
    if process.returncode:
        raise Failed([str(arg) for arg in process.args], process.returncode, output)
    return output
