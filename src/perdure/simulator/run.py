"""Runs a scenario in virtual time: the production decision, policy and fairness, with heaps for store and workers.

One moment after the other: attempts that end now are decided in the order in which they started; then jobs arrive; then
retries whose delay is over become ready; then each worker fills its slots and fetches. That is the order of the
harness of `app.testing()` too, and the delays come from the same stream of random numbers, so that both agree attempt
by attempt.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from datetime import UTC, datetime
from heapq import heappop, heappush
from random import Random

import msgspec

from perdure.configuration.settings import Settings
from perdure.errors import BadOption
from perdure.model.decide import decide, spent
from perdure.model.failure import Failure
from perdure.model.job import Job, JobId
from perdure.model.outcome import Outcome, Raised, Returned
from perdure.model.policy.resolve import AppPolicy, QueuePolicy, TaskPolicy, resolve
from perdure.model.queue.fairness import Fairness
from perdure.simulator.fate import Fate
from perdure.simulator.lines import NUMBER, NUMBER_BITS, Line, Simulated, Worker
from perdure.simulator.record import Record
from perdure.simulator.result import Simulation, Step
from perdure.simulator.scenario import MICROSECOND, Scenario
from perdure.text.plural import plural

_START = datetime(2030, 1, 1, tzinfo=UTC)
_QUEUE = "simulated"
_NEVER = 2**62
_POLL = Settings().poll // MICROSECOND
_END_BITS = 2 * NUMBER_BITS
"""The key of an end: when, then the order of starts, then the job's number."""
_RETURNED = Returned()
_DOWN = Raised(
    error=Failure(
        type="ConnectionError",
        message="the other side is not there",
        lineage=("ConnectionError", "OSError", "Exception", "BaseException"),
    )
)


def run(scenario: Scenario, *, is_traced: bool = False) -> Simulation:
    """Simulate until every job has ended, or until the scenario stops it."""
    return Run(scenario, is_traced=is_traced).run()


