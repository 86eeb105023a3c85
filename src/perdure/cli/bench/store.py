"""Where the bench's jobs live, and how they are gone afterwards: a file of its own, or a queue in the user's store.

On SQLite it is a file beside the user's, on the same disk, deleted at the end. On a server it is a queue that nobody
else serves. There the jobs of the bench end, by the clock that it hands in, in a year long past: `prune` up to that
year deletes them and nobody else's. The bench's worker takes part in no housekeeping, which would touch others' jobs.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import msgspec

from perdure.app import App
from perdure.application.sources import Configuration
from perdure.cli.session import sqlite_path
from perdure.errors import EngineError, EngineUnreachable
from perdure.model.decide import decide
from perdure.model.event import Observer
from perdure.model.job import Job, JobId, NewJob, WorkerId
from perdure.model.outcome import ShutDown
from perdure.store import Store
from perdure.store.forwards import DueForwards
from perdure.store.jobs import Ended, Promoted, Reaped
from perdure.store.reply import Reply
from perdure.store.schedules import Due
from perdure.store.workers import Renewal
from perdure.system.clock import SystemClock, to_microseconds
from perdure.text.plural import plural

T = TypeVar("T")

_LONG_AGO = datetime(1971, 1, 1, tzinfo=UTC)
_BATCH = 500
_BESIDE = ("", "-wal", "-shm", "-checkpoint", "-turn")


class Place:
    """The bench's app, its queue, and the ids of all the jobs that it has asked for."""

    def __init__(self, app: App, queue: str) -> None:
        self.app = app
        self.queue = queue
        self._ids: list[JobId] = []

    def new_jobs(self, task: str, count: int) -> list[NewJob]:
        """Jobs to enqueue; noted before they are, so that none is forgotten whatever happens then."""
        bound = self.app.bind_named(task, (), {}, queue=self.queue)
        jobs = self.app.new_jobs([bound] * count)
        self._ids += [job.id for job in jobs]
        return jobs

    def open_again(self) -> Store | None:
        """The same store opened once more, as a producer in another process has it; None where that cannot be."""
        by = self.app.surroundings.open_store_by
        return by(SystemClock()) if by is not None and self.app.store.capabilities.is_shared else None

    def clear(self, past: Store) -> None:
        """Delete every job of the bench, finished or not; raises EngineError when some are still there."""
        for first in range(0, len(self._ids), _BATCH):
            ids = self._ids[first : first + _BATCH]
            answers = past.cancel(ids, "the bench was broken off").wait()
            asked = [one for one, answer in zip(ids, answers, strict=True) if answer == "asked"]
            self._end_running(past, [job for job in past.get(asked).wait() if job is not None and job.worker])
        _refuse_other_clock(past)
        while past.prune(timedelta(0), _BATCH).wait() == _BATCH:
            pass
        left = sum(
            job is not None
            for first in range(0, len(self._ids), _BATCH)
            for job in past.get(self._ids[first : first + _BATCH]).wait()
        )
        if left:
            raise EngineError(
                f"{plural(left, 'job')} of the bench {'is' if left == 1 else 'are'} still in the queue {self.queue}.",
                f"Nobody runs them. Cancel what is left: perdure jobs cancel --queue {self.queue}",
            )

    def _end_running(self, past: Store, jobs: Sequence[Job]) -> None:
        """End attempts of the bench's own worker, which is gone: the fences are known."""
        now = SystemClock().now()
        ended = []
        for job in jobs:
            outcome = decide(
                job, ShutDown(has_started=False), self.app.registry.policy(job), now, self.app.surroundings.random
            )
            worker = cast(WorkerId, job.worker)
            ended.append(
                Ended(
                    job_id=job.id,
                    attempt=job.attempt,
                    worker=worker,
                    task=job.task,
                    outcome=outcome,
                    started_at=now,
                    ended_at=now,
                )
            )
        if ended:
            past.commit(ended).wait()
        for worker in {one.worker for one in ended}:
            past.deregister(worker).wait()


