"""What is to be simulated: who arrives when, who runs it, what goes wrong, and how retries are treated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import timedelta
from heapq import merge

import msgspec

from perdure.errors import BadOption
from perdure.model.job import HIGHEST_PRIORITY, LOWEST_PRIORITY
from perdure.model.policy.limit import read_limit
from perdure.model.policy.retry import Retry
from perdure.model.queue.fairness import Fairness
from perdure.text.duration import Duration, parse_duration
from perdure.text.plural import plural
from perdure.text.shown import shown

MICROSECOND = timedelta(microseconds=1)
SECOND = 1_000_000
"""One second in the simulator's unit of time, the microsecond."""

MOST_ATTEMPTS = 1_000_000
"""How many attempts a simulation may have unless the caller allows more."""

BatchLike = tuple[Duration, int] | tuple[Duration, int, int]


class Batch(msgspec.Struct, frozen=True):
    """Jobs that arrive together."""

    at: timedelta
    jobs: int
    priority: int = 0


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One situation; the same scenario gives the same simulation."""

    policy: Retry
    max_attempts: int | None = None
    """The limit that every job asks for itself; None: they ask for none, and have the policy's."""
    rate: float = 0.0
    """Jobs that arrive per second, evenly spaced, during `duration`."""
    duration: timedelta = timedelta(seconds=60)
    batches: tuple[Batch, ...] = ()
    workers: int = 1
    slots: int = 10
    prefetch: int = 0
    """How many jobs a worker holds in advance of its slots."""
    batch: int = 1000
    """The most jobs of one fetch."""
    run_time: timedelta = timedelta(milliseconds=100)
    is_exponential: bool = False
    """Whether run times are drawn around their mean; else they are all the same."""
    failure_time: timedelta | None = None
    """How long failing attempts run; None: as long as all others."""
    outage: tuple[timedelta, timedelta] | None = None
    """From when until when the attempts that start fail."""
    outage_hits: float = 1.0
    """The part of the jobs that the outage hits; the others do not need what is down."""
    failure_rates: tuple[float, ...] = (0.0,)
    """The chance that attempt 1, 2, 3… fails outside of the outage; the last one holds for all that follow."""
    capacity: int | None = None
    """How many attempts per second the other side can serve; those above it fail."""
    fairness: Fairness = Fairness()
    has_lanes: bool = True
    """Without lanes everything stands in one line by run_at: what a queue without fairness would do."""
    retry_workers: int = 1
    retry_slots: int = 2
    """The workers of the retry queue and their slots, where the fairness names one."""
    bucket: timedelta = timedelta(seconds=1)
    until: timedelta | None = None
    """When the simulation stops; None: when every job has ended."""
    seed: int = 0
    most_attempts: int = MOST_ATTEMPTS

    def __post_init__(self) -> None:
        for name in ("workers", "slots", "batch", "retry_workers", "retry_slots", "most_attempts"):
            _check_whole(name, getattr(self, name), 1)
        _check_whole("prefetch", self.prefetch, 0)
        if self.max_attempts is not None:
            read_limit(self.max_attempts, None)
        if self.capacity is not None:
            _check_whole("capacity", self.capacity, 1)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise BadOption(f"seed is {shown(self.seed)}, and it is a whole number.")
        _check_rate(self.rate)
        _check_chances("failure_rate", self.failure_rates)
        _check_chances("outage_hits", (self.outage_hits,))
        if not self.bucket:
            raise BadOption("bucket is 0, and it is the width of a line of the result.", 'Such as "1s".')
        if self.outage is not None and self.outage[1] < self.outage[0]:
            raise BadOption("The outage ends before it begins.", 'Give (from, until), such as ("20s", "50s").')
        self._refuse_nothing_and_too_much()

    def _refuse_nothing_and_too_much(self) -> None:
        jobs = self.jobs
        if not jobs:
            raise BadOption("No job arrives in this simulation.", "Give a rate, or batches such as [(0, 100)].")
        if jobs > self.most_attempts:
            raise BadOption(
                f"{plural(jobs, 'job')} would arrive in this simulation, and it may have "
                f"{plural(self.most_attempts, 'attempt')}.",
                "Give a lower rate, a shorter duration, or more most_attempts.",
            )

    @property
    def jobs(self) -> int:
        """How many jobs arrive in all."""
        return self._arriving + sum(batch.jobs for batch in self.batches)

    @property
    def _arriving(self) -> int:
        return math.ceil(self.rate * self.duration.total_seconds() - 1e-9)

    def arrivals(self) -> Iterator[tuple[int, int]]:
        """(microseconds, priority) of every job, in the order in which they arrive."""
        steady = ((int(place * SECOND / self.rate), 0) for place in range(self._arriving))
        batches = [
            (batch.at // MICROSECOND, batch.priority)
            for batch in sorted(self.batches, key=lambda batch: batch.at)
            for _ in range(batch.jobs)
        ]
        return merge(batches, steady, key=lambda arrival: arrival[0])


def read_batches(batches: object) -> tuple[Batch, ...]:
    """Batches as callers give them: (when, how many) or (when, how many, priority)."""
    if isinstance(batches, str) or not isinstance(batches, Sequence):
        raise BadOption(f"batches is {shown(batches)}, and it is a list such as [(0, 100)].")
    return tuple(_batch(batch) for batch in batches)


def read_span(span: object, what: str) -> tuple[timedelta, timedelta] | None:
    """A span of time as callers give it: (from, until)."""
    if span is None:
        return None
    if isinstance(span, str) or not isinstance(span, Sequence) or len(span) != 2:
        raise BadOption(f"{what} is {shown(span)}, and it is (from, until).", 'Such as ("20s", "50s").')
    return parse_duration(span[0], what=what), parse_duration(span[1], what=what)


def read_chances(chances: object) -> tuple[float, ...]:
    """Chances as callers give them: one for all attempts, or one for each."""
    if isinstance(chances, str) or not isinstance(chances, Sequence):
        chances = (chances,)
    _check_chances("failure_rate", tuple(chances))
    return tuple(chances)


def _batch(batch: object) -> Batch:
    if isinstance(batch, str) or not isinstance(batch, Sequence) or len(batch) not in (2, 3):
        raise BadOption(
            f"A batch is {shown(batch)}, and it is (when, how many) or (when, how many, priority).",
            'Such as ("10s", 100).',
        )
    at, jobs, priority = (*batch, 0)[:3]
    _check_whole("a batch's number of jobs", jobs, 1)
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise BadOption(f"a batch's priority is {shown(priority)}, and it is a whole number.")
    if not LOWEST_PRIORITY <= priority <= HIGHEST_PRIORITY:
        raise BadOption(f"a batch's priority is {priority}, outside {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}.")
    return Batch(parse_duration(at, what="a batch's moment"), jobs, priority)


def _check_whole(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadOption(f"{name} is {shown(value)}, and it is a whole number from {least}.")


def _check_rate(rate: object) -> None:
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < math.inf:
        raise BadOption(f"rate is {shown(rate)}, and it is a number of jobs per second, 0 or more.")


def _check_chances(name: str, chances: tuple[object, ...]) -> None:
    if not chances:
        raise BadOption(f"{name} is an empty list.", "Give a number from 0 to 1, or one for each attempt.")
    for chance in chances:
        if isinstance(chance, bool) or not isinstance(chance, int | float) or not 0 <= chance <= 1:
            raise BadOption(f"{name} is {shown(chance)}, and it is a number from 0 to 1.")
