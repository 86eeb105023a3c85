"""Many jobs that fail together until the other side is back, in virtual time, by the real decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from random import Random

import msgspec

from perdure.errors import BadOption
from perdure.model.decide import decide
from perdure.model.failure import Failure
from perdure.model.job import Job, JobId
from perdure.model.outcome import Raised, Returned
from perdure.model.resolve import AppPolicy, Policy, QueuePolicy, resolve
from perdure.model.retry import Retry

MOST_ATTEMPTS = 1_000_000
_START = datetime(2030, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_DOWN = Raised(
    error=Failure(
        type="ConnectionError",
        message="the other side is not back yet",
        lineage=("ConnectionError", "OSError", "Exception", "BaseException"),
    )
)


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """How the jobs ended, and what the other side saw of it."""

    jobs: int
    succeeded: int
    dead: int
    attempts: int
    last_ended: timedelta
    """When the last job ended, counted from the first attempts."""
    per_second: Mapping[int, int]
    """Attempts in each second, where there were any."""

    @property
    def peak(self) -> int:
        """The most attempts in one second after the first, in which all jobs start together."""
        return max((count for second, count in self.per_second.items() if second > 0), default=0)

    def bucketed(self, width: int, count: int) -> list[int]:
        """Attempts in `count` spans of `width` seconds."""
        spans = [0] * count
        for second, attempts in self.per_second.items():
            spans[min(second // width, count - 1)] += attempts
        return spans


def simulate(
    retry: Retry, *, jobs: int, fail_for: timedelta, random: Random, most_attempts: int = MOST_ATTEMPTS
) -> Simulation:
    """Run so many jobs at once against something that is down for so long; attempts take no time."""
    per_second: Counter[int] = Counter()
    ends: Counter[str] = Counter()
    total = 0
    last_ended = timedelta(0)
    first = _job()
    policy = resolve(first, None, QueuePolicy(), AppPolicy(retry=retry))
    # Only a worker that knows the task may call a job exhausted; here everybody knows it.
    policy = msgspec.structs.replace(policy, is_task_known=True)
    for _ in range(jobs):
        at = timedelta(0)
        for at, state in _attempts(first, policy, fail_for, random):
            per_second[at // _SECOND] += 1
            ends[state] += 1
            total += 1
            if total > most_attempts:
                raise BadOption(
                    f"This simulation has more than {most_attempts:,} attempts.",
                    "Give fewer jobs, a shorter outage or a lower limit.",
                )
        last_ended = max(last_ended, at)
    return Simulation(
        jobs=jobs,
        succeeded=ends["succeeded"],
        dead=ends["dead"],
        attempts=total,
        last_ended=last_ended,
        per_second=dict(per_second),
    )


def _attempts(first: Job, policy: Policy, fail_for: timedelta, random: Random) -> Iterator[tuple[timedelta, str]]:
    """The moments of one job's attempts, each with the state that follows it."""
    job = first
    at = timedelta(0)
    while True:
        outcome = decide(job, _DOWN if at < fail_for else Returned(), policy, _START + at, random)
        yield at, outcome.state
        if outcome.delay is None:
            return
        at += outcome.delay
        job = msgspec.structs.replace(
            job,
            attempt=job.attempt + 1,
            failures=outcome.failures,
            delay=outcome.delay,
            reason=outcome.reason,
            lane=outcome.lane,
        )


def _job() -> Job:
    return Job(
        id=JobId("00000000-0000-7000-8000-000000000000"),
        task="simulated",
        queue="default",
        state="running",
        lane="fresh",
        args=b"{}",
        priority=0,
        run_at=_START,
        attempt=1,
        failures=0,
        recoveries=0,
        delivery="at_least_once",
        created_at=_START,
    )
