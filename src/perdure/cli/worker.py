"""`perdure worker`: run jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from perdure.cli.options import read_duration, store_options
from perdure.cli.session import APP_VARIABLE, Session
from perdure.errors import BadOption


@click.command()
@click.argument("app", metavar="MODULE:APP", envvar=APP_VARIABLE)
@click.option("--queues", "-q", metavar="A,B", help="The queues to serve, first ones first.")
@click.option("--concurrency", "-c", type=click.IntRange(min=1), metavar="N", help="Attempts at once per process.")
@click.option("--processes", "-p", type=click.IntRange(min=1), metavar="N", help="Worker processes; 1 if not given.")
@click.option("--grace", callback=read_duration, metavar="DURATION", help="How long attempts may finish on a stop.")
@click.option("--lease", callback=read_duration, metavar="DURATION", help="How long a silent worker keeps its jobs.")
@store_options
def worker(
    session: Session,
    app: str,
    queues: str | None,
    concurrency: int | None,
    processes: int | None,
    grace: timedelta | None,
    lease: timedelta | None,
) -> int:
    """Run the jobs of an app until stopped.

    The first interrupt (Ctrl-C, SIGTERM) stops fetching and lets running attempts finish within the grace time.
    """
    given: dict[str, Any] = {
        "queues": _read_queues(queues),
        "concurrency": concurrency,
        "processes": processes,
        "grace": grace,
        "lease": lease,
    }
    with session.named(app).app(may_create=True) as loaded:
        loaded.run_worker(**{name: value for name, value in given.items() if value is not None})
    return 0


def _read_queues(text: str | None) -> list[str] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise BadOption("--queues names no queue.", "Give names with commas between: --queues mail,default")
    return list(dict.fromkeys(names))
