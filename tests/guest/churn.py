# SPDX-License-Identifier: GPL-2.0-only
"""A file system's day in a minute: churn.py FOLDER SEED OPERATIONS.

Makes, appends, overwrites, truncates, renames, links, fsyncs and removes files at random.
The same arguments on the same folder do the same.
"""

import os
import pathlib
import random
import sys


class Churn:
    """The files of one folder."""

    def __init__(self, root, seed):
        self.random = random.Random(seed)
        self.root = pathlib.Path(root) / f"churn-{seed}"
        self.root.mkdir(exist_ok=True)
        self.files = []
        self.made = 0

    def any(self):
        """One of the files there are."""
        return self.random.choice(self.files)

    def make(self):
        """A new file in a new or old folder."""
        folder = self.root / f"d{self.random.randrange(20)}"
        folder.mkdir(exist_ok=True)
        path = folder / f"f{self.made}"
        self.made += 1
        path.write_bytes(self.random.randbytes(self.random.choice((100, 5000, 70000))))
        self.files.append(path)

    def overwrite(self):
        """Some bytes somewhere in a file."""
        with open(self.any(), "r+b") as file:
            file.seek(self.random.randrange(100000))
            file.write(self.random.randbytes(self.random.randint(1, 20000)))
            if self.random.random() < 0.2:
                file.flush()
                os.fsync(file.fileno())

    def truncate(self):
        """Shorter or longer."""
        os.truncate(self.any(), self.random.randrange(120000))

    def rename(self):
        """Another name, perhaps another folder."""
        old = self.any()
        new = self.root / f"r{self.made}"
        self.made += 1
        old.rename(new)
        self.files[self.files.index(old)] = new

    def link(self):
        """A second name for a file."""
        new = self.root / f"l{self.made}"
        self.made += 1
        os.link(self.any(), new)
        self.files.append(new)

    def remove(self):
        """One less."""
        path = self.any()
        self.files.remove(path)
        path.unlink()

    def run(self, operations):
        """Mostly growth, all of it."""
        steps = [self.make] * 4 + [self.overwrite] * 5 + [self.truncate, self.rename, self.link,
                                                          self.remove, self.remove]
        for _ in range(operations):
            step = self.random.choice(steps)
            if step == self.make or self.files:  # pylint: disable=comparison-with-callable
                step()
        os.sync()


if __name__ == "__main__":
    Churn(sys.argv[1], int(sys.argv[2])).run(int(sys.argv[3]))
