"""`perdure worker`: run jobs, in this process or in several that are watched over."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import click

from perdure.cli import faults, output
from perdure.cli.configured import configured_app, configured_metrics_port
from perdure.cli.log import show_log
from perdure.cli.options import read_duration, store_options, wait_option
from perdure.cli.session import APP_VARIABLE, Session
from perdure.errors import BadOption
from perdure.text.duration import format_duration
from perdure.text.plural import plural

METRICS_PORT = "PERDURE_METRICS_PORT"
_HIGHEST_PORT = 65535


@click.command()
@click.argument("app_name", metavar="[MODULE:APP]", required=False, envvar=APP_VARIABLE, default=configured_app)
@click.option("--queues", "-q", metavar="A:3,B", help="The queues to serve, with weights; else all that the app names.")
@click.option("--concurrency", "-c", type=click.IntRange(min=1), metavar="N", help="Attempts at once per process.")
@click.option(
    "--processes", "-p", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Processes."
)
@click.option("--grace", callback=read_duration, metavar="DURATION", help="How long attempts may finish on a stop.")
@click.option("--lease", callback=read_duration, metavar="DURATION", help="How long a silent worker keeps its jobs.")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, _HIGHEST_PORT),
    metavar="PORT",
    envvar=METRICS_PORT,
    help="Serve metrics and health there; more processes take the ports after it.",
)
@wait_option
@store_options
def worker(
    session: Session,
    app_name: str | None,
    queues: str | None,
    concurrency: int | None,
    processes: int,
    grace: timedelta | None,
    lease: timedelta | None,
    metrics_port: int | None,
    no_wait: bool,
) -> int:
    """Run the jobs of an app until stopped.

    The first interrupt (Ctrl-C, SIGTERM) stops fetching and lets running attempts finish within the grace time; the
    second stops at once. Without an app it runs HTTP jobs, which every worker knows. While the engine is away at the
    start, it waits for it.
    """
    given: dict[str, Any] = {
        "queues": read_queues(queues),
        "concurrency": concurrency,
        "grace": grace,
        "lease": lease,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if processes > 1:
        first = configured_metrics_port() if metrics_port is None else metrics_port
        return _supervise(session, app_name, processes, given, _ports(first, processes), is_patient=not no_wait)
    named = session if app_name is None else session.named(app_name)
    with named.app(may_create=True) as loaded:
        show_log(loaded.settings.log)
        loaded.run_worker(**given, metrics_port=metrics_port, wait=not no_wait)
    return faults.OK


def _supervise(
    session: Session,
    app: str | None,
    processes: int,
    given: dict[str, Any],
    ports: Callable[[int], Mapping[str, str]],
    *,
    is_patient: bool,
) -> int:
    """Run several copies of this command, each with one process."""
    from perdure.cli.loading import check_module  # here, so that help does not wait for it
    from perdure.runtime.supervisor import Supervisor
    from perdure.system.clock import SystemClock

    # A misspelt module is told once, here, and not by every process.
    if app is not None:
        check_module(app)
    names = [] if app is None else [app]
    command = [sys.executable, "-m", "perdure", "worker", *names, *session.arguments]
    if not is_patient:
        command.append("--no-wait")
    for name, value in given.items():
        text = format_duration(value) if isinstance(value, timedelta) else value
        command += [f"--{name}", ",".join(text) if isinstance(text, list) else str(text)]

    def variables(place: int) -> dict[str, str]:
        return {**session.variables, **ports(place)}

    return Supervisor(command, processes, clock=SystemClock(), say=output.aside, variables=variables).run()


def _ports(first: int | None, processes: int) -> Callable[[int], Mapping[str, str]]:
    """The variable with the port of each process: one after the other, unless any free one will do."""
    if first is None:
        return lambda place: {}
    if first == 0:
        return lambda place: {METRICS_PORT: "0"}
    if first + processes - 1 > _HIGHEST_PORT:
        raise BadOption(
            f"{plural(processes, 'process')} from port {first} on would need ports above {_HIGHEST_PORT}.",
            "Choose a lower --metrics-port.",
        )
    return lambda place: {METRICS_PORT: str(first + place)}


def read_queues(text: str | None) -> list[str] | None:
    """The queues that --queues names."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise BadOption("--queues names no queue.", "Give names with commas between: --queues mail,default")
    return list(dict.fromkeys(names))
