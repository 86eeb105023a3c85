"""Queues: what each holds, its pause, and what operators have set about it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from perdure.engines.queue_columns import from_settings, to_all_settings, to_queues, to_settings
from perdure.engines.sqlite.rows import read_rows
from perdure.engines.sqlite.sql import statement
from perdure.model.queue.settings import QueueSettings
from perdure.store.reads import QueueInfo
from perdure.system.clock import to_microseconds


def queues(connection: sqlite3.Connection, now: int) -> list[QueueInfo]:
    numbers = read_rows(connection, statement("queues"))
    paused = read_rows(connection, statement("queues_paused"), {"now": now})
    return to_queues(numbers, paused, read_rows(connection, statement("settings")))


def settings(connection: sqlite3.Connection, now: int) -> dict[str, QueueSettings]:
    return to_all_settings(read_rows(connection, statement("settings")))


def pause(connection: sqlite3.Connection, now: int, queue: str, reason: str | None, until: datetime | None) -> bool:
    end = None if until is None else to_microseconds(until)
    values = {"queue": queue, "reason": reason, "until": end, "now": now}
    return connection.execute(statement("pause"), values).rowcount == 1


def resume(connection: sqlite3.Connection, now: int, queue: str) -> bool:
    rows = connection.execute(statement("resume"), {"queue": queue}).fetchall()
    return any(paused_until is None or paused_until > now for (paused_until,) in rows)


def configure(
    connection: sqlite3.Connection, now: int, queue: str, settings: QueueSettings, only: Sequence[str]
) -> QueueSettings:
    (row,) = connection.execute(statement("configure"), {"queue": queue, **from_settings(settings, only)}).fetchall()
    connection.execute(statement("configure_forget"), {"queue": queue})
    return to_settings(row)
