# SPDX-License-Identifier: GPL-2.0-only
"""lc-generator: the units that it makes of /etc/lctab."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

from lib import host
from lib.tools import USERLAND, expect, run_tool

UUID = "5c1e0b8e-7d0f-4f43-9d7e-6a6f1d7c4a51"
SDB, SDC = "/dev/sdb", "/dev/sdc"
# As a shell would read them; paths of devices that are hard to write down.
HOSTILE = ["%n", "$HOME", "${HOME}", "a b", "'", '"', "\\", "\\x20", "\\n", "%%", "$$", ";", "é音",
           "-x", "a-b", ".hidden", "x" * 150, "a,b", "#", "@:+|!", "{}[]()*?~`&<>^="]


@pytest.fixture(name="make", params=[False, True], ids=["plain", "sanitized"])
def fixture_make(request, tmp_path):
    """Run lc-generator on a table; returns (how it ended, folder of the units)."""
    def make(table, code=0):
        path, out = tmp_path / "lctab", tmp_path / "normal"
        path.write_bytes(table if isinstance(table, bytes) else table.encode())
        shutil.rmtree(out, ignore_errors=True)
        for name in ("normal", "early", "late"):
            (tmp_path / name).mkdir(exist_ok=True)
        done = run_tool("generator", out, tmp_path / "early", tmp_path / "late",
                        san=request.param, env={"LCTAB": str(path)})
        assert done.code == code and not done.out, done
        assert not list((tmp_path / "early").iterdir()) + list((tmp_path / "late").iterdir())
        return done, out
    return make


def listing(folder):
    """{name below the folder: text of a file, or where a link leads}."""
    return {str(path.relative_to(folder)): os.readlink(path) if path.is_symlink()
            else path.read_text(encoding="utf-8")
            for path in folder.rglob("*") if path.is_symlink() or path.is_file()}


def values(text, key):
    """All words that a unit says of this key."""
    return [word for line in re.findall(rf"^{key}=(.*)$", text, re.M) for word in line.split(" ")]


def command(text, key="ExecStart"):
    """The arguments as systemd would run them: its own escapes undone, without variables."""
    line, = re.findall(rf"^{key}=(.*)$", text, re.M)
    assert not re.search(r"""["'\s]\s""", line) and line.isascii(), line
    raw = re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), line.encode())
    # Doubled, or not there at all.
    assert not re.search(rb"(?<!%)%(%%)*(?!%)|(?<!\$)\$(\$\$)*(?!\$)", raw), raw
    words = []
    for word in line.split(" "):
        word = word.replace("%%", "%").replace("$$", "$").encode()
        words.append(re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), word)
                     .decode())
    return words


def systemd(tool, *words, **options):
    """Run one of systemd's tools, if it is here."""
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    return subprocess.run([tool, *map(str, words)], text=True, check=False, capture_output=True,
                          **options)


def verify(folder):
    """systemd finds nothing to say of the services in a folder."""
    for unit in sorted(folder.glob("*.service")):
        done = systemd("systemd-analyze", "verify", "--man=no", unit)
        said = [line for line in (done.stdout + done.stderr).splitlines() if str(folder) in line
                or unit.name in line or "lc@" in line]
        assert not said, said


