"""What operators say about a queue as the columns of the SQL engines hold it, and a queue's numbers put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from perdure.clock import from_microseconds
from perdure.model.queue_settings import FIELDS, Cap, QueueSettings
from perdure.store.reads import QueueInfo

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


def to_settings(columns: Sequence[Any]) -> QueueSettings:
    """The settings of the columns retry_share, is_strict, max_retries_running, concurrency."""
    share, is_strict, max_retries_running, concurrency = columns
    return QueueSettings(
        retry_share=share,
        is_strict=None if is_strict is None else bool(is_strict),
        max_retries_running=_to_cap(max_retries_running),
        concurrency=_to_cap(concurrency),
    )


def to_all_settings(rows: Iterable[Sequence[Any]]) -> dict[str, QueueSettings]:
    """What is set, by queue; rows of nulls say nothing."""
    return {name: to_settings(columns) for name, *columns in rows if any(value is not None for value in columns)}


def to_queues(
    numbers: Iterable[Sequence[Any]], paused: Iterable[Sequence[Any]], settings: Iterable[Sequence[Any]]
) -> list[QueueInfo]:
    """The queues by name, from rows of queues, queues_paused and settings."""
    found: dict[str, dict[str, Any]] = {}
    for queue, state, lane, jobs, earliest in numbers:
        known = found.setdefault(queue, {})
        known[state] = known.get(state, 0) + jobs
        if lane == "retry" and state in ("waiting", "ready"):
            known["retrying"] = known.get("retrying", 0) + jobs
        if state == "ready":
            oldest = from_microseconds(earliest)
            known["oldest_ready_at"] = min(oldest, known.get("oldest_ready_at", oldest))
    for queue, paused_at, paused_until, reason in paused:
        found.setdefault(queue, {}).update(
            is_paused=True,
            paused_at=from_microseconds(paused_at),
            paused_until=None if paused_until is None else from_microseconds(paused_until),
            pause_reason=reason,
        )
    for queue, said in to_all_settings(settings).items():
        found.setdefault(queue, {})["settings"] = said
    return [QueueInfo(name=name, **found[name]) for name in sorted(found)]


def _to_cap(column: int | None) -> Cap | None:
    return "none" if column == NO_LIMIT else column
