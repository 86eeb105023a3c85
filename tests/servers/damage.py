"""Damages what a store holds from outside, with the engine's own commands, and reads it byte for byte."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from tests.servers import postgres, redis

from perdure.engines.redis.record import Record

GHOST = "ghost"
"""A worker that is not registered."""


class Damager(Protocol):
    """What can be done to the records of one engine."""

    has_counters: bool
    ways: Sequence[tuple[str, Any]]
    """Fields of a job's record, each with a value that it cannot have."""

    def spoil(self, job_id: str, field: str, value: Any) -> None:
        """Give a field of a job's record such a value."""
        ...

    def document(self, schedule: str, document: str) -> None:
        """Put another document in the place of a schedule's."""
        ...

    def unreadable_job(self, job_id: str) -> None:
        """Make the record of a job one that cannot be read, wherever it stands."""
        ...

    def readable_job(self, job_id: str) -> None:
        """Mend what unreadable_job did."""
        ...

    def unreadable_worker(self, worker: str) -> None: ...

    def unreadable_setting(self, queue: str) -> None: ...

    def unreadable_attempt(self, job_id: str) -> None: ...

    def note(self, kind: str, key: str, body: str) -> None: ...

    def take_worker(self, job_id: str) -> None:
        """A running job has no worker any more."""
        ...

    def give_to_ghost(self, job_id: str) -> None:
        """A running job has a worker that does not exist."""
        ...

    def record(self, kind: str, name: str) -> Any:
        """A record as the engine keeps it."""
        ...

    def close(self) -> None: ...


