# SPDX-License-Identifier: GPL-2.0-only
"""The modelled 7200 rpm drive: its figures, and the order of its answers. No clock is looked at."""

import random
import threading

import pytest

from disks import models
from disks.drive import Command, DriveModel, Mechanism

MIB = 1 << 20
SIZE = 8 << 30


def rate(op, waiting, commands, length=4096, sequential=False):
    """Commands a second, in the mechanism's own time, with so many always waiting."""
    arm = Mechanism(SIZE, DriveModel.params)
    rng = random.Random(1)
    now = 0.0
    places = iter(range(0, SIZE, length))

    def fresh():
        place = next(places) if sequential else rng.randrange(SIZE // length) * length
        return Command(op, place, length, now)

    queue = [fresh() for _ in range(waiting)]
    for _ in range(commands):
        chosen = arm.choose(queue, now)
        queue.remove(chosen)
        now = arm.serve(chosen, now)
        queue.append(fresh())
    return commands / now


@pytest.mark.parametrize("op, waiting, low, high", [
    ("read", 1, 75, 83),        # 8.5 ms and half a turn of 8.33 ms
    ("read", 32, 160, 250),
    ("write", 1000, 160, 250),  # 32 of them are looked at
])
def test_random_rate_is_that_of_a_7200_rpm_drive(op, waiting, low, high):
    """The published figures that drive.py names."""
    assert low <= rate(op, waiting, 1500) <= high


@pytest.mark.parametrize("op, waiting", [("read", 1), ("write", 4)])
def test_sequential_rate_is_that_of_the_medium(op, waiting):
    """Nothing is lost between commands."""
    assert rate(op, waiting, 300, MIB, True) * MIB == pytest.approx(150e6, rel=0.01)


def test_seek_grows_with_distance_to_the_published_mean():
    """Shortest for a track, 8.5 ms on average, and 15 ms across the whole disk."""
    arm = Mechanism(SIZE, DriveModel.params)
    rng = random.Random(2)
    arm.turn = 1e-9  # no rotation
    places = [(rng.randrange(SIZE), rng.randrange(SIZE)) for _ in range(4000)]
    times = []
    for arm.head, place in places:
        times.append(arm.access(place, 0.0))
    assert sum(times) / len(times) == pytest.approx(8.5e-3, rel=0.03)
    arm.head = 0
    assert arm.access(2 * int(arm.track), 0.0) < 1.3e-3
    assert 14e-3 < arm.access(SIZE - 4096, 0.0) < 16e-3


def test_a_write_of_what_has_just_passed_waits_a_whole_turn():
    """The platter does not turn back."""
    arm = Mechanism(SIZE, DriveModel.params)
    done = arm.serve(Command("write", 0, 4096, 0.0), 0.0)
    again = arm.serve(Command("write", 0, 4096, 0.0), done)
    assert again - done == pytest.approx(60 / 7200, rel=0.01)


def test_reads_go_before_cached_writes_and_take_turns_under_pressure():
    """As long as the cache has room, nobody waits for its writes."""
    arm = Mechanism(SIZE, DriveModel.params)
    write = Command("write", 0, 4096, 0.0)
    read = Command("read", SIZE // 2, 4096, 0.0)
    assert arm.choose([write, read], 0.0) is read
    arm.serve(read, 0.0)
    assert arm.choose([write, read], arm.free_at) is read
    assert arm.choose([write, read], arm.free_at, pressed=True) is write


def test_a_flush_waits_for_the_writes_before_it_and_fua_for_its_own():
    """On the running model: when they return, the arm has served those writes."""
    model = models.make("drive", SIZE, rpm=720000, seek_ms=0.02, track_ms=0.01)
    for number in range(50):
        model.serve("write", number * 64 * MIB, 4096)
    model.serve("flush", 0, 0)
    assert model.time()["commands"] == 50
    model.serve("write", 0, 4096, fua=True)
    assert model.time()["commands"] == 51


def test_a_full_cache_makes_writers_wait():
    """No more than `segments` writes are accepted that the arm has not served."""
    model = models.make("drive", SIZE, rpm=720000, seek_ms=0.02, track_ms=0.01, segments=4)
    most = []

    def writer(number):
        for turn in range(20):
            model.serve("write", (number * 20 + turn) * 16 * MIB, 4096)
            most.append(model._pieces)

    writers = [threading.Thread(target=writer, args=(number,)) for number in range(8)]
    for thread in writers:
        thread.start()
    for thread in writers:
        thread.join()
    model.serve("flush", 0, 0)
    assert max(most) <= 4
    assert model.time()["commands"] == 160
