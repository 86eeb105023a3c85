"""`perdure schedules`: list, add, show, look ahead, run, pause, resume and remove schedules."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from perdure.admin import schedules as service
from perdure.admin.document import moment, schedule_document
from perdure.cli import faults, output
from perdure.cli.enqueue import read_arguments, read_limit
from perdure.cli.lazy import SuggestingGroup
from perdure.cli.options import app_options, confirm, destructive_options, read_duration, reveal_option, store_options
from perdure.cli.output import Column
from perdure.cli.session import Session
from perdure.cli.show import pretty
from perdure.errors import BadOption, UnknownTask
from perdure.model.payload.codec import encode_args
from perdure.model.schedule.definition import MISSED, OVERLAPS, Definition, Schedule, read_zone
from perdure.system.clock import SystemClock
from perdure.task import Bound, bind_named, make_options, schedule_of
from perdure.text.suggestion import suggestion

_COLUMNS = (
    Column("SCHEDULE", is_flexible=True),
    Column("STATE"),
    Column("RULE", is_flexible=True),
    Column("ZONE", is_flexible=True),
    Column("TASK", is_flexible=True),
    Column("NEXT"),
    Column("LAST TICK"),
    Column("FIRED", is_number=True),
    Column("SKIPPED", is_number=True),
    Column("ORIGIN"),
)
_JOB_OPTIONS = ("queue", "priority", "max_attempts", "max_retries", "retry", "delivery", "timeout")


@click.group(cls=SuggestingGroup)
def schedules() -> None:
    """Rules that make jobs: list, add, look ahead, run, pause, resume and remove them."""


@schedules.command()
@click.option("--limit", default=50, show_default=True, metavar="N", help="At most so many, up to 1000.")
@click.option("--cursor", metavar="NAME", help="Go on after this schedule: the next_cursor of the page before.")
@reveal_option
@store_options
def ls(session: Session, limit: int, cursor: str | None, reveals: bool) -> None:
    """List the schedules by name."""
    with session.store() as store:
        page = service.schedules(store, limit=limit, cursor=cursor).wait()
        now = store.now().wait()
    if session.is_json:
        view = session.view(reveals=reveals)
        documents = [schedule_document(schedule, view) for schedule in page]
        session.emit({"schedules": documents, "next_cursor": page.next_cursor})
        return
    if not page:
        output.aside("There is no schedule. Make one with: perdure schedules add NAME TASK --cron '0 0 3 * * *'")
        return
    output.table(_COLUMNS, [_row(schedule, now) for schedule in page])
    if page.next_cursor is not None:
        output.aside(f"There are more: add --cursor {page.next_cursor}")


@schedules.command()
@click.argument("name")
@click.argument("task", required=False)
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--http", nargs=2, metavar="METHOD URL", help="A request instead of a TASK; KEY=VALUE are more of it, as json=…"
)
@click.option("--cron", required=True, metavar="RULE", help="'0 0 3 * * *' (seconds first), @hourly, or '@every 10s'.")
@click.option("--tz", default="UTC", show_default=True, metavar="ZONE", help="The time zone, such as Europe/Berlin.")
@click.option("--once", is_flag=True, help="Fire at the next tick only, then be gone.")
@click.option("--overlap", type=click.Choice(OVERLAPS), default="skip", help="A tick while a job of it is unfinished.")
@click.option("--missed", type=click.Choice(MISSED), default="latest", help="Ticks while no scheduler was there.")
@click.option("--args-json", metavar="JSON", help="Arguments as a JSON list or object; - reads stdin.")
@click.option("--queue", metavar="NAME", help="The queue of its jobs; else the task's own.")
@click.option("--priority", type=click.IntRange(-100, 100), metavar="N", help="-100 to 100, higher first.")
@click.option("--max-attempts", callback=read_limit, metavar="N", help="The most failures of a job, or unlimited.")
@click.option("--max-retries", callback=read_limit, metavar="N", help="The same limit, counted as retries.")
@click.option("--retry", metavar="POLICY", help="A preset's name or a policy's text.")
@click.option("--delivery", type=click.Choice(["at_least_once", "at_most_once"]), help="May a job start twice?")
@click.option("--timeout", callback=read_duration, metavar="DURATION", help="How long one attempt may run.")
@click.option("--replace", is_flag=True, help="Take the place of another schedule of this name.")
@click.option("--dry-run", is_flag=True, help="Only check it, and show its next ticks.")
@app_options
def add(
    session: Session,
    name: str,
    task: str | None,
    arguments: tuple[str, ...],
    http: tuple[str, str] | None,
    args_json: str | None,
    cron: str,
    tz: str,
    once: bool,
    replace: bool,
    dry_run: bool,
    **options: Any,
) -> None:
    """Have a job of TASK made at each tick of a rule.

    A value is taken as JSON where it is JSON, else as text: count=3, name=Ada.
    """
    if http is not None:
        # Without a task the first KEY=VALUE stands where the task would.
        arguments = arguments if task is None else (task, *arguments)
    elif task is None:
        raise BadOption("Nothing says what to do.", "Give a TASK, or --http METHOD URL.")
    positional, named = read_arguments(arguments, args_json)
    with session.app(may_create=True) as app:
        if http is not None:
            bound: Bound = app.http.call(_request(http, positional, named), **_job_options(options))
        else:
            bound = _bound(session, app, str(task), positional, named, options)
        definition = schedule_of(
            name, bound, cron=cron, tz=tz, overlap=options["overlap"], missed=options["missed"], recurring=not once
        )
        if dry_run:
            _print_ticks(session, definition, _ahead(definition, 5), SystemClock().now())
            return
        made = service.add_schedule(app.store, definition, replace=replace).wait()
        now = app.store.now().wait()
    if not session.has_app and http is None:
        faults.warn("no app is given (--app), so the task's name and arguments were not checked.")
    if session.is_json:
        session.emit(schedule_document(made, session.view()))
    else:
        output.say(
            f"The schedule {name} fires {service.description(made)}, next {output.when(made.next_tick_at, now)}."
        )


@schedules.command()
@click.argument("name")
@reveal_option
@store_options
def show(session: Session, name: str, reveals: bool) -> None:
    """Show one schedule: its rule in words, how it stands, its next ticks, and its jobs' arguments."""
    with session.store() as store:
        schedule = service.schedule(store, name).wait()
        ticks = [] if schedule.standing == "broken" else service.next_ticks(store, name, 5).wait()
        now = store.now().wait()
    view = session.view(reveals=reveals)
    if session.is_json:
        session.emit({**schedule_document(schedule, view), "next_ticks": [moment(tick) for tick in ticks]})
        return
    output.fields(_facts(schedule, now))
    output.heading("arguments")
    output.say(pretty(schedule.definition.args, view))
    if schedule.standing == "active":
        output.heading("next ticks")
        _print_lines(schedule.definition.tz, ticks, now)


