"""Measures a store through the real client and the real worker: enqueue, drain, and the way from enqueue to start.

Every part ends with its jobs or with its share of the time, whichever comes first.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from perdure.cli.bench.store import Place
from perdure.model.event import AttemptEnded, Event
from perdure.runtime.context import current_job
from perdure.runtime.process import loop_factory
from perdure.store import Store
from perdure.system.clock import SystemClock

NOOP = "perdure-bench-noop"
TOUCH = "perdure-bench-touch"

_BATCH = 500
_MOST_SINGLE = 1000
_PROBES = 20
_MOST_TOUCHED = 100
_PAUSE = 0.03
"""How many seconds of quiet come before each job whose start is timed: the worker must be idle."""

_SINGLE, _BULK, _DRAIN, _TOUCHED = 0.2, 0.25, 0.4, 0.15
"""The shares of the time that the parts may take."""

Tell = Callable[[int], None]


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs a part moved, and in how many seconds."""

    jobs: int
    elapsed: float

    @property
    def rate(self) -> float:
        """Jobs per second."""
        return self.jobs / self.elapsed if self.elapsed > 0 else 0.0


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured; times in seconds."""

    engine: str
    version: str
    durability: str
    is_shared: bool
    round_trip: float
    """The median time of asking the store for its clock."""
    commit: float
    """The median time of making one job durable."""
    single: Speed
    bulk: Speed
    drain: Speed
    drain_cpu: float
    """The part of the drain's time in which this process computed; above 1 on several cores."""
    concurrency: int
    starts: tuple[float, ...]
    """From enqueue to start on an idle worker, in ascending order."""
    is_cut: bool
    """Whether some part ended with its time and not with its jobs."""

    def start(self, part: float) -> float | None:
        """The time within which so large a part of the jobs had started; None where none was timed."""
        return self.starts[max(math.ceil(part * len(self.starts)) - 1, 0)] if self.starts else None


class Counting:
    """The observer of the bench: counts the attempts that are durable, and says when all are."""

    def __init__(self) -> None:
        self.ended = 0
        self._wanted = 0
        self._reached: asyncio.Event | None = None
        self.tell_more: Tell = lambda _: None

    def tell(self, event: Event) -> None:
        self.tell_all([event])

    def tell_all(self, events: Sequence[Event]) -> None:
        more = sum(isinstance(event, AttemptEnded) for event in events)
        self.ended += more
        self.tell_more(more)
        if self._reached is not None and self.ended >= self._wanted:
            self._reached.set()

    async def reach(self, wanted: int, within: float) -> bool:
        """Wait until so many attempts have ended in all; whether they did in time."""
        self._wanted, self._reached = wanted, asyncio.Event()
        if self.ended >= wanted:
            return True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._reached.wait(), within)
        return self.ended >= wanted


