"""What the demo prints before and after the run: the opening, the books, and what to try next."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from perdure.cli.demo.balance import Books, Check
from perdure.cli.demo.run import WORKERS, Played
from perdure.cli.demo.tasks import LEASE, store_url
from perdure.cli.demo.view import is_lively
from perdure.model.job import JobId
from perdure.text.plural import plural

_MOST_FAULTS = 5
_MEANINGS = {
    "exhausted": "every attempt failed, up to the limit",
    "unrecoverable": "the handler gave up, or the policy says never",
    "failed": "at most once: a failure is the end",
    "outcome unknown": "at most once: its worker was gone, so never again",
    "lost": "its process was gone at every attempt, up to the limit",
    "timeout": "it ran too long at the last attempt that it had",
}


def print_opening(jobs: int, stream: TextIO) -> None:
    """Say what is about to happen."""
    _print(stream, f"{plural(jobs, 'job')}, {WORKERS} worker processes, and services that fail on purpose.", bold=True)
    lease = f"{LEASE.total_seconds():g} s"
    _print(stream, f"All in a throw-away SQLite file. A silent worker keeps its jobs for {lease}.")
    _print(stream)


def print_books(books: Books, played: Played, stream: TextIO) -> None:
    """Print the figures, and what they were checked against."""
    _print(stream)
    _print(stream, "The books", bold=True)
    rows = [
        ("enqueued", books.enqueued, f"asked for {plural(played.asked, 'time')}; a unique key is made once"),
        ("= succeeded", books.succeeded, ""),
        ("+ dead", books.dead, ""),
        *((f"    {reason}", count, _MEANINGS.get(reason, "")) for reason, count in books.dead_by_reason.items()),
        ("+ cancelled", books.cancelled, ""),
        ("lost", books.lost, ""),
        ("", None, ""),
        ("attempts in all", books.attempts, f"{books.starts} of them entered a handler"),
        ("jobs retried", books.needed_retries, "needed more than one attempt"),
        ("worker deaths", books.workers_lost, "killed or crashed; survived, and replaced"),
        ("seconds", round(played.seconds), ""),
    ]
    if books.repeated:
        rows.append(("finished twice", books.repeated, "its worker died before it could say so"))
    _print_rows(rows, stream)
    _print(stream)
    _print(stream, "Checked against a ledger that the handlers kept outside of the store", bold=True)
    for check in books.checks:
        _print_check(check, stream)
    _print(stream)
    if books.is_balanced:
        _print(stream, "The books balance.", colour="green", bold=True)
    else:
        _print(stream, "The books do NOT balance: a fault in Perdure, please report it.", colour="red", bold=True)


def print_what_next(kept: Path | None, sample: JobId | None, stream: TextIO) -> None:
    """Say what else can be looked at; `sample` is a dead job worth a look."""
    _print(stream)
    _print(stream, "What to try next", bold=True)
    for command, what in _suggestions(kept, sample):
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


def _suggestions(kept: Path | None, sample: JobId | None) -> list[tuple[str, str]]:
    program = _program()
    policy = (f"{program} policy show standard", "what the default retry policy does, before it does it")
    if kept is None:
        return [
            (f"{program} demo --keep", "the same, and the jobs stay to be looked at"),
            policy,
            (f"{program} --help", "everything else; README.md has an app of your own in fifteen lines"),
        ]
    store = f"--url {shlex.quote(store_url(kept))}"
    show = [(f"{program} dlq show {sample} {store}", "one of them: every attempt, and its error")] if sample else []
    return [
        (f"{program} dlq groups {store}", "the dead letters, grouped by how they failed"),
        *show,
        (f"{program} dlq replay --all --dry-run {store}", "how many would come back to life"),
        policy,
        (f"rm -r {shlex.quote(str(kept))}", "when you have seen enough"),
    ]


def _program() -> str:
    """How this very program can be called again from here."""
    given = sys.argv[0]
    if Path(given).name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m perdure"
    found = shutil.which("perdure")
    is_on_path = found is not None and os.path.realpath(found) == os.path.realpath(given)
    return "perdure" if is_on_path else shlex.quote(given)


def _print_rows(rows: Sequence[tuple[str, int | None, str]], stream: TextIO) -> None:
    for name, number, remark in rows:
        shown = f"  {name:<20}{number:>6,}" if number is not None else ""
        note = f"   {remark}" if remark else ""
        click.echo(shown + _styled(note, stream, fg="bright_black"), file=stream)


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
    is_coloured = bool(text) and is_lively(stream) and not os.environ.get("NO_COLOR")
    return click.style(text, **style) if is_coloured else text
