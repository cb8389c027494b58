# SPDX-License-Identifier: GPL-2.0-only
"""Start and stop the emulated disks on the host, and talk to them.

    with Disks(ssd="1G", hdd="8T", models={"hdd": "hdd"}) as disks:
        qemu += disks.qemu_args()
        disks.control.request("arm", after_commands=100, seed=1)

Models nothing itself; see recorder.py.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

PLUGIN = Path(__file__).resolve().parent / "plugin.py"
PORT_NAME = "dmlc.disks"
STOP_SECONDS = 20

# One heap, grown in big steps and never given back: chunks come and go all the time.
MALLOC = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_TOP_PAD_": str(64 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
}


class DisksError(RuntimeError):
    """The disks refused a request or are not there."""


class Control:
    """A client of the control socket."""

    def __init__(self, path: str | Path, timeout: float = 120):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("rb")
        self._tags = itertools.count(1)

    def request(self, do: str, **args) -> dict:
        """Send one request, return its reply; DisksError if it was refused."""
        message = {"do": do, "tag": next(self._tags), **args}
        self._socket.sendall(json.dumps(message).encode() + b"\n")
        line = self._lines.readline()
        if not line:
            raise DisksError(f"{do}: the disks hung up")
        reply = json.loads(line)
        if not reply.pop("ok"):
            raise DisksError(f"{do}: {reply.get('error')}")
        reply.pop("tag", None)
        return reply

    def close(self) -> None:
        """Hang up."""
        self._lines.close()
        self._socket.close()


class Disks:
    """A running nbdkit with both disks, in a folder of its own."""

    def __init__(
        self,
        ssd: str | int = "1G",
        hdd: str | int = "4G",
        models: dict[str, str] | None = None,
        model_params: dict[str, dict[str, float]] | None = None,
        cache: str | int | None = None,
        preheat: str | int | None = None,
        clock: bool = False,
        save: str | Path | None = None,
        threads: int = 32,
        **more: str | int,      # hdd0 to hdd9: size
    ):
        sizes = {"ssd": ssd, "hdd": hdd, **more}
        self._names = tuple(sizes)
        self._params = [f"{name}={size}" for name, size in sizes.items()]
        for disk, kind in (models or {}).items():
            self._params.append(f"{disk}-model={kind}")
        for disk, params in (model_params or {}).items():
            self._params += [f"{disk}-model.{k}={v}" for k, v in params.items()]
        if cache is not None:
            self._params.append(f"cache={cache}")
        if preheat is not None:
            self._params.append(f"preheat={preheat}")
        if save is not None:
            self._params.append(f"save={save}")
        self._clock = clock
        self._threads = threads
        self._folder: Path | None = None
        self._process: subprocess.Popen | None = None
        self.control: Control

    # ---- life ------------------------------------------------------------------

    def start(self) -> Disks:
        """Start nbdkit; returns when both sockets answer."""
        if not shutil.which("nbdkit"):
            raise DisksError("nbdkit is missing: install nbdkit and nbdkit-plugin-python")
        self._folder = Path(tempfile.mkdtemp(prefix="dm-lc-disks-"))
        ready, ready_child = os.pipe()
        command = [
            "nbdkit", "-f", "--exit-with-parent", "-t", str(self._threads),
            "-U", str(self.nbd_socket), "python", str(PLUGIN),
            f"control={self.control_socket}", f"ready-fd={ready_child}", *self._params,
        ]  # fmt: skip
        with open(self.log, "wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[ready_child],
                env={**os.environ, **MALLOC},
            )
        os.close(ready_child)
        try:
            if not os.read(ready, 1):
                raise DisksError(f"nbdkit did not start: {self.log.read_text().strip()}")
            self.control = Control(self.control_socket)
        except BaseException:
            self.stop()
            raise
        finally:
            os.close(ready)
        return self

    def stop(self) -> None:
        """Stop nbdkit and remove its folder."""
        if hasattr(self, "control"):
            self.control.close()
        if self._process:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __enter__(self) -> Disks:
        return self.start()

    def __exit__(self, *exc) -> None:
        self.stop()

    # ---- where things are --------------------------------------------------------

    def _path(self, name: str) -> Path:
        if not self._folder:
            raise DisksError("not started")
        return self._folder / name

    @property
    def nbd_socket(self) -> Path:
        """nbdkit's NBD socket."""
        return self._path("nbd")

    @property
    def control_socket(self) -> Path:
        """The control socket."""
        return self._path("control")

    @property
    def log(self) -> Path:
        """What nbdkit said."""
        return self._path("log")

    def uri(self, name: str) -> str:
        """NBD URI of a disk."""
        return f"nbd+unix:///{name}?socket={self.nbd_socket}"

    def qemu_args(self) -> list[str]:
        """Both disks as virtio drives with serials `ssd` and `hdd`, and the control port.

        With clock=True also the clock (plugin.py), with the serial `clock`.
        """
        args = []
        if self._clock:
            args += [
                "-drive", f"file={self.uri('clock')},if=none,id=clock,format=raw,readonly=on",
                "-device", "virtio-blk-pci,drive=clock,serial=clock",
            ]  # fmt: skip
        for name in self._names:
            args += [
                "-drive",
                f"file={self.uri(name)},if=none,id={name},format=raw,cache=none,discard=unmap",
                "-device",
                f"virtio-blk-pci,drive={name},serial={name},werror=report,rerror=report",
            ]
        return args + [
            "-device", "virtio-serial-pci,id=disks-bus",
            "-chardev", f"socket,id=disks,path={self.control_socket}",
            "-device", f"virtserialport,bus=disks-bus.0,chardev=disks,name={PORT_NAME}",
        ]  # fmt: skip
