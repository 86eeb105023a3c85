"""The open SQLite store: every verb of the seam, handed to the writer, the readers, or the calling thread."""

from __future__ import annotations

import builtins
import functools
import os
import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from perdure.engines.open_guard import OpenGuard
from perdure.engines.sqlite import (
    commit,
    enqueue,
    fetch,
    fork,
    forwards,
    jobs,
    notes,
    queues,
    reads,
    replay,
    schedules,
    unpark,
    workers,
)
from perdure.engines.sqlite.audit import AuditVerbs
from perdure.engines.sqlite.capability import capabilities
from perdure.engines.sqlite.change import change as change_jobs
from perdure.engines.sqlite.checkpoint import Checkpointer
from perdure.engines.sqlite.connection import connect
from perdure.engines.sqlite.fault import to_perdure_error
from perdure.engines.sqlite.file_check import FileCheck
from perdure.engines.sqlite.reader import Readers
from perdure.engines.sqlite.request import Peek, Request, Taker, Work
from perdure.engines.sqlite.schema import migrate, schema_status
from perdure.engines.sqlite.turnstile import Turnstile
from perdure.engines.sqlite.wakeup import SqliteWakeups
from perdure.engines.sqlite.writer import Inline, Transactor, Writer
from perdure.model.change import Change
from perdure.model.forward import Forward, ForwardState, Tried
from perdure.model.job import Attempt, Job, JobId, NewJob, WorkerId
from perdure.model.queue.settings import FIELDS, QueueSettings
from perdure.model.schedule.definition import Schedule
from perdure.model.state import ENQUEUED
from perdure.store.capability import Capabilities
from perdure.store.forwards import DueForwards
from perdure.store.jobs import CancelAnswer, ChangeAnswer, Ended, Fetched, Promoted, Reaped, ReplayAnswer, Want
from perdure.store.notes import Note
from perdure.store.reads import ErrorGroup, JobFilter, QueueInfo, Recent, RecentState, SchemaStatus
from perdure.store.reply import Reply
from perdure.store.schedules import Due, Firing
from perdure.store.wakeup import Wakeups
from perdure.store.workers import Beat, Renewal, WorkerInfo
from perdure.system.clock import Clock

T = TypeVar("T")


def open_sqlite(path: str | None, clock: Clock, *, auto_migrate: bool, is_inline: bool) -> SqliteStore:
    """Open the file, or a private database in memory, and bring its schema up to date."""
    # Links are followed here, once: SQLite would make a file that a dangling one leads to readable to others, and all
    # who open the file must agree on the names of the files beside it.
    full_path = None if path is None else os.path.realpath(path)
    with fork.opening:
        connection = connect(full_path)
        try:
            migrate(connection, clock, auto_migrate=auto_migrate)
            commit.prepare(connection)
            return SqliteStore(connection, full_path, clock, is_inline=is_inline)
        except BaseException as error:
            connection.close()
            raise to_perdure_error(error, full_path or ":memory:") from error


