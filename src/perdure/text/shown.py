"""Shows a caller's value inside an error message: short, on one line, whatever the value is."""

from __future__ import annotations

_WIDTH = 60


def shown(value: object) -> str:
    """The value's repr, cut to fit a sentence; its type's name where the repr fails."""
    try:
        text = repr(value)
    except Exception:  # a broken __repr__, or a whole number with too many digits to print
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"
