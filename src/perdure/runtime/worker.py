"""One worker: puts the running parts together, keeps them going, and stops them in the right order.

`run()` registers, starts the parts and waits. The first `stop()` ends fetching, gives back what was not begun, lets running
attempts finish within the grace period and gives back the rest; the second gives everything back at once. When it returns,
no job is left running under this worker.
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from random import Random
from typing import Any

import msgspec

from perdure.clock import Clock
from perdure.errors import EngineError, LeaseLost
from perdure.model.decide import decide
from perdure.model.event import LeaseExpired, Observer, WorkerStarted, WorkerStopped
from perdure.model.job import Job, JobId, WorkerId
from perdure.model.outcome import ShutDown
from perdure.runtime.canceller import Canceller
from perdure.runtime.committer import Committer, Finished
from perdure.runtime.executor import Executor
from perdure.runtime.fetcher import Claims, Fetcher, Pace
from perdure.runtime.handler import Registry
from perdure.runtime.held import Held, Holding
from perdure.runtime.keeper import Keeper, Lease
from perdure.runtime.loop import Loop
from perdure.runtime.promoter import Promoter
from perdure.runtime.pruner import Pruner
from perdure.runtime.reaper import Reaper
from perdure.runtime.trouble import Trouble
from perdure.store import Store
from perdure.store.workers import Beat

_MOST_UNCOMMITTED = 4000


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is asked to do."""

    queues: tuple[str, ...]
    concurrency: int
    lease: timedelta
    grace: timedelta
    poll: timedelta
    prefetch: timedelta
    max_prefetch: int
    retention: timedelta
    version: str


