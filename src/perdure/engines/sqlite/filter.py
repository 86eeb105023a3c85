"""A JobFilter as parameters of the statements that take one, and the variant of the statement that is fast.

SQLite uses a partial index only where the statement names the state itself; so each statement with a filter comes in
one variant per state, one for ids and one for all jobs.
"""

from __future__ import annotations

from typing import Any

from perdure.clock import to_microseconds
from perdure.engines.sqlite.rows import from_ids
from perdure.engines.sqlite.sql import statement
from perdure.model.state import STATES
from perdure.store.reads import JobFilter

_AMONG_ALL = "TRUE"
_AMONG_IDS = "id IN (SELECT value FROM JSON_EACH(:ids))"
_AMONG_STATE = {state: f"state = '{state}'" for state in STATES}
# Most jobs have succeeded: walking the ids from the newest finds a page sooner than any index would.
_AMONG_STATE["succeeded"] = _AMONG_ALL


def filtered(name: str, where: JobFilter) -> str:
    """The variant of a statement that suits the filter."""
    if where.ids is not None:
        return statement(name, among=_AMONG_IDS)
    return statement(name, among=_AMONG_ALL if where.state is None else _AMONG_STATE[where.state])


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
        "before": None if where.before is None else to_microseconds(where.before),
        "after": None if where.after is None else to_microseconds(where.after),
        **more,
    }
