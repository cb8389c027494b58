# SPDX-License-Identifier: GPL-2.0-only
"""A boot of user-mode Linux for the benchmark: kernel code at native speed, on all CPUs."""

import pathlib
import shutil
import time

from lib import guestroot, host, payload, products, uml

HERE = pathlib.Path(__file__).resolve().parent
JOB_SECONDS = 300  # without a word


class Boot(uml.Boot):
    """Every event goes to `notes`; the plan is what uml.Boot calls the job."""

    def __init__(self, kernel, files, plan, folder, notes):  # pylint: disable=too-many-arguments
        super().__init__(kernel, files, plan, folder, None)
        self.notes = notes
        self.trouble = ""

    def take(self, event):
        """One event; returns the next deadline."""
        self.ready = True
        if event["kind"] == "end":
            self.ended = True
            self.trouble = event["why"]
            if event["why"]:
                return time.monotonic()
        self.notes.take(event)
        return time.monotonic() + JOB_SECONDS * self.scale

    def blame(self, verdict, reason):
        """The boot failed."""
        self.trouble = f"{verdict}: {reason}\n{self.console()}"


def measure(kernel, plan, folder, extra, notes):
    """Boot, perform the plan; what went wrong, or an empty string."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with host.locked("build", host.BUILD):
        images = (guestroot.image(),
                  payload.make_payload(kernel, folder, products.build(kernel), extra))
        initramfs = payload.make_initramfs(kernel, folder, HERE / "guest/native-init")
    notes.started = time.monotonic()
    boot = Boot(kernel, uml.Files(initramfs, images), plan, folder / "boot", notes)
    boot.run(memory="4G", cpus=host.jobs())
    return boot.trouble
