"""Small pictures of text: jitter bands, and bars to scale."""

from __future__ import annotations

from datetime import timedelta

from perdure.admin.forecast import Span
from perdure.cli.output import can_draw


def band(span: Span, scale: timedelta, width: int) -> str:
    """The place of a jitter band on a line from nothing to `scale`, with a mark at the expected wait."""
    if not scale:
        return ""
    filled, mark = ("█", "┃") if can_draw() else ("=", "|")
    start = _place(span.least, scale, width)
    end = max(start + 1, _place(span.greatest, scale, width))
    line = [filled if start <= place < end else " " for place in range(width)]
    if span.least != span.greatest:
        line[min(_place(span.expected, scale, width), width - 1)] = mark
    return _visible("".join(line).rstrip())


def bar(count: float, highest: float, width: int) -> str:
    """A bar to scale; the least there is of anything shows."""
    return ("█" if can_draw() else "#") * _length(count, highest, width)


def double_bar(first: float, second: float, highest: float, width: int) -> str:
    """Two amounts on one bar to scale, the second in a lighter shade."""
    whole = _length(first + second, highest, width)
    part = min(_length(first, highest, width), whole - (1 if second else 0)) if first else 0
    filled, light = ("█", "░") if can_draw() else ("#", "-")
    return filled * part + light * (whole - part)


def _length(count: float, highest: float, width: int) -> int:
    return max(1, round(count / highest * width)) if count else 0


def _place(duration: timedelta, scale: timedelta, width: int) -> int:
    return min(width, round(duration / scale * width))


def _visible(line: str) -> str:
    # Tables collapse runs of spaces; what stands before the band must not move.
    return line.replace(" ", "·" if can_draw() else ".")