@schedules.command("next")
@click.argument("target", metavar="NAME_OR_RULE")
@click.option("--tz", metavar="ZONE", help="The time zone of a rule; a schedule has its own.")
@click.option("-n", "--number", default=5, show_default=True, metavar="N", help="How many ticks, up to 1000.")
@store_options
def next_(session: Session, target: str, tz: str | None, number: int) -> None:
    """Show the next ticks of a schedule, or of a bare rule such as '*/10 * * * * *'.

    For a rule no store is opened.
    """
    if " " in target.strip() or target.startswith("@"):
        definition = Definition(name="rule", task="", args=b"", cron=target, tz=tz or "UTC")
        _print_ticks(session, definition, _ahead(definition, number), SystemClock().now())
        return
    if tz is not None:
        raise BadOption("--tz is given with a schedule's name, and a schedule has its own time zone.", "Leave it out.")
    with session.store() as store:
        schedule = service.schedule(store, target).wait()
        ticks = service.next_ticks(store, target, number).wait()
        now = store.now().wait()
    if schedule.is_paused and not session.is_json:
        output.aside("The schedule is paused: none of these fires before it is resumed.")
    _print_ticks(session, schedule.definition, ticks, now)


@schedules.command()
@click.argument("name")
@destructive_options
@store_options
def run(session: Session, name: str, dry_run: bool, yes: bool) -> None:
    """Make a job of a schedule at once, beside its ticks."""
    with session.store() as store:
        schedule = service.schedule(store, name).wait()
        if dry_run:
            _print_would(session, name, f"One job of {schedule.definition.task} would be made.")
            return
        confirm(f"Run {name} now, one job of {schedule.definition.task}?", yes=yes)
        job_id = service.run_schedule_now(store, name).wait()
    if session.is_json:
        session.emit({"name": name, "id": job_id})
    else:
        output.say(job_id)


@schedules.command()
@click.argument("name")
@store_options
def pause(session: Session, name: str) -> None:
    """Stop firing a schedule until it is resumed; jobs that it made go on."""
    with session.store() as store:
        is_changed = service.pause_schedule(store, name).wait()
    _print_switch(session, name, is_paused=True, is_changed=is_changed)


@schedules.command()
@click.argument("name")
@store_options
def resume(session: Session, name: str) -> None:
    """Fire a paused schedule again, from its next tick on."""
    with session.store() as store:
        is_changed = service.resume_schedule(store, name).wait()
    _print_switch(session, name, is_paused=False, is_changed=is_changed)


