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
from typing import TYPE_CHECKING

import click

from perdure.cli import faults

if TYPE_CHECKING:
    from perdure.app import App
    from perdure.cli.demo.balance import Books
    from perdure.cli.demo.run import Played

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.option(
    "--jobs", type=click.IntRange(20, 2000), default=300, show_default=True, metavar="N", help="How many jobs."
)
@click.option("--seed", type=int, default=1, show_default=True, metavar="N", help="Another seed, other troubles.")
@click.option("--keep", is_flag=True, help="Keep the file with the jobs, and say where it is.")
@click.option("--json", "is_json", is_flag=True, help="Print the books as JSON; the story goes to stderr.")
def demo(jobs: int, seed: int, keep: bool, is_json: bool) -> int:
    """See what happens when work fails, in less than a minute.

    Real workers run jobs on a throw-away SQLite file: services time out, fail and refuse, one job crashes its worker,
    and one worker is killed with SIGKILL. At the end the books are checked against a ledger outside of the store.
    Nothing leaves this machine, and nothing is left on it without --keep.
    """
    # Imported here, so that `--help` does not wait for the whole library.
    from perdure.cli.demo.tasks import make_app

    with _folder(is_kept=keep) as folder:
        app = make_app(folder)
        try:
            played = _play(app, folder, jobs, seed, is_json=is_json)
            books = _draw_up(app, folder, played)
            return conclude(app, books, played, seed=seed, kept=folder if keep else None, is_json=is_json)
        finally:
            app.close()


def conclude(app: App, books: Books, played: Played, *, seed: int, kept: Path | None, is_json: bool) -> int:
    """Print the books; the exit code says whether they balance."""
    from perdure.cli import output
    from perdure.cli.demo.report import document, print_books, print_what_next

    if is_json:
        output.emit(document(books, played, seed=seed, kept=kept))
    else:
        print_books(books, played, sys.stdout)
        with app.client() as client:
            dead = client.dead_letters(limit=1, reason="exhausted")
        print_what_next(kept, dead[0].id if dead else None, sys.stdout)
    return faults.OK if books.is_balanced else faults.FAILED


def _play(app: App, folder: Path, jobs: int, seed: int, *, is_json: bool) -> Played:
    from perdure.cli.demo.jobs import make_cast
    from perdure.cli.demo.report import print_opening
    from perdure.cli.demo.run import Run
    from perdure.cli.demo.view import open_view
    from perdure.system.clock import SystemClock

    stream = sys.stderr if is_json else sys.stdout
    cast = make_cast(app, jobs, seed)
    print_opening(cast.count, stream)
    # On a busy machine everything takes longer, but not for ever.
    within = 60 + jobs / 5
    with open_view(stream) as view:
        return Run(app=app, folder=folder, cast=cast, view=view, clock=SystemClock(), within=within).play()


def _draw_up(app: App, folder: Path, played: Played) -> Books:
    from perdure.cli.demo.balance import check_books
    from perdure.cli.demo.ledger import read_ledger

    found = app.store.get(list(played.limits)).wait()
    with app.client() as client:
        stored = client.count()
    return check_books(
        limits=played.limits,
        found=[job for job in found if job is not None],
        stored=stored,
        ledger=read_ledger(folder),
        workers_lost=played.workers_lost,
    )


@contextmanager
def _folder(*, is_kept: bool) -> Iterator[Path]:
    """A folder for one run, gone afterwards however the run ends, unless it is to be kept."""
    before = {number: signal.signal(number, _leave) for number in _SIGNALS}
    folder = Path(tempfile.mkdtemp(prefix="perdure-demo-")).resolve()
    try:
        yield folder
    except BaseException:
        if is_kept:
            click.echo(f"The jobs are kept in {folder}", err=True)
        raise
    finally:
        _ignore_signals()
        if not is_kept:
            _remove(folder)
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, frame: FrameType | None) -> None:
    """From the first signal on the demo only cleans up: a few seconds at most, not to be cut short by a second one."""
    _ignore_signals()
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def _ignore_signals() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _remove(folder: Path) -> None:
    # A child of a killed worker may write its last line while the folder is being emptied.
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
