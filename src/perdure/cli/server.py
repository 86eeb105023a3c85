"""`perdure server`: serve the REST API."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from perdure.cli import faults, output
from perdure.cli.configured import configured_app
from perdure.cli.log import show_log
from perdure.cli.options import Command, store_options, wait_option
from perdure.cli.session import APP_VARIABLE, Session

if TYPE_CHECKING:
    from perdure.web.server.serve import Listening


def server_options(command: Command) -> Command:
    """Adds --host, --port, --token and --any-task."""
    options = [
        click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen."),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=7373,
            show_default=True,
            metavar="N",
            help="0 takes any that is free.",
        ),
        click.option(
            "--token",
            "tokens",
            multiple=True,
            metavar="TOKEN",
            help="Who may use it, beside PERDURE_TOKENS: SCOPES:sha256:HASH; may be given several times.",
        ),
        click.option("--any-task", is_flag=True, help="Take jobs of tasks that the app does not have, too."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("app_name", metavar="[MODULE:APP]", required=False, envvar=APP_VARIABLE, default=configured_app)
@click.option("--scheduler", "has_scheduler", is_flag=True, help="Fire schedules, too; workers do so by themselves.")
@server_options
@wait_option
@store_options
def server(
    session: Session, app_name: str | None, any_task: bool, has_scheduler: bool, no_wait: bool, **given: Any
) -> int:
    """Serve the REST API until stopped.

    Without an app it serves what the store has, and takes jobs of any task. Without a token it answers this machine
    only. The first interrupt (Ctrl-C, SIGTERM) lets requests finish, the second stops at once.
    """
    from perdure.web.server.serve import serve  # here, so that help does not wait for it

    named = session if app_name is None else session.named(app_name)
    with named.app(may_create=True) as app:
        show_log(app.settings.log)
        is_any = True if any_task or app_name is None else None
        serve(
            app,
            accepts_any_task=is_any,
            make_beside=app.make_scheduler if has_scheduler else None,
            beside="scheduler",
            announce=lambda found: announce(session, found),
            waits=not no_wait,
            **given,
        )
    return faults.OK


def announce(session: Session, found: Listening) -> None:
    """Say where the API is."""
    if session.is_json:
        session.emit({"url": found.url, "has_tokens": found.has_tokens})
    else:
        who = "" if found.has_tokens else " (no token is set, so it answers this machine only)"
        output.say(f"Perdure's API is at {found.url}/api/v1{who}")
        output.say(f"Its description is at {found.url}/openapi.json. Ctrl-C stops it.")
    # Whoever waits for this line through a pipe must get it now.
    sys.stdout.flush()