@contextmanager
def bench_place(url: str | None, observer: Observer) -> Iterator[Place]:
    """A place for the bench at the user's store; nothing of the bench is left there afterwards."""
    queue = f"perdure-bench-{secrets.token_hex(4)}"
    found = Configuration.read(os.environ, url=url).settings.url
    path = sqlite_path(found)
    if path is not None:
        with _own_file(path.parent / f"{queue}.db") as own:
            yield from _in(App(f"sqlite:///{own}", observer=observer, tracing=False, auto_migrate=True), queue)
    else:
        is_server = not found.lower().startswith("sqlite")
        app = App(url, observer=observer, tracing=False, auto_migrate=not is_server)
        yield from _in(app, queue, is_among_others=is_server)


def _in(app: App, queue: str, *, is_among_others: bool = False) -> Iterator[Place]:
    place = Place(app, queue)
    by = app.surroundings.open_store_by
    if not is_among_others or by is None:
        try:
            yield place
        finally:
            app.close()
        return
    open_store = app.surroundings.open_store
    past = by(LongAgo())
    app.surroundings = msgspec.structs.replace(
        app.surroundings, open_store=lambda: cast(Store, NarrowStore(open_store(), past))
    )
    try:
        _refuse_other_clock(past)
        yield place
    finally:
        try:
            # First, so that nothing which is still on its way arrives after the tidying.
            app.close()
        finally:
            _tidy(place, past)


def _tidy(place: Place, past: Store) -> None:
    try:
        place.clear(past)
    except EngineUnreachable as error:
        raise EngineUnreachable(
            f"{error.message} Jobs of the bench may be left in the queue {place.queue}, which nobody serves.",
            error.hint,
        ) from None
    finally:
        past.close()


def _refuse_other_clock(past: Store) -> None:
    """By any other clock a prune would delete what others have finished."""
    if past.now().wait() > _LONG_AGO:
        raise EngineError("The engine does not take the clock that the bench hands in.", "Nothing was deleted.")


@contextmanager
def _own_file(path: Path) -> Iterator[Path]:
    try:
        yield path
    finally:
        for ending in _BESIDE:
            Path(f"{path}{ending}").unlink(missing_ok=True)


class LongAgo:
    """The clock by which the bench's jobs end; it stands still."""

    def now(self) -> datetime:
        return _LONG_AGO

    def microseconds(self) -> int:
        return to_microseconds(_LONG_AGO)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await SystemClock().sleep(seconds)


class NarrowStore:
    """The user's store as the bench's worker sees it: attempts end long ago, and all housekeeping is left to others."""

    def __init__(self, store: Store, past: Store) -> None:
        self._store = store
        self._past = past

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, ended: Sequence[Ended]) -> Reply[list[bool]]:
        return self._past.commit(ended)

    def promote(self, limit: int) -> Reply[Promoted]:
        return Answered(Promoted(count=0, next_run_at=None, now=SystemClock().now()))

    def reap(self, limit: int, silent: Sequence[Renewal] | None = None) -> Reply[Reaped]:
        return Answered(Reaped(workers=(), jobs=()))

    def prune(self, older_than: timedelta, limit: int) -> Reply[int]:
        return Answered(0)

    def due(self, limit: int) -> Reply[Due]:
        return Answered(Due(now=SystemClock().now(), schedules=(), next_at=None))

    def name_schedules(self, names: Sequence[str]) -> Reply[None]:
        return Answered(None)

    def forward(self, queues: Sequence[str], limit: int, lease: timedelta) -> Reply[DueForwards]:
        return Answered(DueForwards(forwards=(), next_at=None))


class Answered(Generic[T]):
    """A reply that asks nobody."""

    def __init__(self, answer: T) -> None:
        self._answer = answer

    def wait(self) -> T:
        return self._answer

    def __await__(self) -> Generator[Any, None, T]:
        yield from ()
        return self._answer