def measure(place: Place, counting: Counting, *, jobs: int, seconds: float, tell: Tell) -> Figures:
    """Run every part; `tell` hears of each job that was enqueued, and of each that has run."""
    touched = _Touched()
    place.app.task(name=NOOP, queue=place.queue)(_noop)
    place.app.task(name=TOUCH, queue=place.queue)(touched.handler)
    store = place.app.store
    round_trip = _median([_timed(lambda: store.now().wait()) for _ in range(_PROBES)])
    few = min(max(jobs // 10, 1), _MOST_SINGLE)
    single, commit = _enqueue_single(place, few, seconds * _SINGLE, tell)
    bulk = _enqueue_bulk(place, jobs - single.jobs, seconds * _BULK, tell)
    counting.tell_more = tell
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        drain, cpu, starts = runner.run(_run(place, counting, touched, single.jobs + bulk.jobs, jobs, seconds))
    able = store.capabilities
    return Figures(
        engine=able.engine,
        version=able.version,
        durability=able.durability,
        is_shared=able.is_shared,
        round_trip=round_trip,
        commit=commit,
        single=single,
        bulk=bulk,
        drain=drain,
        drain_cpu=cpu,
        concurrency=place.app.settings.concurrency,
        starts=tuple(sorted(starts)),
        is_cut=single.jobs + bulk.jobs < jobs or drain.jobs < single.jobs + bulk.jobs,
    )


async def _noop() -> None:
    return None


class _Touched:
    """Notes when jobs start."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.started: dict[str, asyncio.Future[float]] = {}

    async def handler(self) -> None:
        waiting = self.started.get(current_job().id)
        if waiting is not None and not waiting.done():
            waiting.set_result(self.clock.monotonic())


def _enqueue_single(place: Place, count: int, within: float, tell: Tell) -> tuple[Speed, float]:
    store, clock = place.app.store, SystemClock()
    began = clock.monotonic()
    times: list[float] = []
    while len(times) < count and clock.monotonic() - began < within:
        new = place.new_jobs(NOOP, 1)
        times.append(_timed(lambda new=new: store.enqueue(new).wait()))  # type: ignore[misc]
        tell(1)
    return Speed(jobs=len(times), elapsed=clock.monotonic() - began), _median(times)


def _enqueue_bulk(place: Place, count: int, within: float, tell: Tell) -> Speed:
    store, clock = place.app.store, SystemClock()
    began = clock.monotonic()
    done = 0
    while done < count and clock.monotonic() - began < within:
        new = place.new_jobs(NOOP, min(_BATCH, count - done))
        store.enqueue(new).wait()
        done += len(new)
        tell(len(new))
    return Speed(jobs=done, elapsed=clock.monotonic() - began)


async def _run(
    place: Place, counting: Counting, touched: _Touched, made: int, jobs: int, seconds: float
) -> tuple[Speed, float, list[float]]:
    """Drain what was made, then time starts on the idle worker."""
    clock = SystemClock()
    worker = place.app.make_worker([place.queue])
    began, cpu = clock.monotonic(), _cpu()
    working = asyncio.create_task(worker.run(waits=False))
    try:
        reaching = asyncio.create_task(counting.reach(made, seconds * _DRAIN))
        await asyncio.wait([working, reaching], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            reaching.cancel()
            working.result()
        elapsed = max(clock.monotonic() - began, 1e-9)
        drain, share = Speed(jobs=counting.ended, elapsed=elapsed), (_cpu() - cpu) / elapsed
        counting.tell_more = lambda _: None
        # What was not drained in time would stand before the jobs whose start is timed.
        is_drained = counting.ended >= made
        starts = await _starts(place, touched, min(jobs, _MOST_TOUCHED), seconds * _TOUCHED) if is_drained else []
    finally:
        worker.stop()
        worker.stop()
        await asyncio.wait([working])
    return drain, share, starts


async def _starts(place: Place, touched: _Touched, count: int, within: float) -> list[float]:
    own = place.open_again()
    store: Store = place.app.store if own is None else own
    clock = touched.clock
    began = clock.monotonic()
    found: list[float] = []
    try:
        while len(found) < count and (left := within - (clock.monotonic() - began)) > 0:
            await clock.sleep(_PAUSE)
            new = place.new_jobs(TOUCH, 1)
            waiting = touched.started[new[0].id] = asyncio.get_running_loop().create_future()
            asked = clock.monotonic()
            await store.enqueue(new)
            try:
                found.append(await asyncio.wait_for(waiting, max(left, 1.0)) - asked)
            except TimeoutError:
                break
    finally:
        if own is not None:
            await asyncio.to_thread(own.close)
    return found


def _timed(work: Callable[[], object]) -> float:
    clock = SystemClock()
    began = clock.monotonic()
    work()
    return clock.monotonic() - began


def _median(times: Sequence[float]) -> float:
    return sorted(times)[len(times) // 2] if times else 0.0


def _cpu() -> float:
    used = os.times()
    return used.user + used.system
