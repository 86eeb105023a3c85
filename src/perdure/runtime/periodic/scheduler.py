"""Fires schedules: sleeps until the next tick, makes its job and moves on; any number of schedulers may do so at once.

It waits for the earliest tick by the store's clock, for a hint, or for the next poll. What is due goes through `plan`,
and each step is taken by the store if nobody was faster. The schedules of the app's code are registered with the first
step and named once a minute; those that no worker names any more are orphaned and stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

import msgspec

from perdure.errors import EngineBusy, EngineFull, EngineUnreachable, PerdureError
from perdure.model.event import JobsEnqueued, Observer, ScheduleBroken, TicksFired
from perdure.model.job import JobId, NewJob
from perdure.model.schedule.definition import (
    ORPHANED,
    Definition,
    Schedule,
    mended,
    new_schedule,
    next_revision,
    redefined,
)
from perdure.model.schedule.fire import Planned, plan, plan_removal, put_off
from perdure.runtime.backoff import Backoff
from perdure.runtime.membership import on_loop
from perdure.runtime.outage import Outage
from perdure.runtime.periodic.loop import Loop, NotAsked
from perdure.runtime.periodic.schedule_clock import ScheduleClock
from perdure.store import Store
from perdure.store.schedules import Firing
from perdure.system.clock import LOOK_EVERY, Clock

_BATCH = 500
_NAME_EVERY = 60.0
_BEATEN = 0.02
"""How long to wait, at most, when others took all steps; they will have moved the schedules on by then."""

_OUTAGES = (EngineUnreachable, EngineBusy, EngineFull)
_Step = tuple[Schedule, Planned]


class Scheduler:
    """Calls due and fire."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        random: Random,
        observer: Observer,
        poll: float,
        quiet: float = 0.1,
        definitions: Sequence[Definition] = (),
    ) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._observer = observer
        self._poll = poll
        self._quiet = quiet
        self._quiet_until = float("-inf")
        self._definitions = tuple(definitions)
        self._is_registered = not definitions
        self._named_at = float("-inf")
        self._clocks = ScheduleClock(store=store, clock=clock, settles=2 * _NAME_EVERY)
        self._unreadable: set[str] = set()
        """Schedules of the code that the store holds in a form that cannot be read."""
        self.fired = 0
        """How many jobs it has made."""

    async def step(self) -> float:
        """Take the steps that are due; the seconds until the next is."""
        began = self._clock.monotonic()
        if began < self._quiet_until:
            # Hints come with every job, and nearly none of them is about schedules: a few a second are heard.
            return NotAsked(max(self._quiet_until - began, 0.001))
        if not self._is_registered:
            self._is_registered = await self._register()
        await self._name()
        looked = self._clock.monotonic()
        due = await self._store.due(_BATCH)
        if await self._clocks.follow(due, asked=looked):
            self._named_at = float("-inf")
            return 0.0
        if not due.schedules:
            until = self._poll if due.next_at is None else max((due.next_at - due.now).total_seconds(), 0.001)
            self._quiet_until = looked + min(until, self._quiet)
            return min(self._poll, LOOK_EVERY, until)
        steps = [(each, plan(each, due.now)) for each in due.schedules if each.stopped_at is None]
        if self._clocks.is_new:
            # Workers have yet to name their schedules at the new time: nobody is orphaned until they have.
            steps = [step for step in steps if step[1].schedule is None or step[1].schedule.problem != ORPHANED]
        steps += await self._removals([each for each in due.schedules if each.stopped_at is not None], due.now)
        if not steps:
            return min(self._poll, LOOK_EVERY)
        taken = await self._take(steps, due.now)
        fired_at = due.now + timedelta(seconds=self._clock.monotonic() - looked)
        for before, planned in taken:
            self._tell(before, planned, fired_at)
        return 0.0 if taken else self._random.uniform(0.0, _BEATEN)

    async def _removals(self, stopped: Sequence[Schedule], now: datetime) -> list[_Step]:
        """What becomes of schedules that have stopped; their newest jobs decide."""
        ids = [each.last_job_id for each in stopped if each.last_job_id is not None]
        runs = {job.id: job for job in await self._store.get(ids) if job is not None} if ids else {}
        return [(each, plan_removal(each, runs.get(each.last_job_id or JobId("")), now)) for each in stopped]

    async def _take(self, steps: Sequence[_Step], now: datetime) -> list[_Step]:
        """Take steps together; those that nobody else has taken. One that cannot be stored costs no other."""
        try:
            answers = await self._store.fire([self._firing(before, planned) for before, planned in steps])
        except _OUTAGES:
            raise
        except PerdureError as error:
            if len(steps) == 1:
                broken = put_off(steps[0][0], str(error), now)
                await self._store.fire([self._firing(steps[0][0], broken)])
                return [(steps[0][0], broken)]
            return [taken for step in steps for taken in await self._take([step], now)]
        return [step for step, is_taken in zip(steps, answers, strict=True) if is_taken]

    def _firing(self, before: Schedule, planned: Planned) -> Firing:
        after = planned.schedule
        if after is not None:
            # Two schedulers may plan the very same step; the salt tells whose it was.
            salt = f"{self._random.getrandbits(64):x}"
            after = msgspec.structs.replace(after, revision=next_revision(after, salt))
        return Firing(
            name=before.name,
            replaces=before.revision,
            schedule=after,
            jobs=_jobs(before, planned),
            needs_idle=planned.needs_idle,
        )

    def _tell(self, before: Schedule, planned: Planned, fired_at: datetime) -> None:
        after = planned.schedule
        self.fired += len(planned.ticks)
        if planned.ticks:
            jobs = _jobs(before, planned)
            now = self._clock.now()
            # A tick's job has an id of its own making, so those that the step asked for are those that it made.
            self._observer.tell(JobsEnqueued(jobs=jobs, ids=[job.id for job in jobs], started_at=now, ended_at=now))
        if planned.ticks or planned.skipped:
            self._observer.tell(
                TicksFired(schedule=before.name, ticks=planned.ticks, skipped=planned.skipped, fired_at=fired_at)
            )
        if after is not None and after.problem is not None and after.problem != before.problem:
            self._observer.tell(ScheduleBroken(schedule=before.name, problem=after.problem))

    async def _register(self) -> bool:
        """Bring the store's schedules in line with the code; whether nobody came between."""
        now = await self._store.now()
        found = await self._store.get_schedules([definition.name for definition in self._definitions])
        is_whole = True
        for definition, known in zip(self._definitions, found, strict=True):
            try:
                wanted = _in_line(known, definition, now)
            except PerdureError as error:
                self._observer.tell(ScheduleBroken(schedule=definition.name, problem=str(error)))
                continue
            if wanted is known or await self._store.put_schedule(wanted, None if known is None else known.revision):
                continue
            problem = await self._store.examine("schedule", definition.name) if known is None else None
            if problem is not None:
                # It is there and cannot be read: it is left as it is, and registering again would not help.
                text = f"What the store holds under this name cannot be read and is left as it is ({problem})."
                self._observer.tell(ScheduleBroken(schedule=definition.name, problem=text))
                self._unreadable.add(definition.name)
            is_whole &= problem is not None
        return is_whole

    async def _name(self) -> None:
        if self._definitions and self._clock.monotonic() - self._named_at >= _NAME_EVERY:
            names = [definition.name for definition in self._definitions if definition.name not in self._unreadable]
            await self._store.name_schedules(names)
            self._named_at = self._clock.monotonic()


