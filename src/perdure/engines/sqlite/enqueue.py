"""Makes jobs durable: on the writer's connection, or inside a caller's own transaction."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence

from perdure.engines.sqlite.batch import execute_rows, one_row
from perdure.engines.sqlite.request import Statement
from perdure.engines.sqlite.rows import from_alike, from_json_text, from_new_job
from perdure.engines.sqlite.sql import statement
from perdure.errors import Unsupported
from perdure.model.job import JobId, NewJob

_MANY = 16


class Enqueue:
    """The work of one enqueue, which can be done together with that of others."""

    __slots__ = ("_jobs",)

    def __init__(self, jobs: Sequence[NewJob]) -> None:
        self._jobs = jobs

    def __call__(self, connection: sqlite3.Connection, now: int) -> list[JobId]:
        return enqueue(connection.cursor(), now, self._jobs)

    def single(self, now: int) -> Statement | None:
        """The one statement that makes a job without a unique key, and its id."""
        if len(self._jobs) != 1 or self._jobs[0].unique is not None:
            return None
        job = self._jobs[0]
        row = from_new_job(job, now)
        return one_row("enqueue", len(row)), row, [job.id]

    @staticmethod
    def together(several: Sequence[Enqueue], connection: sqlite3.Connection, now: int) -> list[list[JobId]]:
        """What each would have answered, had they come one after the other."""
        ids = iter(enqueue(connection.cursor(), now, [job for one in several for job in one._jobs]))
        return [[next(ids) for _ in one._jobs] for one in several]


def enqueue(cursor: sqlite3.Cursor, now: int, jobs: Sequence[NewJob]) -> list[JobId]:
    """Make jobs; for each the id that stands for it."""
    # [INV-15] All in the one transaction of the caller or the writer: a batch is made whole or not at all.
    if len(jobs) == 1 and jobs[0].unique is None:
        execute_rows(cursor, "enqueue", [from_new_job(jobs[0], now)])
        return [jobs[0].id]
    if _are_alike(jobs):
        rows = [(job.id, from_json_text(job.args)) for job in jobs]
        execute_rows(cursor, "enqueue_alike", rows, from_alike(jobs[0], now))
        return [job.id for job in jobs]
    execute_rows(cursor, "enqueue", [from_new_job(job, now) for job in jobs if job.unique is None])
    stand_ins: dict[int, JobId] = {}
    for position, job in enumerate(jobs):
        # Only one by one can a job tell whether it was its key that was taken.
        if job.unique is not None and not execute_rows(cursor, "enqueue", [from_new_job(job, now)]):
            stand_ins[position] = _standing(cursor, job)
    return [stand_ins.get(position, job.id) for position, job in enumerate(jobs)]


def _are_alike(jobs: Sequence[NewJob]) -> bool:
    """Whether there are many and they differ in nothing but ids and arguments, as in a bulk enqueue."""
    if len(jobs) < _MANY:
        return False
    first = _kind(jobs[0])
    return first[0] is None and first[1] is None and all(_kind(job) == first for job in jobs)


def _kind(job: NewJob) -> tuple[object, ...]:
    when = (job.delay, job.run_at, job.priority)
    how = (job.max_attempts, job.retry, job.delivery, job.timeout)
    return (job.unique, job.schedule, job.task, job.queue, when, how)


def enqueue_within(connection: object, path: str | None, now: int, jobs: Sequence[NewJob]) -> list[JobId]:
    """Make jobs in the caller's transaction on the caller's connection to the store's own file.

    Nothing is begun, committed or changed on the connection. The `sqlite3` module opens a transaction by itself before
    the first INSERT, unless the connection is in autocommit mode; then each statement is durable at once.
    """
    return enqueue(checked_cursor(connection, path), now, jobs)


def checked_cursor(connection: object, path: str | None) -> sqlite3.Cursor:
    """A cursor on a caller's connection, if that is open on the store's own file."""
    if not isinstance(connection, sqlite3.Connection):
        kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
        raise Unsupported(
            f"The SQLite engine cannot work through a {kind}.",
            "Give a sqlite3.Connection that is open on the store's file.",
        )
    cursor = connection.cursor()
    cursor.row_factory = None
    _check_same_file(cursor, path)
    return cursor


def _standing(cursor: sqlite3.Cursor, job: NewJob) -> JobId:
    cursor.execute(statement("enqueue_standing"), {"id": job.id, "task": job.task, "unique_key": job.unique})
    (found,) = cursor.fetchone()
    return JobId(_text(found))


def _check_same_file(cursor: sqlite3.Cursor, path: str | None) -> None:
    if path is None:
        raise Unsupported(
            "The store is private to this process's memory, so no other connection can be open on it.",
            "Use a file, as in sqlite:///perdure.db, to enqueue inside your own transactions.",
        )
    files = {_text(row[1]): _text(row[2]) for row in cursor.execute("PRAGMA database_list").fetchall()}
    main = files.get("main", "")
    if not main or not os.path.exists(main) or not os.path.samefile(main, path):
        raise Unsupported(
            f"The connection is open on {main or 'a database in memory'}, and the store is in {path}.",
            "Open the connection on the store's file; a job and your data can only commit together in one file.",
        )


def _text(value: object) -> str:
    """A text from a caller's connection, which may hand texts out as bytes."""
    return value.decode() if isinstance(value, bytes) else str(value or "")
