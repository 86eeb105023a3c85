"""What is kept of an exception: bounded, storable text, whatever the exception does when it is looked at."""

from __future__ import annotations

import hashlib
import re
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, TypeVar

import msgspec

MESSAGE_LIMIT = 4_000
TRACE_LIMIT = 12_000
_NAME_LIMIT = 200
_FRAMES = 30
_DEEPEST_TRACE = 100_000
_MOST_BEHIND = 5
_LINE_LIMIT = 500
_BEHIND_LIMIT = 3_000
_MOST_SEEN = 500

K = TypeVar("K")
V = TypeVar("V")


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One failure: the exception's type, its message, and where it came from."""

    type: str
    """The name as people write it: `ValueError`, `myapp.errors.RateLimited`."""
    message: str
    lineage: tuple[str, ...] = ()
    """The names of the type and its bases, nearest first: what per-error rules are matched against."""
    trace: str = ""
    frame: str = ""
    """The innermost frame in the handler's own code: `module:function`."""
    detail: dict[str, Any] | None = None
    """Plain data about the failure, where its exception brings some: an HTTP answer's status, timing and excerpt."""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type

    def fingerprint(self, task: str) -> str:
        """The name of the group of like failures: task, type, normalised message and own-code frame."""
        parts = [task, self.type, normalise(self.message), self.frame]
        if self.detail is not None and "status" in self.detail:
            # Numbers in messages do not tell groups apart, but a 404 and a 429 are not alike.
            parts.append(str(self.detail["status"]))
        text = "\x00".join(parts)
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


class Detailed(Exception):  # noqa: N818 - a root for errors, none itself
    """An exception about another system, which brings plain data along; where it was raised says nothing about it."""

    def __init__(self, message: str, detail: dict[str, Any]) -> None:
        super().__init__(message)
        self.detail = detail


def capture(error: BaseException) -> Failure:
    """The failure that an exception stands for; never raises, whatever the exception's own methods do."""
    lineage = _lineage(type(error))
    if isinstance(error, Detailed):
        return Failure(type=lineage[0], message=_message(error), lineage=lineage, detail=error.detail)
    origin = _origin(error.__traceback__)
    return Failure(
        type=lineage[0], message=_message(error), lineage=lineage, trace=_trace(error, origin), frame=origin.frame
    )


class _Origin(msgspec.Struct, frozen=True):
    """Where an exception came from: the text of its frames, and the innermost one in the handler's own code."""

    text: str
    frame: str


class _Seen(Generic[K, V]):
    """A bounded memory. When everything fails, it fails in the same few ways, and to describe one costs a lot."""

    def __init__(self) -> None:
        self._known: dict[K, V] = {}

    def get(self, key: K, make: Callable[[], V]) -> V:
        found = self._known.get(key)
        if found is None:
            found = make()
            if len(self._known) >= _MOST_SEEN:
                self._known.clear()
            self._known[key] = found
        return found


_lineages: _Seen[type, tuple[str, ...]] = _Seen()
_origins: _Seen[tuple[Any, ...], _Origin] = _Seen()


def _lineage(kind: type) -> tuple[str, ...]:
    """The names of a type and its bases, nearest first."""

    def name_all() -> tuple[str, ...]:
        return tuple(type_name(base) for base in type.mro(kind) if base is not object)

    try:
        return _lineages.get(kind, name_all)
    except BaseException:  # a metaclass may answer for its hash as it likes
        return name_all()


def _origin(trace: TracebackType | None) -> _Origin:
    """Where a trace leads to; worked out once for each place in the code that raises."""
    place: list[Any] = []
    step = trace
    while step is not None and len(place) < 2 * _FRAMES:
        place += (step.tb_frame.f_code, step.tb_lasti)
        step = step.tb_next

    def describe() -> _Origin:
        return _Origin(_frames(trace), _own_frame(trace))

    return describe() if step is not None else _origins.get(tuple(place), describe)


def type_name(kind: type) -> str:
    """How a class is named in rules and records: builtins bare, all others with their module."""
    try:
        module, name = str(kind.__module__), str(kind.__qualname__)
        return clean(name if module == "builtins" else f"{module}.{name}", _NAME_LIMIT)
    except BaseException:  # a metaclass may make even the name raise anything
        return "Exception"