def test_a_volume(make):
    """The unit, and what starts it: lc.target, either disk, a mount."""
    _, out = make(f"# volumes\n\n  music\t{SDB}   {SDC}\n")
    made = listing(out)
    text = made.pop("lc@music.service")
    assert made == {
        "dev-mapper-music.device.d/40-lc.conf":
            "# Made by lc-generator\n\n[Unit]\nJobRunningTimeoutSec=infinity\n",
        **{f"{name}/lc@music.service": "../lc@music.service" for name in (
            "dev-mapper-music.device.requires", "lc.target.requires", "dev-sdb.device.wants",
            "dev-sdc.device.wants")}}
    # A device that never appears must not keep lc-resume from telling so.
    assert values(text, "Requires") == values(text, "BindsTo") == []
    assert {"dev-sdb.device", "dev-sdc.device"} <= set(values(text, "Wants"))
    assert values(text, "StopPropagatedFrom") == ["dev-sdc.device"]
    assert {"dev-sdb.device", "dev-sdc.device", "systemd-udevd.service"} <= set(
        values(text, "After"))
    assert set(values(text, "Before")) == {"blockdev@dev-mapper-music.target", "lc.target",
                                           "local-fs-pre.target", "umount.target"}
    assert {"blockdev@dev-mapper-music.target", "local-fs-pre.target"} <= set(
        values(text, "Wants"))
    assert values(text, "Conflicts") == ["umount.target"]
    assert values(text, "PropagatesStopTo") == ["blockdev@dev-mapper-music.target"]
    for line in ("DefaultDependencies=no", "IgnoreOnIsolate=true", "Type=oneshot",
                 "RemainAfterExit=yes", "TimeoutStartSec=infinity", "TimeoutStopSec=300s",
                 f"SourcePath={out.parent}/lctab", "Documentation=man:lctab(5) man:lc-resume(8)"):
        assert f"\n{line}\n" in text, (line, text)
    lc, *rest = command(text)
    assert pathlib.Path(lc).parent.parent == USERLAND and pathlib.Path(lc).name == "lc"
    assert rest == ["resume", "--running-ok", "--", "music", SDB, SDC]
    assert command(text, "ExecStop") == [lc, "remove", "--no-drain", "--missing-ok", "--busy-ok",
                                         "--", "music"]
    verify(out)


@pytest.mark.parametrize("options, targets, before, wants", [
    ("defaults", ["lc.target.requires"], {"lc.target", "local-fs-pre.target"},
     {"local-fs-pre.target"}),
    ("nofail", ["lc.target.wants"], set(), set()),
    ("noauto", [], {"lc.target", "local-fs-pre.target"}, {"local-fs-pre.target"}),
    ("noauto,nofail", [], set(), set()),
    ("_netdev", ["remote-lc.target.requires"], {"remote-lc.target", "remote-fs-pre.target"},
     {"remote-fs-pre.target"}),
    ("nofail,_netdev", ["remote-lc.target.wants"], set(), set()),
    ("x-initrd.attach", ["lc.target.requires"], {"lc.target", "local-fs-pre.target"},
     {"local-fs-pre.target"}),
])
def test_options(make, options, targets, before, wants):
    """What waits for the volume, and what starts it."""
    _, out = make(f"a-b {SDB} /dev/nbd12 {options}\n")
    made = listing(out)
    unit = r"lc@a\x2db.service"
    text = made[unit]
    always = {r"blockdev@dev-mapper-a\x2db.target", "umount.target"}
    assert set(values(text, "Before")) == before | always
    assert {word for word in values(text, "Wants") if word.endswith("-pre.target")} == wants
    assert values(text, "Conflicts") == ([] if "initrd" in options else ["umount.target"])
    network = {"network.target", "open-iscsi.service", "iscsid.service", "nbd@nbd12.service"}
    assert network & set(values(text, "After")) == (network if "_netdev" in options else set())
    started = [name.rpartition("/")[0] for name in made if name.endswith(f"/{unit}")]
    devices = [] if "noauto" in options else ["dev-sdb.device.wants", "dev-nbd12.device.wants"]
    assert sorted(started) == sorted(
        targets + devices + [r"dev-mapper-a\x2db.device.requires"])
    verify(out)


@pytest.mark.parametrize("field, second, third", [
    (f"LC={UUID.upper()}", f"/dev/disk/by-lc/{UUID}.cache", f"/dev/disk/by-lc/{UUID}.backing"),
    ("UUID=94B0-AE63", "/dev/disk/by-uuid/94B0-AE63", None),
    ("PARTUUID=a-1", "/dev/disk/by-partuuid/a-1", None),
    (r"LABEL=My\040disk/1", r"/dev/disk/by-label/My\x20disk\x2f1", None),
    ("PARTLABEL=Müsik", "/dev/disk/by-partlabel/Müsik", None),
    (r"/dev/disk/by-id/a\134040b", r"/dev/disk/by-id/a\040b", None),
])
def test_names_of_devices(make, field, second, third):
    """As fstab has them, with udev's escapes; the hard disk of LC=UUID is known."""
    _, out = make(f"one {field}\ntwo {field} -\nthree {SDB} {field}\n")
    made = listing(out)
    for name in ("one", "two"):
        words = command(made[f"lc@{name}.service"])
        assert words[words.index("--") + 1:] == [name, second] + ([third] if third else [])
        assert ("--wait=90" in words) == (third is None)
    assert command(made["lc@three.service"])[-1] == (third or second)


