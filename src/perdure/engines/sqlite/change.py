"""Changes jobs that have not started: change."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from msgspec import UNSET

from perdure.engines.sqlite.rows import from_duration, from_json_text, from_moment
from perdure.engines.sqlite.sql import statement
from perdure.model.change import Change
from perdure.model.job import JobId
from perdure.store.jobs import ChangeAnswer


def change(connection: sqlite3.Connection, now: int, ids: Sequence[JobId], change: Change) -> list[ChangeAnswer]:
    """Make waiting and ready jobs as the change says."""
    values = _values(change, now)
    return [_change(connection, {"id": job_id, **values}) for job_id in ids]


def _change(connection: sqlite3.Connection, values: dict[str, Any]) -> ChangeAnswer:
    if connection.execute(statement("change"), values).rowcount == 1:
        return "changed"
    found = connection.execute(statement("state"), {"id": values["id"]}).fetchone()
    return "not found" if found is None else "wrong state"


def _values(change: Change, now: int) -> dict[str, Any]:
    delay = from_duration(change.delay)
    return {
        "now": now,
        "run_at": from_moment(change.run_at) if delay is None else now + delay,
        "priority": change.priority,
        "queue": change.queue,
        "has_limit": change.max_attempts is not UNSET,
        "max_attempts": None if change.max_attempts is UNSET else change.max_attempts,
        "args": None if change.args is None else from_json_text(change.args),
        "delivery": change.delivery,
    }
