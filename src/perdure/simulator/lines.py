"""The store's part of a simulation: queues with two lanes as heaps, and the fetch that shares out what is ready.

The share is the production `Fairness.split`; what a lane cannot fill goes to the other, the cap and the limit on the
queue hold over all workers, and inside a lane the order is priority, run_at, id, as on every engine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush

from perdure.model.job import HIGHEST_PRIORITY, Job
from perdure.model.outcome import Ending
from perdure.model.queue.fairness import START_CARRY, Fairness
from perdure.model.state import Lane


class Simulated:
    """One job in a simulation; `job` is what the store would hand out for its newest attempt."""

    __slots__ = ("attempt", "ending", "job", "lane", "line", "number", "priority", "run_at", "started_at", "worker")

    def __init__(self, number: int, priority: int, run_at: int, line: Line, job: Job) -> None:
        self.number = number
        self.priority = priority
        self.run_at = run_at
        self.line = line
        self.job = job
        self.lane: Lane = "fresh"
        self.attempt = 0
        self.started_at = 0
        self.ending: Ending | None = None
        """How the attempt that runs is going to end."""
        self.worker: Worker | None = None


NUMBER_BITS = 40
"""How many low bits of a key hold a job's number; 40 more above them hold the order of starts, where it matters."""

NUMBER = 2**NUMBER_BITS - 1

_TIME_BITS = 80


def lane_key(job: Simulated) -> int:
    """Priority, run_at and id in one number: compared at once, and no burden for the garbage collector."""
    return ((HIGHEST_PRIORITY - job.priority) << _TIME_BITS | job.run_at) << NUMBER_BITS | job.number


class Worker:
    """One worker of a simulation: free slots, what it holds in advance, and the fraction that it carries."""

    __slots__ = ("batch", "buffer", "carry", "free", "is_open", "line", "place", "prefetch")

    def __init__(self, place: int, line: Line, *, slots: int, prefetch: int, batch: int) -> None:
        self.place = place
        self.line = line
        self.free = slots
        self.is_open = True
        """Whether it is among those that may have room."""
        self.prefetch = prefetch
        self.batch = batch
        self.buffer: deque[Simulated] = deque()
        self.carry = START_CARRY

    @property
    def room(self) -> int:
        """How many jobs to ask for; nothing while the buffer is well filled, as the fetcher does it."""
        held = len(self.buffer)
        if held > self.prefetch // 2:
            return 0
        room = self.free + self.prefetch - held
        return room if room < self.batch else self.batch


class Line:
    """One queue: what is ready in each lane, and how many run."""

    def __init__(
        self,
        name: str,
        fairness: Fairness,
        jobs: Sequence[Simulated],
        *,
        has_lanes: bool = True,
    ) -> None:
        self.name = name
        self._jobs = jobs
        self._fairness = fairness
        self._has_lanes = has_lanes
        self.fresh: list[int] = []
        self.retry: list[int] = []
        self.running = 0
        self.retries_running = 0

    def put(self, job: Simulated) -> None:
        """Make a job ready."""
        heappush(self.fresh if job.lane == "fresh" else self.retry, lane_key(job))

    def fetch(self, room: int, carry: int) -> tuple[list[Simulated], int]:
        """Claim up to `room` jobs; gives them in the order in which they start, and the fraction to carry on."""
        limit = self._fairness.concurrency
        if limit is not None:
            room = min(room, limit - self.running)
        if room <= 0:
            return [], carry
        if not self._has_lanes:
            return self._claim(self._first(room)), carry
        split = self._fairness.split(room, carry)
        fresh, retry = self._share(room, split.fresh, split.retry)
        if not fresh and not retry and not self._holds_back():
            # Where a queue has nothing to give no room is offered, and the fraction stays.
            return [], carry
        keys = [heappop(self.fresh) for _ in range(fresh)]
        keys += [heappop(self.retry) for _ in range(retry)]
        if fresh and retry:
            keys.sort()
        return self._claim(keys), split.carry

    def release(self, job: Simulated) -> None:
        """An attempt of the job is over."""
        self.running -= 1
        if job.lane == "retry":
            self.retries_running -= 1

    def _share(self, room: int, fresh: int, retry: int) -> tuple[int, int]:
        """How many jobs each lane gives: its part, and unless the queue is strict what the other leaves over."""
        ready, waiting = len(self.fresh), len(self.retry)
        cap = self._fairness.max_retries_running
        if cap is not None:
            waiting = min(waiting, max(0, cap - self.retries_running))
        if self._fairness.is_strict:
            return min(fresh, ready), min(retry, waiting)
        # Written out, as this is the innermost place of a simulation.
        if retry < room - ready:
            retry = room - ready
        if retry > waiting:
            retry = waiting
        fresh = room - retry
        return fresh if fresh < ready else ready, retry

    def _holds_back(self) -> bool:
        """Whether a strict share alone keeps back what is ready."""
        cap = self._fairness.max_retries_running
        may_retry = self.retry and (cap is None or self.retries_running < cap)
        return self._fairness.is_strict and bool(self.fresh or may_retry)

    def _first(self, room: int) -> list[int]:
        """The first of both lanes together, by priority, run_at and id."""
        keys: list[int] = []
        while len(keys) < room and (self.fresh or self.retry):
            if not self.retry or (self.fresh and self.fresh[0] < self.retry[0]):
                keys.append(heappop(self.fresh))
            else:
                keys.append(heappop(self.retry))
        return keys

    def _claim(self, keys: list[int]) -> list[Simulated]:
        jobs = [self._jobs[key & NUMBER] for key in keys]
        self.running += len(jobs)
        for job in jobs:
            job.attempt += 1
            if job.lane == "retry":
                self.retries_running += 1
        return jobs