@pytest.mark.parametrize("time, unit, wait", [
    ("30", "30s", "30"), ("1min30s", "90s", "90"), ("2h", "7200s", "7200"),
    ("infinity", "infinity", "infinity"), ("0", "infinity", "infinity")])
def test_timeout(make, time, unit, wait):
    """For the devices, and for a disk that no unit waits for."""
    option = f"x-systemd.device-timeout={time}"
    _, out = make(f"one {SDB} {SDC} {option}\ntwo {SDB} - {option},iostats,buffers=64,lanes=\n")
    made = listing(out)
    for device in ("dev-sdb", "dev-sdc"):
        text = made[f"{device}.device.d/50-lc-device-timeout.conf"]
        assert values(text, "JobRunningTimeoutSec") == [unit]
    assert not [word for word in command(made["lc@one.service"]) if "--wait" in word]
    assert command(made["lc@two.service"])[1:] == [
        "resume", "--running-ok", "--iostats", f"--wait={wait}", "-o", "buffers=64", "-o", "lanes=",
        "--", "two", SDB]


@pytest.mark.parametrize("line, says", [
    ("music", "names no SSD"),
    (f"a/b {SDB}", "no name for a volume"),
    (f"a%n {SDB}", "no name for a volume"),
    (f"mü {SDB}", "no name for a volume"),
    (f"'a' {SDB}", "no name for a volume"),
    (f".. {SDB}", "no name for a volume"),
    (f"control {SDB}", "no name for a volume"),
    (f"{'n' * 200} {SDB}", "no name for a volume"),
    (f"{'-' * 100} {SDB}", "too long"),
    (f"music /dev/{'x' * 300}", "too long"),
    ("music sdb", "is no device"),
    ("music /etc/passwd", "is no device"),
    ("music /dev/../etc/passwd", "is no device"),
    ("music /dev//sdb", "is no device"),
    ("music /dev/sdb/", "is no device"),
    ("music /dev/", "is no device"),
    ("music UUID=", "is no device"),
    ("music LC=5c1e0b8e", "no UUID of a pair"),
    ("music -", "is no device"),
    (f"music {SDB} sdc", "is no device"),
    (f"music {SDB} {SDB}", "the same device"),
    ("music /dev/s\\012db", "no device has"),
    ("music /dev/s\\000db", "no device has"),
    (f"music {SDB} {SDC} nofail noauto", "more than four fields"),
    (f"music {SDB} {SDC} nofial", "'nofial' is no option"),
    (f"music {SDB} {SDC} x-systemd.device-timeout=soon", "write the time as"),
    (f"music {SDB} {SDC} x-systemd.device-timeout=99999999999999999999", "write the time as"),
    (f"music {SDB} {SDC} x-systemd.automount=1", "is no option"),
    (f"music {SDB} {SDC} colour=red", "Unknown option"),
    (f"music {SDB} {SDC} lanes=500", "lanes=500"),
    (f"music {SDB} {SDC} buffers=$(reboot)", "plain words"),
    (f"good {SDB} {SDC}", "line 1 names volume good too"),
    (f"music {SDB}\r", "control characters"),
    (f"music {SDB}\0 {SDC}", "control characters"),
    ("\0", "control characters"),
    ("music \x1b[2J", "control characters"),
])
def test_bad_lines(make, line, says):
    """Are told with number, reason and remedy, and left out; the others count."""
    done, out = make(f"good {SDB} {SDC}\n{line}\nlast {SDB} {SDC}", code=1)
    expect(done, 1, "/lctab:2: ", says, "; the line is left out")
    assert done.err.count("\n") == 1 and done.err.strip().isprintable(), done.err
    assert sorted(path.name for path in out.glob("*.service")) == [
        "lc@good.service", "lc@last.service"]


