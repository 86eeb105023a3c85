"""The verbs of workers: one row per worker, renewed as a whole."""

from __future__ import annotations

import sqlite3
from datetime import timedelta

import msgspec

from perdure.engines.sqlite.rows import from_duration
from perdure.engines.sqlite.sql import statement
from perdure.errors import LeaseLost
from perdure.model.job import JobId, WorkerId
from perdure.store.workers import Beat

_decode_held = msgspec.json.Decoder(tuple[tuple[JobId, int], ...]).decode


def register(
    connection: sqlite3.Connection,
    now: int,
    worker: WorkerId,
    host: str,
    pid: int,
    queues: tuple[str, ...],
    concurrency: int,
    version: str,
    lease: timedelta,
) -> None:
    parameters = {
        "id": worker,
        "host": host,
        "pid": pid,
        "queues": msgspec.json.encode(queues).decode(),
        "concurrency": concurrency,
        "version": version,
        "now": now,
        "lease_until": now + (from_duration(lease) or 0),
    }
    connection.execute(statement("register"), parameters)


def beat(connection: sqlite3.Connection, now: int, worker: WorkerId, lease: timedelta) -> Beat:
    parameters = {"worker": worker, "now": now, "lease_until": now + (from_duration(lease) or 0)}
    if connection.execute(statement("beat"), parameters).rowcount == 0:
        raise LeaseLost(f"The lease of worker {worker} has run out, or it was struck off.", "Register under a new id.")
    (held,) = connection.execute(statement("beat_held"), {"worker": worker}).fetchone()
    return Beat(held=_decode_held(held))


def cancelling(connection: sqlite3.Connection, now: int, worker: WorkerId) -> tuple[JobId, ...]:
    rows = connection.execute(statement("cancelling"), {"worker": worker}).fetchall()
    return tuple(JobId(job_id) for (job_id,) in rows)


def deregister(connection: sqlite3.Connection, now: int, worker: WorkerId) -> None:
    connection.execute(statement("deregister"), {"worker": worker})