def clean(text: str, limit: int) -> str:
    """The text without what engines or terminals choke on: NUL, lone surrogates, control characters, length.

    Never longer than `limit` characters and a short note about what was left out.
    """
    # Exactly a str: a subclass could answer for its length and its parts as it likes.
    text = str.__str__(text)
    cleaned = _escape(text[:limit])
    if len(text) <= limit and len(cleaned) <= limit:
        return cleaned
    return f"{cleaned[:limit]}… ({len(text):,} characters in all)"


def normalise(message: str) -> str:
    """The message with what differs from job to job taken out: numbers, ids, addresses, quoted words."""
    text = message[:500]
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    return text


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_VARYING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.I), "<id>"),
    (re.compile(r"0x[0-9a-f]+", re.I), "<address>"),
    (re.compile(r"'[^']{0,200}'|\"[^\"]{0,200}\""), "<text>"),
    (re.compile(r"\b[0-9a-f]{16,}\b", re.I), "<hex>"),
    (re.compile(r"[0-9]+(?:[.,:][0-9]+)*"), "<n>"),
)


def _escape(text: str) -> str:
    if text.isprintable():
        return text  # as most are
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _message(error: BaseException) -> str:
    try:
        return clean(str(error), MESSAGE_LIMIT)
    except BaseException as broken:  # a hostile __str__ may raise anything, SystemExit included
        return f"(its __str__ raised {type_name(type(broken))})"


def _trace(error: BaseException, origin: _Origin) -> str:
    try:
        behind = _behind(error)
        return clean(origin.text + behind, TRACE_LIMIT + _BEHIND_LIMIT) if behind else origin.text
    except BaseException:  # what it was raised from may be as hostile as itself
        return origin.text


def _frames(trace: TracebackType | None) -> str:
    try:
        frames = traceback.extract_tb(trace, limit=-_FRAMES)
        own = [frame for frame in frames if not _is_perdure(frame.filename)]
        # The end of a trace says where it happened, so what must go goes from the beginning.
        return _escape("".join(traceback.format_list(own or frames))[-TRACE_LIMIT:])[-TRACE_LIMIT:]
    except BaseException:  # a broken loader or linecache must not cost the record
        return ""


def _behind(error: BaseException) -> str:
    """The exceptions behind this one, a line each: what it was raised from, or what a group holds."""
    lines: list[str] = []
    seen = {id(error)}
    waiting = _next_behind(error)
    while waiting and len(lines) < _MOST_BEHIND:
        how, other = waiting.pop(0)
        if id(other) in seen:
            continue
        seen.add(id(other))
        lines.append(f"{how} {clean(f'{type_name(type(other))}: {_message(other)}', _LINE_LIMIT)}\n")
        waiting.extend(_next_behind(other))
    return "".join(lines)


def _next_behind(error: BaseException) -> list[tuple[str, BaseException]]:
    if isinstance(error, BaseExceptionGroup):
        return [("holding", each) for each in error.exceptions[:_MOST_BEHIND]]
    if error.__cause__ is not None:
        return [("caused by", error.__cause__)]
    if error.__context__ is not None and not error.__suppress_context__:
        return [("while handling", error.__context__)]
    return []


def _own_frame(trace: TracebackType | None) -> str:
    """The innermost frame outside Perdure, the standard library and packages; else the innermost of all."""
    own, last = None, None
    for _ in range(_DEEPEST_TRACE):
        if trace is None:
            break
        filename = trace.tb_frame.f_code.co_filename
        if not _is_perdure(filename):
            last = trace
            if not any(mark in filename for mark in _FOREIGN):
                own = trace
        trace = trace.tb_next
    found = own or last
    return "" if found is None else _frame_name(found)


def _frame_name(trace: TracebackType) -> str:
    try:
        module = str(trace.tb_frame.f_globals.get("__name__", "?"))
        return clean(f"{module}:{trace.tb_frame.f_code.co_qualname}", _NAME_LIMIT)
    except BaseException:  # a module may have anything for a name
        return ""


_FOREIGN = ("site-packages", "/lib/python", "<frozen ")
_PACKAGE = __file__.rsplit("model", 1)[0]


def _is_perdure(filename: str) -> bool:
    return filename.startswith((f"{_PACKAGE}runtime", f"{_PACKAGE}model"))
