"""The options that commands share: store, JSON, app, filters, and the question before destructive work."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click

from perdure.cli.configured import configured_app
from perdure.cli.output import harmless
from perdure.cli.session import APP_VARIABLE, HANDED_URL, Session
from perdure.errors import Refused
from perdure.text.duration import parse_duration

Command = Callable[..., Any]
C = TypeVar("C", bound=Command)

FORWARD_NAMES = ("pending", "failing", "stopped", "forwarded")
STATE_NAMES = ("waiting", "ready", "running", "succeeded", "dead", "cancelled")


def read_duration(_: click.Context, param: click.Parameter, value: str | None) -> timedelta | None:
    """The callback of a duration option: `5m`, `1h30m`, `90`."""
    return None if value is None else parse_duration(value, what=f"--{(param.name or '').replace('_', '-')}")


def wait_option(command: Command) -> Command:
    """Adds --no-wait."""
    text = "End with exit code 5 when the engine is away at the start, instead of waiting for it."
    return click.option("--no-wait", is_flag=True, help=text)(command)


def store_options(command: Command) -> Command:
    """Adds --url and --json; the command gets a `session`."""
    return _with_session(command, has_app=False)


def app_options(command: Command) -> Command:
    """Adds --app, --url and --json; the command gets a `session`."""
    return _with_session(command, has_app=True)


def filter_options(*, state: bool) -> Callable[[Command], Command]:
    """Adds the filters; the command gets them as `filters`."""
    options = [
        click.option("--task", metavar="NAME", help="Only jobs of this task."),
        click.option("--queue", metavar="NAME", help="Only jobs in, or enqueued to, this queue."),
        click.option("--error", metavar="TEXT", help="Only jobs whose last error has this text."),
        click.option("--group", metavar="FINGERPRINT", help="Only jobs of this error group."),
        click.option("--reason", metavar="REASON", help="Only jobs with this reason, such as exhausted."),
        click.option("--schedule", metavar="NAME", help="Only jobs that this schedule made."),
        click.option("--before", metavar="WHEN", help="Ended (else created) before: ISO time in UTC, or 1h ago."),
        click.option("--after", metavar="WHEN", help="Ended (else created) after: ISO time in UTC, or 1h ago."),
    ]
    if not state:
        is_far = click.option(
            "--forward", type=click.Choice(FORWARD_NAMES), help="Only jobs whose forwarding is so far."
        )
        options.insert(5, is_far)
    else:
        options.insert(0, click.option("--state", type=click.Choice(STATE_NAMES), help="Only jobs in this state."))
    names = ("state", "task", "queue", "error", "group", "reason", "schedule", "forward", "before", "after")

    def add(command: Command) -> Command:
        @functools.wraps(command)
        def run(**values: Any) -> Any:
            filters = {name: values.pop(name) for name in names if name in values}
            return command(filters={name: value for name, value in filters.items() if value is not None}, **values)

        return functools.reduce(lambda decorated, option: option(decorated), reversed(options), run)

    return add


def destructive_options(command: C) -> C:
    """Adds --dry-run and --yes."""
    command = click.option("--yes", "-y", is_flag=True, help="Do it without asking.")(command)
    return click.option("--dry-run", is_flag=True, help="Only say how many jobs it would change.")(command)


reveal_option = click.option("--reveal", "reveals", is_flag=True, help="Show the values of secret keys, too.")


def confirm(question: str, *, yes: bool) -> None:
    """Ask before destructive work; refuses where nobody can be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused(f"Nobody can be asked: {question}", "Give --yes to do it, or --dry-run to see what it would do.")
    if not click.confirm(harmless(question), err=True):
        raise Refused("Nothing was changed.")


def _with_session(command: Command, *, has_app: bool) -> Command:
    @functools.wraps(command)
    def run(*, url: str | None, is_json: bool, app: str | None = None, **values: Any) -> Any:
        handed = os.environ.pop(HANDED_URL, None)
        return command(session=Session(url=handed if url is None else url, is_json=is_json, app=app), **values)

    decorated: Command = click.option("--json", "is_json", is_flag=True, help="Print JSON for programs.")(run)
    decorated = click.option("--url", metavar="URL", help="The store; else PERDURE_URL, else perdure.toml.")(decorated)
    if has_app:
        decorated = click.option(
            "--app",
            metavar="MODULE:APP",
            envvar=APP_VARIABLE,
            default=configured_app,
            help=f"The app with its tasks; else {APP_VARIABLE}, else app of perdure.toml.",
        )(decorated)
    return decorated
