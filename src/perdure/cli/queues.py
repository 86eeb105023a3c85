"""`perdure queues`: list, pause and resume queues."""

from __future__ import annotations

import click

from perdure.admin import inspect, operate
from perdure.admin.document import queue_document
from perdure.cli import output
from perdure.cli.lazy import SuggestingGroup
from perdure.cli.options import store_options
from perdure.cli.output import Column
from perdure.cli.session import Session

QUEUE_COLUMNS = (
    Column("QUEUE"),
    Column("READY", is_number=True),
    Column("WAITING", is_number=True),
    Column("RUNNING", is_number=True),
    Column("RETRYING", is_number=True),
    Column("SUCCEEDED", is_number=True),
    Column("DEAD", is_number=True),
    Column("CANCELLED", is_number=True),
    Column("OLDEST READY"),
    Column("SWITCH", is_flexible=True),
)


@click.group(cls=SuggestingGroup)
def queues() -> None:
    """List, pause and resume queues."""


@queues.command()
@store_options
def ls(session: Session) -> None:
    """List every queue that has a job or a switch."""
    with session.store() as store:
        stats = inspect.stats(store).wait()
    if session.is_json:
        session.emit({"queues": [queue_document(queue, stats.at) for queue in stats.queues]})
    elif not stats.queues:
        output.aside("There is no queue yet: no job was ever enqueued here.")
    else:
        print_queues(stats)


@queues.command()
@click.argument("queue")
@click.option("--reason", metavar="TEXT", help="Why; shown to everybody who looks.")
@store_options
def pause(session: Session, queue: str, reason: str | None) -> None:
    """Stop fetching from a queue; jobs that run go on."""
    with session.store() as store:
        is_changed = operate.pause(store, queue, reason).wait()
    _print_switch(session, queue, is_paused=True, is_changed=is_changed)


@queues.command()
@click.argument("queue")
@store_options
def resume(session: Session, queue: str) -> None:
    """Fetch from a paused queue again."""
    with session.store() as store:
        is_changed = operate.resume(store, queue).wait()
    _print_switch(session, queue, is_paused=False, is_changed=is_changed)


def print_queues(stats: inspect.Stats) -> None:
    """Print the queues as a table."""
    rows = []
    for queue in stats.queues:
        switch = "open"
        if queue.is_paused:
            switch = f"paused {output.relative(queue.paused_at, stats.at)}"
            switch += f": {queue.pause_reason}" if queue.pause_reason else ""
        counts = (
            queue.ready,
            queue.waiting,
            queue.running,
            queue.retrying,
            queue.succeeded,
            queue.dead,
            queue.cancelled,
        )
        oldest = output.relative(queue.oldest_ready_at, stats.at)
        rows.append([queue.name, *(str(count) for count in counts), oldest, switch])
    output.table(QUEUE_COLUMNS, rows)


def _print_switch(session: Session, queue: str, *, is_paused: bool, is_changed: bool) -> None:
    if session.is_json:
        session.emit({"queue": queue, "is_paused": is_paused, "is_changed": is_changed})
        return
    state = "paused" if is_paused else "open"
    output.say(f"The queue {queue} is {state}." if is_changed else f"The queue {queue} was {state} already.")
