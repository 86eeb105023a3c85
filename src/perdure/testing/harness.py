"""`app.testing()`: the real pipeline on an in-memory store, with a clock that the test moves and seeded jitter.

`drain()` runs what is due now; `advance("10s")` moves the clock and runs what comes due on the way, in order. Nothing
sleeps: an hour of retries takes milliseconds. One worker with one slot serves all queues, unless the test adds workers
of its own; a handler that awaits `t.sleep("2s")` then takes two seconds of the test's clock, and others run beside it.

One moment after the other, in rounds: attempts that end are committed in the order in which they went on; what is due
becomes ready; each worker fills its slots and fetches. Only one attempt moves at a time, so a test repeats exactly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import datetime, timedelta
from heapq import heappop, heappush
from random import Random
from types import TracebackType
from typing import Any, TypeVar

from perdure.app import App
from perdure.application.assembly import Surroundings
from perdure.application.identity import Ids
from perdure.engines.opener import open_store
from perdure.errors import BadOption, JobNotFound, UsageError
from perdure.model.event import AttemptEnded
from perdure.model.job import Attempt, Job, JobId
from perdure.model.queue.fairness import Fairness
from perdure.model.queue.settings import NOTHING_SAID, QueueSettings
from perdure.model.schedule.definition import Definition
from perdure.runtime.claims import Claims
from perdure.runtime.committer import to_ended
from perdure.runtime.executor import Executor
from perdure.runtime.in_flight import Holding
from perdure.runtime.periodic.forwarder import Forwarder
from perdure.runtime.periodic.promoter import Promoter
from perdure.runtime.periodic.reaper import Reaper
from perdure.runtime.periodic.scheduler import Scheduler
from perdure.runtime.starter import start
from perdure.store import Store
from perdure.store.reads import JobFilter, QueueInfo
from perdure.system.clock import VirtualClock
from perdure.testing.beside import outside_loop
from perdure.testing.crew import Crew
from perdure.text.duration import Duration, parse_duration

T = TypeVar("T")

_LEASE = timedelta(days=36500)
"""Nobody beats for the harness's workers, and the clock may jump by years."""

_LARGEST_BATCH = 1000
_MOST_ATTEMPTS = 1_000_000
_MOST_UNUSED = 1_000


