"""The worker's place among the living: registers under a new id, keeps the lease, compares what store and worker hold.

When the lease is lost, whatever the worker held may be running elsewhere by now; the membership then says so once, and
registers anew under another id.
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Callable

from perdure.model.event import LeaseExpired, Observer, WorkerStarted
from perdure.model.job import Job, JobId, WorkerId
from perdure.runtime.backoff import Backoff, is_outage
from perdure.runtime.in_flight import Held
from perdure.runtime.liveness.keeper import Keeper, Lease
from perdure.runtime.plan import Plan
from perdure.store import Store
from perdure.store.workers import Beat
from perdure.system.clock import Clock


class Membership:
    """One worker's registration, renewed as often as needed."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        observer: Observer,
        backoff: Backoff,
        new_id: Callable[[], WorkerId],
        plan: Plan,
        held: Held,
        give_back: Callable[[Job], None],
        drop_everything: Callable[[], None],
        keeper_failed: Callable[[BaseException], None],
        may_renew: Callable[[], bool],
    ) -> None:
        """`may_renew` is asked in the keeper's thread before each beat; `keeper_failed` is told on the event loop."""
        self._store = store
        self._clock = clock
        self._observer = observer
        self._backoff = backoff
        self._new_id = new_id
        self._queues = tuple(plan.queues)
        self._concurrency = plan.concurrency
        self._version = plan.version
        self._length = plan.lease
        self._held = held
        self._give_back = give_back
        self._drop_everything = drop_everything
        self._keeper_failed = keeper_failed
        self._may_renew = may_renew
        self._is_over = False
        self._id: WorkerId | None = None
        self._lease: Lease | None = None
        self._keeper: Keeper | None = None
        self._lost = asyncio.Event()
        self._strangers: set[tuple[JobId, int]] = set()
        self._returning: set[asyncio.Task[None]] = set()

    @property
    def id(self) -> WorkerId | None:
        """The id under which the worker is registered; None while it is not."""
        return self._id

    def is_trusted(self) -> bool:
        """Whether the worker may believe that its lease holds."""
        return self._lease is not None and self._lease.is_trusted()

    def lose(self) -> None:
        """The store refused this worker: the lease is gone."""
        self._lost.set()

    async def join(self) -> None:
        """Register under a new id and start to keep its lease."""
        loop = asyncio.get_running_loop()
        worker = self._new_id()
        since = self._clock.monotonic()
        await self._store.register(
            worker,
            host=platform.node()[:100],
            pid=os.getpid(),
            queues=self._queues,
            concurrency=self._concurrency,
            version=self._version,
            lease=self._length,
        )
        lease = Lease(length=self._length, clock=self._clock, since=since)
        keeper = Keeper(
            store=self._store,
            clock=self._clock,
            worker=worker,
            length=self._length,
            lease=lease,
            heard=lambda beat: on_loop(loop, lambda: self._compare(worker, beat)),
            lost=lambda: on_loop(loop, lambda: self._lose(worker)),
            failed=lambda error: on_loop(loop, lambda: self._keeper_failed(error)),
            may_renew=self._may_renew,
        )
        # Where threads have run out it does not start: nothing is changed here then, and the new registration ends with
        # its lease.
        keeper.start()
        self._lost.clear()
        self._strangers.clear()
        self._id, self._lease, self._keeper = worker, lease, keeper
        self._observer.tell(WorkerStarted(worker=worker, queues=self._queues, concurrency=self._concurrency))

    async def watch(self) -> None:
        """When the lease is lost: drop everything, since others may run it by now, and begin anew under a new id."""
        while True:
            await self._lost.wait()
            if self._is_over:
                self._lost.clear()
                continue
            if self._id is not None and self._lease is not None and self._keeper is not None:
                self._lease.end()
                self._keeper.stop()
                self._observer.tell(LeaseExpired(worker=self._id, held=len(self._held)))
                self._id = None
                self._drop_everything()
            try:
                await self.join()
            except Exception as error:
                await self._clock.sleep(self._backoff.failed(error))
                continue
            self._backoff.succeeded()

    def end(self) -> WorkerId | None:
        """Renew the lease no more and trust it no more; from any thread. Returns the id that is still registered."""
        self._is_over = True
        if self._lease is not None:
            self._lease.end()
        if self._keeper is not None:
            self._keeper.stop()
        return self._id

    async def leave(self) -> None:
        """Strike this worker off; an engine that cannot be reached lets the lease run out instead."""
        if self._keeper is not None:
            self._keeper.stop()
            await asyncio.to_thread(self._keeper.join)
        if self._id is not None:
            try:
                await self._store.deregister(self._id)
            except Exception as error:
                if not is_outage(error):
                    raise

    def _lose(self, worker: WorkerId) -> None:
        if worker == self._id:
            self.lose()

    def _compare(self, worker: WorkerId, beat: Beat) -> None:
        """Give back jobs that the store counts as this worker's but that it does not hold: a reply got lost.

        A fetch may be under way, so a job is a stranger only when two beats in a row brought it.
        """
        if worker != self._id or beat.held is None:
            return
        unknown = {fence for fence in beat.held if fence not in self._held}
        again = unknown & self._strangers
        self._strangers = unknown - again
        if again:
            task = asyncio.get_running_loop().create_task(self._return_strangers(sorted(again)))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)

    async def _return_strangers(self, fences: list[tuple[JobId, int]]) -> None:
        try:
            jobs = await self._store.get([job_id for job_id, _ in fences])
        except Exception as error:
            if not is_outage(error):
                raise
            return  # the next two beats will find them again
        for (_, attempt), job in zip(fences, jobs, strict=True):
            if job is not None and job.attempt == attempt and job.worker == self._id and job.fence not in self._held:
                self._give_back(job)


def on_loop(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Make a call on a loop, from any thread; in its own it need not be woken."""
    try:
        if is_on(loop):
            loop.call_soon(call)
        else:
            loop.call_soon_threadsafe(call)
    except RuntimeError:
        pass  # the loop is closed: the worker is gone already


def is_on(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether this is the loop's own thread, in which it is running."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
