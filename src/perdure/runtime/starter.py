"""Records that at-most-once jobs are about to enter their handlers: one call in flight, then the next batch.

A slot waits for the record before it enters such a handler. When the worker vanishes, the reaper gives back the jobs
without a record, since their handlers were never entered; without it all that waited in the buffer would end with an
unknown outcome.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from perdure.model.job import Job
from perdure.runtime.backoff import Backoff, is_outage
from perdure.store.jobs import JobStore
from perdure.system.clock import Clock

_Waiting = tuple[Job, "asyncio.Future[bool]"]


class Starter:
    """Calls start for the slots of one worker."""

    def __init__(self, *, store: JobStore, clock: Clock, backoff: Backoff) -> None:
        self._store = store
        self._clock = clock
        self._backoff = backoff
        self._waiting: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None

    async def start(self, job: Job) -> bool:
        """Wait until the start is durable; returns whether the handler may be entered."""
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((job, answer))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        return await answer

    async def _write(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                await self._start(batch)
        finally:
            self._writing = None

    async def _start(self, batch: list[_Waiting]) -> None:
        # The worker may have registered under a new id meanwhile; a fence has the id of its claim.
        for worker in {job.worker for job, _ in batch}:
            assert worker is not None, "a fetched job has a worker"
            await self._start_of([waiting for waiting in batch if waiting[0].worker == worker])

    async def _start_of(self, batch: list[_Waiting]) -> None:
        """Ask until the store answers. A slot whose attempt is broken off meanwhile has cancelled its answer."""
        while batch := [waiting for waiting in batch if not waiting[1].done()]:
            try:
                may_enter = await start(self._store, [job for job, _ in batch])
            except Exception as error:
                if is_outage(error):
                    await self._clock.sleep(self._backoff.failed(error))
                    continue
                for _, answer in batch:
                    if not answer.done():
                        answer.set_exception(error)
                return
            self._backoff.succeeded()
            for (_, answer), is_allowed in zip(batch, may_enter, strict=True):
                if not answer.done():
                    answer.set_result(is_allowed)
            return
        self._backoff.gave_up()


async def start(store: JobStore, jobs: Sequence[Job]) -> list[bool]:
    """Record the start of these jobs of one worker; returns for each whether its handler may be entered."""
    worker = jobs[0].worker
    assert worker is not None, "a fetched job has a worker"
    return await store.start(worker, [(job.id, job.attempt) for job in jobs])
