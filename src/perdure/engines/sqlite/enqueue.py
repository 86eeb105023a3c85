"""Makes jobs durable: on the writer's connection, or inside a caller's own transaction."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence

from perdure.engines.sqlite.rows import from_new_job
from perdure.engines.sqlite.sql import statement
from perdure.errors import Unsupported
from perdure.model.job import JobId, NewJob


def enqueue(cursor: sqlite3.Cursor, now: int, jobs: Sequence[NewJob]) -> list[JobId]:
    """Make jobs; for each the id that stands for it."""
    insert = statement("enqueue")
    cursor.executemany(insert, [from_new_job(job, now) for job in jobs if job.unique is None])
    stand_ins: dict[int, JobId] = {}
    for position, job in enumerate(jobs):
        if job.unique is not None:
            cursor.execute(insert, from_new_job(job, now))
            if cursor.rowcount == 0:
                stand_ins[position] = _standing(cursor, job)
    return [stand_ins.get(position, job.id) for position, job in enumerate(jobs)]


def enqueue_within(connection: object, path: str | None, now: int, jobs: Sequence[NewJob]) -> list[JobId]:
    """Make jobs in the caller's transaction on the caller's connection to the store's own file.

    Nothing is begun, committed or changed on the connection. The `sqlite3` module opens a transaction by itself before
    the first INSERT, unless the connection is in autocommit mode; then each job is durable at once.
    """
    if not isinstance(connection, sqlite3.Connection):
        kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
        raise Unsupported(
            f"The SQLite engine cannot enqueue through a {kind}.",
            "Give a sqlite3.Connection that is open on the store's file.",
        )
    cursor = connection.cursor()
    cursor.row_factory = None
    _check_same_file(cursor, path)
    return enqueue(cursor, now, jobs)


def _standing(cursor: sqlite3.Cursor, job: NewJob) -> JobId:
    cursor.execute(statement("enqueue_standing"), {"id": job.id, "task": job.task, "unique_key": job.unique})
    (found,) = cursor.fetchone()
    # A caller's connection may hand out texts as bytes.
    return JobId(found if isinstance(found, str) else bytes(found).decode())


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
    return value.decode() if isinstance(value, bytes) else str(value or "")
