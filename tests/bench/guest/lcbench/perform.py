# SPDX-License-Identifier: GPL-2.0-only
"""Performs a plan: every job over every system it is for, each result told at once."""

import os
import pathlib
import time
import traceback

from lclib import sh

from . import common, jobs, load, systems

CLOCK = pathlib.Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


def begin(send):
    """Tell what this machine is like."""
    send("begin", release=os.uname().release, cpus=os.cpu_count(),
         clock=CLOCK.read_text(encoding="ascii").strip(), targets=sh.run("dmsetup", "targets"),
         options={name: kind.options for name, kind in systems.BY_NAME.items()})


def rotated(names, by):
    """Rotate the order: another system begins in each repetition."""
    by %= len(names)
    return [*names[by:], *names[:by]]


def perform(send, bench, where):
    """The whole plan; `where` has (SSD, HDD) for jobs on RAM disks, and for the others."""
    plan = bench.plan
    for repetition in range(plan["repetitions"]):
        for name in plan["jobs"]:
            if repetition and name in plan["once"]:
                continue
            job = jobs.JOBS[name]
            absent = [*plan["left_out"].get(name, ()),
                      *(plan["once_of"].get(name, ()) if repetition else ())]
            wanted = [system for system in job.systems if system in plan["systems"]
                      and system not in absent]
            bench.ssd, bench.hdd = where["ram" if job.disks == "ram" else "emulated"]
            for system in rotated(wanted, repetition) if wanted else ():
                begun = time.monotonic()
                figures, error = one(bench, job, system)
                if profiles := load.take_profiles():
                    send("profile", job=name, system=system, repetition=repetition,
                         loads=profiles)
                send("result", job=name, system=system, repetition=repetition, figures=figures,
                     error=error, seconds=round(time.monotonic() - begun, 1))


def one(bench, job, system):
    """One job over one system; (figures, what went wrong)."""
    try:
        if job.disks != "ram":
            prepare(bench, job.disks)
        return job.function(bench, system), ""
    except Exception as problem:  # pylint: disable=broad-except
        error = f"{type(problem).__name__}: {problem}\n{traceback.format_exc()}"
        error += "kernel log:\n" + "\n".join(sh.run("dmesg").splitlines()[-12:])
        systems.clear()
        return {}, error


def prepare(bench, kind):
    """Empty disks with the time models that the job wants."""
    common.timed(bench, False)
    for disk in ("ssd", *bench.hdds):
        bench.disks.wipe(disk=disk)
    if kind == "modelled":
        common.timed(bench)
