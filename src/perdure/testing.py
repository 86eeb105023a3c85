"""`app.testing()`: the real pipeline on an in-memory store, with a clock that the test moves and seeded jitter.

`drain()` runs what is due now; `advance("10s")` moves the clock and runs what comes due on the way, in order. Nothing
sleeps: an hour of retries takes milliseconds.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from datetime import datetime, timedelta
from random import Random
from types import TracebackType
from typing import Any, TypeVar

from perdure.app import App, Surroundings
from perdure.clock import VirtualClock
from perdure.duration import Duration, parse_duration
from perdure.engines.opener import open_store
from perdure.errors import JobNotFound, UsageError
from perdure.identity import Ids
from perdure.model.fairness import Fairness
from perdure.model.job import Attempt, Job, JobId
from perdure.model.queue_settings import NOTHING_SAID, QueueSettings
from perdure.runtime.executor import Executor
from perdure.runtime.fetcher import Claims
from perdure.runtime.forwarder import Forwarder
from perdure.runtime.held import Holding
from perdure.runtime.promoter import Promoter
from perdure.runtime.reaper import Reaper
from perdure.store import Store
from perdure.store.reads import JobFilter, QueueInfo

T = TypeVar("T")

_LEASE = timedelta(hours=1)
_MOST_ATTEMPTS = 1_000_000
_MOST_UNUSED = 1_000


class Harness:
    """An app under test."""

    def __init__(self, app: App, *, seed: int) -> None:
        self._app = app
        self._random = Random(seed)
        self.clock = VirtualClock()
        self._before: Surroundings | None = None
        self._worker_id = Ids(self.clock, self._random).worker()
        self._runner: asyncio.Runner | None = None
        self._claims: dict[tuple[str, ...], Claims] = {}
        self._lease_until: datetime | None = None
        self._said: dict[str, QueueSettings] = {}

    def __enter__(self) -> Harness:
        if self._before is not None:
            raise UsageError("This harness is open already.", "Use one `with app.testing()` at a time.")
        self._app.close()
        self._before = self._app.surroundings
        self._app.surroundings = Surroundings(
            clock=self.clock,
            random=self._random,
            ids=Ids(self.clock, self._random),
            open_store=lambda: open_store("sqlite://", clock=self.clock, is_inline=True),
        )
        self._runner = asyncio.Runner()
        self._executor = Executor(
            registry=self._app.registry, store=self._app.store, clock=self.clock, random=self._random, isolates=False
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._before is not None
        assert self._runner is not None
        self._executor.close()
        self._run(self._app.registry.release())
        self._runner.close()
        self._app.close()
        self._app.surroundings = self._before
        self._before = self._runner = None

    @property
    def now(self) -> datetime:
        """The time on the test's clock."""
        return self.clock.now()

    @property
    def store(self) -> Store:
        return self._app.store

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
        """Run on the harness's own loop; from inside another running loop, in a thread beside it."""
        if self._runner is None:
            work.close()
            raise UsageError("The harness is not open.", "Use it inside `with app.testing() as t:`.")
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._runner.run(work)
        answers: list[T] = []
        errors: list[BaseException] = []

        def beside() -> None:
            try:
                answers.append(asyncio.run(self._beside(work)))
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=beside, name="perdure-harness")
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return answers[0]

    async def _beside(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await work
        finally:
            await self._app.registry.release()

    async def _register(self) -> None:
        """Count the harness's worker among the living, under a new id whenever its lease is about to run out."""
        if self._lease_until is not None and self.clock.now() < self._lease_until:
            return
        if self._lease_until is not None:
            await self.store.deregister(self._worker_id)
            self._worker_id = self._app.surroundings.ids.worker()
        self._lease_until = self.clock.now() + _LEASE / 2
        await self.store.register(
            self._worker_id,
            host="testing",
            pid=0,
            queues=(),
            concurrency=1,
            version="testing",
            lease=_LEASE,
        )

    async def _advance(self, until: datetime) -> int:
        count = await self._drain()
        while (due := await self._next_moment()) is not None and due <= until:
            self.clock.advance_to(due)
            count += await self._drain()
        self.clock.advance_to(until)
        return count + await self._drain()

    async def _next_moment(self) -> datetime | None:
        """When something happens next: a waiting job is due, a vanished worker's lease runs out, or a pause ends."""
        promoted = await self.store.promote(0)
        leases = [worker.lease_until for worker in await self.store.workers() if worker.id != self._worker_id]
        queues = await self.store.queues()
        pauses = [queue.paused_until for queue in queues]
        forwards = (await self.store.forward(self._queues(queues), 0, _LEASE)).next_at
        moments = [promoted.next_run_at, forwards, *leases, *pauses]
        return min((moment for moment in moments if moment is not None), default=None)

    async def _drain(self) -> int:
        store, app = self.store, self._app
        reaper = Reaper(
            store=store, registry=app.registry, clock=self.clock, random=self._random, observer=app.observer, every=1.0
        )
        promoter = Promoter(store=store, clock=self.clock, poll=1.0)
        await reaper.step()
        # As with a worker that is not told which queues to serve: what is dead does not run again by itself.
        left_alone = app.registry.graveyards()
        count = 0
        while True:
            await promoter.step()
            # Asked anew in each round: a handler may have enqueued to a queue that nobody had heard of.
            found = await store.queues()
            queues = tuple(queue.name for queue in found if queue.name not in left_alone)
            done = await self._run_ready(queues) if queues else 0
            if done == 0 and await self._forward(found) == 0:
                return count
            count += done

    async def _forward(self, found: Sequence[QueueInfo]) -> int:
        """Hand what is dead and due to its sink; how many tries that took."""
        app = self._app
        forwarder = Forwarder(
            store=self.store,
            sinks=app.sinks,
            clock=self.clock,
            random=self._random,
            observer=app.observer,
            queues=self._queues(found),
            poll=1.0,
        )
        tries, _ = await forwarder.drain()
        return tries

    def _queues(self, found: Sequence[QueueInfo]) -> tuple[str, ...]:
        return self._app.registry.homes({*self._app.registry.queue_names(), *(queue.name for queue in found)})

    async def _run_ready(self, queues: tuple[str, ...]) -> int:
        """Run what is ready in these queues until nothing is."""
        self._said = await self.store.settings()
        count = 0
        while jobs := await self._fetch(queues):
            for job in jobs:
                finished = await self._executor.run(Holding(job))
                assert finished is not None, "nobody takes the harness's lease away"
                await self.store.commit([finished.ended(self._worker_id)])
                count += 1
        return count

    async def _fetch(self, queues: tuple[str, ...]) -> list[Job]:
        """One job at a time, in the order in which a single slot would take them."""
        await self._register()
        claims = self._claims.get(queues)
        if claims is None:
            claims = Claims(store=self.store, fairness=self._fairness, queues=dict.fromkeys(queues, 1))
            self._claims[queues] = claims
        # A strict queue leaves the places of an empty lane unused; the other lane's turn comes after those.
        for _ in range(_MOST_UNUSED):
            jobs = await claims.fetch(self._worker_id, 1)
            if jobs or not claims.was_offered:
                return jobs
        return []

    def _fairness(self, queue: str) -> Fairness:
        return self._app.registry.fairness(queue, self._said.get(queue, NOTHING_SAID))
