"""A JobFilter as parameters of the statements that take one, and the variant of the statement that is fast.

SQLite uses a partial index only where the statement names the state itself; so each statement with a filter comes in
one variant per state, one for ids, one for a schedule and one for all jobs.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from perdure.engines.sqlite.rows import from_ids
from perdure.engines.sqlite.sql import statement
from perdure.store.reads import JobFilter
from perdure.system.clock import to_microseconds

FEW = 2000
"""So many jobs are sorted sooner than they are found among all others."""

_AMONG_ALL = {"among": "TRUE", "through": ""}
_AMONG_IDS = {"among": "id IN (SELECT value FROM JSON_EACH(:ids))", "through": ""}
_AMONG_STATE = {
    state: {"among": f"state = '{state}'", "through": f"INDEXED BY perdure_jobs_{state}"}
    for state in ("waiting", "ready", "running", "dead", "cancelled")
}
_AMONG_SCHEDULE = {"among": "schedule = :schedule", "through": "INDEXED BY perdure_jobs_schedule"}
_IN_ORDER = ("dead", "cancelled")
"""The states whose partial index is in the order of ids."""


def filtered(name: str, where: JobFilter) -> str:
    """The variant of a statement that looks at no more jobs than it must."""
    if where.ids is not None:
        return statement(name, **_AMONG_IDS)
    if where.schedule is not None:
        return statement(name, **_AMONG_SCHEDULE)
    return statement(name, **_AMONG_STATE.get(where.state or "", _AMONG_ALL))


def filtered_in_order(connection: sqlite3.Connection, name: str, where: JobFilter) -> str:
    """The variant that finds the newest jobs soonest: by id, unless those of the state are few."""
    if where.ids is None and where.schedule is None and where.state in _AMONG_STATE and where.state not in _IN_ORDER:
        narrow = _AMONG_STATE[where.state]
        (count,) = connection.execute(statement("few", **narrow), {"limit": FEW}).fetchone()
        if count == FEW:
            return statement(name, **_AMONG_ALL)
    return filtered(name, where)


def parameters(where: JobFilter, **more: Any) -> dict[str, Any]:
    """The filter's parameters, and more."""
    return {
        "ids": None if where.ids is None else from_ids(where.ids),
        "state": where.state,
        "task": where.task,
        "queue": where.queue,
        "error": where.error,
        "group": where.group,
        "reason": where.reason,
        "schedule": where.schedule,
        "forward": where.forward,
        "before": None if where.before is None else to_microseconds(where.before),
        "after": None if where.after is None else to_microseconds(where.after),
        **more,
    }
