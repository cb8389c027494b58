# SPDX-License-Identifier: GPL-2.0-only
"""Zsh completion, in a zsh on a terminal: what stands on the command line after the tab key."""

import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from lib.tools import USERLAND

COMPLETION = USERLAND / "completion/_lc"
BASH = USERLAND / "completion/lc.bash"
RC = """
unsetopt beep
PROMPT=
fpath=({folder} $fpath)
autoload -Uz compinit
compinit -u -d {folder}/dump
show() {{ print -r -- "LINE<$BUFFER>"; BUFFER=; }}
zle -N show
bindkey '^G' show
print ready
"""


class Zsh:
    """An interactive shell that completes."""

    def __init__(self, folder):
        (folder / ".zshrc").write_text(RC.format(folder=folder), encoding="ascii")
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            ["zsh", "-i"], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            cwd=folder, env={**os.environ, "ZDOTDIR": str(folder), "TERM": "dumb", "LC_ALL": "C",
                             "PATH": f"{folder}/bin:{os.environ['PATH']}"})
        os.close(slave)
        self.text = ""
        self.until("ready")

    def until(self, pattern):
        """What the shell prints up to a pattern; the match."""
        end = time.monotonic() + 120
        while not (found := re.search(pattern, self.text)):
            assert time.monotonic() < end, f"no {pattern} in {self.text!r}"
            if select.select([self.master], [], [], 1)[0]:
                self.text += os.read(self.master, 65536).decode("ascii", "replace")
        self.text = self.text[found.end():]
        return found

    def complete(self, typed):
        """The line after a tab."""
        os.write(self.master, f"{typed}\t\a".encode("ascii"))
        return self.until(r"LINE<([^>]*)>").group(1)

    def end(self):
        """Take it away."""
        self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture(name="zsh")
def fixture_zsh(tmp_path):
    """With the tools in its path, and files named ssd and hdd in its folder."""
    if not shutil.which("zsh"):
        pytest.skip("there is no zsh")
    shutil.copy(COMPLETION, tmp_path)
    (tmp_path / "bin").mkdir()
    for name in ("lc", *(f"lc-{command}" for command in
                         ("format", "resume", "status", "dump", "watch"))):
        (tmp_path / "bin" / name).symlink_to(USERLAND / "build/lc")
    for name in ("ssd", "hdd"):
        (tmp_path / name).touch()
    shell = Zsh(tmp_path)
    yield shell
    shell.end()


def test_words_are_those_of_the_tools():
    """Commands, classes of refusal, options of the module: those that bash completes."""
    zsh, bash = (path.read_text(encoding="ascii") for path in (COMPLETION, BASH))

    def words(text, pattern):
        found = re.search(pattern, re.sub(r"\s+", " ", text.replace("\\\n", "")))
        assert found, pattern
        return found[1].split()

    for first, second in ((r"#compdef (.*?) # ", r"complete -o filenames -F _lc (.*)"),
                          (r"CURRENT == 2 \)\); then compadd -- (.*?) return",
                           r'CWORD == 1\)\); then mapfile .*? -W "([^"]*)"'),
                          (r"compadd -S = \"\$@\" -- ([a-z_ ]*)", r'compgen -S = -W "([^"]*)"'),
                          (r"format\) values=.*?class:\(([^)]*)\)",
                           r'format:--force [^"]*"([^"]*)"'),
                          (r"detach\) values=.*?class:\(([^)]*)\)",
                           r'detach:--force [^"]*"([^"]*)"')):
        assert words(zsh, first) == words(bash, second)


def test_completes(zsh):
    """Options of --help, their values, commands, files."""
    for typed, line in (("lc-status --wat", "lc-status --watch="),
                        ("lc-status --format=pro", "lc-status --format=prometheus "),
                        ("lc stat", "lc status "),
                        ("lc status --outp", "lc status --output="),
                        ("lc-format --checksum=cr", "lc-format --checksum=crc32c "),
                        ("lc format --force=hdd", "lc format --force=hdd-signature "),
                        ("lc-format --backing=hd", "lc-format --backing=hdd "),
                        ("lc-resume -o verif", "lc-resume -o verify_reads="),
                        ("lc-resume -o rea", "lc-resume -o read_cache="),
                        ("lc-resume --option=hdd_p", "lc-resume --option=hdd_patience_ms="),
                        ("lc-resume --wait=inf", "lc-resume --wait=infinity "),
                        ("lc-dump ss", "lc-dump ssd ")):
        assert zsh.complete(typed) == line
