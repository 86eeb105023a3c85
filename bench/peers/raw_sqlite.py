"""Raw SQLite: what a few lines of sqlite3 can do with the same durability, the same columns, rows kept and fenced."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from bench.peers import job

BATCH = 1000
PRAGMAS = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA busy_timeout=10000; PRAGMA wal_autocheckpoint=4000;"
SCHEMA = """
CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY, task TEXT, queue TEXT, state TEXT, lane TEXT, priority INTEGER, run_at INTEGER,
    attempt INTEGER DEFAULT 0, failures INTEGER DEFAULT 0, recoveries INTEGER DEFAULT 0, delivery TEXT,
    created_at INTEGER, origin TEXT, unique_key TEXT, max_attempts INTEGER, retry TEXT, timeout INTEGER, delay INTEGER,
    reason TEXT, fingerprint TEXT, worker TEXT, started_at INTEGER, attempt_ended_at INTEGER, ended_at INTEGER,
    replayed_at INTEGER, parked_at INTEGER, is_cancelling INTEGER DEFAULT 0, args TEXT, error TEXT, result TEXT
);
CREATE INDEX ready ON jobs (queue, lane, priority DESC, run_at, id) WHERE state = 'ready';
"""
INSERT = (
    "INSERT INTO jobs (id, task, queue, state, lane, priority, run_at, delivery, created_at, args)"
    " VALUES (?, ?, 'default', 'ready', 'fresh', 0, ?, 'at_least_once', ?, ?)"
)
CLAIM = (
    "UPDATE jobs SET state = 'running', attempt = attempt + 1, worker = ?, started_at = ? WHERE id IN"
    " (SELECT id FROM jobs WHERE state = 'ready' AND queue = 'default' AND lane = 'fresh'"
    f" ORDER BY priority DESC, run_at, id LIMIT {BATCH}) RETURNING id, attempt, args"
)
COMPLETE = (
    "UPDATE jobs SET state = 'succeeded', worker = NULL, attempt_ended_at = ?, ended_at = ?"
    " WHERE id = ? AND attempt = ? AND worker = ?"
)

_open: list[sqlite3.Connection] = []
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def setup() -> None:
    connection = _connect()
    connection.executescript(SCHEMA)
    connection.close()


def connect() -> None:
    _open.append(_connect())


def disconnect() -> None:
    _open.pop().close()


def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        _open[0].execute(INSERT, _row(task, number))


def enqueue_bulk(task: str, numbers: Sequence[int]) -> None:
    _open[0].execute("BEGIN IMMEDIATE")
    _open[0].executemany(INSERT, [_row(task, number) for number in numbers])
    _open[0].execute("COMMIT")


def work() -> None:
    """Complete a batch and claim the next in one transaction, so that a batch costs one sync."""
    connection = _connect()
    worker = f"w{os.getpid()}"
    ended: list[tuple[Any, ...]] = []
    while True:
        now = time.time_ns() // 1000
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(COMPLETE, ended)
        claimed = connection.execute(CLAIM, (worker, now)).fetchall()
        connection.execute("COMMIT")
        for _, _, args in claimed:
            job.noop(_decode(args)["args"][0])
        now = time.time_ns() // 1000
        ended = [(now, now, each, attempt, worker) for each, attempt, _ in claimed]
        if not claimed:
            time.sleep(0.005)


def settled(jobs: int) -> int:
    count: int = _open[0].execute("SELECT COUNT(*) FROM jobs WHERE state = 'succeeded'").fetchone()[0]
    return count


def _connect() -> sqlite3.Connection:
    connection = sqlite3.connect(job.URL.removeprefix("sqlite:///"), isolation_level=None)
    connection.executescript(PRAGMAS)
    return connection


def _row(task: str, number: int) -> tuple[Any, ...]:
    now = time.time_ns() // 1000
    return f"{now:016x}-{number:016x}", task, now, now, f'{{"args":[{number}]}}'


job.gate()
