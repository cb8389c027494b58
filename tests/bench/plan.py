# SPDX-License-Identifier: GPL-2.0-only
"""The plan of a run: the amounts of both lengths of the benchmark, and the disks' time models."""

MIB = 1 << 20
GIB = 1 << 30

SYSTEMS = ("dm-lc", "dm-writeboost", "dm-writecache", "dm-cache", "bcache", "dm-linear",
           "dm-zero", "raw")
PEERS = SYSTEMS[1:5]
JOBS = ("random_write", "synced_write", "journal_write", "read", "programs", "commands",
        "format_and_start", "ssd_bound", "sequential", "sequential_array", "through", "drain",
        "full", "read_while_draining", "restart", "memory", "nowait", "throttled", "swap_table",
        "endurance", "fua_disk", "mixed", "copy", "trim", "dirty_flood", "full_flood", "shares",
        "beside_misses", "power_cut", "locks", "instructions", "native_write", "trace_cp",
        "trace_P6")

# Jobs that want another guest than the first (bench.py).
BOOTS = {"locks": "lockstat", "instructions": "counted", "native_write": "native",
         "sequential_array": "array", "trace_cp": "traces", "trace_P6": "traces"}

# An SSD so slow that an emulated CPU keeps up with it (tests/disks/models.py).
SSD_MODEL = {"rate": 60e6, "command_us": 20.0, "flush_us": 100.0}

COMMON = {
    "systems": SYSTEMS,
    "jobs": JOBS,
    "ssd_model": SSD_MODEL,
    "hdd_kind": "drive",
    "hdd_model": {},
    "array_model": {"rate": 15e6},  # each: an emulated CPU keeps up with four of them
    "ram_disk": 1024 * MIB,
    "ram_set": 64 * MIB,
    "evict": 96 * MIB,           # more than dm-lc buffers in RAM
    "counted_set": 64 * MIB,
    "memory_caches": (4 * GIB, 16 * GIB),
    "nowait_bytes": 32 * MIB,    # less than dm-lc buffers in RAM
    "endurance_cache": 128 * MIB,
    "endurance_set": 512 * MIB,
    # So short that at the SSD model's rate the log does not fill up: then the HDD is the limit.
    "throttled_ms": 5000,
    "swap_ms": 7000,
    "lock_writes": 100_000,
    "icount_writes": 65_536,     # 256 MiB
    "mixed_seconds": 4,
    "sync_pause": 0.02,          # s
    "dsync_pause": 0.01,
    "slow_rate": 3e6,
    "flood_ms": 20_000,
    "flood_cache": 64 * MIB,
    "flood_fill_ms": 6000,
    "share_ms": 4000,
    "share_span": 64 * MIB,
    "warm_set": 32 * MIB,
    # The clocks of both disks' models run so many times as fast: the trace, too, is long.
    "trace_speed": 4,
    "trace_depth": 4,            # requests in flight
    "left_out": {},              # job: systems
    # Nothing is gained by repeating these: they count, or take long for what they say.
    "once": ("programs", "commands", "format_and_start", "restart", "memory", "nowait",
             "endurance", "fua_disk", "mixed", "trim", "dirty_flood", "full_flood", "shares",
             "power_cut", "trace_cp", "trace_P6"),
    # The same of single systems: bcache drains at its own pace, which is slow; a worst of one run
    # says little, but with the peers it takes long.
    "once_of": {"drain": ("bcache",), "read_while_draining": ("bcache",), "copy": PEERS},
}

