"""Sets aside records that this version cannot read: the log names each once, the reader goes on, the record stays.

A record may come from a later version, or be damaged. One of them must not end a worker or hide the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from perdure.errors import RecordDamaged
from perdure.model.failure import clean
from perdure.model.job import Job
from perdure.model.state import DELIVERIES, LANES, STATES
from perdure.store.audit import Fault, RecordKind

R = TypeVar("R")
T = TypeVar("T")

UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, LookupError, OverflowError, AttributeError)
"""What decoding a record that is not as expected raises."""
_MOST_NAMED = 10_000
"""How many records are remembered as named in the log; beyond that they are forgotten and may be named again."""
_CANNOT = "it cannot be read: "
_LONGEST_NAME = 100
_LONGEST_PROBLEM = 300

_log = logging.getLogger("perdure")
_named: set[tuple[str, str, str]] = set()
_collected: ContextVar[list[Fault] | None] = ContextVar("perdure_set_aside", default=None)


@contextmanager
def collecting() -> Iterator[list[Fault]]:
    """Collect the records that are set aside inside, instead of naming them in the log; for audits."""
    found: list[Fault] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def readable(kind: RecordKind, name: str | bytes, decode: Callable[[], T]) -> T | None:
    """What a record decodes to; None when it cannot be read, and is therefore set aside."""
    try:
        return decode()
    except UNREADABLE as error:
        set_aside(kind, name, error)
        return None


def each_readable(
    kind: RecordKind, rows: Iterable[R], name_of: Callable[[R], str | bytes], decode: Callable[[R], T]
) -> list[T]:
    """What the rows decode to, without those that cannot be read."""
    found: list[T] = []
    for row in rows:
        try:
            found.append(decode(row))
        except UNREADABLE as error:
            set_aside(kind, name_of(row), error)
    return found


def set_aside(kind: RecordKind, name: str | bytes, error: BaseException) -> None:
    """Name a record in the log that cannot be read, the first time it is met in this process."""
    shown, problem = to_name(name), to_problem(error)
    found = _collected.get()
    if found is not None:
        found.append(Fault(kind=kind, name=shown, problem=f"{_CANNOT}{problem}"))
        return
    # Without a lock, which a fork could leave locked: two threads at once name a record twice at worst.
    if (kind, shown, problem) in _named:
        return
    if len(_named) >= _MOST_NAMED:
        _named.clear()
    _named.add((kind, shown, problem))
    _log.warning(
        "The %s %s cannot be read and is set aside (%s). It is left as it is; `perdure doctor` says what to do.",
        kind,
        shown,
        problem,
    )


def one_of(value: Any, known: Container[str], what: str) -> Any:
    """The value, if it is one that this version knows; raises ValueError, so that the record is set aside."""
    if value not in known:
        raise ValueError(f"{what} is {value!r:.80}, which this version does not know")
    return value


def checked_job(job: Job) -> Job:
    """The job, if its values can be those of a job; raises ValueError or TypeError, so that it is set aside."""
    one_of(job.state, STATES, "its state")
    one_of(job.lane, LANES, "its lane")
    one_of(job.delivery, DELIVERIES, "its delivery")
    for name in ("id", "task", "queue"):
        if not isinstance(getattr(job, name), str):
            raise TypeError(f"its {name} is no text")
    for name in ("priority", "attempt", "failures", "recoveries"):
        if not isinstance(getattr(job, name), int):
            raise TypeError(f"its {name} is no whole number")
    for name in ("origin", "unique", "retry", "reason", "worker", "schedule"):
        if not isinstance(getattr(job, name), str | None):
            raise TypeError(f"its {name} is no text")
    if not isinstance(job.max_attempts, int | None):
        raise TypeError("its max_attempts is no whole number")
    return job


def moment_or_none(decode: Callable[[], datetime | None]) -> datetime | None:
    """When the next of something is due; None when that cannot be read: its reader looks again at its next poll."""
    try:
        return decode()
    except UNREADABLE:
        return None


def damaged_note(kind: str, key: str) -> RecordDamaged:
    """The error for a note that stands and cannot be read."""
    return RecordDamaged(
        f"The note {to_name(f'{kind}:{key}')} cannot be read.",
        "It is left as it is and goes when its time is over; use another idempotency key until then.",
    )


def to_name(name: object) -> str:
    """The name of a record as it is shown, whatever the engine gave for it."""
    text = name.decode(errors="backslashreplace") if isinstance(name, bytes) else str(name)
    return clean(text, _LONGEST_NAME)


def to_problem(error: BaseException) -> str:
    """Why a record cannot be read, in one line."""
    text = clean(" ".join(str(error).split()), _LONGEST_PROBLEM)
    return text if isinstance(error, msgspec.MsgspecError) and text else f"{type(error).__name__}: {text}"


def why_unreadable(found: Sequence[Fault]) -> str | None:
    """Why the record that was looked at cannot be read; None when it can."""
    return found[0].problem.removeprefix(_CANNOT) if found else None


def forget_named() -> None:
    """Name every record anew; for tests."""
    _named.clear()
