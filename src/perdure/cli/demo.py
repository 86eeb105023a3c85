"""`perdure demo`: some hundred jobs against services that fail on purpose, and books that balance at the end."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TextIO

import click

from perdure.cli import faults
from perdure.cli.demo_cast import FEWEST, MOST, USUAL


@click.command()
@click.option(
    "--jobs", type=click.IntRange(FEWEST, MOST), default=USUAL, show_default=True, metavar="N", help="How many jobs."
)
@click.option(
    "--seed", type=int, default=1, show_default=True, metavar="N", help="What the services do is drawn from it."
)
@click.option("--keep", is_flag=True, help="Keep the file with the jobs, and say where it is.")
@click.option("--json", "is_json", is_flag=True, help="Print the books as JSON; the story goes to stderr.")
def demo(jobs: int, seed: int, keep: bool, is_json: bool) -> int:
    """See what happens when work fails, in less than a minute.

    Real workers run jobs on a throw-away SQLite file: services time out, fail and refuse, one job crashes its worker,
    and one worker is killed with SIGKILL. At the end the books are checked against a ledger outside of the store.
    Nothing leaves this machine, and nothing is left on it without --keep.
    """
    stream = sys.stderr if is_json else sys.stdout
    with _folder(is_kept=keep) as folder:
        return _demo(folder, jobs, seed, is_kept=keep, is_json=is_json, stream=stream)


def _demo(folder: Path, jobs: int, seed: int, *, is_kept: bool, is_json: bool, stream: TextIO) -> int:
    # Imported here, so that `--help` does not wait for the whole library.
    from perdure.cli import output
    from perdure.cli.demo_books import check_books
    from perdure.cli.demo_cast import make_cast
    from perdure.cli.demo_ledger import read_ledger
    from perdure.cli.demo_report import document, print_books, print_opening, print_what_next
    from perdure.cli.demo_run import Run
    from perdure.cli.demo_tasks import make_app
    from perdure.cli.demo_view import open_view
    from perdure.clock import SystemClock
    from perdure.store.reads import JobFilter

    app = make_app(folder)
    try:
        cast = make_cast(app, jobs, seed)
        print_opening(cast.count, stream)
        with open_view(stream) as view:
            run = Run(app=app, folder=folder, cast=cast, view=view, clock=SystemClock(), within=60 + jobs / 5)
            played = run.play()
        found = app.store.get(list(played.limits)).wait()
        books = check_books(
            limits=played.limits,
            found=[job for job in found if job is not None],
            stored=app.store.count(JobFilter()).wait(),
            ledger=read_ledger(folder),
            workers_lost=played.workers_lost,
        )
    finally:
        app.close()
    kept = folder if is_kept else None
    if is_json:
        output.emit(document(books, played, seed=seed, kept=kept))
    else:
        print_books(books, played, stream)
        print_what_next(kept, stream)
    return faults.OK if books.is_balanced else faults.FAILED


@contextmanager
def _folder(*, is_kept: bool) -> Iterator[Path]:
    """A folder for one run, gone afterwards however the run ends; further signals wait until it is."""
    before = {number: signal.signal(number, _leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, _interrupt)
    folder = Path(tempfile.mkdtemp(prefix="perdure-demo-")).resolve()
    try:
        yield folder
    finally:
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        if not is_kept:
            _remove(folder)
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _ignore_further()
    raise KeyboardInterrupt


def _leave(number: int, frame: FrameType | None) -> None:
    _ignore_further()
    sys.exit(128 + number)


def _ignore_further() -> None:
    """From the first signal on the demo is cleaning up, which takes a few seconds at most and must not be cut short."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _remove(folder: Path) -> None:
    # A child of a killed worker may write its last line while the folder is being emptied.
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
