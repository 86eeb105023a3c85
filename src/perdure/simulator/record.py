"""Keeps the books of a simulation while it runs: counts by span of time, standings at their ends, and peaks."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import timedelta

from perdure.errors import BadOption
from perdure.model.state import State
from perdure.simulator.lines import Line, Simulated
from perdure.simulator.result import Bound, Bucket, Peaks, Simulation, Step, Waits
from perdure.simulator.scenario import MICROSECOND, Scenario

_MOST_BUCKETS = 200_000


class Record:
    """Counts up what the run tells it; times are microseconds since the start."""

    def __init__(self, scenario: Scenario, lines: Sequence[Line], waiting: Sequence[object]) -> None:
        self._scenario = scenario
        self._lines = lines
        self._waiting = waiting
        self._width = scenario.bucket // MICROSECOND
        self._begins = 0
        self._ends = self._width
        self._buckets: list[Bucket] = []
        self._unstarted: deque[Simulated] = deque()
        self._waits: list[int] = []
        self._clear()
        self.jobs = self.attempts = self.retry_starts = self.failures = self.succeeded = self.dead = 0
        self.last_ended = self.fresh_clear = self.retry_clear = 0
        self._most_attempts = self._most_fresh = self._most_due = self._most_waiting = 0
        self._most_retrying = self._most_retries_running = 0

    def reach(self, now: int) -> None:
        """Time has come to this moment; whatever is told next happens then."""
        if now >= self._ends:
            self._close(now)

    def arrived(self, job: Simulated) -> None:
        self._arrived += 1
        self.jobs += 1
        self._unstarted.append(job)

    def started(self, job: Simulated) -> None:
        if job.lane == "fresh":
            self._fresh_starts += 1
            self._waits.append(job.started_at - job.run_at)
        else:
            self._retry_starts += 1
            self.retry_starts += 1
        self.attempts += 1

    def ended(self, now: int, is_failed: bool, state: State) -> None:
        if is_failed:
            self._failures += 1
            self.failures += 1
        if state == "succeeded":
            self._succeeded += 1
            self.succeeded += 1
            self.last_ended = now
        elif state == "dead":
            self._dead += 1
            self.dead += 1
            self.last_ended = now

    def look(self, now: int) -> None:
        """Take note of how things stand after all that this moment brought."""
        fresh = due = running = 0
        for line in self._lines:
            fresh += len(line.fresh)
            due += len(line.retry)
            running += line.retries_running
        waiting = len(self._waiting)
        if fresh:
            self.fresh_clear = now
            if fresh > self._most_fresh:
                self._most_fresh = fresh
        if due:
            self.retry_clear = now
            if due > self._most_due:
                self._most_due = due
        if waiting > self._most_waiting:
            self._most_waiting = waiting
        if running > self._most_retries_running:
            self._most_retries_running = running
        if due + waiting + running > self._most_retrying:
            self._most_retrying = due + waiting + running

    def result(self, now: int, max_retries: int, trace: Sequence[Step]) -> Simulation:
        """The whole, up to now."""
        self._close(max(now, self._begins + 1))
        self._waits += [now - job.run_at for job in self._unstarted if job.attempt == 0]
        return Simulation(
            scenario=self._scenario,
            jobs=self.jobs,
            attempts=self.attempts,
            fresh_starts=self.attempts - self.retry_starts,
            retry_starts=self.retry_starts,
            failures=self.failures,
            succeeded=self.succeeded,
            dead=self.dead,
            ended_after=_time(self.last_ended),
            fresh_clear_after=_time(self.fresh_clear),
            retry_clear_after=_time(self.retry_clear),
            peaks=Peaks(
                attempts=self._most_attempts,
                fresh_backlog=self._most_fresh,
                retry_due=self._most_due,
                retry_waiting=self._most_waiting,
                retrying=self._most_retrying,
                retries_running=self._most_retries_running,
            ),
            fresh_waits=_waits(self._waits),
            bound=Bound(jobs=self.jobs, max_retries=max_retries),
            buckets=tuple(self._buckets),
            trace=tuple(trace),
        )

    def _clear(self) -> None:
        self._arrived = self._fresh_starts = self._retry_starts = 0
        self._failures = self._succeeded = self._dead = 0

    def _close(self, now: int) -> None:
        """End the open bucket, and those after it for as long as anything is ready or running."""
        while True:
            bucket = self._bucket()
            self._most_attempts = max(self._most_attempts, bucket.attempts)
            self._buckets.append(bucket)
            if len(self._buckets) > _MOST_BUCKETS:
                raise BadOption(
                    f"This simulation has more than {_MOST_BUCKETS:,} buckets.", "Give wider ones, or stop it sooner."
                )
            self._clear()
            is_idle = not (bucket.fresh_backlog or bucket.retry_due or bucket.running)
            self._begins = now // self._width * self._width if is_idle else self._ends
            self._ends = self._begins + self._width
            if now < self._ends:
                return

    def _bucket(self) -> Bucket:
        while self._unstarted and self._unstarted[0].attempt:
            self._unstarted.popleft()
        is_waiting = bool(self._unstarted) and self._unstarted[0].run_at < self._ends
        return Bucket(
            at=_time(self._begins),
            arrived=self._arrived,
            fresh_starts=self._fresh_starts,
            retry_starts=self._retry_starts,
            succeeded=self._succeeded,
            failures=self._failures,
            dead=self._dead,
            fresh_backlog=sum(len(line.fresh) for line in self._lines),
            retry_due=sum(len(line.retry) for line in self._lines),
            retry_waiting=len(self._waiting),
            running=sum(line.running for line in self._lines),
            oldest_fresh=_time(self._ends - self._unstarted[0].run_at if is_waiting else 0),
        )


def _time(microseconds: int) -> timedelta:
    return timedelta(microseconds=microseconds)


def _waits(waits: list[int]) -> Waits:
    waits.sort()
    return Waits(
        mean=_time(sum(waits) // max(1, len(waits))),
        p99=_time(waits[(len(waits) * 99 + 99) // 100 - 1] if waits else 0),
        greatest=_time(waits[-1] if waits else 0),
    )
