"""`perdure queues`: list and show queues, pause and resume them, and set their limits and shares."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from perdure.admin import inspect, operate, tune
from perdure.admin.document import queue_document, settings_document
from perdure.cli import faults, output
from perdure.cli.lazy import SuggestingGroup
from perdure.cli.options import app_options, read_duration, store_options
from perdure.cli.output import Column
from perdure.cli.queue_names import known_queues, warn_of_unknown
from perdure.cli.session import Session
from perdure.errors import BadOption
from perdure.model.policy.explain import queue_lines, retry_line

if TYPE_CHECKING:
    from perdure.model.queue.settings import QueueSettings
    from perdure.store.reads import QueueInfo

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
    Column("SET BY OPERATOR", is_flexible=True),
)
_VALUE_COLUMNS = (Column("VALUE"), Column("IS"), Column("FROM"))


@click.group(cls=SuggestingGroup)
def queues() -> None:
    """List and show queues, pause and resume them, set their limits and shares."""


@queues.command()
@store_options
def ls(session: Session) -> None:
    """List every queue that has a job, a pause or settings."""
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
@app_options
def show(session: Session, queue: str) -> None:
    """Show how a queue is treated now, and which place says so: operator, environment, file, code or default."""
    operate.check_queue(queue)
    with session.app() as app:
        known = {*known_queues(app.store), *app.registry.queue_names(), *app.registry.graveyards()}
        found = inspect.queue(app.store, queue).wait()
        now = app.store.now().wait()
        treated = app.registry.effective_queue(queue, found.settings)
        lines = (*queue_lines(treated), retry_line(*app.registry.queue_retry(queue)))
    warn_of_unknown(queue, known, "What follows would hold for it.")
    if not session.has_app:
        faults.warn("no app is given (--app), so what the code says about the queue is not known.")
    if session.is_json:
        values = [{"name": line.name, "value": line.value, "origin": line.origin} for line in lines]
        session.emit({**queue_document(found, now), "retry_queue": treated.fairness.retry_queue, "values": values})
        return
    counts = ("ready", "waiting", "running", "retrying", "succeeded", "dead", "cancelled")
    output.fields(
        [
            ("queue", queue),
            ("switch", _switch(found, now)),
            ("retry queue", treated.fairness.retry_queue or "none: retries stay"),
            *((name, str(getattr(found, name))) for name in counts),
        ]
    )
    output.heading("how it is treated")
    output.table(_VALUE_COLUMNS, [[line.name, line.value, line.origin] for line in lines])


@queues.command("set")
@click.argument("queue")
@click.option("--retry-share", type=float, metavar="PART", help="Of what is fetched, for retries: 0 to 1.")
@click.option("--strict/--no-strict", default=None, help="Whether an empty lane's part is left unused.")
@click.option("--max-retries-running", metavar="N|none", help="How many retries may run at once over all workers.")
@click.option("--concurrency", metavar="N|none", help="How many jobs may run at once over all workers.")
@click.option("--unset", multiple=True, metavar="NAME", help="Take this setting back, so that the code is followed.")
@store_options
def set_(
    session: Session,
    queue: str,
    retry_share: float | None,
    strict: bool | None,
    max_retries_running: str | None,
    concurrency: str | None,
    unset: tuple[str, ...],
) -> None:
    """Set limits and shares of a queue, over what code and configuration say.

    Workers follow within about a second. A limit of none is explicitly none; --unset follows the code again.
    """
    given: dict[str, Any] = {
        "retry_share": retry_share,
        "strict": strict,
        "max_retries_running": _read_limit("--max-retries-running", max_retries_running),
        "concurrency": _read_limit("--concurrency", concurrency),
    }
    with session.store() as store:
        known = known_queues(store)
        settings = tune.configure(store, queue, **given, unset=unset).wait()
    warn_of_unknown(queue, known, "The settings are kept for it all the same.")
    if session.is_json:
        session.emit({"queue": queue, "settings": settings_document(settings)})
    else:
        output.say(f"The queue {queue}: {_said(settings) or 'nothing is set by an operator'}.")


@queues.command()
@click.argument("queue")
@click.option("--reason", metavar="TEXT", help="Why; shown to everybody who looks.")
@click.option("--for", "duration", callback=read_duration, metavar="DURATION", help="Resume by itself after so long.")
@click.option("--until", metavar="WHEN", help="Resume by itself then: ISO time, in UTC unless it says otherwise.")
@store_options
def pause(session: Session, queue: str, reason: str | None, duration: timedelta | None, until: str | None) -> None:
    """Stop fetching from a queue; jobs that run go on. One that nobody knows yet is paused with a warning."""
    with session.store() as store:
        known = known_queues(store)
        is_changed = operate.pause(store, queue, reason, until=until, duration=duration).wait()
        found = inspect.queue(store, queue).wait()
        now = store.now().wait()
    warn_of_unknown(queue, known, f"It is paused all the same; 'perdure queues resume {queue}' takes that back.")
    if session.is_json:
        ends = queue_document(found, now)["paused_until"]
        session.emit({"queue": queue, "is_paused": True, "is_changed": is_changed, "paused_until": ends})
        return
    end = "" if found.paused_until is None else f" until {output.when(found.paused_until, now)}"
    output.say(f"The queue {queue} is paused{end}." if is_changed else f"The queue {queue} was paused already{end}.")


@queues.command()
@click.argument("queue")
@store_options
def resume(session: Session, queue: str) -> None:
    """Fetch from a paused queue again."""
    with session.store() as store:
        known = known_queues(store)
        is_changed = operate.resume(store, queue).wait()
    warn_of_unknown(queue, known, "There was nothing to resume.")
    if session.is_json:
        session.emit({"queue": queue, "is_paused": False, "is_changed": is_changed})
        return
    output.say(f"The queue {queue} is open." if is_changed else f"The queue {queue} was open already.")


def print_queues(stats: inspect.Stats) -> None:
    """Print the queues as a table; the operator's column only where something is set."""
    rows = []
    for queue in stats.queues:
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
        cells = [queue.name, *(str(count) for count in counts), oldest, _switch(queue, stats.at)]
        rows.append([*cells, _said(queue.settings)])
    if any(row[-1] for row in rows):
        output.table(QUEUE_COLUMNS, rows)
    else:
        output.table(QUEUE_COLUMNS[:-1], [row[:-1] for row in rows])


def _switch(queue: QueueInfo, now: datetime) -> str:
    if not queue.is_paused:
        return "open"
    end = "" if queue.paused_until is None else f", until {output.when(queue.paused_until, now)}"
    why = f": {queue.pause_reason}" if queue.pause_reason else ""
    return f"paused {output.relative(queue.paused_at, now)}{end}{why}"


def _said(settings: QueueSettings) -> str:
    """What an operator has set, as a short list."""
    values = settings_document(settings)
    words = {name: "yes" if value is True else "no" if value is False else value for name, value in values.items()}
    return ", ".join(f"{name}={value}" for name, value in words.items() if value is not None)


def _read_limit(option: str, text: str | None) -> int | str | None:
    if text is None or text.strip().lower() == "none":
        return None if text is None else "none"
    try:
        return int(text)
    except ValueError:
        raise BadOption(f"{option} is {text[:40]!r}; it is a whole number from 1, or none.") from None
