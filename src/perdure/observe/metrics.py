"""Counts what happened, cheaply: plain numbers per queue and task, turned into metrics only when somebody asks.

The committer tells each attempt; what that costs is a dictionary lookup and a few additions. Names are bounded: queues
and tasks beyond the first few hundred, and tasks that this worker does not know, are counted together as `other`.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Protocol
from weakref import WeakSet

from perdure.model.event import (
    AttemptEnded,
    CommitLost,
    Event,
    ForwardFailed,
    JobsEnqueued,
    LeaseExpired,
    TicksFired,
)
from perdure.observe.catalogue import BUCKETS

OTHER = "other"
MOST_QUEUES = 100
MOST_TASKS = 200
MOST_PAIRS = 300
"""How many queues, how many tasks, and how many pairs of them get numbers of their own."""

_RAN = frozenset({"succeeded", "failed", "timeout", "cancelled", "snoozed"})
"""The attempts whose handler was entered and ended here."""
_FAILED = frozenset({"failed", "timeout", "lost"})
_AT_LIMIT = frozenset({"exhausted", "timeout", "lost"})


class Histogram:
    """How many values fell into each bucket, and their sum."""

    __slots__ = ("buckets", "sum")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def observe(self, duration: timedelta) -> None:
        seconds = duration.total_seconds()
        # A store's clock may be ahead of this machine's: what seems to begin before it is due waited for nothing.
        if seconds > 0:
            self.buckets[bisect_left(BUCKETS, seconds)] += 1
            self.sum += seconds
        else:
            self.buckets[0] += 1


class Cell:
    """All numbers of one task in one queue."""

    __slots__ = (
        "attempts",
        "buried",
        "commits_lost",
        "dlq_failed",
        "duration",
        "enqueued",
        "exhausted",
        "failed",
        "latency",
        "requeued",
        "retries",
        "wait",
    )

    def __init__(self) -> None:
        self.attempts: dict[str, int] = {}
        self.enqueued = self.retries = self.exhausted = self.failed = self.requeued = self.buried = 0
        self.dlq_failed = self.commits_lost = 0
        self.wait, self.duration, self.latency = Histogram(), Histogram(), Histogram()

    def add(self, event: AttemptEnded) -> None:
        """Count an attempt that ended."""
        job, outcome = event.job, event.outcome
        how = outcome.attempt
        self.attempts[how] = self.attempts.get(how, 0) + 1
        if how in _RAN:
            self.wait.observe(event.started_at - job.run_at)
            self.duration.observe(event.ended_at - event.started_at)
            if job.failures or job.recoveries:
                self.retries += 1
        if how == "succeeded":
            return
        if how in _FAILED:
            self.failed += 1
        if outcome.verb == "fail":
            self.requeued += 1
            self.latency.observe(outcome.delay or timedelta(0))
        if outcome.state == "dead":
            self.buried += 1
            if outcome.reason in _AT_LIMIT and job.delivery == "at_least_once":
                self.exhausted += 1


class Slots(Protocol):
    """A worker, as the metrics see it."""

    @property
    def slots(self) -> tuple[int, int]:
        """How many slots are busy, and how many there are."""
        ...


class MetricsObserver:
    """The numbers of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cells: dict[tuple[str, str], Cell] = {}
        self._named: dict[tuple[str, str], Cell] = {}
        self._queues: set[str] = set()
        self._tasks: set[str] = set()
        self._workers: WeakSet[Slots] = WeakSet()
        self.lease_lost = 0
        self.schedule_lag = Histogram()

    def tell(self, event: Event) -> None:
        if type(event) is JobsEnqueued:
            with self._lock:
                self._count_enqueued(event)
        else:
            self.tell_all((event,))

    def tell_all(self, events: Sequence[Event]) -> None:
        """Count many events at once, which is cheaper than one after the other."""
        with self._lock:
            for event in events:
                if type(event) is AttemptEnded:
                    job = event.job
                    task = OTHER if event.outcome.attempt == "parked" else job.task
                    (self._cells.get((job.queue, task)) or self._cell(job.queue, task)).add(event)
                else:
                    self._count(event)

    def _count(self, event: Event) -> None:
        match event:
            case JobsEnqueued():
                self._count_enqueued(event)
            case CommitLost(job=job):
                self._cell(job.queue, job.task).commits_lost += 1
            case ForwardFailed(queue=queue, task=task):
                self._cell(queue, task).dlq_failed += 1
            case TicksFired(ticks=ticks, fired_at=fired_at):
                for tick in ticks:
                    self.schedule_lag.observe(fired_at - tick)
            case LeaseExpired():
                self.lease_lost += 1
            case _:
                pass

    def _count_enqueued(self, event: JobsEnqueued) -> None:
        for new, made in zip(event.jobs, event.ids, strict=True):
            if new.id == made:
                self._cell(new.queue, new.task).enqueued += 1

    def expect(self, names: Iterable[tuple[str, str]]) -> None:
        """Show these queues and tasks from the first, at 0: the first increase of a counter is seen only so."""
        with self._lock:
            for queue, task in names:
                self._cell(queue, task)

    def attach(self, worker: Slots) -> None:
        """Show this worker's slots as long as it exists."""
        self._workers.add(worker)

    @property
    def slots(self) -> tuple[int, int] | None:
        """How many slots of this process are busy, and how many there are; None where no worker runs."""
        each = [worker.slots for worker in self._workers]
        if not each:
            return None
        return sum(busy for busy, _ in each), sum(count for _, count in each)

    def read(self, reader: Callable[[Mapping[tuple[str, str], Cell]], None]) -> None:
        """Let somebody look at all cells, by queue and task, while nothing changes."""
        with self._lock:
            reader(self._named)

    def _cell(self, queue: str, task: str) -> Cell:
        """The cell for a queue and task, under the names that they get; the lock is held."""
        cell = self._cells.get((queue, task))
        if cell is not None:
            return cell
        name = _bounded(queue, self._queues, MOST_QUEUES), _bounded(task, self._tasks, MOST_TASKS)
        if name not in self._named and len(self._named) >= MOST_PAIRS:
            name = OTHER, OTHER
        cell = self._named.setdefault(name, Cell())
        # Remembered only while few: what is not remembered is looked up again, and ends in the same cell.
        if len(self._cells) < 10 * MOST_PAIRS:
            self._cells[queue, task] = cell
        return cell


def _bounded(name: str, taken: set[str], most: int) -> str:
    """The name as a label, or `other` when there are too many already."""
    if name not in taken:
        if len(taken) >= most:
            return OTHER
        taken.add(name)
    return name