class SqliteStore(AuditVerbs):
    """An open SQLite store; see perdure.store.Store for what each verb promises."""

    def __init__(self, connection: sqlite3.Connection, path: str | None, clock: Clock, *, is_inline: bool) -> None:
        self._path = path
        self._clock = clock
        self._open_guard = OpenGuard()
        self._completed: set[commit.Fence] = set()
        checkpointer, turnstile = (None, None) if path is None else (Checkpointer(path), Turnstile(path))
        files = None if path is None else FileCheck(path)
        self._wakeups = SqliteWakeups(None if is_inline else path, files)
        reopen = None if path is None else functools.partial(_connect_again, path)
        self.transactor = Transactor(connection, path or ":memory:", clock, checkpointer, turnstile, files, reopen)
        make = Inline if is_inline else Writer
        self._writer = make(self.transactor, self._open_guard, self._wakeups.hint)
        # A private database has one connection, so its reads go where its writes go.
        self._readers = (
            None if is_inline or path is None or files is None else Readers(path, clock, self._open_guard, files)
        )

    @property
    def capabilities(self) -> Capabilities:
        return capabilities(self._path)

    @property
    def wakeups(self) -> Wakeups:
        return self._wakeups

    def close(self) -> None:
        if self._open_guard.shut():
            self._wakeups.close()
            if self._readers is not None:
                self._readers.close()
            self._writer.close()

    def enqueue(self, jobs: Sequence[NewJob]) -> Reply[list[JobId]]:
        return Request(self._writer, enqueue.Enqueue(jobs), None, _always)

    def enqueue_within(self, connection: object, jobs: Sequence[NewJob]) -> list[JobId]:
        try:
            return enqueue.enqueue_within(connection, self._path, self._clock.microseconds(), jobs)
        except Exception as error:
            raise to_perdure_error(error, self._path or ":memory:") from error

    async def enqueue_within_async(self, connection: object, jobs: Sequence[NewJob]) -> list[JobId]:
        return self.enqueue_within(connection, jobs)

    def complete_within(self, connection: object, ended: Ended) -> bool:
        try:
            accepted = commit.complete_within(connection, self._path, self._clock.microseconds(), ended)
        except Exception as error:
            raise to_perdure_error(error, self._path or ":memory:") from error
        # The ordinary commit that follows asks what became of it; a failed one has nothing to ask.
        self._completed.add(commit.fence(ended))
        return accepted

    async def complete_within_async(self, connection: object, ended: Ended) -> bool:
        return self.complete_within(connection, ended)

    def fetch(self, worker: WorkerId, wants: Sequence[Want], limit: int) -> Reply[Fetched]:
        return self._write(
            functools.partial(fetch.fetch, worker=worker, wants=wants, limit=limit),
            peek=functools.partial(fetch.peek, worker=worker, wants=wants, limit=limit),
        )

    def unpark(
        self, worker: WorkerId, wants: Sequence[Want], tasks: Sequence[str], limit: int
    ) -> Reply[builtins.list[Job]]:
        return self._write(
            functools.partial(unpark.unpark, worker=worker, wants=wants, tasks=tasks, limit=limit),
            peek=functools.partial(unpark.peek_unpark, wants=wants, tasks=tasks),
        )

    def start(self, worker: WorkerId, attempts: Sequence[tuple[JobId, int]]) -> Reply[list[bool]]:
        return self._write(functools.partial(fetch.start, worker=worker, attempts=attempts))

    def commit(self, ended: Sequence[Ended]) -> Reply[list[bool]]:
        goes_on = any(one.outcome.state in ENQUEUED for one in ended)
        completed = self._completed.intersection(map(commit.fence, ended)) if self._completed else frozenset()

        def wakes(answers: list[bool]) -> bool:
            self._completed.difference_update(completed)
            return goes_on

        return self._write(functools.partial(commit.commit, ended=ended, completed=completed), wakes=wakes)

    def promote(self, limit: int) -> Reply[Promoted]:
        return self._write(
            functools.partial(jobs.promote, limit=limit),
            peek=jobs.peek_promote,
            wakes=lambda promoted: promoted.count > 0,
        )

    def reap(self, limit: int, silent: Sequence[Renewal] | None = None) -> Reply[Reaped]:
        return self._write(
            functools.partial(jobs.reap, limit=limit, silent=silent),
            peek=functools.partial(jobs.peek_reap, limit=limit, silent=silent),
        )

    def prune(self, older_than: timedelta, limit: int) -> Reply[int]:
        return self._write(functools.partial(jobs.prune, older_than=older_than, limit=limit))

    def cancel(self, ids: Sequence[JobId], reason: str) -> Reply[list[CancelAnswer]]:
        return self._write(
            functools.partial(jobs.cancel, ids=ids, reason=reason), wakes=lambda answers: "asked" in answers
        )

    def change(self, ids: Sequence[JobId], change: Change) -> Reply[list[ChangeAnswer]]:
        return self._write(
            functools.partial(change_jobs, ids=ids, change=change), wakes=lambda answers: "changed" in answers
        )

    def retry(self, ids: Sequence[JobId]) -> Reply[list[ReplayAnswer]]:
        return self._write(functools.partial(replay.retry, ids=ids), wakes=lambda answers: "replayed" in answers)

    def replay(self, where: JobFilter, limit: int, every: timedelta) -> Reply[int]:
        return self._write(functools.partial(replay.replay, where=where, limit=limit, every=every), wakes=bool)

    def discard(self, where: JobFilter, limit: int) -> Reply[int]:
        return self._write(functools.partial(replay.discard, where=where, limit=limit))

    def forward(self, queues: Sequence[str], limit: int, lease: timedelta) -> Reply[DueForwards]:
        return self._write(
            functools.partial(forwards.forward, queues=queues, limit=limit, lease=lease),
            peek=functools.partial(forwards.peek_forward, queues=queues),
        )

    def forwarded(self, tried: Sequence[Tried]) -> Reply[list[bool]]:
        return self._write(functools.partial(forwards.forwarded, tried=tried))

    def forward_now(self, where: JobFilter) -> Reply[int]:
        return self._write(functools.partial(forwards.forward_now, where=where), wakes=bool)

    def forwards(self, ids: Sequence[JobId]) -> Reply[dict[JobId, Forward]]:
        return self._read(functools.partial(forwards.forwards, ids=ids))

    def forward_counts(self) -> Reply[dict[ForwardState, int]]:
        return self._read(forwards.forward_counts)

    def register(
        self,
        worker: WorkerId,
        *,
        host: str,
        pid: int,
        queues: tuple[str, ...],
        concurrency: int,
        version: str,
        lease: timedelta,
    ) -> Reply[None]:
        return self._write(
            functools.partial(
                workers.register,
                worker=worker,
                host=host,
                pid=pid,
                queues=queues,
                concurrency=concurrency,
                version=version,
                lease=lease,
            )
        )

    def beat(self, worker: WorkerId, lease: timedelta) -> Reply[Beat]:
        return self._write(functools.partial(workers.beat, worker=worker, lease=lease))

    def cancelling(self, worker: WorkerId) -> Reply[tuple[JobId, ...]]:
        return self._read(functools.partial(workers.cancelling, worker=worker))

    def deregister(self, worker: WorkerId) -> Reply[None]:
        return self._write(functools.partial(workers.deregister, worker=worker))

    def get(self, ids: Sequence[JobId]) -> Reply[list[Job | None]]:
        return self._read(functools.partial(reads.get, ids=ids))

    def history(self, job_id: JobId, limit: int) -> Reply[list[Attempt]]:
        return self._read(functools.partial(reads.history, job_id=job_id, limit=limit))

    def list(self, where: JobFilter, *, limit: int, after: JobId | None = None) -> Reply[builtins.list[Job]]:
        return self._read(functools.partial(reads.list_jobs, where=where, limit=limit, after=after))

    def count(self, where: JobFilter) -> Reply[int]:
        return self._read(functools.partial(reads.count, where=where))

    def queues(self) -> Reply[builtins.list[QueueInfo]]:
        return self._read(queues.queues)

    def groups(self, where: JobFilter, limit: int) -> Reply[builtins.list[ErrorGroup]]:
        return self._read(functools.partial(reads.groups, where=where, limit=limit))

    def recent(self, state: RecentState, limit: int) -> Reply[builtins.list[Recent]]:
        return self._read(functools.partial(reads.recent, state=state, limit=limit))

    def workers(self) -> Reply[builtins.list[WorkerInfo]]:
        return self._read(reads.workers)

    def schema(self) -> Reply[SchemaStatus]:
        return self._read(lambda connection, now: schema_status(connection))

    def now(self) -> Reply[datetime]:
        return self._read(reads.store_now)

    def pause(self, queue: str, reason: str | None, until: datetime | None = None) -> Reply[bool]:
        return self._write(functools.partial(queues.pause, queue=queue, reason=reason, until=until))

    def resume(self, queue: str) -> Reply[bool]:
        return self._write(functools.partial(queues.resume, queue=queue), wakes=_always)

    def configure(self, queue: str, settings: QueueSettings, only: Sequence[str] = FIELDS) -> Reply[QueueSettings]:
        work = functools.partial(queues.configure, queue=queue, settings=settings, only=only)
        return self._write(work, wakes=_always)

    def settings(self) -> Reply[dict[str, QueueSettings]]:
        return self._read(queues.settings)

    def note(self, kind: str, key: str, body: str, keep: timedelta, *, replaces: bool = False) -> Reply[Note]:
        return self._write(functools.partial(notes.note, kind=kind, key=key, body=body, keep=keep, replaces=replaces))

    def notes(self, kind: str, limit: int) -> Reply[builtins.list[Note]]:
        return self._read(functools.partial(notes.notes, kind=kind, limit=limit))

    def put_schedule(self, schedule: Schedule, replaces: str | None) -> Reply[bool]:
        return self._write(functools.partial(schedules.put_schedule, schedule=schedule, replaces=replaces), wakes=bool)

    def get_schedules(self, names: Sequence[str]) -> Reply[builtins.list[Schedule | None]]:
        return self._read(functools.partial(schedules.get_schedules, names=names))

    def schedules(
        self, *, limit: int, after: str | None = None, is_descending: bool = False
    ) -> Reply[builtins.list[Schedule]]:
        read = functools.partial(schedules.schedules, limit=limit, after=after, is_descending=is_descending)
        return self._read(read)

    def remove_schedule(self, name: str) -> Reply[bool]:
        return self._write(functools.partial(schedules.remove_schedule, name=name))

    def name_schedules(self, names: Sequence[str]) -> Reply[None]:
        return self._write(functools.partial(schedules.name_schedules, names=names))

    def due(self, limit: int) -> Reply[Due]:
        return self._read(functools.partial(schedules.due, limit=limit))

    def fire(self, firings: Sequence[Firing]) -> Reply[builtins.list[bool]]:
        return self._write(
            functools.partial(schedules.fire, firings=firings),
            peek=functools.partial(schedules.peek_fire, firings=firings),
            wakes=any,
        )

    def _write(
        self, work: Work[T], *, peek: Peek[T] | None = None, wakes: Callable[[T], bool] | None = None
    ) -> Reply[T]:
        return Request(self._writer, work, peek, wakes)

    def _read(self, work: Work[T]) -> Reply[T]:
        where: Taker = self._readers or self._writer
        return Request(where, work, work)


def _always(answer: object) -> bool:
    return True


def _connect_again(path: str) -> sqlite3.Connection:
    """A connection like the one that was closed for a fork."""
    connection = connect(path)
    commit.prepare(connection)
    return connection