# Without what takes minutes: the boot of another kernel, draining with bcache, which does so at its
# own pace, dm-writeboost's start on 16 GiB, and the peers beside a copy and dirty pages.
QUICK = {
    **COMMON,
    "jobs": tuple(job for job in JOBS if job not in (
        "programs", "mixed", "full_flood", "shares", "beside_misses", "power_cut", "locks",
        "instructions", "native_write")),
    "left_out": {"drain": ("bcache",), "read_while_draining": ("bcache",),
                 "memory": ("dm-writeboost",), "copy": PEERS, "dirty_flood": PEERS},
    "copy_bytes": 128 * MIB,
    "dirty_pages": 2048,
    "trim_pieces": 250,
    "quiet_ms": 500,
    "memory_caches": (4 * GIB, 16 * GIB),
    "repetitions": 1,
    "ram_ms": 1500,
    "ram_writes": 160_000,       # 625 MiB: fits the cache with the set, so nothing must drain
    "sync_ms": 1000,
    "sync_writes": 20_000,
    "counted_writes": 512,
    "counted_random": 8160,
    "fio_bytes": 96 * MIB,
    "bound_bytes": 48 * MIB,
    "sequential_bytes": 64 * MIB,
    "through_writes": 1000,
    "drain_blocks": 4096,
    "fill_ms": 5000,
    "full_ms": 4000,
    "throttled_ms": 4000,
    "latency_ms": 4000,
    "restart_caches": (64 * MIB, 128 * MIB),
    "endurance_cache": 64 * MIB,
    "endurance_set": 256 * MIB,
    "endurance_writes": 32_768,
    "trace_requests": 60_000,
}

LONG = {
    **COMMON,
    "copy_bytes": 320 * MIB,     # less than the SSD holds: nothing has to drain for it
    "dirty_pages": 4096,
    "trim_pieces": 2000,
    "quiet_ms": 2000,
    "repetitions": 3,
    "ram_ms": 3000,
    "ram_writes": 180_000,
    "sync_ms": 3000,
    "sync_writes": 30_000,       # three times: dm-lc uses two slots for each
    "counted_writes": 2048,
    "counted_random": 16320,
    "fio_bytes": 128 * MIB,
    "bound_bytes": 128 * MIB,
    "sequential_bytes": 128 * MIB,
    "through_writes": 4000,
    "drain_blocks": 8192,
    "fill_ms": 12_000,
    "full_ms": 12_000,
    "latency_ms": 8000,
    "restart_caches": (128 * MIB, 448 * MIB),
    "trace_requests": 200_000,   # all of cp
    "endurance_writes": 131_072,  # 512 MiB, four times the cache
}

# Every job once, tiny: shows that they run. Its figures mean nothing.
SMOKE = {
    **COMMON,
    "mixed_seconds": 1,
    "repetitions": 1,
    "ram_disk": 192 * MIB,
    "ram_set": 8 * MIB,
    "evict": 16 * MIB,
    "counted_set": 8 * MIB,
    "ram_ms": 100,
    "ram_writes": 4000,
    "sync_ms": 100,
    "sync_writes": 2000,
    "counted_writes": 128,
    "counted_random": 2040,
    "fio_bytes": 4 * MIB,
    "bound_bytes": 8 * MIB,
    "sequential_bytes": 16 * MIB,
    "through_writes": 50,
    "drain_blocks": 512,
    "fill_ms": 1000,
    "full_ms": 1000,
    "latency_ms": 1000,
    "throttled_ms": 1000,
    "swap_ms": 3000,
    "restart_caches": (64 * MIB, 96 * MIB),
    "memory_caches": (GIB, 2 * GIB),
    "nowait_bytes": 4 * MIB,
    "endurance_set": 64 * MIB,
    "endurance_writes": 4096,
    "copy_bytes": 16 * MIB,
    "dirty_pages": 256,
    "flood_ms": 1000,
    "flood_fill_ms": 1000,
    "share_ms": 500,
    "warm_set": 16 * MIB,
    "trim_pieces": 64,
    "quiet_ms": 200,
    "lock_writes": 4000,
    "icount_writes": 2048,
    "trace_requests": 10_000,
    "trace_speed": 50,
}

LENGTHS = {"smoke": SMOKE, "quick": QUICK, "long": LONG}
