"""What a simulation found: totals, peaks, waits, the bound on retries, and a line for each span of time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from perdure.errors import BadOption
from perdure.model.job import AttemptOutcome
from perdure.model.state import Lane
from perdure.simulator.scenario import Scenario

_NOTHING = timedelta(0)
_MOST_SPANS = 200_000


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """One span of time: what happened in it, and how things stood at its end."""

    at: timedelta
    """When it begins."""
    arrived: int = 0
    fresh_starts: int = 0
    retry_starts: int = 0
    succeeded: int = 0
    failures: int = 0
    """Attempts that failed, the last ones of dead jobs included."""
    dead: int = 0
    fresh_backlog: int = 0
    """Jobs that never ran and are ready."""
    retry_due: int = 0
    """Retries that are ready."""
    retry_waiting: int = 0
    """Retries whose delay is not over."""
    running: int = 0
    """Jobs that workers hold."""
    oldest_fresh: timedelta = _NOTHING
    """How long the oldest ready fresh job has waited."""

    @property
    def attempts(self) -> int:
        """Attempts that started: what the other side sees."""
        return self.fresh_starts + self.retry_starts


class Peaks(msgspec.Struct, frozen=True, kw_only=True):
    """The highest values at any moment; `attempts` in any one bucket."""

    attempts: int
    fresh_backlog: int
    retry_due: int
    retry_waiting: int
    retrying: int
    """Jobs that may still be retried: due, waiting or running in the retry lane."""
    retries_running: int


class Waits(msgspec.Struct, frozen=True, kw_only=True):
    """How long fresh jobs were ready before they started; those that never started count as long as they waited."""

    mean: timedelta
    p99: timedelta
    greatest: timedelta


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """Why retries cannot grow without end: a job is one job, and its limit is hard."""

    jobs: int
    max_retries: int

    @property
    def at_once(self) -> int:
        """The most jobs that can be retried at one moment: all of them, if the limit allows a retry at all."""
        return self.jobs if self.max_retries else 0

    @property
    def in_all(self) -> int:
        """The most retries that can ever start: jobs × max_retries."""
        return self.jobs * self.max_retries


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a traced simulation; jobs are numbered in the order in which they arrive, from 0."""

    job: int
    attempt: int
    lane: Lane
    queue: str
    started_at: timedelta
    ended_at: timedelta
    outcome: AttemptOutcome
    delay: timedelta | None
    """How long the job then waited, where an attempt followed."""


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """How it went."""

    scenario: Scenario
    jobs: int
    """How many jobs arrived."""
    attempts: int
    fresh_starts: int
    retry_starts: int
    failures: int
    succeeded: int
    dead: int
    ended_after: timedelta
    """When the last job ended."""
    fresh_clear_after: timedelta
    """From when on no fresh job had to wait any more."""
    retry_clear_after: timedelta
    """From when on no due retry had to wait any more."""
    peaks: Peaks
    fresh_waits: Waits
    bound: Bound
    buckets: tuple[Bucket, ...]
    """Spans of time in order; those in which nothing was ready, running or changing are left out."""
    trace: tuple[Step, ...] = ()
    """Every attempt in the order of their ends, if it was asked for."""

    @property
    def unfinished(self) -> int:
        """Jobs that had not ended when the simulation was stopped."""
        return self.jobs - self.succeeded - self.dead

    @property
    def drained_after(self) -> timedelta | None:
        """When every job had ended; None if the simulation was stopped before."""
        return None if self.unfinished else self.ended_after

    @property
    def is_within_bound(self) -> bool:
        """Whether retries stayed below the bound, at every moment and in all."""
        return self.peaks.retrying <= self.bound.at_once and self.retry_starts <= self.bound.in_all

    def spans(self, width: timedelta, count: int | None = None) -> list[Bucket]:
        """The buckets put together into `count` spans of `width` without gaps, from the start on."""
        if width % self.scenario.bucket:
            raise BadOption(f"Spans of {width} are not made of whole buckets of {self.scenario.bucket}.")
        if count is None:
            count = self.buckets[-1].at // width + 1 if self.buckets else 0
        if count > _MOST_SPANS:
            raise BadOption(f"That would be {count:,} spans.", "Take wider ones.")
        found: list[list[Bucket]] = [[] for _ in range(count)]
        for bucket in self.buckets:
            if (place := bucket.at // width) < count:
                found[place].append(bucket)
        spans: list[Bucket] = []
        for place, parts in enumerate(found):
            spans.append(_together(place * width, parts, spans[-1] if spans else None))
        return spans


def _together(at: timedelta, parts: Sequence[Bucket], before: Bucket | None) -> Bucket:
    """Counts are added up; of what stood at the end the last holds; where nothing happened, all stands as before."""
    last = parts[-1] if parts else before
    if last is None:
        return Bucket(at=at)
    return Bucket(
        at=at,
        arrived=sum(part.arrived for part in parts),
        fresh_starts=sum(part.fresh_starts for part in parts),
        retry_starts=sum(part.retry_starts for part in parts),
        succeeded=sum(part.succeeded for part in parts),
        failures=sum(part.failures for part in parts),
        dead=sum(part.dead for part in parts),
        fresh_backlog=last.fresh_backlog,
        retry_due=last.retry_due,
        retry_waiting=last.retry_waiting,
        running=last.running,
        oldest_fresh=last.oldest_fresh,
    )
