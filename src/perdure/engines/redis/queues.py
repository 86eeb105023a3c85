"""Queues: what each holds, its pause, and what operators have set about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from perdure.clock import from_microseconds, to_microseconds
from perdure.engines.redis.record import to_moment
from perdure.engines.redis.verb import Argument, Call, Verb, optional
from perdure.model.queue_settings import QueueSettings
from perdure.store.reads import QueueInfo

_LINES = 100
"""How many lines one script looks at for their oldest job."""


def queues() -> Verb[list[QueueInfo]]:
    _, counters, paused, said = yield Call("counts")
    known: dict[str, dict[str, Any]] = {}
    lines: list[bytes] = []
    for field, value in zip(counters[::2], counters[1::2], strict=True):
        state, lane, queue = field.split(b":", 2)
        numbers = known.setdefault(queue.decode(), {})
        numbers[state.decode()] = numbers.get(state.decode(), 0) + int(value)
        if lane == b"retry" and state in (b"waiting", b"ready"):
            numbers["retrying"] = numbers.get("retrying", 0) + int(value)
        if state == b"ready":
            lines.append(lane + b":" + queue)
    for queue, value, until in paused:
        paused_at, reason = value.split(b"|", 1)
        known.setdefault(queue.decode(), {}).update(
            is_paused=True,
            paused_at=to_moment(paused_at),
            paused_until=to_moment(until or None),
            pause_reason=reason[1:].decode() if reason else None,
        )
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


def _keep_oldest(numbers: dict[str, Any], run_at: bytes) -> None:
    if run_at:
        moment = from_microseconds(int(run_at))
        numbers["oldest_ready_at"] = min(moment, numbers.get("oldest_ready_at", moment))


def _from_value(value: float | str | None) -> bytes:
    """A setting as text; '' for nothing said."""
    return b"" if value is None else str(int(value) if isinstance(value, bool) else value).encode()


def _to_settings(flat: Sequence[bytes]) -> dict[str, QueueSettings]:
    """What is set, by queue, from `name:queue` and value of each setting."""
    found: dict[str, dict[str, Any]] = {}
    for field, value in zip(flat[::2], flat[1::2], strict=True):
        name, queue = field.decode().split(":", 1)
        found.setdefault(queue, {})[name] = _to_value(name, value)
    return {queue: QueueSettings(**values) for queue, values in found.items()}


def _to_value(name: str, value: bytes) -> float | str:
    match name:
        case "retry_share":
            return float(value)
        case "is_strict":
            return value == b"1"
        case _:
            return "none" if value == b"none" else int(value)
