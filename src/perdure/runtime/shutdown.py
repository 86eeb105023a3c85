"""How a worker ends: in order while its parts live, else by giving back what it can without them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from perdure.model.event import Observer, WorkerStopped
from perdure.model.job import Job
from perdure.runtime.buffer import Buffer
from perdure.runtime.committer import Committer
from perdure.runtime.executor import Executor
from perdure.runtime.fetch_wait import FetchWait
from perdure.runtime.in_flight import Held
from perdure.runtime.lifetime import Lifetime
from perdure.runtime.liveness.give_back import GiveBack
from perdure.runtime.membership import Membership
from perdure.runtime.startup import in_daemon_thread
from perdure.text.plural import plural

_STUBBORN = 1.0
"""How many seconds a handler that was broken off gets to notice it."""
_LAST_STEP = 0.5
"""How many seconds parts that were cancelled get to end."""
_GIVING_BACK = 3.0
"""How many seconds the store has to take jobs back from a worker whose parts have ended."""

_log = logging.getLogger("perdure")


class Shutdown:
    """The end of one worker."""

    def __init__(
        self,
        *,
        lifetime: Lifetime,
        grace: timedelta,
        fetch_wait: FetchWait,
        buffer: Buffer,
        held: Held,
        executor: Executor,
        committer: Committer,
        membership: Membership,
        observer: Observer,
        give_back: GiveBack,
        take_back: Callable[[Job, bool], None],
    ) -> None:
        """`take_back` puts a job back in line through the committer; the flag says whether it had started."""
        self._lifetime = lifetime
        self._grace = grace.total_seconds()
        self._fetch_wait = fetch_wait
        self._buffer = buffer
        self._held = held
        self._executor = executor
        self._committer = committer
        self._membership = membership
        self._observer = observer
        self._give_back = give_back
        self._take_back = take_back
        self.released = 0
        """How many jobs went back in line."""

    async def finish(self, fetching: asyncio.Task[None], committing: asyncio.Task[None]) -> None:
        """End in order: what runs may finish within the grace period, and every outcome is written."""
        await self._wind_down(fetching)
        self._committer.close()
        await asyncio.wait([committing])
        if committing.cancelled() or committing.exception() is not None:
            await self.abandon("its committer ended")
            return
        worker = self._membership.id
        await self._membership.leave()
        self._observer.tell(WorkerStopped(worker=str(worker), released=self.released))

    async def abandon(self, text: str) -> None:
        """End without the parts, which have ended: give back what has not started, and leave the rest to others."""
        giving_back = in_daemon_thread(lambda: self._give_back("lost"))
        await asyncio.wait([giving_back], timeout=_GIVING_BACK)
        jobs = "its jobs are recovered when its lease runs out"
        if giving_back.done() and giving_back.exception() is None:
            given = giving_back.result()
            jobs = f"{plural(given.released, 'job')} given back, {plural(given.left, 'job')} left to others as lost"
        _log.error("This worker ends: %s; %s", text, jobs)

    async def _wind_down(self, fetching: asyncio.Task[None]) -> None:
        """Stop fetching, give back what waits in the buffer, and let the running attempts finish within the grace."""
        self._fetch_wait.stop()
        await asyncio.wait([fetching])
        for holding in self._buffer.take_all():
            if not holding.is_broken_off():
                self._take_back(holding.job, False)
        hurry = asyncio.create_task(self._lifetime.stopping_now.wait())
        idle = asyncio.create_task(self._until_idle())
        await asyncio.wait([hurry, idle], timeout=self._grace, return_when=asyncio.FIRST_COMPLETED)
        for holding in self._held.all():
            if holding.break_off("shutdown"):
                self.released += 1
        await asyncio.wait([idle], timeout=_STUBBORN)
        for holding in self._held.all():
            if holding.runner is not None:
                # Its handler swallows the cancellation; the process is about to end, so the job goes back all the same.
                self._take_back(holding.job, True)
        await end_tasks([hurry, idle])

    async def _until_idle(self) -> None:
        while self._executor.busy:
            await asyncio.sleep(0.005)


async def end_tasks(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks and give them a moment to end."""
    for task in tasks:
        task.cancel()
    done, _ = await asyncio.wait(tasks, timeout=_LAST_STEP)
    for task in done:
        _ = task.cancelled() or task.exception()  # known already, so asyncio need not report it
