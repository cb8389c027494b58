# SPDX-License-Identifier: GPL-2.0-only
"""What all commands have: help, man pages, completion, installation.

The help of a command is its table of options (userland/cmd.h), so the others are compared with it.
"""

import contextlib
import os
import re
import subprocess

import pytest

from lib import host
from lib.tools import CLASSES, USERLAND, run_tool

COMMANDS = ("format", "resume", "flush", "status", "remove", "detach", "dump", "check", "watch")
COMPLETION = "completion/lc.bash"
COMMON = {("h", "help", ""), ("V", "version", "")}


def text_of(name):
    """Of a file in userland/."""
    return (USERLAND / name).read_text(encoding="ascii")


def help_options(text):
    """{(letter, name, what it takes)} that a help text lists."""
    return COMMON | set(re.findall(r"^  (?:-(\w),|   ) --([a-z-]+)(?:=(\S+))?  ", text, re.M))


def help_classes(text):
    """The classes of refusal below --force, in order."""
    return re.findall(r"^ {6,}([a-z]+(?:-[a-z]+)*)  +\w", text.partition("--force=CLASS")[2], re.M)


def section(page, name):
    """Of a man page, with its escapes taken away."""
    text = page.partition(f"\n.SH {name}\n")[2].partition("\n.SH ")[0]
    return re.sub(r"\\f.", "", text).replace("\\-", "-")


def man_options(page):
    """{(letter, name, what it takes)} of the section OPTIONS."""
    found = set()
    for line in re.findall(r"^\.TP\n\.BI? (.*)|^\.TP\n\.BR (.*)",
                           section(page, "OPTIONS"), re.M):
        line = "".join(line).replace('"', "").replace("= ", "=")
        found |= set(re.findall(r"^(?:-(\w) ,  )?--([a-z-]+)(?:=(\S+))?$", line))
    return found


def man_classes(page):
    """The classes of refusal that a page explains, in order."""
    text = section(page, "OPTIONS") + section(page, "REFUSALS")
    return re.findall(r"^\.TP\n\.B ([a-z][a-z-]*)$", text, re.M)


def completed(script, call, folder):
    """The words that a function of the completion prints; None if it fails."""
    done = subprocess.run(["bash", "-c", f"set -u\n{script}\n{call}"], cwd=folder, text=True,
                          stdout=subprocess.PIPE, check=False)
    return None if done.returncode else done.stdout.split()


def differences(command, text, page, script, folder):
    """Where help, man page and completion of a command do not say the same."""
    options = help_options(text)
    found = [f"lc-{command}.8 or its help has not {one}"
             for one in sorted(options ^ man_options(page))]
    words = completed(script, f"_lc_options {command}", folder)
    found += [f"completion or help of {command} has not {one}" for one in sorted(
        {f"--{name}{'=' if value else ''}" for _, name, value in options} ^ set(words))]
    for letter, name, value in sorted(options):
        values = [completed(script, f"_lc_values {command} {form} ''", folder)
                  for form in (f"--{name}", f"-{letter}") if form != "-"]
        # A label may be anything.
        if not all(values) if value and value != "TEXT" else any(values):
            found.append(f"completion of {command} --{name}: {values}")
    classes = help_classes(text)
    if "--force" in text and completed(script, f"_lc_values {command} -f ''", folder) != classes:
        found.append(f"completion has not the classes {classes}")
    if classes != man_classes(page):
        found.append(f"lc-{command}.8 has not the classes {classes}")
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_help_version_man_and_completion(command, tmp_path):
    """Help, man page and completion have the same options, and classes of refusal."""
    (tmp_path / "file").touch()
    assert run_tool(command, "--version").out.startswith("lc (dm-lc) ")
    done = run_tool(command, "--help", san=True)
    assert done.code == 0 and done.out.startswith(f"Usage: lc-{command}")
    # --help and --version are on one line.
    assert len(help_options(done.out)) == len(re.findall(r"^ +(?:-\w, +)?--", done.out, re.M)) + 1
    assert differences(command, done.out, text_of(f"man/lc-{command}.8"), text_of(COMPLETION),
                       tmp_path) == []


