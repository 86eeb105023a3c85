"""The traceback of a user's module that cannot be imported: the user's own frames, without Perdure's."""

from __future__ import annotations

import importlib
import traceback
from pathlib import Path

import perdure

_PACKAGE = str(Path(perdure.__file__).parent)


def own_trace(error: BaseException) -> str:
    """The traceback as Python prints it, from the user's first frame on; empty when no frame is the user's."""
    try:
        found = traceback.TracebackException.from_exception(error)
    except Exception:  # an exception may answer for itself as it likes
        return ""
    is_syntax = isinstance(error, SyntaxError)
    has_frames = _cut(found)
    return "".join(found.format()) if has_frames or is_syntax else ""


def own_place(error: BaseException) -> tuple[str, int] | None:
    """File and line of the user's innermost frame, or of the text that is no Python; None when there is none."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return error.filename, error.lineno
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_own(frame.filename)]
    return (own[-1].filename, own[-1].lineno or 0) if own else None


def one_line(error: BaseException) -> str:
    """The exception's type and the first line of its message."""
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be read)"
    return f"{type(error).__name__}: {text.strip()}".splitlines()[0].rstrip(": ")


def _cut(found: traceback.TracebackException) -> bool:
    """Take out what is not the user's, here and in what lies behind; whether anything here is left."""
    for other in (found.__cause__, found.__context__, *(found.exceptions or ())):
        if other is not None:
            _cut(other)
    found.stack[:] = [frame for frame in found.stack if _is_own(frame.filename)]
    has_frames = bool(found.stack)
    if not has_frames:
        # Without it, the heading of the frames is left out as well.
        found.stack = None  # type: ignore[assignment]
    return has_frames


def _is_own(filename: str) -> bool:
    return not filename.startswith((_PACKAGE, "<frozen importlib")) and filename != importlib.__file__
