"""One worker: puts the running parts together, keeps them going, and stops them in the right order.

`run()` registers, starts the parts and waits. The first `stop()` ends fetching, gives back what was not begun, lets
running attempts finish within the grace period and gives back the rest; the second gives everything back at once. When
it returns, no job is left running under this worker. A part that ends although nobody stopped the worker, by a defect
or since a handler cancelled it, ends the worker: the jobs are given back, and `run()` raises WorkerFailed. What the
event loop cannot notice any more, the watchdog does.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

from perdure.errors import EngineLost
from perdure.model.decide import decide
from perdure.model.event import AttemptEnded, Observer, Tracing
from perdure.model.job import Job, WorkerId
from perdure.model.outcome import ShutDown
from perdure.runtime.backoff import Backoff
from perdure.runtime.buffer import Buffer
from perdure.runtime.claims import Claims
from perdure.runtime.committer import Committer
from perdure.runtime.executor import Executor
from perdure.runtime.fetch_wait import FetchWait
from perdure.runtime.fetcher import Fetcher
from perdure.runtime.handler import Registry
from perdure.runtime.in_flight import Held
from perdure.runtime.lifetime import Lifetime, failure, is_alive
from perdure.runtime.liveness.give_back import GiveBack
from perdure.runtime.liveness.watchdog import Fault, Watchdog
from perdure.runtime.membership import Membership
from perdure.runtime.outage import Outage
from perdure.runtime.periodic.forwarder import Forwarder, Sinks
from perdure.runtime.periodic.loop import Loop
from perdure.runtime.periodic.parts import make_background
from perdure.runtime.periodic.promoter import Promoter
from perdure.runtime.periodic.tuner import Tuner
from perdure.runtime.plan import Plan
from perdure.runtime.room import Room
from perdure.runtime.shutdown import Shutdown, end_tasks
from perdure.runtime.starter import Starter
from perdure.runtime.startup import register_or_stop
from perdure.runtime.unknown_tasks import UnknownTasks
from perdure.runtime.wakeup_router import WakeupRouter
from perdure.store import Store
from perdure.system.clock import Clock
from perdure.system.wake_signal import WakeSignal
from perdure.text.plural import plural

_log = logging.getLogger("perdure")


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
        self._unknown_tasks = UnknownTasks(registry=registry, clock=clock, random=random)
        self._held = Held()
        self._buffer = Buffer()
        self._lifetime = Lifetime()
        self._troubles: dict[str, Backoff] = {}
        self._outage = Outage("worker", clock=clock, observer=observer)
        self._executor = Executor(
            registry=registry,
            store=store,
            clock=clock,
            random=random,
            tracing=tracing,
            entry=plan.entry,
            start=Starter(store=store, clock=clock, backoff=self._backoff("starter")).start,
        )
        self.watchdog = Watchdog(clock=clock, registry=registry, plan=plan, held=self._held)
        self._membership = Membership(
            store=store,
            clock=clock,
            observer=observer,
            backoff=self._backoff("keeper"),
            new_id=new_id,
            plan=plan,
            held=self._held,
            give_back=self._take_back,
            drop_everything=self._drop_everything,
            keeper_failed=self._lifetime.keeper_failed,
            may_renew=self.watchdog.may_renew,
        )
        self._committer = Committer(
            store=store,
            clock=clock,
            observer=observer,
            backoff=self._backoff("committer"),
            is_trusted=self._membership.is_trusted,
            done=self._committed,
        )
        self._give_back = GiveBack(
            store=store,
            registry=registry,
            clock=clock,
            random=random,
            held=self._held,
            buffer=self._buffer,
            committer=self._committer,
            end_lease=self._membership.end,
        )
        self._tuner = Tuner(store=store, registry=registry, clock=clock)
        forwarding = WakeSignal()
        self._forwarder = Forwarder(
            store=store,
            sinks=sinks,
            clock=clock,
            random=random,
            observer=observer,
            queues=registry.homes(plan.queues),
            poll=plan.poll.total_seconds(),
            ended=forwarding.notify,
        )
        self._forwarding = self._loop("forwarder", self._forwarder.step, wake_signal=forwarding)
        poll = plan.poll.total_seconds()
        self._promoting = self._loop("promoter", Promoter(store=store, poll=poll).step)
        room = Room(plan=plan, clock=clock, buffer=self._buffer, held=self._held, executor=self._executor)
        claims = Claims(store=store, fairness=self._tuner.fairness, queues=plan.queues)
        self._fetch_wait = FetchWait(claims=claims, random=random, poll=poll, is_idle=self._is_idle)
        self._tuner.on_change(self._fetch_wait.changed)
        self._fetcher = Fetcher(
            claims=claims,
            wait=self._fetch_wait,
            room=room,
            membership=self._membership,
            clock=clock,
            backoff=self._backoff("fetcher"),
            deliver=self._deliver,
        )
        self._shutdown = Shutdown(
            lifetime=self._lifetime,
            grace=plan.grace,
            fetch_wait=self._fetch_wait,
            buffer=self._buffer,
            held=self._held,
            executor=self._executor,
            committer=self._committer,
            membership=self._membership,
            observer=observer,
            give_back=self._give_back,
            take_back=self._take_back,
        )
        self._background = make_background(
            store=store,
            registry=registry,
            plan=plan,
            clock=clock,
            random=random,
            observer=observer,
            held=self._held,
            membership=self._membership,
            tuner=self._tuner,
            room=room.count,
            deliver=self._deliver,
            make_loop=self._loop,
        )

    def stop(self) -> None:
        """Stop; called a second time, stop at once. Must be called on the worker's event loop."""
        self.watchdog.stopping(at_once=self._lifetime.stopping.is_set())
        self._lifetime.stop()

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
        found = ["it is stopping"] if self._lifetime.stopping.is_set() else []
        if self._membership.id is None:
            found.append("it is not registered with the store")
        elif not self._membership.is_trusted():
            found.append("its lease is in doubt")
        troubles = [*self._troubles.items()]  # copied, as parts are added while another thread looks
        return found + [f"the {part} cannot reach the store" for part, it in troubles if it.is_going_on]

    async def run(self, *, waits: bool = True) -> None:
        """Work until stopped; raises WorkerFailed when the worker cannot go on.

        While the engine is away at the start, wait for it; without `waits`, raise instead."""
        self._lifetime.begin()
        with contextlib.suppress(RuntimeError, MemoryError):  # no thread is granted: the registration waits for one
            self._start_watchdog()
        try:
            backoff = self._backoff("worker") if waits else None
            if await register_or_stop(self._register, backoff=backoff, stopping=self._lifetime.stopping):
                await self._work()
        finally:
            self._membership.end()
            self.watchdog.run_ended()

    async def _work(self) -> None:
        background = self._background
        rest = [*background.hinted.values()]
        router = WakeupRouter(fetching=self._fetch_wait.wake, promoting=self._promoting, rest=rest)
        unsubscribe = self._store.wakeups.subscribe(router.hear)
        committing = asyncio.create_task(self._committer.run(), name="committer")
        fetching = asyncio.create_task(self._fetcher.run(), name="fetcher")
        loops = {"promoter": self._promoting, "forwarder": self._forwarding, **background.hinted, **background.unhinted}
        others = [asyncio.create_task(part.run(), name=name) for name, part in loops.items()]
        others.append(asyncio.create_task(self._membership.watch(), name="membership"))
        others.append(asyncio.create_task(self._outage.until_lost(), name="store"))
        may_start, is_cancelled = self._membership.is_trusted, self._lifetime.is_cancelled
        for _ in range(self._plan.concurrency):
            slot = self._executor.serve(self._buffer, self._hand_on, may_start, is_cancelled)
            others.append(asyncio.create_task(slot, name="slot"))
        try:
            await self._until_over(fetching, committing, others)
        finally:
            unsubscribe()
            await end_tasks([fetching, committing, *others])
            await self._forwarder.close()
            self._executor.close()
            await self._registry.release()

    async def _until_over(
        self, fetching: asyncio.Task[None], committing: asyncio.Task[None], others: list[asyncio.Task[None]]
    ) -> None:
        """Wait for the end, and end as well as the parts that are left allow."""
        text: str | None = None
        ending: BaseException | None = None
        try:
            text = await self._lifetime.until_over([committing, fetching, *others])
        except EngineLost as error:
            ending = error
        except asyncio.CancelledError as error:
            ending = error
            if self.watchdog.ends_process:
                # Only a handler cancels the main task of a process that the worker has to itself.
                text = "its main task was cancelled, by a handler or a task that a handler started"
        if not self._lifetime.stopping.is_set():
            self.stop()
        if self.watchdog.fault is None:
            if is_alive(committing):
                await self._shutdown.finish(fetching, committing)
                if text is not None:
                    _log.error("This worker ends: %s; %s given back", text, plural(self._shutdown.released, "job"))
            else:
                await self._shutdown.abandon(text or "it was cancelled")
        self._drop_everything()
        if self.watchdog.is_overdue:
            text = text or "it did not stop in time"
        if text is not None:
            raise failure(text)
        if ending is not None:
            raise ending

    def _fail(self, fault: Fault) -> None:
        """The watchdog has given the jobs back."""
        self._drop_everything()
        self._lifetime.fail(fault.text)

    def _start_watchdog(self) -> None:
        self.watchdog.start(self._give_back, self._fail)

    async def _register(self) -> None:
        self._start_watchdog()
        await self._tuner.step()  # limits that an operator has set hold from the first fetch on
        await self._membership.join()

    def _loop(
        self, part: str, step: Callable[[], Coroutine[Any, Any, float]], wake_signal: WakeSignal | None = None
    ) -> Loop:
        backoff = self._backoff(part)
        return Loop(step, clock=self._clock, random=self._random, backoff=backoff, wake_signal=wake_signal)

    def _backoff(self, part: str) -> Backoff:
        return self._troubles.setdefault(part, Backoff(part, random=self._random, outage=self._outage))

    def _deliver(self, jobs: list[Job]) -> None:
        known, unknown = self._unknown_tasks.split(jobs)
        self._buffer.put(self._held.add(known))
        self._held.add([finished.job for finished in unknown])
        self._executor.finished += len(unknown)  # counted for the pace: the larger the batches, the sooner come others
        for finished in unknown:
            self._committer.put(finished)

    def _hand_on(self, finished: AttemptEnded) -> None:
        self._committer.put(finished)
        if self._fetch_wait.wants_room:
            self._fetch_wait.freed()

    def _committed(self, batch: Sequence[AttemptEnded]) -> None:
        self._held.remove_all(batch)
        self._fetch_wait.freed()
        if self._is_idle():
            self._fetch_wait.idle()
        kinds = {(one.job.queue, one.job.lane, one.job.schedule, one.outcome.sink) for one in batch}
        if any(self._tuner.is_limited(queue, lane) for queue, lane, _, _ in kinds):
            self._fetch_wait.wake()
        if any(schedule for _, _, schedule, _ in kinds):
            self._background.scheduler.wake()  # a tick that waited for this job may fire now
        if any(sink for _, _, _, sink in kinds):
            self._forwarding.wake()

    def _is_idle(self) -> bool:
        return not len(self._held)

    def _take_back(self, job: Job, has_started: bool = False) -> None:
        """Put a job back in line through the committer."""
        policy, now = self._registry.policy(job), self._clock.now()
        outcome = decide(job, ShutDown(has_started=has_started), policy, now, self._random)
        self._shutdown.released += 1
        self._held.add([job])
        ended = AttemptEnded(job=job, outcome=outcome, limit=policy.limit, started_at=now, ended_at=now)
        self._committer.put(ended)

    def _drop_everything(self) -> None:
        for holding in self._held.all():
            holding.break_off("lease")
            self._held.remove(holding.job)
        self._committer.forget()
        self._buffer.take_all()
        self._fetch_wait.freed()
        self._fetch_wait.changed()
