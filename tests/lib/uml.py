# SPDX-License-Identifier: GPL-2.0-only
"""One boot of user-mode Linux: a kernel that is a process.

For other people's suites (tests/others/): native speed instead of an emulated CPU.
The guest appends what it did to a file of the host (see guest/runner.py there).
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from lclib import kmsg

from . import host

BOOT_SECONDS = 120
# The guest ends a test itself at its limit; the host waits that much longer.
GRACE_SECONDS = 45
POLL_SECONDS = 0.2


@dataclasses.dataclass(frozen=True)
class Files:
    """Squashfs images, in the order of the guest's disks, and the initramfs."""

    initramfs: pathlib.Path
    images: tuple


class Boot:
    """Boot once, run some tests, say what each came to.

    `job` goes to the guest; `job["tests"]` are run in order.
    `report(test, verdict, reason, seconds)` is called as each test ends.
    """

    def __init__(self, kernel, files, job, folder, report):  # pylint: disable=too-many-arguments
        self.kernel = kernel
        self.files = files
        self.job = job
        self.folder = pathlib.Path(folder)
        self.report = report
        self.running = None
        self.ready = False
        self.ended = False
        self.scale = float(os.environ.get("LC_TIMEOUT_SCALE", "1"))

    def command(self, memory, cpus):
        """The program and its parameters."""
        words = [self.kernel.image, f"mem={memory}", f"ncpus={cpus}", "seccomp=on",
                 f"initrd={self.files.initramfs}", f"uml_dir={self.folder}", "umid=uml"]
        letters = "abc"[:len(self.files.images)]
        words += [f"ubd{letter}r={image}" for letter, image in zip(letters, self.files.images,
                                                                   strict=True)]
        words += ["con=null", "con0=null,fd:1", "ssl=null", "loglevel=5", "panic=-1",
                  "oops=panic", "log_buf_len=4M", f"hostfs={self.folder / 'out'}"]
        return [str(word) for word in words]

    def run(self, memory="2G", cpus=2):
        """The whole boot; every test that began has been reported when this returns."""
        out = self.folder / "out"
        out.mkdir(parents=True)
        (out / "job.json").write_text(json.dumps(self.job), encoding="utf-8")
        (out / "events").touch()
        with open(self.folder / "console", "wb") as console, \
                open(out / "events", "rb") as events, \
                self.process(self.command(memory, cpus), console) as process:
            self.watch(process, events)

    @contextlib.contextmanager
    def process(self, argv, console):
        """The kernel, and its helpers, which share its process group."""
        # It must not outlive this program, however that ends.
        argv = ["setpriv", "--pdeathsig", "KILL", "--", *argv]
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=console, stderr=console,
                                   start_new_session=True)
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def watch(self, process, events):
        """Digest events until the guest is gone or silent for too long."""
        deadline = time.monotonic() + BOOT_SECONDS * self.scale
        data = b""
        while True:
            gone = process.poll() is not None
            data += events.read()
            *lines, data = data.split(b"\n")
            for line in lines:
                deadline = self.take(json.loads(line))
            if gone:
                self.finish()
                return
            if self.ended:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(20)
                return
            if time.monotonic() > deadline:
                self.blame("hang", "the guest said nothing until the host's deadline")
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(POLL_SECONDS)

    def take(self, event):
        """One event; returns the next deadline."""
        limit = 60
        if "ready" in event:
            self.ready = True
            if event["faults"]:
                host.say(f"{self.folder}: kernel log before the first test: {event['faults'][0]}")
        elif "start" in event:
            self.running = event["start"]
            limit = self.job["timeout"]
        elif "test" in event:
            self.running = None
            if event["verdict"] == "timeout":
                event["reason"] += "\n" + self.console()
            self.report(event["test"], event["verdict"], event["reason"], event["seconds"])
        elif "end" in event:
            self.ended = True
        return time.monotonic() + (limit + GRACE_SECONDS) * self.scale

    def console(self):
        """The last of what the kernel said."""
        return f"console ({self.folder / 'console'}):\n{host.tail_of(self.folder / 'console')}"

    def finish(self):
        """The guest is gone: was all said before?"""
        if self.ended:
            return
        text = host.tail_of(self.folder / "console", 2000)
        panic = re.search(r"Kernel panic - not syncing.*", text)
        reason = "the guest ended without a word"
        if panic:
            before = kmsg.faults(text[:panic.start()].splitlines())
            reason = "\n".join([panic.group(0), *before])
        self.blame("panic", reason)

    def blame(self, verdict, reason):
        """The boot failed: charge the test that ran; without one, nothing can be said."""
        if self.running:
            self.report(self.running, verdict, f"{reason}\n{self.console()}", None)
            self.running = None
        elif not self.ready:
            raise RuntimeError(f"a guest did not come up: {reason}\n{self.console()}")
