"""How commands print: JSON for programs, rich tables on a terminal, plain aligned text elsewhere.

Whatever came from a job is made harmless first: no control or escape character of it reaches the terminal.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import click

from perdure.text.plural import plural as plural  # the same for every command
from perdure.text.printable import UNSAFE, json_escaped

_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
_SPACE = re.compile(r"\s+")
_GAP = 2
_LEAST = 12
_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_STYLES = {
    "succeeded": "green",
    "running": "cyan",
    "ready": "blue",
    "waiting": "yellow",
    "dead": "red",
    "cancelled": "bright_black",
    "paused": "yellow",
    "stale": "red",
    "broken": "red",
    "orphaned": "red",
    "active": "green",
    "problem": "red",
    "note": "yellow",
    "ok": "green",
}


class Column(NamedTuple):
    """A column: its heading, whether it is right-aligned, and what may happen to it on a narrow terminal."""

    heading: str
    is_number: bool = False
    is_flexible: bool = False
    """It may be cut to fit."""
    is_wrapped: bool = False
    """It may go over several lines to fit."""


def emit(document: Any) -> None:
    """Print a value as JSON for programs; what a terminal could take as a command stays escaped."""
    text = json.dumps(document, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)
    click.echo(json_escaped(text.encode("utf-8", "backslashreplace").decode()))


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their headings."""
    safe = [[one_line(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _rich_table(columns, safe)
    else:
        _plain_table(columns, safe)


def fields(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names and values, one pair a line, values in one column, their further lines indented."""
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        first, *more = harmless(value).split("\n")
        heading = click.style(name.ljust(width), bold=True) if has_colour() else name.ljust(width)
        click.echo(f"{heading}  {_coloured(first)}".rstrip())
        for line in more:
            click.echo(f"{' ' * width}  {line}".rstrip())


def heading(text: str) -> None:
    """Print a heading after an empty line."""
    click.echo()
    click.echo(click.style(text, bold=True) if has_colour() else text)


def say(text: str) -> None:
    """Print a line of prose."""
    click.echo(harmless(text))


def aside(text: str) -> None:
    """Print to stderr what is for people only, so that stdout stays clean for pipes."""
    click.echo(harmless(text), err=True)


def harmless(text: str) -> str:
    """The text without escape sequences and control characters; line ends and tabs stay."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if text.isprintable() else UNSAFE.sub(_kept, _ESCAPE_SEQUENCE.sub("", text))


def one_line(text: str, limit: int = 500) -> str:
    """The text harmless, on one line, and not endless."""
    line = _SPACE.sub(" ", harmless(text)).strip()
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def has_colour() -> bool:
    """Whether stdout shows colours and wants them."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def can_draw() -> bool:
    """Whether stdout can show block characters."""
    return (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") in (
        "utf8",
        "utf16",
        "utf32",
    )


def absolute(moment: datetime | None) -> str:
    """A moment in UTC to the second."""
    return "-" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def relative(moment: datetime | None, now: datetime) -> str:
    """How far off a moment is: `in 5m`, `3s ago`."""
    if moment is None:
        return "-"
    distance = moment - now
    if abs(distance) < timedelta(milliseconds=500):
        return "now"
    return f"in {rough(distance)}" if distance > timedelta(0) else f"{rough(-distance)} ago"


def when(moment: datetime | None, now: datetime) -> str:
    """A moment, absolute and relative."""
    return "-" if moment is None else f"{absolute(moment)} ({relative(moment, now)})"


def rough(duration: timedelta | None) -> str:
    """A duration as people say it: its two largest units; below ten seconds with a fraction."""
    if duration is None:
        return "-"
    seconds = duration.total_seconds()
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms" if seconds >= 0.0005 else "0s"
    if seconds < 10:
        return f"{seconds:.1f}".rstrip("0").rstrip(".") + "s"
    left = round(seconds)
    parts = []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
        elif parts:
            break
    return "".join(parts[:2])


def _kept(found: re.Match[str]) -> str:
    return found[0] if found[0] in "\n\t" else ""


def _coloured(value: str) -> str:
    colour = _STYLES.get(value.split(" ")[0])
    return click.style(value, fg=colour) if colour and has_colour() else value


def _rich_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console  # only for a terminal: rich is slow to import
    from rich.table import Table
    from rich.text import Text

    console = Console(no_color=not has_colour(), highlight=False)
    widths = _fitted(columns, rows, console.width)
    # Left to itself rich would drop columns for which there is no room; the terminal's own line break is better.
    console.width = max(console.width, sum(widths) + _GAP * len(widths))
    shown = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
    for column, width in zip(columns, widths, strict=True):
        shown.add_column(
            column.heading,
            justify="right" if column.is_number else "left",
            width=width,
            no_wrap=not column.is_wrapped,
            overflow="fold" if column.is_wrapped else "ellipsis",
        )
    for row in rows:
        shown.add_row(*(Text(cell, style=_STYLES.get(cell.split(" ")[0], "")) for cell in row))
    console.print(shown)


def _plain_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    widths = _widths(columns, rows)
    for row in [[column.heading for column in columns], *rows]:
        cells = [
            cell.rjust(width) if column.is_number else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        ]
        click.echo("  ".join(cells).rstrip())


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(column.heading), *(len(row[place]) for row in rows), 0) for place, column in enumerate(columns)]


def _fitted(columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Widths that fit the room, the widest of the yielding columns giving way first, down to a readable least."""
    widths = _widths(columns, rows)
    yielding = [place for place, column in enumerate(columns) if column.is_flexible or column.is_wrapped]
    while sum(widths) + _GAP * len(widths) > room:
        widest = max(yielding, key=lambda place: widths[place], default=None)
        if widest is None or widths[widest] <= _LEAST:
            break
        widths[widest] -= 1
    return widths
