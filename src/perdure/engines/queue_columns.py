"""What operators say about a queue as the columns of the SQL engines hold it, and a queue's numbers put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from perdure.engines.set_aside import one_of, readable
from perdure.model.queue.settings import FIELDS, LIMITS, Cap, QueueSettings
from perdure.model.state import STATES
from perdure.store.reads import QueueInfo
from perdure.system.clock import from_microseconds

NO_LIMIT = -1
"""How a column writes explicitly no limit; null stands for nothing said."""


def from_settings(settings: QueueSettings, only: Sequence[str]) -> dict[str, Any]:
    """The parameters of configure: each value, and whether it is to be set."""
    values: dict[str, Any] = {}
    for name in FIELDS:
        value = getattr(settings, name)
        values[name] = NO_LIMIT if value == "none" else value
        values[f"sets_{name}"] = name in only
    return values


def to_settings(columns: Sequence[Any], queue: str = "") -> QueueSettings:
    """The settings of the columns retry_share, is_strict, max_retries_running, concurrency of a queue."""
    values: dict[str, Any] = {}
    for field, column in zip(FIELDS, columns, strict=True):
        value = readable("setting", f"{field}:{queue}", partial(_to_value, field, column))
        if value is not None:
            values[field] = value
    return QueueSettings(**values)


def to_all_settings(rows: Iterable[Sequence[Any]]) -> dict[str, QueueSettings]:
    """What is set, by queue; rows of nulls say nothing."""
    return {name: to_settings(columns, name) for name, *columns in rows if any(value is not None for value in columns)}


def to_queues(
    numbers: Iterable[Sequence[Any]], paused: Iterable[Sequence[Any]], settings: Iterable[Sequence[Any]]
) -> list[QueueInfo]:
    """The queues by name, from rows of queues, queues_paused and settings."""
    found: dict[str, dict[str, Any]] = {}
    for queue, state, lane, jobs, earliest in numbers:
        if readable("queue", queue, partial(_checked_name, queue)) is None:
            continue
        if readable("job", f"of queue {queue}", partial(one_of, state, STATES, "its state")) is None:
            continue
        known = found.setdefault(queue, {})
        known[state] = known.get(state, 0) + jobs
        if lane == "retry" and state in ("waiting", "ready"):
            known["retrying"] = known.get("retrying", 0) + jobs
        if state == "ready":
            oldest = readable("job", f"of queue {queue}", partial(from_microseconds, earliest))
            if oldest is None:
                continue
            known["oldest_ready_at"] = min(oldest, known.get("oldest_ready_at", oldest))
    for queue, paused_at, paused_until, reason in paused:
        found.setdefault(queue, {}).update(
            is_paused=True,
            **(readable("pause", queue, partial(_to_pause, paused_at, paused_until, reason)) or {}),
        )
    for queue, said in to_all_settings(settings).items():
        found.setdefault(queue, {})["settings"] = said
    return [QueueInfo(name=name, **found[name]) for name in sorted(found)]


def _checked_name(queue: object) -> str:
    if not isinstance(queue, str):
        raise TypeError("its name is no text")
    return queue


def _to_pause(paused_at: int, paused_until: int | None, reason: str | None) -> dict[str, Any]:
    return {
        "paused_at": from_microseconds(paused_at),
        "paused_until": None if paused_until is None else from_microseconds(paused_until),
        "pause_reason": reason,
    }


def _to_value(field: str, column: Any) -> Any:
    """The value of a setting; raises ValueError or TypeError for one that a queue cannot have."""
    if column is None:
        return None
    if field == "is_strict":
        return bool(column)
    value: Cap | float = "none" if column == NO_LIMIT and field in LIMITS else column
    values: dict[str, Any] = {field: value}
    QueueSettings(**values)
    return value
