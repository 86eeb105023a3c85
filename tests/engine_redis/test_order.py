"""Jobs leave a line exactly by priority, then run_at, then id, to the microsecond and however far away."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from tests.conformance.scene import Scene

from perdure.system.clock import from_microseconds, to_microseconds

MICROSECOND = timedelta(microseconds=1)


def test_many_jobs_that_differ_by_little_are_claimed_in_the_one_right_order(scene: Scene) -> None:
    rng = random.Random(1)
    now = scene.clock.now()
    moments = [now - number * MICROSECOND for number in range(20)] + [datetime(1970, 1, 1, tzinfo=UTC)]
    jobs = [scene.new_job(priority=rng.randint(-100, 100), run_at=rng.choice(moments)) for _ in range(400)]
    rng.shuffle(jobs)
    scene.store.enqueue(jobs).wait()
    wanted = [job.id for job in sorted(jobs, key=lambda job: (-job.priority, job.run_at, job.id))]
    worker = scene.worker()
    got: list[str] = []
    while page := scene.fetch(worker, limit=rng.randint(1, 30)):
        got += [job.id for job in page]
    assert got == wanted


@pytest.mark.parametrize("power", [52, 53, 54, 57])
def test_neighbouring_microseconds_are_told_apart_where_floating_point_cannot(scene: Scene, power: int) -> None:
    """2^53 microseconds after 1970, in the year 2255, is where a double stops telling them apart."""
    first = from_microseconds(2**power)
    late = scene.enqueue(run_at=first + 2 * MICROSECOND)
    early = scene.enqueue(run_at=first)
    middle = scene.enqueue(run_at=first + MICROSECOND)
    assert [scene.get(job_id).run_at for job_id in (early, middle, late)] == [
        first,
        first + MICROSECOND,
        first + 2 * MICROSECOND,
    ]
    assert scene.store.promote(0).wait().next_run_at == first
    for job_id in (early, middle, late):
        assert scene.store.promote(0).wait().next_run_at == scene.get(job_id).run_at
        scene.store.cancel([job_id], "seen").wait()


def test_a_moment_before_1970_is_kept_and_comes_before_all_others(scene: Scene) -> None:
    worker = scene.worker()
    now = scene.enqueue()
    ancient = scene.enqueue(run_at=datetime(1969, 7, 20, tzinfo=UTC))
    assert scene.get(ancient).run_at == datetime(1969, 7, 20, tzinfo=UTC)
    assert [job.id for job in scene.fetch(worker)] == [ancient, now]


def test_a_delay_beyond_all_dates_is_the_last_of_days(scene: Scene) -> None:
    job = scene.get(scene.enqueue(delay=timedelta(days=36_500 * 100)))
    assert job.run_at.year == 9999


def test_the_microsecond_of_the_servers_clock_is_kept(open_one, url: str) -> None:
    from perdure.system.clock import SystemClock

    store = open_one(url, SystemClock())
    scene = Scene(store, SystemClock())
    jobs = [scene.get(scene.enqueue()) for _ in range(20)]
    assert any(to_microseconds(job.run_at) % 10 for job in jobs)
    assert [job.run_at for job in jobs] == sorted(job.run_at for job in jobs)
    assert all(job.run_at == job.created_at for job in jobs)
    before, told, after = datetime.now(UTC), store.now().wait(), datetime.now(UTC)
    assert before - timedelta(seconds=1) <= told <= after + timedelta(seconds=1)
    store.cancel([job.id for job in jobs], "seen").wait()
    store.prune(timedelta(0), 100).wait()