def _jobs(schedule: Schedule, planned: Planned) -> tuple[NewJob, ...]:
    return tuple(schedule.job(tick) for tick in planned.ticks)


def _in_line(known: Schedule | None, definition: Definition, now: datetime) -> Schedule:
    """The schedule as the code wants it; the very one that is known where nothing has changed."""
    if known is None:
        return new_schedule(definition, "code", now)
    if known.definition != definition or known.origin != "code":
        return redefined(known, definition, "code", now)
    return known if known.problem is None or known.is_paused else mended(known)


class LoneScheduler:
    """A scheduler by itself, in a program that runs no jobs."""

    def __init__(self, scheduler: Scheduler, *, store: Store, clock: Clock, random: Random, observer: Observer) -> None:
        self._store = store
        self._stopping = asyncio.Event()
        self._outage = Outage("scheduler", clock=clock, observer=observer)
        backoff = Backoff("scheduler", random=random, outage=self._outage)
        self._loop = Loop(scheduler.step, clock=clock, random=random, backoff=backoff)

    def stop(self) -> None:
        """Stop after the step in flight. Must be called on the event loop that runs it."""
        self._stopping.set()

    async def run(self) -> None:
        """Fire schedules until stopped."""
        here = asyncio.get_running_loop()
        unsubscribe = self._store.wakeups.subscribe(lambda: on_loop(here, self._loop.wake))
        working = asyncio.create_task(self._loop.run())
        losing = asyncio.create_task(self._outage.until_lost())
        stopping = asyncio.create_task(self._stopping.wait())
        tasks: list[asyncio.Task[Any]] = [working, losing, stopping]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            unsubscribe()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
