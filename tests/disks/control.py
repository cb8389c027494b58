# SPDX-License-Identifier: GPL-2.0-only
"""The control protocol: one JSON object a line, answered by one JSON object a line.

    {"do": "arm", "after_commands": 40, "seed": 7, "policy": "random", "tag": 1}
    {"tag": 1, "ok": true, "power": "on", "armed": 40, ...}
    {"tag": 2, "ok": false, "error": "unknown disk 'sdd'; one of ssd, hdd"}

`do` names a method of Recorder ('-' for '_'), the rest are its arguments, `tag` comes
back as it went out. Blank lines are ignored, so a client that does not know what was
sent before it may begin with one.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading

from .recorder import Recorder

REQUESTS = (
    "cut", "restore", "arm", "disarm", "state", "wait", "snapshot", "revert", "drop-snapshot",
    "wipe", "stats", "reset-stats", "trace", "fault", "faults", "fault-clear", "corrupt",
    "dump", "poke", "digest", "model", "model-time", "clock",
    "journal-start", "journal-stop", "journal-events", "journal-drop", "crash-state", "save-state",
)  # fmt: skip
ALIASES = {"armed?": "state", "armed": "state"}


def answer(recorder: Recorder, line: bytes | str) -> dict:
    """Carry out one request; never raises."""
    reply: dict = {}
    try:
        request = json.loads(line)
        if not isinstance(request, dict):
            raise ValueError("a request is an object")
        if "tag" in request:
            reply["tag"] = request.pop("tag")
        name = request.pop("do", None)
        name = ALIASES.get(name, name)
        if name == "ping":
            return {**reply, "ok": True}
        if name not in REQUESTS:
            raise ValueError(f"unknown request {name!r}; one of {', '.join(REQUESTS)}")
        result = getattr(recorder, name.replace("-", "_"))(**request)
        if not isinstance(result, dict):
            result = {name: result}
        return {**reply, "ok": True, **result}
    except (ValueError, TypeError, AttributeError, TimeoutError, OSError) as err:
        return {**reply, "ok": False, "error": str(err)}


def _converse(recorder: Recorder, conn: socket.socket) -> None:
    with conn, conn.makefile("rb") as lines:
        try:
            for line in lines:
                if line.strip():
                    conn.sendall(json.dumps(answer(recorder, line)).encode() + b"\n")
        except OSError:
            pass  # the other side went away


def serve(recorder: Recorder, path: str) -> None:
    """Listen on @path; every connection has a thread."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener.bind(path)
    listener.listen()

    def accept() -> None:
        while True:
            conn, _ = listener.accept()
            threading.Thread(target=_converse, args=(recorder, conn), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
