# SPDX-License-Identifier: GPL-2.0-only
"""The program powerload (src/powerload.c): loads with a ledger, and verdicts by it."""

import json
import os
import shutil
import subprocess

from . import sh


def find():
    """Where it is."""
    program = shutil.which(
        "powerload", path="/opt/dm-lc/bin:/opt/dm-lc/guest/bin:" + os.environ["PATH"]
    )
    if not program:
        raise FileNotFoundError("powerload is not in the guest: the host builds it")
    return program


def command(verb, device, ledger, *options):
    """Its command line."""
    words = [find(), verb, "--dev", device, "--ledger", ledger, *options]
    return [str(word) for word in words]


class Server:
    """One process that runs many commands; ends with the case."""

    def __init__(self):
        self.process = subprocess.Popen([find(), "serve"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, argv):
        """(whether it is content, its report) of one command."""
        self.process.stdin.write(" ".join(argv[1:]) + "\n")
        self.process.stdin.flush()
        said = ""
        for line in self.process.stdout:
            if line.startswith("="):
                code = int(line[1:])
                if code > 1:
                    raise sh.Failed(argv, code, said)
                return code == 0, json.loads(said)
            said += line
        raise sh.Failed(argv, self.process.wait(), said)


def powerload(verb, device, ledger, *options):
    """Run it; (whether it is content, its report)."""
    argv = command(verb, device, ledger, *options)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode > 1:
        raise sh.Failed(argv, done.returncode, done.stderr)
    return done.returncode == 0, json.loads(done.stdout)


class Ledger:
    """What a load has written and was promised, stamped with the disks' clock."""

    SIZES = ("--max-writes", 1 << 13, "--max-syncs", 1 << 13)

    def __init__(self, path, clock, server=None):
        self.path = str(path)
        self.clock = clock
        self.server = server or Server()

    def begin(self, device, seed):
        """A new ledger for all of a device."""
        powerload("init", device, self.path, "--seed", seed, *self.SIZES)

    def copy(self, path):
        """The same under another name."""
        shutil.copyfile(self.path, path)
        return Ledger(path, self.clock, self.server)

    def options(self, rng, **load):
        """A load in words; sync_every=2 becomes --sync-every 2, True only the flag."""
        words = ["--clock", self.clock, "--rng", rng.randrange(1 << 32)]
        for key, value in load.items():
            words.append("--" + key.replace("_", "-"))
            words += [] if value is True else [value]
        return words

    def run(self, device, rng, **load):
        """A load from its beginning to its end."""
        words = command("run", device, self.path, *self.options(rng, **load))
        ended(self.server.run(words)[1])

    def running(self, device, rng, **load):
        """A load that goes on during the block, and ends as it should."""
        return Load(command("run", device, self.path, *self.options(rng, **load)))

    def verify(self, device, *options):
        """(whether every sector is as it must be, the report)."""
        return self.server.run(command("verify", device, self.path, *options))


class Load:
    """A load in the background."""

    def __init__(self, argv):
        self.argv = argv

    def __enter__(self):
        self.process = sh.start(*self.argv)
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.process.kill()
            self.process.communicate()
            return
        ended(json.loads(sh.finish(self.process)))


def ended(report):
    """A load must come to its own end."""
    assert report["ended"] == "ops", f"the load ended with {report['ended']}"