class Run:
    """One simulation under way; times are microseconds since its start."""

    def __init__(self, scenario: Scenario, *, is_traced: bool) -> None:
        self._scenario = scenario
        self._fate = Fate(scenario)
        self._random = Random(scenario.seed)
        self._first = _job(scenario.max_attempts)
        queue = QueuePolicy(retry_queue=scenario.fairness.retry_queue)
        self._policy = resolve(self._first, TaskPolicy(), queue, AppPolicy(retry=scenario.policy))
        self._has_deadline = scenario.policy.within is not None
        # Where a lane's share is nothing, no poll ever helps.
        self._is_strict = scenario.fairness.is_strict and 0 < scenario.fairness.retry_share < 1
        self._last = 0
        self._jobs: list[Simulated] = []
        self._lines = _lines(scenario, self._jobs)
        self._all_lines = list(self._lines.values())
        self._main = self._lines[_QUEUE]
        self._other = self._all_lines[1] if len(self._all_lines) > 1 else None
        self._workers = _workers(scenario, self._lines)
        self._open = list(range(len(self._workers)))
        self._to_fill: set[int] = set()
        self._ends: list[int] = []
        self._waiting: list[int] = []
        self._arrivals = scenario.arrivals()
        self._next_arrival, self._next_priority = next(self._arrivals, (_NEVER, 0))
        self._record = Record(scenario, self._all_lines, self._waiting)
        self._trace: list[Step] | None = [] if is_traced else None
        self._starts = 0

    def run(self) -> Simulation:
        """Go from moment to moment until nothing is left to happen."""
        stop = self._scenario.until
        until = _NEVER if stop is None else stop // MICROSECOND
        record, now = self._record, 0
        while (moment := self._next_moment()) < until:
            now = self._last = moment
            record.reach(now)
            self._turn(now)
            if record.attempts > self._scenario.most_attempts:
                raise BadOption(
                    f"This simulation has more than {plural(self._scenario.most_attempts, 'attempt')}.",
                    "Give fewer jobs, a shorter outage or a lower limit.",
                )
        end = now if stop is None else max(now, until)
        return record.result(end, self._policy.limit - 1, self._trace or ())

    def _turn(self, now: int) -> None:
        """All that one moment brings, in its order; most bring one thing, so each is looked at before a call."""
        if self._ends and self._ends[0] >> _END_BITS <= now:
            self._end_attempts(now)
        if self._next_arrival <= now:
            self._arrive(now)
        if self._waiting and self._waiting[0] >> NUMBER_BITS <= now:
            self._promote(now)
        if self._to_fill or self._is_anything_ready():
            self._serve_all(now)
        self._record.look(now)

    def _is_anything_ready(self) -> bool:
        main, other = self._main, self._other
        return bool(main.fresh or main.retry or (other is not None and other.retry))

    def _next_moment(self) -> int:
        moment = self._next_arrival
        if self._ends and (end := self._ends[0] >> _END_BITS) < moment:
            moment = end
        if self._waiting and (due := self._waiting[0] >> NUMBER_BITS) < moment:
            moment = due
        if self._is_strict and self._last + _POLL < moment and self._is_anyone_held_back():
            moment = self._last + _POLL
        return moment

    def _is_anyone_held_back(self) -> bool:
        """Whether something is ready that a strict share keeps from a worker with room, which then asks at its poll."""
        main = self._main
        is_ready = main.fresh or main.retry
        return bool(is_ready) and any(worker.line is main and worker.room > 0 for worker in self._workers)

    def _end_attempts(self, now: int) -> None:
        """Decide about the attempts that end now."""
        ends = self._ends
        last = (now + 1) << _END_BITS
        moment = _START + now * MICROSECOND
        while ends and ends[0] < last:
            job = self._jobs[heappop(ends) & NUMBER]
            ending = job.ending
            assert ending is not None, "who runs has an ending"
            outcome = decide(job.job, ending, self._policy, moment, self._random)
            job.line.release(job)
            self._free(job)
            if self._trace is not None:
                self._trace.append(_step(job, now, outcome))
            self._record.ended(now, ending is _DOWN, outcome.state)
            if outcome.delay is not None:
                self._retry(job, outcome, now)

    def _retry(self, job: Simulated, outcome: Outcome, now: int) -> None:
        """Let the job wait for its next attempt, in the queue that the decision names."""
        assert outcome.delay is not None
        if outcome.queue is not None:
            job.line = self._lines[outcome.queue]
        job.lane = outcome.lane
        job.run_at = now + outcome.delay // MICROSECOND
        job.job = msgspec.structs.replace(
            job.job,
            queue=job.line.name,
            lane=outcome.lane,
            attempt=job.attempt + 1,
            failures=outcome.failures,
            recoveries=outcome.recoveries,
            delay=outcome.delay,
            reason=outcome.reason,
        )
        if outcome.delay:
            heappush(self._waiting, job.run_at << NUMBER_BITS | job.number)
        else:
            job.line.put(job)

    def _arrive(self, now: int) -> None:
        while self._next_arrival <= now:
            job = Simulated(len(self._jobs), self._next_priority, self._next_arrival, self._main, self._first)
            if self._has_deadline:
                # Only there does the decision look at a job's age; without it all first attempts are alike.
                job.job = msgspec.structs.replace(self._first, created_at=_START + now * MICROSECOND)
            self._jobs.append(job)
            job.line.put(job)
            self._record.arrived(job)
            self._next_arrival, self._next_priority = next(self._arrivals, (_NEVER, 0))

    def _promote(self, now: int) -> None:
        last = (now + 1) << NUMBER_BITS
        while self._waiting and self._waiting[0] < last:
            job = self._jobs[heappop(self._waiting) & NUMBER]
            job.line.put(job)

    def _free(self, job: Simulated) -> None:
        """Give the job's slot back to its worker, which may have room now."""
        worker = job.worker
        assert worker is not None, "who runs has a worker"
        worker.free += 1
        if not worker.is_open:
            worker.is_open = True
            insort(self._open, worker.place)
        if worker.buffer:
            self._to_fill.add(worker.place)

    def _serve_all(self, now: int) -> None:
        """Let the workers that have room fill their slots and fetch, in their order."""
        at = 0
        while at < len(self._open) and (self._to_fill or self._is_anything_ready()):
            worker = self._workers[self._open[at]]
            self._serve(worker, now)
            if worker.free or worker.prefetch:
                at += 1
            else:
                worker.is_open = False
                del self._open[at]

    def _serve(self, worker: Worker, now: int) -> None:
        """Fill the worker's slots, and fetch for as long as it has room and gets what it asks for."""
        line = worker.line
        if worker.buffer:
            self._fill(worker, now)
        while (line.fresh or line.retry) and (room := worker.room) > 0:
            jobs, worker.carry = line.fetch(room, worker.carry)
            worker.buffer.extend(jobs)
            self._fill(worker, now)
            if len(jobs) < room:
                return

    def _fill(self, worker: Worker, now: int) -> None:
        self._to_fill.discard(worker.place)
        while worker.buffer and worker.free:
            worker.free -= 1
            self._start(worker.buffer.popleft(), worker, now)

    def _start(self, job: Simulated, worker: Worker, now: int) -> None:
        job.worker = worker
        job.started_at = now
        self._starts += 1
        over = spent(job.job, self._policy, _START + now * MICROSECOND) if self._has_deadline else None
        if over is not None:
            job.ending = over
            heappush(self._ends, (now << NUMBER_BITS | self._starts) << NUMBER_BITS | job.number)
            return
        self._record.started(job)
        is_failing = self._fate.fails(job.number, job.attempt, now)
        end = now + self._fate.takes(job.number, job.attempt, is_failing)
        job.ending = _DOWN if is_failing else _RETURNED
        heappush(self._ends, (end << NUMBER_BITS | self._starts) << NUMBER_BITS | job.number)


def _lines(scenario: Scenario, jobs: Sequence[Simulated]) -> dict[str, Line]:
    fairness = scenario.fairness
    main = Line(_QUEUE, fairness, jobs, has_lanes=scenario.has_lanes)
    lines = {_QUEUE: main}
    if fairness.retry_queue is not None and fairness.retry_queue != _QUEUE:
        lines[fairness.retry_queue] = Line(fairness.retry_queue, Fairness(), jobs)
    return lines


def _workers(scenario: Scenario, lines: dict[str, Line]) -> list[Worker]:
    main, *retries = lines.values()
    crew = [(main, scenario.slots)] * scenario.workers
    crew += [(line, scenario.retry_slots) for line in retries for _ in range(scenario.retry_workers)]
    return [
        Worker(place, line, slots=slots, prefetch=scenario.prefetch, batch=scenario.batch)
        for place, (line, slots) in enumerate(crew)
    ]


def _step(job: Simulated, now: int, outcome: Outcome) -> Step:
    return Step(
        job=job.number,
        attempt=job.attempt,
        lane=job.lane,
        queue=job.line.name,
        started_at=job.started_at * MICROSECOND,
        ended_at=now * MICROSECOND,
        outcome=outcome.attempt,
        delay=outcome.delay,
    )


def _job(max_attempts: int | None) -> Job:
    """What the store hands out for a first attempt."""
    return Job(
        id=JobId("00000000-0000-7000-8000-000000000000"),
        task="simulated",
        queue=_QUEUE,
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
        max_attempts=max_attempts,
    )
