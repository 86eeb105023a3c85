"""What is kept of an exception: plain, bounded, storable text, whatever the exception does when it is looked at."""

from __future__ import annotations

import hashlib
import re
import traceback
from types import TracebackType

import msgspec

MESSAGE_LIMIT = 4_000
TRACE_LIMIT = 12_000
_NAME_LIMIT = 200
_FRAMES = 30


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

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type

    def fingerprint(self, task: str) -> str:
        """The name of the group of like failures: task, type, normalised message and own-code frame."""
        text = "\x00".join((task, self.type, normalise(self.message), self.frame))
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def capture(error: BaseException) -> Failure:
    """The failure that an exception stands for; never raises, whatever the exception's own methods do."""
    return Failure(
        type=type_name(type(error)),
        message=_message(error),
        lineage=tuple(type_name(base) for base in type(error).__mro__ if base is not object),
        trace=_trace(error),
        frame=_own_frame(error.__traceback__),
    )


def type_name(kind: type) -> str:
    """How a class is named in rules and records: builtins bare, all others with their module."""
    try:
        module, name = str(kind.__module__), str(kind.__qualname__)
    except Exception:
        return "Exception"
    return clean(name if module == "builtins" else f"{module}.{name}", _NAME_LIMIT)


def clean(text: str, limit: int) -> str:
    """The text without what engines or terminals choke on: NUL, lone surrogates, control characters, excess length."""
    if len(text) > limit:
        text = f"{text[:limit]}… ({len(text):,} characters in all)"
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


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


def _message(error: BaseException) -> str:
    try:
        return clean(str(error), MESSAGE_LIMIT)
    except BaseException as broken:  # a hostile __str__ may raise anything, SystemExit included
        return f"(its __str__ raised {type_name(type(broken))})"


def _trace(error: BaseException) -> str:
    try:
        frames = traceback.extract_tb(error.__traceback__, limit=-_FRAMES)
        own = [frame for frame in frames if not _is_perdure(frame.filename)]
        text = "".join(traceback.format_list(own or frames))
    except BaseException:  # a broken loader or linecache must not cost the record
        return ""
    return clean(text, TRACE_LIMIT)


def _own_frame(trace: TracebackType | None) -> str:
    """The innermost frame outside Perdure, the standard library and installed packages; else the innermost."""
    own, last = "", ""
    for _ in range(10_000):
        if trace is None:
            break
        code = trace.tb_frame.f_code
        module = str(trace.tb_frame.f_globals.get("__name__", "?"))
        name = f"{module}:{code.co_qualname}"
        if not _is_perdure(code.co_filename):
            last = name
            if "site-packages" not in code.co_filename and "/lib/python" not in code.co_filename:
                own = name
        trace = trace.tb_next
    return clean(own or last, _NAME_LIMIT)


_PACKAGE = __file__.rsplit("model", 1)[0]


def _is_perdure(filename: str) -> bool:
    return filename.startswith((f"{_PACKAGE}runtime", f"{_PACKAGE}model"))
