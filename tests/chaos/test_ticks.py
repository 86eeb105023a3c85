"""Schedulers killed and replaced again and again miss no tick and make no job twice."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from tests.chaos.crew import Crew, until

from perdure import Job, Schedule

SECOND = timedelta(seconds=1)


@dataclass(frozen=True, kw_only=True)
class Profile:
    """How many schedulers fire how many schedules for how long."""

    schedulers: int
    schedules: int
    seconds: float
    kill_every: float = 1.0


PROFILES = {
    "short": Profile(schedulers=3, schedules=40, seconds=5),
    "long": Profile(schedulers=5, schedules=200, seconds=120),
}


# Proves [INV-21].
@pytest.mark.crash
@pytest.mark.every_engine
@pytest.mark.timeout(600)
def test_no_tick_is_missed_and_none_fires_twice_though_schedulers_are_killed_all_the_time(
    crew: Crew, record_property: Callable[[str, object], None]
) -> None:
    profile = PROFILES[os.environ.get("PERDURE_CHAOS", "short")]
    periods = [1 + place % 7 if place % 3 else 1 for place in range(profile.schedules)]
    for place, period in enumerate(periods):
        crew.client.add_schedule(
            f"number-{place}", "on_loop", cron=f"@every {period}s", overlap="allow", missed="all", queue="nobody"
        )
    kills = _kill_and_replace(profile, crew)
    schedules = crew.client.schedules(limit=1000)
    assert len(schedules) == profile.schedules
    jobs = crew.jobs()
    found = Counter((job.schedule, job.tick_at) for job in jobs)
    wanted = [(schedule.name, tick) for schedule in schedules for tick in _ticks(schedule)]
    figures = f"{len(wanted)} ticks, {kills} kills; {_lags(jobs)}"
    record_property("ticks", figures)
    print(figures)
    assert [tick for tick in wanted if found[tick] == 0] == [], "missed"
    assert [tick for tick, count in found.items() if count > 1] == [], "fired twice"
    assert set(found) == set(wanted), "fired without being due"
    assert [job.id for job in jobs if job.tick_at is None or job.created_at < job.tick_at] == [], "fired early"
    assert sum(schedule.fired for schedule in schedules) == len(jobs) >= profile.schedules
    assert kills >= profile.seconds / profile.kill_every / 3


@pytest.mark.crash
@pytest.mark.every_engine
def test_a_worker_fires_soon_after_the_tick(crew: Crew, record_property: Callable[[str, object], None]) -> None:
    for place in range(5):
        crew.client.add_schedule(f"number-{place}", "on_loop", "key", cron="@every 1s", overlap="allow")
    worker = crew.worker()
    until(lambda: crew.client.count(state="succeeded") >= 20, "twenty ticks were fired and their jobs done")
    until(lambda: len(_after_the_first(crew.jobs())) >= 20, "twenty of them after the worker had started")
    assert crew.stop(worker) == [0]
    lags = _lags(crew.jobs())
    record_property("lag", str(lags))
    print(lags)
    assert lags.median < 0.1, "half of the ticks are later than a tenth of a second on any machine that is not drowning"


@dataclass(frozen=True)
class Lags:
    """How late ticks were fired, in seconds."""

    median: float
    p99: float
    worst: float

    def __str__(self) -> str:
        return f"lag p50 {self.median * 1000:.0f} ms, p99 {self.p99 * 1000:.0f} ms, worst {self.worst * 1000:.0f} ms"


def _after_the_first(jobs: list[Job]) -> list[Job]:
    """Those whose tick came when somebody was there: the first ones had to wait for a process to start."""
    first = min(job.created_at for job in jobs)
    return [job for job in jobs if job.tick_at and job.tick_at > first]


def _lags(jobs: list[Job]) -> Lags:
    lags = sorted((job.created_at - job.tick_at).total_seconds() for job in _after_the_first(jobs) if job.tick_at)
    return Lags(lags[len(lags) // 2], lags[len(lags) * 99 // 100], lags[-1])


def _kill_and_replace(profile: Profile, crew: Crew) -> int:
    """Run schedulers for a while, killing one after the other; at the end one is left to catch up, then stopped."""
    rng = random.Random(1)
    schedulers = [_hire(crew) for _ in range(profile.schedulers)]
    until(crew.jobs, "the first tick has been fired")
    began = time.monotonic()
    kills = 0
    while time.monotonic() - began < profile.seconds:
        time.sleep(profile.kill_every * rng.uniform(0.5, 1.0))
        place = rng.randrange(len(schedulers))
        crew.kill(schedulers[place])
        schedulers[place] = _hire(crew)
        kills += 1
    until(lambda: not _is_late(crew), "the last ticks are caught up with")
    for scheduler in schedulers:
        crew.kill(scheduler)
    return kills


def _is_late(crew: Crew) -> bool:
    now = crew.client.stats().at
    return any(one.next_at is None or now - one.next_at > SECOND for one in crew.client.schedules(limit=1000))


def _hire(crew: Crew) -> subprocess.Popen[bytes]:
    return crew.start("-m", "tests.chaos.lone_scheduler")


def _ticks(schedule: Schedule) -> list[datetime]:
    """Every tick that the schedule says it is done with."""
    found: list[datetime] = []
    ticks = schedule.ticks()
    tick = ticks.after(schedule.created_at)
    while tick is not None and tick <= schedule.since:
        found.append(tick)
        tick = ticks.after(tick)
    return found