def test_hostile_names(make):
    """Whatever a path holds is a part of one word, and of one name of a unit."""
    written = [name.replace("\\", r"\134").replace(" ", r"\040") for name in HOSTILE]
    _, out = make("".join(f"v{number} /dev/disk/by-id/{name} {SDC}\n"
                          for number, name in enumerate(written)))
    made = listing(out)
    for number, name in enumerate(HOSTILE):
        path = f"/dev/disk/by-id/{name}"
        text = made[f"lc@v{number}.service"]
        assert command(text)[-3:] == [f"v{number}", path, SDC]
        unit, = [word for word in values(text, "After") if "by" in word]
        done = systemd("systemd-escape", "--path", "--suffix=device", "--", path)
        assert done.stdout == unit + "\n"
        assert f"{unit}.wants/lc@v{number}.service" in made
    verify(out)


def test_names_of_volumes(make):
    """As systemd-escape has them."""
    names = ["-x", ".a", "a.b", "a:b@c", "a#=+_", "A" * 127, "-" * 40]
    _, out = make("".join(f"{name} {SDB}\n" for name in names))
    units = {path.name for path in out.glob("*.service")}
    for name in names:
        done = systemd("systemd-escape", "--template=lc@.service", "--", name)
        assert done.stdout.strip() in units
    verify(out)


def test_bytes_that_are_no_text(make):
    """Of another encoding: they stay the same bytes."""
    _, out = make(b"music /dev/disk/by-id/caf\xe9 LABEL=\xff\xc3\n")
    text = (out / "lc@music.service").read_text(encoding="ascii")
    assert r" /dev/disk/by-id/caf\xe9 /dev/disk/by-label/\x5cxff\x5cxc3" in text
    verify(out)


def test_no_table(tmp_path):
    """None, an empty one, one that is none, a folder that is not there, a wrong call."""
    (tmp_path / "out").mkdir()
    for kind, code, says in (("missing", 0, ""), ("empty", 0, ""), ("fifo", 1, "no regular file"),
                             ("folder", 1, "no regular file")):
        path = tmp_path / kind
        if kind == "empty":
            path.touch()
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        for san in (False, True):
            done = run_tool("generator", *[tmp_path / "out"] * 3, san=san,
                            env={"LCTAB": str(path)})
            expect(done, code, says)
            assert bool(done.err) == bool(code)
    table = tmp_path / "lctab"
    table.write_text(f"music {SDB}\n", encoding="ascii")
    for san in (False, True):
        done = run_tool("generator", *[tmp_path / "gone"] * 3, san=san, env={"LCTAB": str(table)})
        expect(done, 1, "cannot be made: No such file or directory")
        assert run_tool("generator", san=san).code == 2
    assert not list((tmp_path / "out").iterdir())


def test_example_of_the_manual(make):
    """The lines of lctab(5) are good ones, and so is the package's file."""
    page = (USERLAND / "man/lctab.5").read_text(encoding="ascii")
    example = page.partition(".SH EXAMPLES\n.RS\n.nf\n")[2].partition(".fi\n")[0]
    _, out = make(example.replace("\\-", "-"))
    assert sorted(path.name for path in out.glob("*.service")) == [
        "lc@music.service", "lc@video.service"]
    _, out = make((host.TOP / "debian/lctab").read_text(encoding="ascii"))
    assert not list(out.iterdir())


def test_targets_are_sound(tmp_path):
    """The units that `make install` installs, wherever the tools are."""
    host.run("make", "-s", "-C", USERLAND, "install", f"DESTDIR={tmp_path}", "PREFIX=/opt/lc")
    systemd_folder = tmp_path / "usr/lib/systemd"
    generator = systemd_folder / "system-generators/lc-generator"
    assert not os.path.isabs(os.readlink(generator))
    assert generator.resolve() == tmp_path / "opt/lc/sbin/lc"
    assert (tmp_path / "opt/lc/share/man/man5/lctab.5").is_file()
    for target, wanted in (("lc.target", "sysinit.target"), ("remote-lc.target",
                                                             "multi-user.target")):
        unit = systemd_folder / "system" / target
        assert (unit.parent / f"{wanted}.wants" / target).resolve() == unit
        # Nothing for systemctl enable: the packages and make install are one.
        assert "[Install]" not in unit.read_text(encoding="ascii")
        assert shlex.split(systemd("systemd-analyze", "verify", "--man=no", unit).stderr) == []
