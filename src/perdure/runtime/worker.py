"""One worker: puts the running parts together, keeps them going, and stops them in the right order.

`run()` registers, starts the parts and waits. The first `stop()` ends fetching, gives back what was not begun, lets
running attempts finish within the grace period and gives back the rest; the second gives everything back at once. When
it returns, no job is left running under this worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

from perdure.clock import Clock
from perdure.model.decide import decide
from perdure.model.event import AttemptEnded, Observer, Tracing, WorkerStopped
from perdure.model.job import Job, WorkerId
from perdure.model.outcome import ShutDown
from perdure.model.state import Lane
from perdure.runtime.buffer import Buffer
from perdure.runtime.canceller import Canceller
from perdure.runtime.committer import Committer
from perdure.runtime.executor import Executor
from perdure.runtime.fetcher import Claims, Fetcher, Pace
from perdure.runtime.forwarder import Forwarder, Sinks
from perdure.runtime.handler import Registry
from perdure.runtime.held import Held
from perdure.runtime.hints import Hints
from perdure.runtime.loop import Loop
from perdure.runtime.membership import Membership
from perdure.runtime.outage import Outage
from perdure.runtime.plan import Plan
from perdure.runtime.promoter import Promoter
from perdure.runtime.pruner import Pruner
from perdure.runtime.reaper import Reaper
from perdure.runtime.scheduler import Scheduler
from perdure.runtime.starter import Starter
from perdure.runtime.startup import register_or_stop
from perdure.runtime.trouble import Trouble
from perdure.runtime.tuner import Tuner
from perdure.store import Store

_MOST_UNCOMMITTED = 4000
_STUBBORN = 2.0
"""How many seconds a handler that was broken off gets to notice it."""


class Worker:
    """One process's worker."""

    def __init__(
        self,
        *,
        store: Store,
        registry: Registry,
        sinks: Sinks,
        plan: Plan,
        clock: Clock,
        random: Random,
        observer: Observer,
        new_id: Callable[[], WorkerId],
        tracing: Tracing | None = None,
    ) -> None:
        self._store = store
        self._registry = registry
        self._plan = plan
        self._clock = clock
        self._random = random
        self._observer = observer
        self._held = Held()
        self._buffer = Buffer()
        self._pace = Pace(horizon=plan.prefetch.total_seconds(), most=plan.max_prefetch, slots=plan.concurrency)
        self._stopping = asyncio.Event()
        self._stopping_now = asyncio.Event()
        self._released = 0
        self._scheduling: Loop | None = None
        self._troubles: dict[str, Trouble] = {}
        self._outage = Outage("worker", clock=clock, observer=observer)
        self._executor = Executor(
            registry=registry,
            store=store,
            clock=clock,
            random=random,
            tracing=tracing,
            entry=plan.entry,
            start=Starter(store=store, clock=clock, trouble=self._trouble("starter")).start,
        )
        self._membership = Membership(
            store=store,
            clock=clock,
            observer=observer,
            trouble=self._trouble("keeper"),
            new_id=new_id,
            queues=tuple(plan.queues),
            concurrency=plan.concurrency,
            version=plan.version,
            lease=plan.lease,
            held=self._held,
            give_back=self._take_back,
            drop_everything=self._drop_everything,
        )
        self._committer = Committer(
            store=store,
            clock=clock,
            observer=observer,
            trouble=self._trouble("committer"),
            is_trusted=self._membership.is_trusted,
            done=self._committed,
        )
        self._tuner = Tuner(store=store, registry=registry, clock=clock, changed=lambda: self._fetcher.changed())
        self._forwarder = Forwarder(
            store=store,
            sinks=sinks,
            clock=clock,
            random=random,
            observer=observer,
            queues=registry.homes(plan.queues),
            poll=plan.poll.total_seconds(),
            ended=lambda: self._forwarding.wake(),
        )
        self._forwarding = self._loop("forwarder", self._forwarder.step)
        poll = plan.poll.total_seconds()
        self._promoting = self._loop("promoter", Promoter(store=store, clock=clock, poll=poll).step)
        self._fetcher = Fetcher(
            claims=Claims(store=store, fairness=self._tuner.fairness, queues=plan.queues),
            clock=clock,
            random=random,
            trouble=self._trouble("fetcher"),
            poll=poll,
            room=self._room,
            low=self._is_low,
            deliver=self._deliver,
            membership=self._membership,
            is_idle=lambda: not len(self._held),
        )

    def stop(self) -> None:
        """Stop; called a second time, stop at once. Must be called on the worker's event loop."""
        if self._stopping.is_set():
            self._stopping_now.set()
        self._stopping.set()

    @property
    def slots(self) -> tuple[int, int]:
        """How many slots are busy, and how many there are."""
        return self._executor.busy, self._plan.concurrency

    @property
    def has_embedded_engine(self) -> bool:
        """Whether the store's engine works in threads beside this worker."""
        return self._store.capabilities.is_embedded

    def problems(self) -> list[str]:
        """Why this worker cannot run jobs as it should; nothing when it can."""
        found = ["it is stopping"] if self._stopping.is_set() else []
        if self._membership.id is None:
            found.append("it is not registered with the store")
        elif not self._membership.is_trusted():
            found.append("its lease is in doubt")
        # A part may be added while somebody looks from another thread.
        troubles = list(self._troubles.items())
        return found + [f"the {part} cannot reach the store" for part, one in troubles if one.is_going_on]

    async def run(self, *, waits: bool = True) -> None:
        """Work until stopped. While the engine is away at the start, wait for it; without `waits`, raise instead."""
        trouble = self._trouble("worker") if waits else None
        if not await register_or_stop(self._register, trouble=trouble, stopping=self._stopping):
            return
        hinted, unhinted = self._background()
        hints = Hints(fetching=self._fetcher.wake, promoting=self._promoting, rest=hinted)
        unsubscribe = self._store.wakeups.subscribe(hints.hear)
        committing = asyncio.create_task(self._committer.run())
        fetching = asyncio.create_task(self._fetcher.run())
        others = [asyncio.create_task(part.run()) for part in (self._promoting, *hinted, *unhinted)]
        others.append(asyncio.create_task(self._membership.watch()))
        slots = [
            asyncio.create_task(self._executor.serve(self._buffer, self._hand_on, self._membership.is_trusted))
            for _ in range(self._plan.concurrency)
        ]
        try:
            await self._until_stopped([committing, fetching, *others, *slots])
        finally:
            await self._wind_down(fetching)
            self._committer.close()
            await committing
            unsubscribe()
            await _end([*others, *slots])
            await self._forwarder.close()
            self._executor.close()
            await self._registry.release()
            worker = self._membership.id
            await self._membership.leave()
            self._observer.tell(WorkerStopped(worker=str(worker), released=self._released))

    async def _register(self) -> None:
        # Limits that an operator has set hold from the first fetch on.
        await self._tuner.step()
        await self._membership.join()

    def _background(self) -> tuple[list[Loop], list[Loop]]:
        """The parts that go in a rhythm of their own: those that hints are for, and those that look by themselves."""
        store, clock, poll = self._store, self._clock, self._plan.poll.total_seconds()
        reaper = Reaper(
            store=store,
            registry=self._registry,
            clock=clock,
            random=self._random,
            observer=self._observer,
            every=min(self._plan.lease.total_seconds() / 3, 5.0),
        )
        canceller = Canceller(store=store, held=self._held, worker=lambda: self._membership.id, poll=poll)
        pruner = Pruner(store=store, retention=self._plan.retention)
        scheduler = Scheduler(
            store=store,
            clock=clock,
            random=self._random,
            observer=self._observer,
            poll=poll,
            definitions=self._plan.schedules,
        )
        self._scheduling = self._loop("scheduler", scheduler.step)
        hinted = [
            self._loop("canceller", canceller.step),
            self._loop("tuner", self._tuner.step),
            self._scheduling,
        ]
        unhinted = [self._loop("reaper", reaper.step), self._loop("pruner", pruner.step), self._forwarding]
        return hinted, unhinted

    def _loop(self, part: str, step: Callable[[], Coroutine[Any, Any, float]]) -> Loop:
        return Loop(step, clock=self._clock, random=self._random, trouble=self._trouble(part))

    def _trouble(self, part: str) -> Trouble:
        trouble = Trouble(part, random=self._random, outage=self._outage)
        self._troubles[part] = trouble
        return trouble

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

    def _room(self) -> int:
        """How many more jobs may be claimed: slots and measured advance, less what is held and not yet run."""
        self._pace.measure(self._clock.monotonic(), self._executor.finished)
        pending = len(self._buffer) + self._executor.busy
        if len(self._held) - pending > _MOST_UNCOMMITTED:
            return 0
        return self._plan.concurrency + self._pace.advance - pending

    def _is_low(self) -> bool:
        # What a free slot is about to take is no stock: with more slots than a batch is large, the next one is due.
        stock = len(self._buffer) - (self._plan.concurrency - self._executor.busy)
        return stock <= self._pace.advance // 2

    def _deliver(self, jobs: list[Job]) -> None:
        self._buffer.put(self._held.add(jobs))

    def _hand_on(self, finished: AttemptEnded) -> None:
        self._committer.put(finished)
        if self._fetcher.wants_room:
            self._fetcher.freed()

    def _committed(self, batch: Sequence[AttemptEnded]) -> None:
        self._held.remove_all(batch)
        self._fetcher.freed()
        if not len(self._held):
            self._fetcher.idle()
        kinds = {(one.job.queue, one.job.lane, one.job.schedule, one.outcome.sink) for one in batch}
        if any(self._frees_a_place(queue, lane) for queue, lane, _, _ in kinds):
            self._fetcher.wake()
        if self._scheduling is not None and any(schedule for _, _, schedule, _ in kinds):
            self._scheduling.wake()  # a tick that waited for this job may fire now
        if any(sink for _, _, _, sink in kinds):
            self._forwarding.wake()

    def _frees_a_place(self, queue: str, lane: Lane) -> bool:
        """Whether the end of such a job lets another of its queue run: there is a limit that keeps others back."""
        fairness = self._tuner.fairness(queue)
        return fairness.concurrency is not None or (lane == "retry" and fairness.max_retries_running is not None)

    def _take_back(self, job: Job, *, has_started: bool = False) -> None:
        """Put a job back in line through the committer."""
        policy = self._registry.policy(job)
        now = self._clock.now()
        outcome = decide(job, ShutDown(has_started=has_started), policy, now, self._random)
        self._released += 1
        self._held.add([job])
        self._committer.put(
            AttemptEnded(job=job, outcome=outcome, limit=policy.limit, started_at=now, ended_at=now),
        )

    def _drop_everything(self) -> None:
        for holding in self._held.all():
            holding.break_off("lease")
            self._held.remove(holding.job)
        self._committer.forget()
        self._buffer.take_all()
        self._fetcher.freed()
        self._fetcher.changed()

    async def _wind_down(self, fetching: asyncio.Task[None]) -> None:
        """Stop fetching, give back what waits in the buffer, and let the running attempts finish within the grace."""
        self._fetcher.stop()
        await asyncio.wait([fetching])
        for holding in self._buffer.take_all():
            if not holding.is_broken_off():
                self._take_back(holding.job)
        hurry = asyncio.create_task(self._stopping_now.wait())
        idle = asyncio.create_task(self._until_idle())
        grace = self._plan.grace.total_seconds()
        await asyncio.wait([hurry, idle], timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        for holding in self._held.all():
            if holding.break_off("shutdown"):
                self._released += 1
        await asyncio.wait([idle], timeout=_STUBBORN)
        for holding in self._held.all():
            if holding.runner is not None:
                # Its handler swallows the cancellation; the process is about to end, so the job goes back all the same.
                self._take_back(holding.job, has_started=True)
        await _end([hurry, idle])

    async def _until_idle(self) -> None:
        while self._executor.busy:
            await asyncio.sleep(0.005)


async def _end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=5)
