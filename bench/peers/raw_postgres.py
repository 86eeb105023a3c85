"""Raw PostgreSQL: what a few lines of psycopg can do with the same durability and columns, rows kept and fenced."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Sequence
from typing import Any

import msgspec
import psycopg

from bench.peers import job

BATCH = 1000
SCHEMA = """
CREATE TABLE jobs (
    id uuid PRIMARY KEY, run_at bigint, created_at bigint, timeout bigint, delay bigint, started_at bigint,
    attempt_ended_at bigint, ended_at bigint, replayed_at bigint, parked_at bigint, priority integer DEFAULT 0,
    attempt integer DEFAULT 0, failures integer DEFAULT 0, recoveries integer DEFAULT 0, max_attempts integer,
    is_cancelling boolean DEFAULT FALSE, state text COLLATE "C", lane text COLLATE "C", delivery text COLLATE "C",
    task text COLLATE "C", queue text COLLATE "C", origin text COLLATE "C", unique_key text COLLATE "C",
    worker text COLLATE "C", retry text, reason text COLLATE "C", fingerprint text COLLATE "C", error text,
    args bytea, result bytea
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000);
CREATE INDEX ready ON jobs (queue, lane, priority DESC, run_at, id) WHERE state = 'ready';
"""
COPY = "COPY jobs (id, task, queue, state, lane, run_at, created_at, delivery, args) FROM STDIN (FORMAT BINARY)"
KINDS = ["uuid", "text", "text", "text", "text", "int8", "int8", "text", "bytea"]
INSERT = (
    "INSERT INTO jobs (id, task, queue, state, lane, run_at, created_at, delivery, args)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
CLAIM = (
    "UPDATE jobs SET state = 'running', attempt = attempt + 1, worker = %s, started_at = %s WHERE id = ANY(ARRAY("
    "SELECT id FROM jobs WHERE state = 'ready' AND queue = 'default' AND lane = 'fresh'"
    f" ORDER BY priority DESC, run_at, id LIMIT {BATCH} FOR UPDATE SKIP LOCKED)) RETURNING id, attempt, args"
)
COMPLETE = (
    "UPDATE jobs SET state = 'succeeded', worker = NULL, attempt_ended_at = %s, ended_at = %s"
    " WHERE id = ANY(%s) AND attempt = %s AND worker = %s"
)

_open: list[psycopg.Connection[Any]] = []
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def setup() -> None:
    with psycopg.connect(job.URL, autocommit=True) as connection:
        connection.execute(SCHEMA)


def connect() -> None:
    _open.append(psycopg.connect(job.URL, autocommit=True, prepare_threshold=1))


def disconnect() -> None:
    _open.pop().close()


def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        _open[0].execute(INSERT, _row(task, number))


def enqueue_bulk(task: str, numbers: Sequence[int]) -> None:
    with _open[0].transaction(), _open[0].cursor().copy(COPY) as copy:
        copy.set_types(KINDS)
        for number in numbers:
            copy.write_row(_row(task, number))


def work() -> None:
    """Complete a batch and claim the next in one round trip and one transaction."""
    worker = f"w{os.getpid()}"
    with psycopg.connect(job.URL, autocommit=True, prepare_threshold=1) as connection:
        # By the primary key, whatever the statistics of a young table make the planner believe.
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET plan_cache_mode = force_custom_plan")
        ended: list[tuple[Any, ...]] = []
        while True:
            now = time.time_ns() // 1000
            with connection.pipeline():
                # Jobs of one attempt's number share a statement: a join over numbers is planned badly.
                for attempt in {row[1] for row in ended}:
                    done = [row[0] for row in ended if row[1] == attempt]
                    connection.execute(COMPLETE, (now, now, done, attempt, worker))
                claim = connection.execute(CLAIM, (worker, now), binary=True)
            ended = claim.fetchall()
            for _, _, args in ended:
                job.noop(_decode(args)["args"][0])
            if not ended:
                time.sleep(0.005)


def settled(jobs: int) -> int:
    row = _open[0].execute("SELECT COUNT(*) FROM jobs WHERE state = 'succeeded'").fetchone()
    return int(row[0]) if row else 0


def _row(task: str, number: int) -> tuple[Any, ...]:
    now = time.time_ns() // 1000
    own = uuid.UUID(int=(now << 64) | number)
    return own, task, "default", "ready", "fresh", now, now, "at_least_once", b'{"args":[%d]}' % number


job.gate()
