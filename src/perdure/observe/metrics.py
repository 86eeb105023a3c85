"""Counts what happened, cheaply: plain numbers per queue and task, turned into metrics only when somebody asks.

The committer tells whole batches; what is alike in one is counted at once. Names are bounded: queues and tasks beyond
the first few hundred, and tasks that this worker does not know, are counted together as `other`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
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
from perdure.model.job import AttemptOutcome
from perdure.observe.catalogue import BUCKETS
from perdure.system.fork import lock_of

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

    def observe(self, durations: Iterable[timedelta]) -> None:
        seconds = sorted(map(timedelta.total_seconds, durations))
        # A store's clock may be ahead of this machine's: what seems to begin before it is due waited for nothing.
        self.sum += sum(seconds[bisect_right(seconds, 0.0) :])
        place = 0
        for number, end in enumerate(BUCKETS):
            if place == len(seconds):
                return
            after = bisect_right(seconds, end, place)
            self.buckets[number] += after - place
            place = after
        self.buckets[-1] += len(seconds) - place


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

    def add(self, how: AttemptOutcome, events: Sequence[AttemptEnded]) -> None:
        """Count attempts that ended so."""
        self.attempts[how] = self.attempts.get(how, 0) + len(events)
        if how in _RAN:
            self.wait.observe([event.started_at - event.job.run_at for event in events])
            self.duration.observe([event.ended_at - event.started_at for event in events])
            self.retries += len([1 for event in events if event.job.failures or event.job.recoveries])
        if how == "succeeded":
            return
        if how in _FAILED:
            self.failed += len(events)
        requeued = [event.outcome.delay or timedelta(0) for event in events if event.outcome.verb == "fail"]
        self.requeued += len(requeued)
        self.latency.observe(requeued)
        for event in events:
            if event.outcome.state == "dead":
                self.buried += 1
                if event.outcome.reason in _AT_LIMIT and event.job.delivery == "at_least_once":
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
        self._lock = lock_of(self)
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
        attempts: dict[tuple[str, str, AttemptOutcome], list[AttemptEnded]] = {}
        with self._lock:
            for event in events:
                if type(event) is AttemptEnded:
                    job = event.job
                    alike = attempts.get(kind := (job.queue, job.task, event.outcome.attempt))
                    if alike is None:
                        attempts[kind] = [event]
                    else:
                        alike.append(event)
                else:
                    self._count(event)
            for (queue, task, how), alike in attempts.items():
                self._cell(queue, OTHER if how == "parked" else task).add(how, alike)

    def _count(self, event: Event) -> None:
        match event:
            case JobsEnqueued():
                self._count_enqueued(event)
            case CommitLost(job=job):
                self._cell(job.queue, job.task).commits_lost += 1
            case ForwardFailed(queue=queue, task=task):
                self._cell(queue, task).dlq_failed += 1
            case TicksFired(ticks=ticks, fired_at=fired_at):
                self.schedule_lag.observe([fired_at - tick for tick in ticks])
            case LeaseExpired():
                self.lease_lost += 1
            case _:
                pass

    def _count_enqueued(self, event: JobsEnqueued) -> None:
        jobs, ids = event.jobs, event.ids
        if len(jobs) == 1:  # what counts many would cost one more than all the rest
            if jobs[0].id == ids[0]:
                self._cell(jobs[0].queue, jobs[0].task).enqueued += 1
            return
        made = [(new.queue, new.task) for new, id in zip(jobs, ids, strict=True) if new.id == id]
        for (queue, task), count in Counter(made).items():
            self._cell(queue, task).enqueued += count

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
