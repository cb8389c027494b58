# SPDX-License-Identifier: GPL-2.0-only
"""The machine the harness runs on: folders, commands, locks."""

import contextlib
import fcntl
import functools
import hashlib
import itertools
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
TOP = TESTS.parent
BUILD = TOP / "build"
WEEK = 7 * 86400  # seconds


def cache():
    """Where everything lives that is built or fetched once."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = pathlib.Path(base) / "dm-lc"
    path.mkdir(parents=True, exist_ok=True)
    return path


def say(text):
    """Progress for the person at the terminal."""
    print(f"[harness] {text}", file=sys.stderr, flush=True)


def run(*argv, log=None, **kwargs):
    """Run a command that must succeed; its output goes to `log` or is returned."""
    argv = [str(arg) for arg in argv]
    if log is None:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, check=False, **kwargs)
        tail = done.stderr
    else:
        with open(log, "ab") as out:
            out.write(f"$ {shlex.join(argv)}\n".encode())
            out.flush()
            done = subprocess.run(argv, stdout=out, stderr=out, check=False, **kwargs)
        tail = tail_of(log)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(argv)} ended with {done.returncode}:\n{tail}")
    return done.stdout


def tail_of(path, lines=25):
    """The last lines of a text file that may not exist or hold odd bytes."""
    try:
        text = pathlib.Path(path).read_text(errors="replace")
    except OSError as error:
        return str(error)
    return "\n".join(text.splitlines()[-lines:])


def digest(*parts):
    """A short key for a cache entry made from strings and files."""
    total = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, pathlib.Path) else str(part).encode()
        total.update(len(data).to_bytes(8, "little") + data)
    return total.hexdigest()[:12]


@contextlib.contextmanager
def locked(name, folder=None):
    """One process at a time builds a cache entry (or in `folder`); the others wait for it."""
    folder = folder or cache()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{name}.lock", "w", encoding="ascii") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another run that holds {name}.lock")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def keep(path, pattern):
    """Note that a file or folder of the cache is used, and delete its like that nobody has used for
    a week: another checkout that runs now may need another one. Others may delete them, too.
    """
    os.utime(path)
    for other in path.parent.glob(pattern):
        with contextlib.suppress(FileNotFoundError):
            if other != path and time.time() - other.stat().st_mtime > WEEK:
                shutil.rmtree(other) if other.is_dir() else other.unlink()


@functools.lru_cache
def run_folder():
    """This run's own folder for logs and payloads: build/run, or build/run-N beside others.

    A run holds a lock on its folder, so that several at once in one tree do not mix.
    """
    for number in itertools.count():
        folder = BUILD / (f"run-{number}" if number else "run")
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            continue
        return folder  # the lock goes with the process
    raise AssertionError("itertools.count() ended")


def jobs():
    """How many compilers at once."""
    return os.cpu_count() or 1


def guests_at_once():
    """How many guests run at the same time; also LC_GUESTS."""
    return int(os.environ.get("LC_GUESTS") or min(4, jobs()))


def codename():
    """The Debian suite this machine runs."""
    fields = {}
    with open("/etc/os-release", encoding="utf-8") as lines:
        for line in lines:
            key, _, value = line.strip().partition("=")
            fields[key] = value.strip('"')
    if fields.get("ID") != "debian":
        raise RuntimeError("this harness runs on Debian 12 or 13; "
                           f"this machine says ID={fields.get('ID')}")
    return fields["VERSION_CODENAME"]


def has_loops():
    """Whether loop devices can be set up here."""
    return not os.geteuid() and pathlib.Path("/dev/loop-control").exists()


@contextlib.contextmanager
def loop(path):
    """A loop device on a file."""
    device = run("losetup", "--find", "--show", path).strip()
    try:
        yield device
    finally:
        run("losetup", "--detach", device)