class Worker:
    """One process's worker."""

    def __init__(
        self,
        *,
        store: Store,
        registry: Registry,
        plan: Plan,
        clock: Clock,
        random: Random,
        observer: Observer,
        new_id: Callable[[], WorkerId],
    ) -> None:
        self._store = store
        self._registry = registry
        self._plan = plan
        self._clock = clock
        self._random = random
        self._observer = observer
        self._new_id = new_id
        self._held = Held()
        self._buffer: asyncio.Queue[Holding] = asyncio.Queue()
        self._pace = Pace(horizon=plan.prefetch.total_seconds(), most=plan.max_prefetch)
        self._executor = Executor(registry=registry, clock=clock, random=random)
        self._id: WorkerId | None = None
        self._lease: Lease | None = None
        self._keeper: Keeper | None = None
        self._strangers: set[tuple[JobId, int]] = set()
        self._is_lease_lost = asyncio.Event()
        self._stopping = asyncio.Event()
        self._stopping_now = asyncio.Event()
        self._released = 0
        self._loops: list[Loop] = []
        self._is_waking = False
        poll = plan.poll.total_seconds()
        self._committer = Committer(
            store=store,
            clock=clock,
            observer=observer,
            trouble=self._trouble("committer"),
            is_trusted=self._is_trusted,
            done=self._committed,
        )
        self._fetcher = Fetcher(
            claims=Claims(store=store, registry=registry, queues=plan.queues),
            clock=clock,
            random=random,
            trouble=self._trouble("fetcher"),
            poll=poll,
            room=self._room,
            low=self._is_low,
            deliver=self._deliver,
            lease_lost=self._is_lease_lost.set,
            worker=lambda: self._id if self._is_trusted() else None,
        )

    def stop(self) -> None:
        """Stop; called a second time, stop at once. Must be called on the worker's event loop."""
        if self._stopping.is_set():
            self._stopping_now.set()
        self._stopping.set()

    async def run(self) -> None:
        """Work until stopped."""
        loop = asyncio.get_running_loop()
        await self._register()
        unsubscribe = self._store.wakeups.subscribe(lambda: self._hint(loop))
        committing = asyncio.create_task(self._committer.run())
        fetching = asyncio.create_task(self._fetcher.run())
        others = [asyncio.create_task(work) for work in self._background()]
        slots = [
            asyncio.create_task(self._executor.serve(self._buffer, self._hand_on, self._is_trusted))
            for _ in range(self._plan.concurrency)
        ]
        try:
            await self._until_stopped([committing, fetching, *others, *slots])
        finally:
            await self._wind_down(fetching, slots)
            self._committer.close()
            await committing
            unsubscribe()
            await _end([*others, *slots])
            self._executor.close()
            await self._leave()

    def _background(self) -> list[Coroutine[Any, Any, None]]:
        """Promoter, canceller, reaper and pruner, each in its own rhythm, and the watch over the lease."""
        store, clock, poll = self._store, self._clock, self._plan.poll.total_seconds()
        reaper = Reaper(
            store=store,
            registry=self._registry,
            clock=clock,
            random=self._random,
            observer=self._observer,
            every=min(self._plan.lease.total_seconds() / 3, 5.0),
        )
        promoter = Promoter(store=store, clock=clock, poll=poll)
        canceller = Canceller(store=store, held=self._held, worker=lambda: self._id, poll=poll)
        pruner = Pruner(store=store, retention=self._plan.retention)
        hinted = [self._loop("promoter", promoter.step), self._loop("canceller", canceller.step)]
        unhinted = [self._loop("reaper", reaper.step), self._loop("pruner", pruner.step)]
        self._loops = hinted
        return [loop.run() for loop in [*hinted, *unhinted]] + [self._watch_lease()]

    def _loop(self, part: str, step: Callable[[], Coroutine[Any, Any, float]]) -> Loop:
        return Loop(step, clock=self._clock, random=self._random, trouble=self._trouble(part))

    def _trouble(self, part: str) -> Trouble:
        return Trouble(part, clock=self._clock, random=self._random, observer=self._observer)

    async def _until_stopped(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Wait for the stop; a part that dies of a bug takes the worker down rather than leave it half alive."""
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            done, _ = await asyncio.wait([stopping, *tasks], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        for task in done:
            if task is not stopping:
                task.result()

    async def _register(self) -> None:
        """Register under a new id and start to keep its lease."""
        loop = asyncio.get_running_loop()
        worker = self._new_id()
        since = self._clock.monotonic()
        await self._store.register(
            worker,
            host=platform.node()[:100],
            pid=os.getpid(),
            queues=self._plan.queues,
            concurrency=self._plan.concurrency,
            version=self._plan.version,
            lease=self._plan.lease,
        )
        lease = Lease(length=self._plan.lease, clock=self._clock, since=since)
        self._is_lease_lost.clear()
        self._strangers.clear()
        self._id, self._lease = worker, lease
        self._keeper = Keeper(
            store=self._store,
            clock=self._clock,
            worker=worker,
            length=self._plan.lease,
            lease=lease,
            heard=lambda beat: on_loop(loop, lambda: self._compare(worker, beat)),
            lost=lambda: on_loop(loop, self._is_lease_lost.set),
        )
        self._keeper.start()
        self._observer.tell(
            WorkerStarted(worker=worker, queues=self._plan.queues, concurrency=self._plan.concurrency)
        )

    async def _watch_lease(self) -> None:
        """When the lease is lost: drop everything, since others may run it by now, and begin anew under a new id."""
        trouble = self._trouble("keeper")
        while True:
            await self._is_lease_lost.wait()
            if self._lease is not None and self._keeper is not None:
                self._lease.end()
                self._keeper.stop()
                self._observer.tell(LeaseExpired(worker=str(self._id), held=len(self._held)))
                self._id = None
                self._drop_everything()
            try:
                await self._register()
            except EngineError as error:
                await self._clock.sleep(trouble.failed(error))
                continue
            trouble.succeeded()
            self._fetcher.freed()

    def _drop_everything(self) -> None:
        for holding in self._held.all():
            holding.break_off("lease")
            self._held.remove(holding.job)
        self._committer.forget()
        while not self._buffer.empty():
            self._buffer.get_nowait()

    def _is_trusted(self) -> bool:
        return self._lease is not None and self._lease.is_trusted()

    def _room(self) -> int:
        """How many more jobs may be claimed: slots and measured advance, less what is held and not yet run."""
        self._pace.measure(self._clock.monotonic(), self._executor.finished)
        pending = self._buffer.qsize() + self._executor.busy
        if len(self._held) - pending > _MOST_UNCOMMITTED:
            return 0
        return self._plan.concurrency + self._pace.advance - pending

    def _is_low(self) -> bool:
        return self._buffer.qsize() <= self._pace.advance // 2

    def _deliver(self, jobs: list[Job]) -> None:
        for job in jobs:
            self._buffer.put_nowait(self._held.add(job))

    def _hand_on(self, finished: Finished) -> None:
        self._committer.put(finished)
        self._fetcher.freed()

    def _committed(self, batch: Sequence[Finished]) -> None:
        for finished in batch:
            self._held.remove(finished.job)
        self._fetcher.freed()
        if any(self._registry.fairness(one.job.queue).max_retries_running for one in batch if one.job.lane == "retry"):
            self._fetcher.wake()  # a place under the cap on running retries is free again

    def _hint(self, loop: asyncio.AbstractEventLoop) -> None:
        """Pass a wake-up on, from whatever thread it comes; one pending hint is enough."""
        if not self._is_waking:
            self._is_waking = True
            on_loop(loop, self._wake)

    def _wake(self) -> None:
        self._is_waking = False
        self._fetcher.wake()
        for loop in self._loops:
            loop.wake()

    def _compare(self, worker: WorkerId, beat: Beat) -> None:
        """Give back jobs that the store counts as this worker's but that it does not hold: replies got lost.

        A fetch may be under way, so a job is a stranger only when two beats in a row brought it.
        """
        if worker != self._id:
            return
        unknown = {fence for fence in beat.held if fence not in self._held}
        again = unknown & self._strangers
        self._strangers = unknown - again
        if again:
            asyncio.get_running_loop().create_task(self._give_back_strangers(sorted(again)))

    async def _give_back_strangers(self, fences: list[tuple[JobId, int]]) -> None:
        try:
            jobs = await self._store.get([job_id for job_id, _ in fences])
        except EngineError:
            return  # the next two beats will find them again
        for (_, attempt), job in zip(fences, jobs, strict=True):
            if job is not None and job.attempt == attempt and job.worker == self._id and job.fence not in self._held:
                self._held.add(job)
                self._committer.put(self._give_back(job))

    def _give_back(self, job: Job, *, has_started: bool = False) -> Finished:
        policy = self._registry.policy(job)
        now = self._clock.now()
        self._released += 1
        return Finished(
            job=job,
            outcome=decide(job, ShutDown(has_started=has_started), policy, now, self._random),
            limit=policy.limit,
            started_at=now,
            ended_at=now,
        )

    async def _wind_down(self, fetching: asyncio.Task[None], slots: Sequence[asyncio.Task[None]]) -> None:
        """Stop fetching, give back what waits in the buffer, and let the running attempts finish within the grace."""
        self._fetcher.stop()
        await asyncio.wait([fetching])
        while not self._buffer.empty():
            holding = self._buffer.get_nowait()
            if holding.interrupt is None:
                self._committer.put(self._give_back(holding.job))
        hurry = asyncio.create_task(self._stopping_now.wait())
        idle = asyncio.create_task(self._until_idle(slots))
        await asyncio.wait(
            [hurry, idle], timeout=self._plan.grace.total_seconds(), return_when=asyncio.FIRST_COMPLETED
        )
        for holding in self._held.all():
            if holding.break_off("shutdown"):
                self._released += 1
        await asyncio.wait([idle], timeout=2.0)
        for holding in self._held.all():
            if holding.runner is not None:
                # Its handler swallows the cancellation; the process is about to end, and the job goes back all the same.
                self._committer.put(self._give_back(holding.job, has_started=True))
        await _end([hurry, idle])

    async def _until_idle(self, slots: Sequence[asyncio.Task[None]]) -> None:
        while self._executor.busy and not all(slot.done() for slot in slots):
            await asyncio.sleep(0.005)

    async def _leave(self) -> None:
        if self._keeper is not None:
            self._keeper.stop()
        if self._id is not None:
            try:
                await self._store.deregister(self._id)
            except (EngineError, LeaseLost):
                pass  # the lease will run out by itself
            self._observer.tell(WorkerStopped(worker=self._id, released=self._released))
        if self._keeper is not None:
            await asyncio.to_thread(self._keeper.join)


async def _end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=5)


def on_loop(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Make a call on a loop, from any thread."""
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        pass  # the loop is closed: the worker is gone already
