# SPDX-License-Identifier: GPL-2.0-only
"""How each suite is set up, run for one test, and understood."""

import os
import pathlib
import re

from lclib import sh

MAKE_FS = {"ext4": ("mkfs.ext4", "-q", "-F"), "xfs": ("mkfs.xfs", "-q", "-f")}


class Xfstests:
    """kdave/xfstests. One start of `check` for all tests: it takes longer than most of them."""

    together = True
    RESULTS = pathlib.Path("/run/results")

    def __init__(self, job):
        self.fs = job["flavour"]

    def prepare(self):
        """A file system on the test volume; the suite makes the other ones itself."""
        self.RESULTS.mkdir()
        sh.run(*MAKE_FS[self.fs], "/dev/mapper/test")

    def environment(self):
        """The suite's configuration."""
        return {**os.environ, "FSTYP": self.fs, "TEST_DEV": "/dev/mapper/test",
                "TEST_DIR": "/mnt/test", "SCRATCH_DEV": "/dev/mapper/scratch",
                "SCRATCH_MNT": "/mnt/scratch", "LOGWRITES_DEV": "/dev/disk-logwrites",
                "RESULT_BASE": str(self.RESULTS), "HOST_OPTIONS": "/dev/null"}

    @staticmethod
    def command(tests):
        """What runs them."""
        return ["./check", "--exact-order", *tests]

    @staticmethod
    def end(test, following, text):
        """Where the words about a test end: at the next one, or at the summary."""
        begin = re.search(rf"^{re.escape(test)}\s", text, re.M)
        what = rf"^{re.escape(following)}\s" if following else r"^Ran:"
        return begin and re.compile(what, re.M).search(text, begin.end())

    def ended(self, test, following, text):
        """Whether all about a test has been said."""
        return self.end(test, following, text) is not None

    def cut(self, test, following, text):
        """(the words about the test, those behind); the suite may have ended early."""
        found = self.end(test, following, text)
        return (text[:found.start()], text[found.start():]) if found else (text, "")

    @staticmethod
    def judge(test, told):
        """(verdict, reason): passed means the name and a time, or two, and nothing else."""
        line = re.search(rf"^{re.escape(test)}\s(.*)", told, re.M | re.S)
        if not line:
            return "failed", "the suite did not run it:\n" + told[-1000:]
        words = line.group(1).strip()
        if words.partition(" ... ")[2].startswith("[not run]") or words.startswith("[not run]"):
            return "not run", " ".join(words.partition("[not run]")[2].split())[:300]
        if re.fullmatch(r"(\d+s \.\.\.\s+)?\d+s", words):
            return "passed", ""
        return "failed", words[-3000:]

    def leftovers(self, test):
        """Files worth keeping of a failed test."""
        found = self.RESULTS.glob(f"{test}.*")
        return [path for path in found if path.suffix in (".bad", ".full", ".dmesg")]


class Blktests:
    """osandov/blktests on the volume itself; only tests that use the device given."""

    together = False
    RESULTS = pathlib.Path("/run/results")

    def __init__(self, job):
        self.quick = job["timeout"] // 4

    def prepare(self):
        """The device, and a limit for tests that would run as long as they like."""
        pathlib.Path("/suite/config").write_text(
            f"TEST_DEVS=(/dev/mapper/test)\nTIMEOUT={self.quick}\n", encoding="ascii")

    @staticmethod
    def environment():
        """Nothing of its own."""
        return dict(os.environ)

    def command(self, tests):
        """What runs it, and says how that ended."""
        return ["sh", "-c", f"./check -d -o {self.RESULTS} {' '.join(tests)}; echo EXIT $?"]

    @staticmethod
    def ended(_test, _following, _text):
        """Only the end of the program tells."""
        return False

    @staticmethod
    def cut(_test, _following, text):
        """All is about this test."""
        return text, ""

    @staticmethod
    def judge(test, told):
        """(verdict, reason) from the exit code and the lines about the test."""
        words = re.findall(rf"^{re.escape(test)} .*\[(passed|failed|not run)\]", told, re.M)
        if "EXIT 0" not in told or "failed" in words:
            return "failed", told[-3000:]
        if "passed" in words:
            return "passed", ""
        if "not run" in words:
            return "not run", " ".join(told.partition("[not run]")[2].split())[:300]
        return "not run", "it does not use a device given to it"

    def leftovers(self, test):
        """Files worth keeping of a failed test."""
        return [path for path in self.RESULTS.rglob("*") if path.is_file()
                and test in str(path) and path.suffix in (".bad", ".full", ".dmesg")]


SUITES = {"xfstests": Xfstests, "blktests": Blktests}
