# SPDX-License-Identifier: GPL-2.0-only
"""The benchmark in user-mode Linux: PID 1, runs the plan on RAM disks, tells each result at once.

/run/out is a folder of the host: `job.json` is the plan, `events` takes JSON lines.
"""

import ctypes
import json
import os
import pathlib
import sys
import traceback

sys.path.insert(0, "/opt/dm-lc/guest")

from lclib import kmsg, sh  # noqa: E402

from . import common, load, perform, systems  # noqa: E402

OUT = pathlib.Path("/run/out")
RB_POWER_OFF = 0x4321FEDC


def measure(send):
    """Take the plan, perform it."""
    log = kmsg.Log()
    plan = json.loads((OUT / "job.json").read_text(encoding="utf-8"))
    for module in systems.MODULES:
        sh.result("modprobe", module)  # some peers are not there
    load.load_module(False)
    perform.begin(send)
    where = {"ram": common.ram_disks(plan["ram_disk"])}
    perform.perform(send, common.Bench("", "", plan, plan["seed"]), where)
    load.unload_module()
    send("end", why="\n".join(kmsg.faults(log.fresh())))


def main():
    """Whatever happens, power off."""
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin:/opt/dm-lc/bin"
    with open(OUT / "events", "ab", buffering=0) as events:
        def send(kind, **fields):
            events.write(json.dumps({"kind": kind, **fields}).encode() + b"\n")
            os.fsync(events.fileno())
        try:
            measure(send)
        except Exception:
            send("end", why=traceback.format_exc())
    os.sync()
    ctypes.CDLL(None).reboot(RB_POWER_OFF)


if __name__ == "__main__":
    main()
