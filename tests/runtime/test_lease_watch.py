"""Who has vanished is judged by a monotonic clock: exact in the usual case, and safe when the store's clock jumps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from perdure.model.job import WorkerId
from perdure.runtime.liveness.lease_watch import LeaseWatch
from perdure.store.workers import Renewal
from perdure.system.clock import VirtualClock

SECOND = timedelta(seconds=1)
LEASE = 30 * SECOND
START = datetime(2030, 1, 1, tzinfo=UTC)


def renewal(at: timedelta, now: timedelta, *, name: str = "one") -> Renewal:
    """A renewal made at a time of the store's clock, as it looks at another."""
    return Renewal(worker=WorkerId(name), beat_at=START + at, length=LEASE, left=at + LEASE - now)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def watch(clock: VirtualClock) -> LeaseWatch:
    return LeaseWatch(clock)


def test_a_worker_is_silent_exactly_when_its_lease_is_over(watch: LeaseWatch, clock: VirtualClock) -> None:
    seen = renewal(0 * SECOND, 4 * SECOND)
    watch.look([seen])
    assert watch.next_in() == 26
    clock.advance(25.9 * SECOND)
    watch.look([renewal(0 * SECOND, 29.9 * SECOND)])
    assert watch.silent() == []
    clock.advance(0.1 * SECOND)
    assert watch.silent() == [seen]


@pytest.mark.parametrize("jump", [timedelta(hours=1), timedelta(hours=-1), timedelta(days=400), -timedelta(days=400)])
def test_nobody_who_renews_is_silent_when_the_clock_jumps(
    watch: LeaseWatch, clock: VirtualClock, jump: timedelta
) -> None:
    beat_at, offset = 0 * SECOND, 0 * SECOND
    for second in range(200):
        now = second * SECOND + offset
        if second % 10 == 0:
            beat_at = now
        if second == 75:
            # In the middle between two renewals.
            offset += jump
            now += jump
        assert watch.silent() == []
        watch.look([renewal(beat_at, now)])
        clock.advance(SECOND)


@pytest.mark.parametrize("jump", [timedelta(hours=1), timedelta(hours=-1)])
@pytest.mark.parametrize("jumps_after", [1 * SECOND, 15 * SECOND])
def test_a_vanished_worker_is_silent_after_its_lease_when_the_clock_jumps(
    watch: LeaseWatch, clock: VirtualClock, jump: timedelta, jumps_after: timedelta
) -> None:
    passed = 0 * SECOND
    while not watch.silent():
        watch.look([renewal(0 * SECOND, passed + (jump if passed >= jumps_after else 0 * SECOND))])
        clock.advance(SECOND)
        passed += SECOND
        assert passed <= LEASE + SECOND
    assert passed >= LEASE


def test_a_new_reaper_waits_half_a_lease_before_it_believes_a_clock_that_may_have_jumped(
    watch: LeaseWatch, clock: VirtualClock
) -> None:
    watch.look([renewal(0 * SECOND, timedelta(hours=1))])
    assert watch.next_in() == 15
    clock.advance(10 * SECOND)
    # It lived: the clock had jumped just before the first look.
    watch.look([renewal(timedelta(hours=1, seconds=10), timedelta(hours=1, seconds=10))])
    clock.advance(10 * SECOND)
    assert watch.silent() == []


def test_a_new_reaper_does_not_wait_longer_than_a_lease(watch: LeaseWatch, clock: VirtualClock) -> None:
    watch.look([renewal(timedelta(hours=1), 0 * SECOND)])
    assert watch.next_in() == 30


def test_workers_that_are_gone_are_forgotten(watch: LeaseWatch, clock: VirtualClock) -> None:
    watch.look([renewal(0 * SECOND, 0 * SECOND, name=name) for name in "ab"])
    watch.look([renewal(0 * SECOND, 0 * SECOND, name="b")])
    clock.advance(LEASE)
    assert [one.worker for one in watch.silent()] == ["b"]
    watch.look([])
    assert watch.silent() == []
    assert watch.next_in() == float("inf")
