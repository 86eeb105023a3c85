"""A JobFilter as parameters of the statements that take one."""

from __future__ import annotations

from typing import Any

from perdure.engines.postgres.rows import folded, from_ids, from_optional_text
from perdure.store.reads import JobFilter
from perdure.system.clock import to_microseconds


def parameters(where: JobFilter, **more: Any) -> dict[str, Any]:
    """The filter's parameters, and more."""
    return {
        "ids": None if where.ids is None else from_ids(where.ids),
        "state": where.state,
        "task": from_optional_text(where.task),
        "queue": from_optional_text(where.queue),
        "error": None if where.error is None else folded(where.error),
        "group": from_optional_text(where.group),
        "reason": from_optional_text(where.reason),
        "schedule": from_optional_text(where.schedule),
        "forward": where.forward,
        "before": None if where.before is None else to_microseconds(where.before),
        "after": None if where.after is None else to_microseconds(where.after),
        **more,
    }
