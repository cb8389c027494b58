# SPDX-License-Identifier: GPL-2.0-only
"""The harness's hand in the server guest: runs the commands that come over a port of its own.

JSON lines. It begins with {"boot": ...}. The host sends {"run": SCRIPT, "user": NAME, "limit":
SECONDS, "answers": TEXT or null}; back comes {"code": N, "output": TEXT}, with code null if the
script was still running at its limit. With answers the script has a terminal, on which they
have been typed.
"""

import json
import os
import pathlib
import pty
import pwd
import select
import signal
import subprocess
import time
import traceback

PORT = "/dev/virtio-ports/dmlc.verdict"
MOST = 200_000  # of a script's output; the end says what went wrong


def shell(user):
    """A login shell, as a person at a terminal has it, that reads the script from its argument."""
    words = ["bash", "-l", "-c"]
    return words if user == "root" else ["runuser", "-u", user, "--", *words]


def start(request, stdin, output):
    """The script in a session of its own."""
    home = pwd.getpwnam(request["user"]).pw_dir
    environment = {"HOME": home, "LC_ALL": "C.UTF-8", "TERM": "dumb",
                   "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    return subprocess.Popen([*shell(request["user"]), request["run"]], cwd=home, env=environment,
                            stdin=stdin, stdout=output, stderr=output, start_new_session=True)


def collected(process, reader, limit):
    """(code, output) when the script has ended, or (None, output) at its limit."""
    end = time.monotonic() + limit
    output = b""
    while True:
        ready = select.select([reader], [], [], 0.1)[0]
        if ready:
            try:
                part = os.read(reader, 65536)
            except OSError:  # a terminal that nobody has open any more
                part = b""
            output = (output + part)[-MOST:]
        # What a script leaves in the background keeps the pipe open: its own end counts.
        if process.poll() is not None and (not ready or not part):
            return process.returncode, output
        if time.monotonic() > end:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None, output


def run(request):
    """Carry out one request."""
    if request["answers"] is None:
        reader, writer = os.pipe()
        stdin = subprocess.DEVNULL
    else:
        reader, writer = pty.openpty()
        os.write(reader, request["answers"].encode())
        stdin = writer
    process = start(request, stdin, writer)
    os.close(writer)
    code, output = collected(process, reader, request["limit"])
    os.close(reader)
    return {"code": code, "output": output.decode(errors="replace").replace("\r\n", "\n")}


def main():
    """Until the machine stops."""
    with open(PORT, "r+b", buffering=0) as port:
        def send(message):
            data = json.dumps(message).encode() + b"\n"
            while data:
                data = data[port.write(data):]

        send({"boot": True, "release": os.uname().release,
              "uptime": float(pathlib.Path("/proc/uptime").read_text("ascii").split()[0])})
        data = b""
        while True:
            part = port.read(65536)
            if not part:  # nobody at the other end
                time.sleep(0.1)
                continue
            data += part
            *lines, data = data.split(b"\n")
            for line in lines:
                try:
                    send(run(json.loads(line)))
                except Exception:  # pylint: disable=broad-except
                    send({"code": -1, "output": traceback.format_exc()})


if __name__ == "__main__":
    main()
