"""What the demo prints before and after the run: the opening, the books, and what to try next."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from perdure.cli.demo_books import Books, Check
from perdure.cli.demo_run import WORKERS, Played
from perdure.cli.demo_tasks import LEASE, store_url

_MOST_FAULTS = 5


def print_opening(jobs: int, stream: TextIO) -> None:
    """Say what is about to happen."""
    _print(stream, f"{jobs} jobs, {WORKERS} worker processes, and services that fail on purpose.", bold=True)
    lease = f"{LEASE.total_seconds():g} s"
    _print(stream, f"It all happens in a throw-away SQLite file; a silent worker keeps its jobs for {lease}.")
    _print(stream)


def print_books(books: Books, played: Played, stream: TextIO) -> None:
    """Print the figures, and what they were checked against."""
    _print(stream)
    _print(stream, "The books", bold=True)
    rows = [
        ("enqueued", books.enqueued, f"asked for {played.asked} times; a unique key is one job"),
        ("= succeeded", books.succeeded, ""),
        ("+ dead", books.dead, _reasons(books)),
        ("+ cancelled", books.cancelled, ""),
        ("lost", books.lost, ""),
    ]
    _print_rows(rows, stream)
    _print(stream)
    more = [
        ("attempts in all", books.attempts, f"{books.starts} of them entered a handler"),
        ("jobs with retries", books.needed_retries, ""),
        ("workers lost", books.workers_lost, "killed or crashed, and replaced"),
        ("seconds", round(played.seconds), ""),
    ]
    if books.repeated:
        more.append(("ran to the end twice", books.repeated, "the worker died before it could say so"))
    _print_rows(more, stream)
    _print(stream)
    _print(stream, "Checked against a ledger that the handlers kept outside of the store", bold=True)
    for check in books.checks:
        _print_check(check, stream)
    if books.is_balanced:
        _print(stream, "The books balance.", colour="green", bold=True)
    else:
        _print(stream, "The books do NOT balance: a fault in Perdure, please report it.", colour="red", bold=True)


def print_what_next(kept: Path | None, stream: TextIO) -> None:
    """Say what else can be looked at."""
    _print(stream)
    _print(stream, "What to try next", bold=True)
    for command, what in _suggestions(kept):
        _print(stream, f"  {command}")
        _print(stream, f"      {what}", colour="bright_black")


def document(books: Books, played: Played, *, seed: int, kept: Path | None) -> dict[str, Any]:
    """The books for a program."""
    return {
        "enqueued": books.enqueued,
        "asked_for": played.asked,
        "succeeded": books.succeeded,
        "dead": books.dead,
        "cancelled": books.cancelled,
        "lost": books.lost,
        "dead_by_reason": dict(books.dead_by_reason),
        "needed_retries": books.needed_retries,
        "attempts": books.attempts,
        "starts": books.starts,
        "finished_twice": books.repeated,
        "workers_lost": books.workers_lost,
        "is_balanced": books.is_balanced,
        "checks": [
            {"check": check.sentence, "holds": check.holds, "faults": list(check.faults)} for check in books.checks
        ],
        "seconds": round(played.seconds, 3),
        "seed": seed,
        "url": None if kept is None else store_url(kept),
    }


def _suggestions(kept: Path | None) -> list[tuple[str, str]]:
    policy = ("perdure policy show standard", "what the default retry policy does, before it does it")
    if kept is None:
        return [
            ("perdure demo --keep", "the same, and the jobs stay to be looked at"),
            policy,
            ("perdure --help", "everything else; the README has an app of fifteen lines"),
        ]
    url = store_url(kept)
    return [
        (f"perdure dlq groups --url {url}", "the dead letters, grouped by how they failed"),
        (f"perdure dlq ls --url {url}", "each of them; `perdure dlq show` has every attempt"),
        (f"perdure stats --url {url}", "the numbers over all queues"),
        policy,
        (f"rm -r {kept}", "when you have seen enough"),
    ]


def _reasons(books: Books) -> str:
    return " · ".join(f"{count} {reason}" for reason, count in books.dead_by_reason.items())


def _print_rows(rows: Sequence[tuple[str, int, str]], stream: TextIO) -> None:
    for name, number, remark in rows:
        shown = f"  {name:<20}{number:>6,}"
        note = f"   {remark}" if remark else ""
        click.echo(shown + (_styled(note, stream, fg="bright_black") if note else ""), file=stream)


def _print_check(check: Check, stream: TextIO) -> None:
    mark, colour = ("ok", "green") if check.holds else ("NO", "red")
    click.echo(f"  {_styled(mark, stream, fg=colour, bold=True)}  {check.sentence}", file=stream)
    for fault in check.faults[:_MOST_FAULTS]:
        click.echo(f"        {fault}", file=stream)
    if len(check.faults) > _MOST_FAULTS:
        click.echo(f"        and {len(check.faults) - _MOST_FAULTS} more", file=stream)


def _print(stream: TextIO, text: str = "", *, bold: bool = False, colour: str | None = None) -> None:
    click.echo(_styled(text, stream, bold=bold or None, fg=colour), file=stream)


def _styled(text: str, stream: TextIO, **style: Any) -> str:
    is_coloured = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    return click.style(text, **style) if is_coloured and text else text
