"""`perdure enqueue`: make a job from the command line."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

import click

from perdure.cli import faults, output
from perdure.cli.options import app_options, read_duration
from perdure.cli.session import Session
from perdure.errors import BadOption, BadPayload, UnknownTask
from perdure.text.suggestion import suggestion

_OPTIONS = (
    "queue",
    "delay",
    "run_at",
    "priority",
    "unique",
    "max_attempts",
    "max_retries",
    "retry",
    "delivery",
    "timeout",
)


def read_at(_: click.Context, __: click.Parameter, value: str | None) -> datetime | None:
    """The callback of --at."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        raise BadOption(
            f"--at is {value!r}, which is no time.", "Write it like 2026-05-01T12:00 (UTC) or 2026-05-01T12:00+02:00."
        ) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def read_limit(_: click.Context, param: click.Parameter, value: str | None) -> int | str | None:
    """The callback of a limit: a whole number, or unlimited."""
    if value is None or value == "unlimited":
        return value
    try:
        return int(value)
    except ValueError:
        option = (param.name or "").replace("_", "-")
        raise BadOption(f"--{option} is {value!r}.", 'Give a whole number, or "unlimited".') from None


@click.command()
@click.argument("task")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--args-json", metavar="JSON", help="Arguments as a JSON list or object; - reads stdin.")
@click.option("--queue", metavar="NAME", help="The queue; else the task's own.")
@click.option("--delay", callback=read_duration, metavar="DURATION", help="Not before so long from now.")
@click.option(
    "--at", "run_at", callback=read_at, metavar="WHEN", help="Not before this ISO time, UTC if it has no offset."
)
@click.option("--priority", type=click.IntRange(-100, 100), metavar="N", help="-100 to 100, higher first.")
@click.option("--unique", metavar="KEY", help="No second live job of this task with the same key.")
@click.option("--max-attempts", callback=read_limit, metavar="N", help="The most failures it may have, or unlimited.")
@click.option("--max-retries", callback=read_limit, metavar="N", help="The same limit, counted as retries.")
@click.option("--retry", metavar="POLICY", help="A preset's name or a policy's text.")
@click.option("--delivery", type=click.Choice(["at_least_once", "at_most_once"]), help="May it start twice?")
@click.option("--timeout", callback=read_duration, metavar="DURATION", help="How long one attempt may run.")
@app_options
def enqueue(session: Session, task: str, arguments: tuple[str, ...], args_json: str | None, **options: Any) -> None:
    """Make a job of TASK and print its id.

    A value is taken as JSON where it is JSON, else as text: count=3, name=Ada, tags='["a","b"]'.
    """
    positional, named = read_arguments(arguments, args_json)
    given = {name: options[name] for name in _OPTIONS if options.get(name) is not None}
    with session.app(may_create=True) as app:
        if session.has_app and task not in app.tasks:
            near = suggestion(task, app.tasks)
            known = f"Did you mean {near!r}?" if near else f"It has: {', '.join(sorted(app.tasks)) or 'no task'}."
            raise UnknownTask(f"The app has no task {task!r}.", known)
        job_id = app.enqueue_named(task, positional, named, **given)
    if not session.has_app:
        faults.warn("no app is given (--app), so the task's name and arguments were not checked.")
    if session.is_json:
        session.emit({"id": job_id})
    else:
        output.say(job_id)


def read_arguments(pairs: tuple[str, ...], text: str | None) -> tuple[list[Any], dict[str, Any]]:
    """Positional and named arguments from key=value pairs and JSON."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    if text is not None:
        value = _read_json(sys.stdin.read() if text == "-" else text)
        if isinstance(value, list):
            positional = value
        elif isinstance(value, dict):
            named = value
        else:
            raise BadPayload("--args-json is neither a list nor an object.", 'Give [1, 2] or {"to": "a@b.c"}.')
    for pair in pairs:
        key, found, raw = pair.partition("=")
        if not found or not key.isidentifier():
            raise BadOption(
                f"The argument {pair!r} is not of the form key=value.", "Positional ones go into --args-json."
            )
        if key in named:
            raise BadOption(f"The argument {key!r} is given twice.")
        named[key] = _read_value(raw)
    return positional, named


def _read_json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadPayload(f"--args-json is not JSON: {error}.", "Put the JSON in single quotes for the shell.") from None


def _read_value(raw: str) -> Any:
    try:
        return json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return raw


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
