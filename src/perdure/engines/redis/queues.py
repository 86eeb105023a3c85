"""Queues: what each holds, its pause, and what operators have set about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from perdure.engines.redis.record import to_moment
from perdure.engines.redis.rows import to_count
from perdure.engines.redis.verb import Argument, Call, Verb, optional
from perdure.engines.set_aside import one_of, readable
from perdure.model.queue.settings import FIELDS, QueueSettings
from perdure.model.state import ENQUEUED, LANES, STATES
from perdure.store.reads import QueueInfo
from perdure.system.clock import to_microseconds

_LINES = 100
"""How many lines one script looks at for their oldest job."""


def queues() -> Verb[list[QueueInfo]]:
    _, counters, paused, said = yield Call("counts")
    known: dict[str, dict[str, Any]] = {}
    lines: list[bytes] = []
    for field, value in zip(counters[::2], counters[1::2], strict=True):
        counted = readable("counter", field, partial(_to_line, field))
        if counted is None:
            continue
        (state, lane, queue), number = counted, to_count(field, value)
        numbers = known.setdefault(queue, {})
        numbers[state] = numbers.get(state, 0) + number
        if lane == "retry" and state in ENQUEUED:
            numbers["retrying"] = numbers.get("retrying", 0) + number
        if state == "ready":
            lines.append(field.removeprefix(b"ready:"))
    for queue, value, until in paused:
        # A pause that cannot be read is a pause all the same.
        pause = readable("pause", queue, partial(_to_pause, value, until))
        known.setdefault(queue.decode(errors="replace"), {}).update({"is_paused": True, **(pause or {})})
    for name, settings in _to_settings(said).items():
        known.setdefault(name, {})["settings"] = settings
    for first in range(0, len(lines), _LINES):
        page = lines[first : first + _LINES]
        found = yield Call("oldest", page)
        for line, run_at in zip(page, found, strict=True):
            _keep_oldest(known[line.split(b":", 1)[1].decode()], run_at)
    return [QueueInfo(name=name, **known[name]) for name in sorted(known)]


def settings() -> Verb[dict[str, QueueSettings]]:
    return _to_settings((yield Call("settings")))


def pause(queue: str, reason: str | None, until: datetime | None) -> Verb[bool]:
    end: Argument = b"" if until is None else to_microseconds(until)
    changed = yield Call("pause", (queue.encode(), optional(reason), end), is_write=True, is_repeatable=False)
    return bool(changed)


def resume(queue: str) -> Verb[bool]:
    changed = yield Call("resume", (queue.encode(),), is_write=True, is_repeatable=False)
    return bool(changed)


def configure(queue: str, settings: QueueSettings, only: Sequence[str]) -> Verb[QueueSettings]:
    arguments: list[Argument] = [queue.encode()]
    for name in only:
        arguments += (name, _from_value(getattr(settings, name)))
    said = yield Call("configure", arguments, is_write=True)
    return _to_settings(said).get(queue, QueueSettings())


def _to_line(field: bytes) -> tuple[str, str, str]:
    """State, lane and queue of a counter."""
    state, lane, queue = field.decode().split(":", 2)
    return one_of(state, STATES, "its state"), one_of(lane, LANES, "its lane"), queue


def _to_pause(value: bytes, until: bytes) -> dict[str, Any]:
    paused_at, reason = value.split(b"|", 1)
    return {
        "paused_at": to_moment(paused_at),
        "paused_until": to_moment(until or None),
        "pause_reason": reason[1:].decode() if reason else None,
    }


def _keep_oldest(numbers: dict[str, Any], run_at: bytes) -> None:
    moment = readable("queue", run_at, lambda: to_moment(run_at or None))
    if moment is not None:
        numbers["oldest_ready_at"] = min(moment, numbers.get("oldest_ready_at", moment))


def _from_value(value: float | str | None) -> bytes:
    """A setting as text; '' for nothing said."""
    return b"" if value is None else str(int(value) if isinstance(value, bool) else value).encode()


def _to_settings(flat: Sequence[bytes]) -> dict[str, QueueSettings]:
    """What is set, by queue, from `name:queue` and value of each setting."""
    found: dict[str, dict[str, Any]] = {}
    for field, value in zip(flat[::2], flat[1::2], strict=True):
        setting = readable("setting", field, partial(_to_setting, field, value))
        if setting is not None:
            queue, name, said = setting
            found.setdefault(queue, {})[name] = said
    return {queue: QueueSettings(**values) for queue, values in found.items()}


def _to_setting(field: bytes, value: bytes) -> tuple[str, str, float | str]:
    """Queue, name and value of a setting; raises ValueError for one that a queue cannot have."""
    name, queue = field.decode().split(":", 1)
    values: dict[str, Any] = {name: _to_value(one_of(name, FIELDS, "the setting"), value)}
    QueueSettings(**values)
    return queue, name, values[name]


def _to_value(name: str, value: bytes) -> float | str:
    match name:
        case "retry_share":
            return float(value)
        case "is_strict":
            return bool(one_of(value.decode(), ("0", "1"), "is_strict") == "1")
        case _:
            return "none" if value == b"none" else int(value)
