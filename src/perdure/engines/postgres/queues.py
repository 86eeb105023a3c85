"""Queues: what each holds, its pause, and what operators have set about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from perdure.engines.postgres.rows import from_optional_text, from_text, to_optional_text, to_text
from perdure.engines.postgres.verb import Row, Script, Step, Verb
from perdure.engines.queue_columns import from_settings, to_all_settings, to_queues, to_settings
from perdure.model.queue.settings import QueueSettings
from perdure.store.reads import QueueInfo
from perdure.system.clock import to_microseconds


def queues() -> Verb[list[QueueInfo]]:
    return Verb(_queues, is_repeatable=True)


def settings() -> Verb[dict[str, QueueSettings]]:
    return Verb(_settings, is_repeatable=True, plan="settings")


def pause(queue: str, reason: str | None, until: datetime | None) -> Verb[bool]:
    end = None if until is None else to_microseconds(until)
    values = {"queue": from_text(queue), "reason": from_optional_text(reason), "until": end}
    return Verb(lambda: _pause(values))


def resume(queue: str) -> Verb[bool]:
    return Verb(lambda: _resume(queue))


def configure(queue: str, settings: QueueSettings, only: Sequence[str]) -> Verb[QueueSettings]:
    values = {"queue": from_text(queue), **from_settings(settings, only)}
    # Setting the same once more changes nothing, so it may be repeated when nobody knows whether it was done.
    return Verb(lambda: _configure(values), is_repeatable=True)


def _queues() -> Script[list[QueueInfo]]:
    numbers = yield Step("queues")
    paused = yield Step("queues_paused")
    settings = yield Step("settings")
    reasons = [(*row[:3], to_optional_text(row[3])) for row in paused]
    return to_queues(_named(numbers), _named(reasons), _named(settings))


def _settings() -> Script[dict[str, QueueSettings]]:
    return to_all_settings(_named((yield Step("settings"))))


def _pause(values: dict[str, Any]) -> Script[bool]:
    return len((yield Step("pause", values))) == 1


def _resume(queue: str) -> Script[bool]:
    return (yield Step("resume", {"queue": from_text(queue)})) == [(True,)]


def _configure(values: dict[str, Any]) -> Script[QueueSettings]:
    (row,) = yield Step("configure", values)
    return to_settings(row)


def _named(rows: Iterable[Row]) -> list[Row]:
    """The rows with their first column, a queue's name, as it was given."""
    return [(to_text(row[0]), *row[1:]) for row in rows]
