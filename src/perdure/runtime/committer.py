"""Writes outcomes: one commit in flight, and what arrives meanwhile is the next batch.

It waits for the first outcome, commits all there are in one step, and goes on. A commit that cannot be written is tried
again while the lease lasts, never the job. It stops when it has been told to and nothing is left.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from perdure.clock import Clock
from perdure.errors import EngineError
from perdure.model.event import AttemptEnded, CommitLost, Event, Observer, tell_all
from perdure.model.failure import Failure
from perdure.model.job import Job, WorkerId
from perdure.model.outcome import Outcome
from perdure.runtime.occurrence import next_ticks
from perdure.runtime.trouble import Trouble
from perdure.store import Store
from perdure.store.jobs import Ended

_BATCH = 1000


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that is over, and what follows it."""

    job: Job
    outcome: Outcome
    limit: int
    started_at: datetime
    ended_at: datetime

    def ended(self, worker: WorkerId) -> Ended:
        """What the store is told, fenced by job, attempt and worker."""
        return Ended(
            job_id=self.job.id,
            attempt=self.job.attempt,
            worker=worker,
            task=self.job.task,
            outcome=self.outcome,
            started_at=self.started_at,
            ended_at=self.ended_at,
        )


class Committer:
    """The one writer of outcomes of a worker."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        observer: Observer,
        trouble: Trouble,
        is_trusted: Callable[[], bool],
        done: Callable[[Sequence[Finished]], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._observer = observer
        self._trouble = trouble
        self._is_trusted = is_trusted
        self._done = done
        self._waiting: deque[Finished] = deque()
        self._arrived = asyncio.Event()
        self._is_closing = False

    def put(self, finished: Finished) -> None:
        """Take an outcome; it is committed with the next batch."""
        self._waiting.append(finished)
        self._arrived.set()

    def forget(self) -> None:
        """Drop what is not committed: the lease is lost, and so are the fences."""
        self._waiting.clear()

    def close(self) -> None:
        """Stop once everything is written."""
        self._is_closing = True
        self._arrived.set()

    async def run(self) -> None:
        while self._waiting or not self._is_closing:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), _BATCH))]
                await self._write(batch)

    async def _write(self, batch: list[Finished]) -> None:
        try:
            accepted = await self._commit(batch)
        except Exception:
            # An outcome that cannot be written at all must cost neither its neighbours nor the worker.
            accepted = [await self._commit_bare(finished) for finished in batch]
        self._done(batch)
        await self._tell(batch, accepted)

    async def _commit(self, batch: list[Finished]) -> list[bool]:
        """Write a batch, however often the store has to be asked while the lease lasts."""
        # The worker's id may change while a commit is being retried, but a fence keeps the id of its claim.
        ended = [finished.ended(_worker_of(finished.job)) for finished in batch]
        while True:
            try:
                accepted = await self._store.commit(ended)
            except EngineError as error:
                pause = self._trouble.failed(error)
                if not self._is_trusted():
                    return [False] * len(batch)
                await self._clock.sleep(pause)
                continue
            self._trouble.succeeded()
            return accepted

    async def _commit_bare(self, finished: Finished) -> bool:
        """Write one outcome by itself; if that fails too, without the texts that came from the handler."""
        try:
            return (await self._commit([finished]))[0]
        except Exception as error:
            unstorable = Failure(type=type(error).__name__, message="what the handler left behind could not be stored")
            bare = msgspec.structs.replace(finished.outcome, error=unstorable, result=None, note=None)
            return (await self._commit([msgspec.structs.replace(finished, outcome=bare)]))[0]

    async def _tell(self, batch: list[Finished], accepted: list[bool]) -> None:
        ticks = await next_ticks(self._store, [(finished.job, finished.outcome) for finished in batch])
        events: list[Event] = [
            AttemptEnded(
                job=finished.job,
                outcome=finished.outcome,
                limit=finished.limit,
                started_at=finished.started_at,
                ended_at=finished.ended_at,
                next_tick_at=ticks.get(finished.job.schedule or ""),
            )
            if is_accepted
            else CommitLost(job=finished.job, outcome=finished.outcome)
            for finished, is_accepted in zip(batch, accepted, strict=True)
        ]
        tell_all(self._observer, events)


def _worker_of(job: Job) -> WorkerId:
    assert job.worker is not None, "a fetched job has a worker"
    return job.worker