@schedules.command()
@click.argument("name")
@destructive_options
@store_options
def rm(session: Session, name: str, dry_run: bool, yes: bool) -> None:
    """Remove a schedule; the jobs that it made stay."""
    with session.store() as store:
        schedule = service.removable_schedule(store, name).wait()
        if dry_run:
            _print_would(session, name, f"The schedule {name} would be removed.")
            return
        what = "which cannot be read" if schedule is None else schedule.definition.cron
        confirm(f"Remove the schedule {name} ({what})?", yes=yes)
        service.remove_schedule(store, name).wait()
    if schedule is not None and schedule.origin == "code":
        faults.warn("it is defined in an app's code: the next worker that starts with it brings it back.")
    if session.is_json:
        session.emit({"name": name, "is_removed": True})
    else:
        output.say(f"The schedule {name} is removed.")


def _bound(
    session: Session, app: Any, task: str, positional: list[Any], named: dict[str, Any], options: dict[str, Any]
) -> Bound:
    given = _job_options(options)
    if not session.has_app:
        return bind_named(task, encode_args(tuple(positional), named, app.max_payload), make_options(**given))
    known = app.tasks.get(task)
    if known is None:
        near = suggestion(task, app.tasks)
        hint = f"Did you mean {near!r}?" if near else f"It has: {', '.join(sorted(app.tasks)) or 'no task'}."
        raise UnknownTask(f"The app has no task {task!r}.", hint)
    bound: Bound = known.options(**given).bind(*positional, **named)
    return bound


def _request(http: tuple[str, str], positional: list[Any], named: dict[str, Any]) -> dict[str, Any]:
    if positional:
        raise BadOption("A request has no arguments without a name.", "Give its fields as KEY=VALUE, or as an object.")
    return {**named, "method": http[0], "url": http[1]}


def _job_options(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in _JOB_OPTIONS if options.get(name) is not None}


def _ahead(definition: Definition, number: int) -> list[datetime]:
    now = SystemClock().now()
    ticks = service.ticks_from(definition.ticks(now), now, number)
    return ticks if definition.is_recurring else ticks[:1]


def _row(schedule: Schedule, now: datetime) -> list[str]:
    known = schedule.definition
    is_shown = schedule.standing in ("active", "orphaned")
    return [
        schedule.name,
        schedule.standing,
        known.cron if known.is_recurring else f"{known.cron} (once)",
        known.tz,
        known.task,
        output.relative(schedule.next_tick_at, now) if is_shown else "-",
        output.relative(schedule.last_tick_at, now),
        str(schedule.fired),
        str(schedule.skipped),
        schedule.origin,
    ]


def _facts(schedule: Schedule, now: datetime) -> list[tuple[str, str]]:
    known = schedule.definition
    facts = [
        ("schedule", schedule.name),
        ("state", schedule.standing),
        ("rule", f"{known.cron} ({service.description(schedule) or 'cannot be read here'})"),
        ("time zone", known.tz),
        ("recurring", "yes" if known.is_recurring else "no: it fires once"),
        ("task", known.task),
        ("queue", known.queue),
        ("overlap", known.overlap),
        ("missed", known.missed),
        ("origin", schedule.origin),
        ("next", output.when(schedule.next_tick_at, now)),
        ("last tick", output.when(schedule.last_tick_at, now)),
        ("last job", schedule.last_job_id or "-"),
        ("unfinished", "yes" if schedule.is_busy else "no"),
        ("fired", str(schedule.fired)),
        ("skipped", str(schedule.skipped)),
    ]
    if schedule.problem is not None:
        facts.insert(2, ("problem", schedule.problem))
    if schedule.backlog:
        facts.append(("queued", output.plural(len(schedule.backlog), "tick")))
    return facts


def _print_ticks(session: Session, definition: Definition, ticks: list[datetime], now: datetime) -> None:
    if session.is_json:
        words = definition.ticks(now).rule.describe()
        document = {"cron": definition.cron, "tz": definition.tz, "description": words}
        session.emit({**document, "ticks": [moment(tick) for tick in ticks]})
        return
    output.aside(f"{definition.ticks(now).rule.describe()} ({definition.tz})")
    _print_lines(definition.tz, ticks, now)


def _print_lines(tz: str, ticks: list[datetime], now: datetime) -> None:
    zone = read_zone(tz)
    for tick in ticks:
        output.say(f"{tick.astimezone(zone).isoformat(sep=' ', timespec='seconds')}  {output.relative(tick, now)}")


def _print_would(session: Session, name: str, what: str) -> None:
    if session.is_json:
        session.emit({"name": name, "is_dry_run": True})
    else:
        output.say(what)


def _print_switch(session: Session, name: str, *, is_paused: bool, is_changed: bool) -> None:
    if session.is_json:
        session.emit({"name": name, "is_paused": is_paused, "is_changed": is_changed})
        return
    state = "paused" if is_paused else "active"
    output.say(f"The schedule {name} is {state}." if is_changed else f"The schedule {name} was {state} already.")
