"""`perdure top`: queues and workers, live."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from time import sleep
from typing import TYPE_CHECKING

import click

from perdure.admin import inspect
from perdure.admin.document import stats_document, worker_document
from perdure.admin.inspect import Stats
from perdure.cli import output
from perdure.cli.options import read_duration, store_options
from perdure.cli.output import Column
from perdure.cli.session import Session
from perdure.errors import EngineError
from perdure.model.state import STATES
from perdure.store import Store
from perdure.store.workers import WorkerInfo
from perdure.system.clock import SystemClock

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

_QUEUES = (
    Column("QUEUE", is_flexible=True),
    *(Column(state.upper(), is_number=True) for state in STATES),
    Column("DONE/S", is_number=True),
    Column("OLDEST", is_number=True),
    Column("", is_flexible=True),
)
_WORKERS = (
    Column("WORKER"),
    Column("HOST", is_flexible=True),
    Column("STATE"),
    Column("BUSY", is_number=True),
    Column("SLOTS", is_number=True),
    Column("QUEUES", is_flexible=True),
    Column("BEAT", is_number=True),
)
_MOST_ROWS = 20


class View:
    """One look after the other, each with what changed since the one before."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._before: Stats | None = None

    def look(self) -> tuple[Stats, list[WorkerInfo], list[list[str]], list[list[str]]]:
        """The numbers, the workers, and both as rows."""
        numbers = inspect.stats(self._store).wait()
        workers = self._store.workers().wait()
        rows = [self._queue_row(numbers, place) for place in range(len(numbers.queues))]
        self._before = numbers
        return numbers, workers, rows, [_worker_row(worker, numbers) for worker in workers]

    def _queue_row(self, numbers: Stats, place: int) -> list[str]:
        queue = numbers.queues[place]
        age = None if queue.oldest_ready_at is None else max(timedelta(0), numbers.at - queue.oldest_ready_at)
        return [
            queue.name,
            *(f"{getattr(queue, state):,}" for state in STATES),
            self._pace(numbers, queue.name, queue.succeeded),
            output.rough(age),
            "paused" if queue.is_paused else "",
        ]

    def _pace(self, numbers: Stats, name: str, succeeded: int) -> str:
        """How many jobs succeeded per second since the look before; pruning may hide some, never below nothing."""
        before = None if self._before is None else next((q for q in self._before.queues if q.name == name), None)
        if before is None or self._before is None:
            return "-"
        seconds = (numbers.at - self._before.at).total_seconds()
        return f"{max(0, succeeded - before.succeeded) / seconds:.1f}" if seconds > 0 else "-"


@click.command()
@click.option("--every", callback=read_duration, default="2s", metavar="DURATION", help="How often to look; 2s.")
@click.option("--once", is_flag=True, help="Print one look and end.")
@store_options
def top(session: Session, every: timedelta, once: bool) -> None:
    """Watch queues and workers live; Ctrl-C ends it. Without a terminal, or with --json, it prints one look."""
    with session.store() as store:
        view = View(store)
        if session.is_json:
            numbers, workers, _, _ = view.look()
            session.emit(
                {**stats_document(numbers), "workers": [worker_document(worker, numbers.at) for worker in workers]}
            )
        elif once or not sys.stdout.isatty():
            numbers, _, queue_rows, worker_rows = view.look()
            output.say(_headline(numbers))
            output.heading("queues")
            output.table(_QUEUES, queue_rows)
            output.heading("workers")
            output.table(_WORKERS, worker_rows)
        else:
            _watch(view, max(0.2, every.total_seconds()))


def _watch(view: View, pause: float) -> None:
    from rich.console import Console  # only for a terminal: rich is slow to import
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(no_color=not output.has_colour()), screen=True, auto_refresh=False) as live:
        try:
            while True:
                try:
                    live.update(_screen(view), refresh=True)
                except EngineError as error:
                    # The store may come back; whoever watches wants to see that too.
                    live.update(Text(output.harmless(f"{SystemClock().now():%H:%M:%S} {error}")), refresh=True)
                sleep(pause)
        except KeyboardInterrupt:
            pass


def _screen(view: View) -> Group:
    from rich.console import Group
    from rich.text import Text

    numbers, _, queue_rows, worker_rows = view.look()
    return Group(
        Text(_headline(numbers), style="bold"),
        Text(),
        _table(_QUEUES, queue_rows),
        Text(),
        _table(_WORKERS, worker_rows),
        Text("Ctrl-C ends it", style="dim"),
    )


def _table(columns: Sequence[Column], rows: list[list[str]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        shown.add_column(column.heading, justify="right" if column.is_number else "left", no_wrap=True)
    for row in rows[:_MOST_ROWS]:
        shown.add_row(*(Text(output.one_line(cell)) for cell in row))
    if len(rows) > _MOST_ROWS:
        shown.add_row(Text(f"and {len(rows) - _MOST_ROWS} more"))
    return shown


def _headline(numbers: Stats) -> str:
    jobs = ", ".join(f"{getattr(numbers, state):,} {state}" for state in STATES)
    return f"{output.absolute(numbers.at)}  {output.plural(numbers.workers, 'worker')} alive  {jobs}"


def _worker_row(worker: WorkerInfo, numbers: Stats) -> list[str]:
    return [
        worker.id,
        worker.host,
        "alive" if worker.lease_until > numbers.at else "stale",
        str(worker.running),
        str(worker.concurrency),
        ",".join(worker.queues),
        output.relative(worker.beat_at, numbers.at),
    ]
