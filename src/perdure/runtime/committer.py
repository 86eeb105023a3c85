"""Writes outcomes: one commit in flight, and what arrives meanwhile is the next batch.

It waits for the first outcome, commits all there are in one step, and goes on. A commit that cannot be written is tried
again while the lease lasts, never the job. It stops when it has been told to and nothing is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from perdure.model.event import AttemptEnded, CommitLost, Event, Observer, tell_all
from perdure.model.failure import Failure
from perdure.runtime.backoff import Backoff
from perdure.runtime.occurrence import with_next_ticks
from perdure.store import Store
from perdure.store.jobs import Ended
from perdure.system.clock import Clock

_BATCH = 1000


def to_ended(event: AttemptEnded) -> Ended:
    """What the store is told of an attempt that is over, fenced by job, attempt and worker."""
    job = event.job
    assert job.worker is not None, "a fetched job has a worker"
    return Ended(
        job_id=job.id,
        attempt=job.attempt,
        # The worker may have got a new id meanwhile, but a fence keeps that of the claim.
        worker=job.worker,
        task=job.task,
        outcome=event.outcome,
        started_at=event.started_at,
        ended_at=event.ended_at,
    )


class Committer:
    """The one writer of outcomes of a worker."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        observer: Observer,
        backoff: Backoff,
        is_trusted: Callable[[], bool],
        done: Callable[[Sequence[AttemptEnded]], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._observer = observer
        self._backoff = backoff
        self._is_trusted = is_trusted
        self._done = done
        self._waiting: list[AttemptEnded] = []
        self._in_flight: list[AttemptEnded] = []
        self._arrived = asyncio.Event()
        self._is_closing = False

    def put(self, finished: AttemptEnded) -> None:
        """Take an outcome; it is committed with the next batch."""
        if not self._waiting:
            self._arrived.set()
        self._waiting.append(finished)

    def forget(self) -> None:
        """Drop what is not committed: the lease is lost, and so are the fences."""
        self._waiting.clear()

    def uncommitted(self) -> list[AttemptEnded]:
        """The outcomes of which it is not known that they are durable; may be asked from another thread."""
        return [*self._in_flight, *self._waiting]

    def close(self) -> None:
        """Stop once everything is written."""
        self._is_closing = True
        self._arrived.set()

    async def run(self) -> None:
        while self._waiting or not self._is_closing:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
                self._in_flight = batch
                await self._write(batch)

    async def _write(self, batch: list[AttemptEnded]) -> None:
        try:
            accepted = await self._commit(batch)
        except Exception:
            # An outcome that cannot be written at all must cost neither its neighbours nor the worker.
            accepted = [await self._commit_bare(finished) for finished in batch]
        self._in_flight = []
        self._done(batch)
        await self._tell(batch, accepted)

    async def _commit(self, batch: list[AttemptEnded]) -> list[bool]:
        """Write a batch, however often the store has to be asked while the lease lasts; raises what is no outage."""
        ended = [to_ended(finished) for finished in batch]
        while True:
            try:
                accepted = await self._store.commit(ended)
            except Exception as error:
                pause = self._backoff.failed(error)
                if self._backoff.is_final or not self._is_trusted():
                    self._backoff.gave_up()
                    return [False] * len(batch)
                await self._clock.sleep(pause)
                continue
            self._backoff.succeeded()
            return accepted

    async def _commit_bare(self, finished: AttemptEnded) -> bool:
        """Write one outcome by itself; if that fails too, without the texts that came from the handler."""
        try:
            return (await self._commit([finished]))[0]
        except Exception as error:
            unstorable = Failure(type=type(error).__name__, message="what the handler left behind could not be stored")
            bare = msgspec.structs.replace(finished.outcome, error=unstorable, result=None, note=None)
            return (await self._commit([msgspec.structs.replace(finished, outcome=bare)]))[0]

    async def _tell(self, batch: list[AttemptEnded], accepted: list[bool]) -> None:
        batch = await with_next_ticks(self._store, batch)
        if all(accepted):
            tell_all(self._observer, batch)
            return
        events: list[Event] = [
            finished if is_accepted else CommitLost(job=finished.job, outcome=finished.outcome)
            for finished, is_accepted in zip(batch, accepted, strict=True)
        ]
        tell_all(self._observer, events)