@pytest.mark.parametrize("side, old, new", [
    (0, "      --no-mark ", "      --no-mark-at-all "),
    (0, "  -y, --yes ", "      --yes "),
    (0, "--label=TEXT", "--label     "),
    (0, "      roles ", "      rolls "),
    (0, "      same-disk ", "      "),
    (1, ".B \\-\\-discard\n", ".B discard\n"),
    (1, '.BR \\-y ", " \\-\\-yes', '.BR \\-\\-yes'),
    (1, "\\-\\-checksum=\\fITYPE", "\\-\\-checksum"),
    (1, ".B paired\n", ".B pairs\n"),
    (1, ".SH OPTIONS\n", ".SH OPTIONS\n.TP\n.B \\-\\-fast\nDo it fast.\n"),
    (2, "--in-place ", ""),
    (2, "--option= --discard", "--option --discard"),
    (2, "--discard ", "--discard --fast "),
    (2, "format:-s)", "format:-S)"),
    (2, "hdd-signature paired", "paired"),
    (2, "*:--option |", "resume:--option |"),
], ids=lambda value: re.sub(r"\W+", "-", str(value)).strip("-"))
def test_difference_is_found(side, old, new, tmp_path):
    """The comparison above fails when one of the three has more or less than the others."""
    (tmp_path / "file").touch()
    texts = [run_tool("format", "--help").out, text_of("man/lc-format.8"), text_of(COMPLETION)]
    assert old in texts[side]
    texts[side] = texts[side].replace(old, new, 1)
    assert differences("format", *texts, tmp_path)


def test_classes_of_refusal():
    """The tests know all classes of lc-format."""
    assert help_classes(run_tool("format", "--help").out) == list(CLASSES)


def test_commands():
    """Help, links, pages and completion are of the same commands."""
    listed = host.run(USERLAND / "build/lc", "--help")
    assert tuple(re.findall(r"^  (\w+) ", listed, re.M)) == COMMANDS
    assert re.search(r"^COMMANDS := (.*)", text_of("Makefile"), re.M)[1].split() == list(COMMANDS)
    assert tuple(re.findall(r"^\.TP\n\.B lc-(\w+)$", section(text_of("man/lc.8"), "COMMANDS"),
                            re.M)) == COMMANDS
    names = [f"lc-{command}" for command in COMMANDS]
    pages = [path.stem for path in sorted((USERLAND / "man").glob("lc-*.8"))]
    assert pages == sorted([*names, "lc-latency"])
    script = text_of(COMPLETION)
    call = "COMP_WORDS=(lc ''); COMP_CWORD=1; _lc; echo ${COMPREPLY[*]}"
    assert completed(script, call, USERLAND) == [*COMMANDS, "--help", "--version"]
    bound = completed(script, "complete -p", USERLAND)
    assert sorted(word for word in bound if re.match(r"lc(-|$)", word)) == ["lc", *sorted(names)]


def test_options_of_the_target(tmp_path):
    """The completion of --option has the module's table."""
    source = next(path for path in (host.TOP / "dm-lc").rglob("params.c"))
    code = re.findall(r"^\t(?:OPTION|SWITCH|WORDS)\((\w+),", text_of(source), re.M)
    for command in ("format", "resume"):
        assert completed(text_of(COMPLETION), f"_lc_values {command} -o ''", tmp_path) == \
            [f"{name}=" for name in code]


def test_install(tmp_path):
    """One binary, links, pages, completion, and what udev asks."""
    host.run("make", "-s", "-C", USERLAND, "install", f"DESTDIR={tmp_path}", "PREFIX=/usr")
    for command in COMMANDS:
        assert os.readlink(tmp_path / f"usr/sbin/lc-{command}") == "lc"
        assert (tmp_path / f"usr/share/man/man8/lc-{command}.8").is_file()
    assert (tmp_path / "usr/share/bash-completion/completions/lc").is_file()
    assert (tmp_path / "usr/share/zsh/vendor-completions/_lc").is_file()
    assert os.readlink(tmp_path / "usr/lib/udev/lc-probe") == "../../sbin/lc"
    rules = (USERLAND / "udev").glob("*.rules")
    assert all((tmp_path / "usr/lib/udev/rules.d" / path.name).is_file() for path in rules)
    with contextlib.suppress(FileNotFoundError):
        host.run("bash", "-n", tmp_path / "usr/share/bash-completion/completions/lc")


def test_named_classes_exist():
    """Each --force= of a message is one that its command takes, as it stands there."""
    classes = {command: help_classes(run_tool(command, "--help").out)
               for command in ("format", "detach")}
    named = set()
    for source in USERLAND.glob("*.c"):
        text = re.sub(r'"\s*"', "", source.read_text(encoding="utf-8"))
        for command, options in re.findall(r"lc-(format|detach)((?: --force=[^\s)\";]+)+)", text):
            named |= {(command, word.rstrip(",.")) for word in re.findall(r"=(\S+)", options)}
    assert ("format", "dirty-cache") in named and ("detach", "cache-missing") in named
    assert not [(command, word) for command, word in named if word not in classes[command]]
