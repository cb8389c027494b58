# SPDX-License-Identifier: GPL-2.0-only
"""Why a guest says nothing: evidence about QEMU and the guest's CPUs, taken before it is killed.

A kernel that hangs still takes interrupts of its timers on some CPU, or spins. Both cost host CPU
time. An emulator that has stopped costs none: its threads wait for each other.
"""

import json
import pathlib
import re
import socket
import time

WATCHED_SECONDS = 30    # in which the timers of a guest that lives expire many times
LEAST_NS = 1_000_000    # so much that costs at the very least
STACK_WORDS = 64
ANSWER_SECONDS = 10
INTERRUPTS_ON = 0x200   # of RFLAGS


def threads(pid):
    """{thread id: (name, state, nanoseconds on a CPU, the function of the host it sleeps in)}."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").glob("[0-9]*"):
        try:
            name, _, rest = (task / "stat").read_text("utf-8").partition("(")[2].rpartition(")")
            spent = int((task / "schedstat").read_text("ascii").split()[0])
            found[int(task.name)] = (name, rest.split()[0], spent,
                                     (task / "wchan").read_text("ascii"))
        except OSError:     # it has ended meanwhile
            continue
    return found


def cpu_time(pid):
    """Nanoseconds that the threads of the guest's CPUs have spent."""
    return sum(spent for name, _, spent, _ in threads(pid).values() if "CPU" in name)


class Monitor:
    """QEMU's machine protocol; OSError if QEMU does not answer."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(ANSWER_SECONDS)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile("r", encoding="utf-8")
        self.lines.readline()
        self.command("qmp_capabilities")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lines.close()
        self.socket.close()

    def command(self, name, **arguments):
        """What QEMU returns."""
        self.socket.sendall(json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n")
        while True:
            line = self.lines.readline()
            if not line:
                raise ConnectionError("QEMU hung up")
            answer = json.loads(line)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise OSError(answer["error"]["desc"])

    def human(self, line, cpu=0):
        """The answer to a command for people."""
        return self.command("human-monitor-command", **{"command-line": line, "cpu-index": cpu})

    def registers(self):
        """{number: (interrupts are on, it is halted, text)} of the guest's CPUs."""
        found = {}
        for cpu in self.command("query-cpus-fast"):
            number = cpu["cpu-index"]
            text = self.human("info registers", number)
            flags = int(re.search(r"FL=([0-9a-f]+)", text)[1], 16)
            kept = [line for line in text.splitlines() if re.match(r"[RE][A-Z0-9 ]{2}=|CR", line)]
            rsp = re.search(r"RSP=([0-9a-f]+)", text)
            if rsp:     # a table of the kernel's symbols turns it into a call trace
                kept.append(self.human(f"x/{STACK_WORDS}gx 0x{rsp[1]}", number))
            found[number] = bool(flags & INTERRUPTS_ON), "HLT=1" in text, "\n".join(kept)
        return found


def look(path):
    """What QEMU says of the guest's CPUs, as Monitor.registers(); or why it says nothing."""
    try:
        with Monitor(path) as monitor:
            return monitor.registers(), ""
    except OSError as error:
        return {}, f"QEMU's monitor does not answer: {error!r}"


def evidence(pid, path, seconds=WATCHED_SECONDS):
    """(whether the emulator stands still, all that is known of it as text).

    `path` is the socket of its monitor. It stands still if the threads of its CPUs spend no time,
    unless each of these waits with interrupts off, as a kernel leaves it that has given up.
    """
    before = threads(pid)
    time.sleep(seconds)     # a period to be watched, not a condition
    after = threads(pid)
    registers, why = look(path)
    words = [f"threads of QEMU, and their CPU time within {seconds} s:"]
    spent = 0
    for thread, (name, state, total, where) in after.items():
        more = total - before.get(thread, (0, 0, 0))[2]
        spent += more if "CPU" in name else 0
        words.append(f"  {name}: {state} in {where}, {more / 1e6:.3f} ms")
    for number, (enabled, halted, text) in registers.items():
        words.append(f"CPU {number}: interrupts {'on' if enabled else 'off'}"
                     f"{', halted' if halted else ''}\n{text}")
    gave_up = registers and not any(enabled or not halted
                                    for enabled, halted, _ in registers.values())
    return spent < LEAST_NS and not gave_up, "\n".join([*words, why])