class SqlDamager:
    """For SQLite and PostgreSQL."""

    has_counters = False

    def __init__(self, connection: Any, mark: str, tables: str, ways: Sequence[tuple[str, Any]]) -> None:
        self._connection = connection
        self._mark = mark
        self._tables = tables
        self.ways = ways

    def spoil(self, job_id: str, field: str, value: Any) -> None:
        self._do(f"UPDATE @jobs SET {field} = ? WHERE id = ?", value, job_id)

    def _do(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        cursor = self._connection.cursor()
        cursor.execute(statement.replace("@", self._tables).replace("?", self._mark), values)
        found = cursor.fetchall() if cursor.description else []
        self._connection.commit()
        return found

    def document(self, schedule: str, document: str) -> None:
        self._do("UPDATE @schedules SET document = ? WHERE name = ?", document, schedule)

    def unreadable_job(self, job_id: str) -> None:
        self._do("UPDATE @jobs SET error = ? WHERE id = ?", '{"type": 5', job_id)

    def readable_job(self, job_id: str) -> None:
        self._do("UPDATE @jobs SET error = NULL WHERE id = ?", job_id)

    def unreadable_worker(self, worker: str) -> None:
        self._do("UPDATE @workers SET queues = ? WHERE id = ?", "mail, bulk", worker)

    def unreadable_setting(self, queue: str) -> None:
        # No value of a column can be wrong in PostgreSQL: the next best is one that no queue can have.
        self._do("UPDATE @queue_settings SET concurrency = ? WHERE name = ?", 0, queue)

    def unreadable_attempt(self, job_id: str) -> None:
        self._do("UPDATE @attempts SET error = ? WHERE job_id = ?", "not json", job_id)

    def note(self, kind: str, key: str, body: str) -> None:
        self._do("UPDATE @notes SET body = ? WHERE kind = ? AND key = ?", body, kind, key)

    def take_worker(self, job_id: str) -> None:
        self._do("UPDATE @jobs SET worker = NULL WHERE id = ?", job_id)

    def give_to_ghost(self, job_id: str) -> None:
        self._do("UPDATE @jobs SET worker = ? WHERE id = ?", GHOST, job_id)

    def record(self, kind: str, name: str) -> Any:
        table, column = {
            "job": ("jobs", "id"),
            "schedule": ("schedules", "name"),
            "worker": ("workers", "id"),
            "setting": ("queue_settings", "name"),
            "note": ("notes", "kind"),
            "attempt": ("attempts", "job_id"),
        }[kind]
        return self._do(f"SELECT * FROM @{table} WHERE {column} = ?", name)

    def close(self) -> None:
        self._connection.close()


class RedisDamager:
    """For Redis and Valkey."""

    has_counters = True
    ways = [
        (field, value)
        for field in ("attempt", "failures", "recoveries", "priority", "run_at", "created_at", "timeout", "delay")
        for value in (b"some", b"9" * 30)
    ] + [
        (field, value)
        for field in ("state", "lane", "delivery", "queue", "task", "unique", "schedule", "retry", "reason", "origin")
        for value in (b"=\xc3\x28", b"=later")
    ]

    def spoil(self, job_id: str, field: str, value: bytes) -> None:
        self.fields(job_id, **{field: value})

    def __init__(self, directory: Path) -> None:
        self.client = redis.client_of(redis.shared_server())
        self.tag = "{" + redis.prefix_of(directory) + "}"

    def key(self, name: str) -> str:
        return f"{self.tag}:{name}"

    def document(self, schedule: str, document: str) -> None:
        self.client.hset(self.key(f"schedule:{schedule}"), "document", document)

    def fields(self, job_id: str, **changes: bytes) -> None:
        """Change fields of a job's record."""
        record = self.client.hget(self.key("records"), job_id).split(b"\xff")
        for name, value in changes.items():
            record[Record.__struct_fields__.index(name)] = value
        self.client.hset(self.key("records"), job_id, b"\xff".join(record))

    def unreadable_job(self, job_id: str) -> None:
        self.fields(job_id, delivery=b"some_day")

    def readable_job(self, job_id: str) -> None:
        self.fields(job_id, delivery=b"")

    def unreadable_worker(self, worker: str) -> None:
        self.client.hdel(self.key(f"worker:{worker}"), "pid")

    def unreadable_setting(self, queue: str) -> None:
        self.client.hset(self.key("settings"), f"concurrency:{queue}", "some")

    def unreadable_attempt(self, job_id: str) -> None:
        self.client.lset(self.key(f"attempts:{job_id}"), 0, "not json")

    def note(self, kind: str, key: str, body: str) -> None:
        self.client.hset(self.key("notes"), f"{kind}:{key}", body)

    def take_worker(self, job_id: str) -> None:
        self.fields(job_id, worker=b"")

    def give_to_ghost(self, job_id: str) -> None:
        worker = self.client.hget(self.key("records"), job_id).split(b"\xff")[2].decode()
        self.client.srem(self.key(f"running:{worker}"), job_id)
        self.fields(job_id, worker=GHOST.encode())

    def record(self, kind: str, name: str) -> Any:
        match kind:
            case "job":
                return self.client.hget(self.key("records"), name)
            case "setting":
                return self.client.hget(self.key("settings"), f"concurrency:{name}")
            case "note":
                return self.client.hgetall(self.key("notes"))
            case "attempt":
                return self.client.lrange(self.key(f"attempts:{name}"), 0, -1)
            case _:
                return self.client.hgetall(self.key(f"{kind}:{name}"))

    def close(self) -> None:
        self.client.close()


def sqlite_damager(directory: Path) -> Damager:
    connection = sqlite3.connect(directory / "store.db")
    connection.execute("PRAGMA ignore_check_constraints = ON")
    numbers = ("attempt", "failures", "recoveries", "priority", "run_at", "created_at", "timeout", "delay", "tick_at")
    texts = ("state", "lane", "delivery", "task", "retry", "reason", "origin", "schedule", "error")
    ways = [(name, value) for name in numbers for value in ("some", b"\xff", 2**62, 1.5)]
    ways += [(name, value) for name in texts for value in (b"\xff\x00", "later")]
    return SqlDamager(connection, "?", "perdure_", [*ways, ("args", 5)])


def postgres_damager(directory: Path) -> Damager:
    connection = postgres.connect(directory)
    for name in ("jobs_worker_exactly_while_running", "jobs_end_exactly_when_ended"):
        connection.execute(f"ALTER TABLE jobs DROP CONSTRAINT {name}")
    connection.execute("ALTER TABLE queue_settings DROP CONSTRAINT queue_settings_concurrency_check")
    connection.commit()
    connection.execute("ALTER TABLE jobs DROP CONSTRAINT jobs_lane_check, DROP CONSTRAINT jobs_delivery_check")
    connection.commit()
    numbers = ("run_at", "created_at", "timeout", "delay", "started_at", "replayed_at", "parked_at", "tick_at")
    ways = [(name, 2**62) for name in numbers]
    ways += [(name, "later") for name in ("lane", "delivery", "state", "error", "retry", "reason")]
    return SqlDamager(connection, "%s", "", ways)


def redis_damager(directory: Path) -> Damager:
    return RedisDamager(directory)
