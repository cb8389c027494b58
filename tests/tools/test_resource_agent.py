# SPDX-License-Identifier: GPL-2.0-only
"""The resource agent for Pacemaker: what each action does and how it ends, without a cluster.

The functions that it sources are those of Debian's package resource-agents, which is not installed.
"""

import os
import shutil
import subprocess

import pytest

from lib import apt, host
from lib.tools import USERLAND, lc_format

AGENT = USERLAND / "cluster/volume"
OK, GENERIC, UNIMPLEMENTED, INSTALLED, CONFIGURED, NOT_RUNNING, DEGRADED = 0, 1, 3, 5, 6, 7, 190


@pytest.fixture(scope="session", name="package")
def fixture_package():
    """The package's files."""
    home = host.cache() / f"resource-agents-{host.codename()}"
    with host.locked("resource-agents"):
        if not home.exists():
            try:
                private = apt.PrivateApt("resource-agents", [host.codename()])
                private.update()
                work = host.cache() / ".work-resource-agents"
                shutil.rmtree(work, ignore_errors=True)
                private.unpack("resource-agents", work)
            except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
                pytest.skip(f"resource-agents cannot be fetched: {error}")
            work.rename(home)
    return home


class Agent:
    """One resource on a node."""

    def __init__(self, package, fake, folder, **parameters):
        (folder / "bin").mkdir(exist_ok=True)
        (folder / "bin/lc").unlink(missing_ok=True)
        (folder / "bin/lc").symlink_to(USERLAND / "build/lc")
        self.env = {
            **os.environ, **fake.env, "PATH": f"{folder}/bin:{os.environ['PATH']}",
            "OCF_ROOT": str(package / "usr/lib/ocf"), "HA_RSCTMP": str(folder),
            "OCF_RESOURCE_INSTANCE": "music", "OCF_RESOURCE_TYPE": "volume",
            "HA_LOGFACILITY": "none", "HA_LOGFILE": str(folder / "log"),
            **{f"OCF_RESKEY_{name}": str(value) for name, value in parameters.items()}}

    def __call__(self, *action, code):
        """Run an action, which must end so; what it printed."""
        done = subprocess.run([AGENT, *action], env=self.env, text=True, check=False,
                              capture_output=True)
        assert done.returncode == code, (action, done)
        return done.stdout + done.stderr


@pytest.fixture(name="agent")
def fixture_agent(package, fake, tmp_path, pair):
    """A formatted pair as a resource; parameters may be changed."""
    assert lc_format(pair).code == 0
    # Of the volume, once there is one.
    fake.put("status", fake.STATUS.format(dirty=0, head=10, tail=10, writeback="idle"))

    def make(**parameters):
        return Agent(package, fake, tmp_path, **{
            "name": "lc0", "ssd": pair[0].dev, "hdd": pair[1].dev, **parameters})
    return make


def test_life(agent, fake):
    """Start, monitor, stop; each of them twice is the same as once."""
    volume = agent(options="buffers=64,lanes=2")
    volume("monitor", code=NOT_RUNNING)
    volume("stop", code=OK)
    assert not fake.log()
    volume("start", code=OK)
    created = fake.log()[-1]
    assert created.startswith("create lc0 ") and "buffers 64" in created and "lanes 2" in created
    volume("start", code=OK)
    assert [line for line in fake.log() if line.startswith("create")] == [created]
    volume("monitor", code=OK)
    volume("stop", code=OK)
    assert fake.log()[-1].startswith("remove lc0") and "drain" not in " ".join(fake.log())
    volume("monitor", code=NOT_RUNNING)
    volume("stop", code=OK)


@pytest.mark.parametrize(("mode", "code", "says"), [
    ("rw", OK, ""), ("degraded", DEGRADED, "runs without its SSD"), ("fail", GENERIC, "mode fail"),
    ("ro", GENERIC, "mode ro")])
def test_modes(agent, fake, tmp_path, mode, code, says):
    """A volume that cannot work has failed; one without its SSD works, and that is told."""
    fake.volume((0, 10, 10))
    status = (fake.folder / "status").read_text("ascii")
    fake.put("status", status.replace("mode rw", f"mode {mode}"))
    volume = agent()
    printed = volume("monitor", code=code)
    log = tmp_path / "log"
    assert says in printed + (log.read_text("utf-8") if log.exists() else "")


def test_other_volumes_do_not_matter(agent, fake):
    """Nor do names that begin as this one does."""
    fake.volume((0, 10, 10))
    for name in ("lc", "lc00", "lc.", ".", "NAME", "No"):
        agent(name=name)("monitor", code=NOT_RUNNING)
    fake.put("name", "1")
    agent(name="1")("monitor", code=OK)
    for name in ("01", "1e0", "1.0", "+1"):
        agent(name=name)("monitor", code=NOT_RUNNING)


def test_stop_of_a_volume_in_use_fails(agent, fake):
    """So that the cluster fences the node; nothing else may start the volume then."""
    volume = agent()
    volume("start", code=OK)
    fake.put("open", "1")
    assert "in use" in volume("stop", code=GENERIC)


@pytest.mark.parametrize(("parameters", "code", "says"), [
    ({"name": ""}, CONFIGURED, "no name"), ({"name": "a/b"}, CONFIGURED, "no name"),
    ({"ssd": ""}, CONFIGURED, "ssd is not set"),
    ({"ssd": "/dev/no-ssd"}, INSTALLED, "/dev/no-ssd is not there"),
    ({"hdd": "/dev/no-hdd"}, INSTALLED, "/dev/no-hdd is not there")])
def test_bad_parameters(agent, fake, parameters, code, says):
    """What no node can do, and what only this one cannot."""
    volume = agent(**parameters)
    assert says in volume("start", code=code)
    assert says in volume("validate-all", code=code)
    assert not fake.log()


def test_link_that_is_not_made_yet(agent, fake, tmp_path, pair):
    """A device that was attached just before: the start waits for udev."""
    link = tmp_path / "by-id-ssd"
    volume = agent(ssd=link)
    settle = tmp_path / "bin/udevadm"
    settle.write_text(f"#!/bin/sh\n[ $1 = settle ] && ln -s {pair[0].dev} {link}\n", "ascii")
    settle.chmod(0o755)
    volume("start", code=OK)
    assert fake.log()[-1].startswith("create lc0 ")


def test_refused_start(agent, fake):
    """The reason is what lc-resume says."""
    assert "lanes" in agent(options="lanes=5000")("start", code=GENERIC)
    assert not fake.log()


def test_search_for_the_hard_disk(agent, fake):
    """No hdd: lc-resume finds it."""
    agent(hdd="")("start", code=OK)
    assert fake.log()[-1].startswith("create lc0 ")


def test_metadata(agent, package, tmp_path):
    """Is valid by the DTD, and names each parameter that the agent reads."""
    text = agent()("meta-data", code=OK)
    dtd = package / "usr/share/resource-agents/ra-api-1.dtd"
    (tmp_path / "meta.xml").write_text(text, encoding="utf-8")
    if not shutil.which("xmllint"):
        pytest.skip("xmllint is not installed")
    host.run("xmllint", "--noout", "--nonet", "--dtdvalid", dtd, tmp_path / "meta.xml")
    source = AGENT.read_text(encoding="ascii")
    for name in ("name", "ssd", "hdd", "options"):
        assert f'<parameter name="{name}"' in text and f"OCF_RESKEY_{name}" in source
    agent()("promote", code=UNIMPLEMENTED)
    agent()(code=UNIMPLEMENTED)
