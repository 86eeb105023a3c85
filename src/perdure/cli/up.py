"""`perdure up`: worker, scheduler and REST API in one process."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from perdure.cli import faults
from perdure.cli.configured import configured_app
from perdure.cli.log import show_log
from perdure.cli.options import read_duration, store_options, wait_option
from perdure.cli.server import announce, server_options
from perdure.cli.session import APP_VARIABLE, Session
from perdure.cli.worker import read_queues


@click.command()
@click.argument("app_name", metavar="[MODULE:APP]", required=False, envvar=APP_VARIABLE, default=configured_app)
@click.option("--queues", "-q", metavar="A,B", help="The queues to serve; all that the app names if not given.")
@click.option("--concurrency", "-c", type=click.IntRange(min=1), metavar="N", help="Attempts at once.")
@click.option("--grace", callback=read_duration, metavar="DURATION", help="How long attempts may finish on a stop.")
@server_options
@wait_option
@store_options
def up(
    session: Session,
    app_name: str | None,
    queues: str | None,
    concurrency: int | None,
    grace: timedelta | None,
    any_task: bool,
    no_wait: bool,
    **given: Any,
) -> int:
    """Run everything in one process: a worker, which also fires schedules, and the REST API.

    Without an app it runs HTTP jobs and fires schedules; jobs of your tasks then need workers elsewhere.
    """
    from perdure.web.server.serve import serve  # here, so that help does not wait for it

    named = session if app_name is None else session.named(app_name)
    wanted = read_queues(queues)
    with named.app(may_create=True) as app:
        show_log(app.settings.log)
        serve(
            app,
            accepts_any_task=True if any_task or app_name is None else None,
            make_beside=lambda: app.make_worker(wanted, concurrency, None, grace),
            announce=lambda found: announce(session, found),
            waits=not no_wait,
            **given,
        )
    return faults.OK
