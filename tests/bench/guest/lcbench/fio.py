# SPDX-License-Identifier: GPL-2.0-only
"""What programs see: fio's figures, system calls included."""

import json

from lclib import sh

MIB = 1 << 20
LIBAIO = {"ioengine": "libaio", "direct": 1, "bs": "4k"}
URING = {**LIBAIO, "ioengine": "io_uring"}
SYNC = {"ioengine": "psync", "direct": 1, "bs": "4k", "rw": "randwrite"}
LARGE = {**LIBAIO, "bs": "1m", "iodepth": 4}

# Each is given its share of the cache (`amount`), so that nothing has to drain.
JOBS = {
    "write_depth_1": {**LIBAIO, "rw": "randwrite", "iodepth": 1},
    "write_depth_32": {**LIBAIO, "rw": "randwrite", "iodepth": 32},
    "write_depth_64": {**LIBAIO, "rw": "randwrite", "iodepth": 64},
    "write_2_jobs": {**LIBAIO, "rw": "randwrite", "iodepth": 32, "numjobs": 2},
    "write_4_jobs": {**LIBAIO, "rw": "randwrite", "iodepth": 32, "numjobs": 4},
    "write_uring": {**URING, "rw": "randwrite", "iodepth": 32},
    "write_uring_sqpoll": {**URING, "rw": "randwrite", "iodepth": 32, "sqthread_poll": 1},
    "fsync_every_1": {**SYNC, "fsync": 1},
    "fsync_every_8": {**SYNC, "fsync": 8},
    "fsync_every_64": {**SYNC, "fsync": 64},
    "read_in_ram": {**LIBAIO, "rw": "randread", "iodepth": 32},
    "mix_70_30": {**LIBAIO, "rw": "randrw", "rwmixread": 70, "iodepth": 32},
    "write_1_mib": {**LARGE, "rw": "write"},
    "read_1_mib": {**LARGE, "rw": "read"},
}


# Writers, and readers that write a little, side by side; several depths as for disks of a kind.
MIXED = {
    "hdd": {"iodepth": 1, "writers": 2, "readers": 1, "rwmixread": 40},
    "ssd": {"iodepth": 4, "writers": 10, "readers": 2, "rwmixread": 20},
}


def mixed(path, kind, seconds, seed):
    """MIXED over the whole device; what writers get done, and how long readers wait (us)."""
    load = MIXED[kind]
    words = {**LIBAIO, "filename": path, "iodepth": load["iodepth"], "runtime": seconds,
             "time_based": 1, "random_generator": "lfsr", "randseed": seed, "group_reporting": 1}
    text = sh.run("fio", "--output-format=json", "--thread",
                  *(f"--{key}={value}" for key, value in words.items()),
                  "--name=writers", "--rw=randwrite", f"--numjobs={load['writers']}",
                  "--name=readers", "--new_group", "--rw=randrw", f"--numjobs={load['readers']}",
                  f"--rwmixread={load['rwmixread']}")
    jobs = {job["jobname"]: job for job in json.loads(text[text.index("{"):])["jobs"]}
    waits = jobs["readers"]["read"]["clat_ns"]
    return {"write_iops": jobs["writers"]["write"]["iops"],
            "read_iops": jobs["readers"]["read"]["iops"],
            "read_p50": waits["percentile"]["50.000000"] / 1000,
            "read_p99": waits["percentile"]["99.000000"] / 1000, "read_max": waits["max"] / 1000}


def run(path, name, span, amount, seed):
    """One of JOBS over the first `span` bytes; returns rate and latency percentiles."""
    words = {**JOBS[name], "filename": path, "size": span, "norandommap": 1, "randseed": seed,
             "io_size": amount // JOBS[name].get("numjobs", 1), "group_reporting": 1,
             "runtime": 20}
    text = sh.run("fio", f"--name={name}", "--output-format=json", "--thread",
                  *(f"--{key}={value}" for key, value in words.items()))
    job = json.loads(text[text.index("{"):])["jobs"][0]
    if job["error"]:
        raise AssertionError(f"fio {name}: error {job['error']}")
    figures = {}
    for kind in ("read", "write", "sync"):
        got = job[kind]
        latency = got.get("clat_ns") if kind != "sync" else got.get("lat_ns")
        if not latency or not latency.get("N"):
            continue
        if kind != "sync":
            figures[f"{kind}_iops"] = got["iops"]
        for percent, value in latency.get("percentile", {}).items():
            if percent in ("50.000000", "99.000000", "99.900000"):
                figures[f"{kind}_p{float(percent):g}"] = value / 1000
    return figures


def replay(path, log, depth):
    """A trace, one request after the other with so many in flight: latencies in us.

    Its counts of bytes and latencies miss the last ones, which are in flight when the log ends.
    """
    words = {"ioengine": "libaio", "direct": 1, "iodepth": depth, "read_iolog": log,
             "replay_redirect": path, "lat_percentiles": 1, "clat_percentiles": 0,
             "percentile_list": "50:90:99:99.9", "scramble_buffers": 0}
    text = sh.run("fio", "--name=replay", "--output-format=json", "--thread",
                  *(f"--{key}={value}" for key, value in words.items()))
    job = json.loads(text[text.index("{"):])["jobs"][0]
    if job["error"]:
        raise AssertionError(f"fio {log}: error {job['error']}")
    figures = {"seconds": job["job_runtime"] / 1000}
    for kind in ("read", "write"):
        figures[kind] = {"requests": job[kind]["total_ios"]}
        waits = job[kind]["lat_ns"]
        if waits["N"]:
            figures[kind] |= {"mean": waits["mean"] / 1000, "max": waits["max"] / 1000}
            figures[kind] |= {f"p{float(percent) * 10:.0f}": value / 1000
                              for percent, value in waits["percentile"].items()}
    return figures