class Harness:
    """An app under test."""

    def __init__(self, app: App, *, seed: int) -> None:
        self._app = app
        # Decisions have a stream of their own: the same seed gives the same delays, however many ids are made.
        self._random = Random(seed)
        self._noise = Random(f"{seed} ids")
        self.clock = VirtualClock()
        self._ids = Ids(self.clock, self._noise)
        self._before: Surroundings | None = None
        self._runner: asyncio.Runner | None = None
        self._crew: list[Crew] = []
        self._running: dict[asyncio.Task[AttemptEnded | None], Crew] = {}
        self._moving: asyncio.Task[AttemptEnded | None] | None = None
        self._rested = asyncio.Event()
        self._sleepers: list[tuple[datetime, int, asyncio.Future[None], asyncio.Task[AttemptEnded | None]]] = []
        self._sleeps = 0
        self._said: dict[str, QueueSettings] = {}
        self._scheduler: Scheduler | None = None
        self._definitions: tuple[Definition, ...] = ()

    def __enter__(self) -> Harness:
        if self._before is not None:
            raise UsageError("This harness is open already.", "Use one `with app.testing()` at a time.")
        self._app.close()
        self._before = self._app.surroundings
        self._app.surroundings = Surroundings(
            clock=self.clock,
            random=self._random,
            ids=self._ids,
            open_store=lambda: open_store("sqlite://", clock=self.clock, is_inline=True),
        )
        self._runner = asyncio.Runner()
        self._executor = Executor(
            registry=self._app.registry,
            store=self._app.store,
            clock=self.clock,
            random=self._random,
            isolates=False,
            start=self._start,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._before is not None
        assert self._runner is not None
        self._executor.close()
        self._run(self._app.registry.release())
        outside_loop(self._runner.close)
        self._app.close()
        self._app.surroundings = self._before
        self._before = self._runner = None

    async def _start(self, job: Job) -> bool:
        return (await start(self.store, [job]))[0]

    @property
    def now(self) -> datetime:
        """The time on the test's clock."""
        return self.clock.now()

    @property
    def store(self) -> Store:
        return self._app.store

    def worker(
        self, queues: Sequence[str] | None = None, *, slots: int = 1, prefetch: int = 0, batch: int = _LARGEST_BATCH
    ) -> None:
        """Add a worker for these queues, all of them if none are named; the first one replaces the usual worker."""
        if slots < 1 or prefetch < 0 or batch < 1:
            raise BadOption("A worker has at least one slot, fetches at least one job, and holds none or more ahead.")
        names = None if queues is None else tuple(queues)
        if names == ():
            raise BadOption("A worker needs queues.", "Leave them out for all queues.")
        self._crew.append(Crew(self._ids.worker(), names, slots=slots, prefetch=prefetch, batch=batch))

    async def sleep(self, duration: Duration) -> None:
        """For handlers: let so much of the test's time pass; the slot stays taken, and others run beside it."""
        until = self.clock.now() + parse_duration(duration, what="the sleep")
        if self._moving is None:
            raise UsageError("Nothing runs here that could sleep.", "Await t.sleep() inside a handler.")
        woken = asyncio.get_running_loop().create_future()
        self._sleeps += 1
        heappush(self._sleepers, (until, self._sleeps, woken, self._moving))
        self._rested.set()
        await woken

    def drain(self) -> int:
        """Run all that is due now, and what becomes due now by that; gives the number of attempts run."""
        return self._run(self._drain())

    def advance(self, by: Duration) -> int:
        """Move the clock, stopping at each moment at which something is due to run it; gives the number of attempts."""
        return self._run(self._advance(self.clock.now() + parse_duration(by, what="the advance")))

    def job(self, job_id: JobId | str) -> Job:
        """The job as it is now."""
        found = self.store.get([JobId(job_id)]).wait()[0]
        if found is None:
            raise JobNotFound(f"There is no job {job_id}.")
        return found

    def jobs(self, **where: Any) -> list[Job]:
        """All jobs that match (state=, task=, queue=, …), oldest first."""
        found = self.store.list(JobFilter(**where), limit=_MOST_ATTEMPTS).wait()
        return found[::-1]

    def history(self, job_id: JobId | str) -> list[Attempt]:
        """One record per attempt, oldest first."""
        self.job(job_id)
        return self.store.history(JobId(job_id), _MOST_ATTEMPTS).wait()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the harness's own loop, on which sleeping handlers stay from call to call."""
        if self._runner is None:
            work.close()
            raise UsageError("The harness is not open.", "Use it inside `with app.testing() as t:`.")
        runner = self._runner
        return outside_loop(lambda: runner.run(work))

    async def _advance(self, until: datetime) -> int:
        count = await self._drain()
        while (due := await self._next_moment()) is not None and due <= until:
            self.clock.advance_to(due)
            count += await self._drain()
        self.clock.advance_to(until)
        return count + await self._drain()

    async def _next_moment(self) -> datetime | None:
        """When something happens next: a job or tick is due, a handler wakes, a vanished lease or a pause ends."""
        promoted = await self.store.promote(0)
        due = await self.store.due(0)
        own = {crew.worker for crew in self._crew}
        leases = [worker.lease_until for worker in await self.store.workers() if worker.id not in own]
        queues = await self.store.queues()
        pauses = [queue.paused_until for queue in queues]
        forwards = (await self.store.forward(self._homes(queues), 0, _LEASE)).next_at
        sleeps = [self._sleepers[0][0]] if self._sleepers else []
        polls = [self.clock.now() + self._app.settings.poll] if await self._is_held_back() else []
        moments = [promoted.next_run_at, due.next_at, forwards, *leases, *pauses, *sleeps, *polls]
        return min((moment for moment in moments if moment is not None), default=None)

    async def _is_held_back(self) -> bool:
        """Whether something is ready that a strict share keeps from a worker with room, which then asks at its poll."""
        ready = [queue.name for queue in await self.store.queues() if queue.ready and not queue.is_paused]
        strict = [queue for queue in ready if self._fairness(queue).is_strict]
        crews = [crew for crew in self._crew if crew.room > 0 and not crew.is_usual]
        return any(crew.queues is None or queue in crew.queues for crew in crews for queue in strict)

    async def _drain(self) -> int:
        app = self._app
        if not self._crew:
            self.worker()
            self._crew[0].is_usual = True
        reaper = Reaper(
            store=self.store,
            registry=app.registry,
            clock=self.clock,
            random=self._random,
            observer=app.observer,
            every=1.0,
        )
        await reaper.step()
        count, left = 0, -1
        while True:
            ended = await self._end_attempts()
            count += ended
            fired = await self._fire()
            await Promoter(store=self.store, poll=1.0).step()
            # Asked anew in each round: a handler may have enqueued, to a queue that nobody had heard of.
            found = await self.store.queues()
            # As with a worker that is not told which queues to serve: what is dead does not run again by itself.
            left_alone = app.registry.graveyards()
            ready = {queue.name: queue.ready for queue in found if queue.name not in left_alone}
            self._said = await self.store.settings()
            if not ended and not fired and sum(ready.values()) == left and not await self._forward(found):
                return count
            await self._serve(ready)
            left = sum(ready.values())

    async def _end_attempts(self) -> int:
        """Let the handlers go on that wake now, and commit what has ended; gives how many attempts."""
        while self._sleepers and self._sleepers[0][0] <= self.clock.now():
            _, _, woken, task = heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
                await self._let_move(task)
        over = [task for task in self._running if task.done()]
        for task in over:
            self._running.pop(task).busy -= 1
            finished = task.result()
            assert finished is not None, "nobody takes the harness's lease away"
            await self.store.commit([to_ended(finished)])
        return len(over)

    async def _forward(self, found: Sequence[QueueInfo]) -> int:
        """Hand what is dead and due to its sink; how many tries that took."""
        forwarder = Forwarder(
            store=self.store,
            sinks=self._app.sinks,
            clock=self.clock,
            random=self._noise,
            observer=self._app.observer,
            queues=self._homes(found),
            poll=1.0,
        )
        tries, _ = await forwarder.drain()
        return tries

    def _homes(self, found: Sequence[QueueInfo]) -> tuple[str, ...]:
        """The queues whose dead are forwarded from here: all that are known."""
        return self._app.registry.homes({*self._app.registry.queue_names(), *(queue.name for queue in found)})

    async def _fire(self) -> int:
        """Fire what is due; how many jobs that made."""
        definitions = tuple(self._app.registry.schedules.values())
        if self._scheduler is None or definitions != self._definitions:
            self._definitions = definitions
            self._scheduler = Scheduler(
                store=self.store,
                clock=self.clock,
                random=self._noise,
                observer=self._app.observer,
                poll=1.0,
                quiet=0.0,
                definitions=definitions,
            )
        before = self._scheduler.fired
        while await self._scheduler.step() == 0.0:
            pass
        return self._scheduler.fired - before

    async def _serve(self, ready: dict[str, int]) -> None:
        """Let each worker fill its slots and fetch; takes what they claim off what is ready."""
        for crew in self._crew:
            await self._fill(crew)
            queues = crew.queues or tuple(ready)
            # What is ready wakes a worker that has room; it asks until it gets less than it asked for.
            while (room := crew.room) > 0 and any(ready.get(queue, 0) for queue in queues):
                jobs = await self._fetch(crew, queues, room)
                for job in jobs:
                    ready[job.queue] -= 1
                crew.buffer.extend(jobs)
                await self._fill(crew)
                if len(jobs) < room:
                    break

    async def _fetch(self, crew: Crew, queues: tuple[str, ...], room: int) -> list[Job]:
        if not crew.is_registered:
            crew.is_registered = True
            await self.store.register(
                crew.worker,
                host="testing",
                pid=0,
                queues=crew.queues or (),
                concurrency=crew.slots,
                version="testing",
                lease=_LEASE,
            )
        claims = crew.claims.get(queues)
        if claims is None:
            claims = Claims(store=self.store, fairness=self._fairness, queues=dict.fromkeys(queues, 1))
            crew.claims[queues] = claims
        jobs = await claims.fetch(crew.worker, room)
        for _ in range(_MOST_UNUSED if crew.is_usual else 0):
            # A strict queue leaves the places of an empty lane unused; the other lane's turn comes after those.
            if jobs or not claims.was_offered:
                break
            jobs = await claims.fetch(crew.worker, room)
        return jobs

    def _fairness(self, queue: str) -> Fairness:
        return self._app.registry.fairness(queue, self._said.get(queue, NOTHING_SAID))

    async def _fill(self, crew: Crew) -> None:
        """Start what the worker holds in its free slots, one attempt after the other."""
        while crew.buffer and crew.busy < crew.slots:
            crew.busy += 1
            task = asyncio.get_running_loop().create_task(self._executor.run(Holding(crew.buffer.popleft())))
            self._running[task] = crew
            await self._let_move(task)

    async def _let_move(self, task: asyncio.Task[AttemptEnded | None]) -> None:
        """Wait until the attempt has ended or sleeps."""
        self._rested.clear()
        self._moving = task
        resting = asyncio.get_running_loop().create_task(self._rested.wait())
        await asyncio.wait([task, resting], return_when=asyncio.FIRST_COMPLETED)
        self._moving = None
        resting.cancel()
