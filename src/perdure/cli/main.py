"""The entry of the command line: the table of commands, and failures turned into messages and exit codes."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from perdure.cli import faults
from perdure.cli.lazy import LazyGroup

COMMANDS = {
    "demo": ("perdure.cli.demo.command:demo", "See it work: jobs against a flaky service, and books that balance."),
    "worker": ("perdure.cli.worker:worker", "Run jobs."),
    "server": ("perdure.cli.server:server", "Serve the REST API."),
    "up": ("perdure.cli.up:up", "Run everything in one process: a worker and the REST API."),
    "token": ("perdure.cli.token:token", "Make tokens for the REST API."),
    "enqueue": ("perdure.cli.enqueue:enqueue", "Make a job."),
    "http": ("perdure.cli.http:http", "Make a job that sends an HTTP request."),
    "jobs": ("perdure.cli.jobs:jobs", "List, show, cancel and retry jobs."),
    "dlq": ("perdure.cli.dlq:dlq", "The dead letters: understand them, bring them back, dismiss them."),
    "queues": ("perdure.cli.queues:queues", "List, pause, resume and limit queues."),
    "schedules": (
        "perdure.cli.schedules:schedules",
        "Rules that make jobs: list, add, look ahead, run, pause, remove.",
    ),
    "workers": ("perdure.cli.workers:workers", "See who runs the jobs."),
    "policy": ("perdure.cli.policy:policy", "See what retry policies do before they do it."),
    "explain": ("perdure.cli.explain:explain", "Say which limit and delays hold for a task or job, and why."),
    "stats": ("perdure.cli.stats:stats", "The numbers over all queues."),
    "top": ("perdure.cli.top:top", "Watch queues and workers live."),
    "health": ("perdure.cli.health:health", "Say whether all is well, by thresholds and an exit code."),
    "metrics": ("perdure.cli.metrics:metrics", "Metrics: their names, alert rules, a dashboard."),
    "bench": (
        "perdure.cli.bench.command:bench",
        "Measure your engine with jobs that do nothing; see what limits it.",
    ),
    "doctor": ("perdure.cli.doctor.command:doctor", "Look for what is wrong with the engine, workers and queues."),
    "db": ("perdure.cli.db:db", "The store's schema: status, migration and statements."),
}


_MOMENT = 2.0
"""How many seconds threads that are left over may go on when the command is done."""


class PipeClosed(Exception):  # noqa: N818 - the reader has seen enough; no fault
    """Whoever read our output went away."""


class Root(LazyGroup):
    """The root command: runs a command and turns whatever it raises into an exit code."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> NoReturn:
        given = list(sys.argv[1:] if args is None else args)
        _tolerate_narrow_encodings()
        extra["standalone_mode"] = False
        try:
            code = super().main(given, *rest, **extra)
        except PipeClosed:
            _forget_stdout()
            sys.exit(faults.OK)
        except click.Abort:
            click.echo("interrupted", err=True)
            sys.exit(faults.INTERRUPTED)
        except Exception as error:
            faults.tell(error, as_json=_is_json_asked_for(given))
            sys.exit(faults.exit_code(error))
        sys.exit(code if isinstance(code, int) else faults.OK)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise PipeClosed from None
        return result


def _print_version(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not ctx.resilient_parsing:
        from importlib.metadata import version  # only here: it would slow every help page

        click.echo(f"perdure {version('perdure')}")
        ctx.exit()


root = Root(
    name="perdure",
    lazy=COMMANDS,
    help="A durable job queue whose heart is what happens when work fails.\n\n"
    "The store is --url, else PERDURE_URL, else url of perdure.toml, else sqlite:///perdure.db.",
    epilog="Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 refused, 5 engine unreachable, 130 interrupted.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Show the version.",
        )
    ],
)


def main() -> NoReturn:
    """The console script."""
    try:
        root.main(prog_name="perdure")
    except SystemExit as end:
        _end_in_spite_of_threads(end.code if isinstance(end.code, int) else faults.OK)
        raise


def _end_in_spite_of_threads(code: int) -> None:
    """Python waits for ever for threads that are no daemons: those that a handler left behind get a moment only."""
    left = [each for each in threading.enumerate() if not each.daemon and each is not threading.main_thread()]
    for thread in left:
        thread.join(_MOMENT / len(left))
    if any(thread.is_alive() for thread in left):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _is_json_asked_for(args: Sequence[str]) -> bool:
    """Whether errors are for a program; after `http`, a --json that is followed by a content is that content's."""
    places = [place for place, text in enumerate(args) if text == "--json"]
    if args and args[0] == "http":
        places = [place for place in places if place + 1 == len(args) or args[place + 1].startswith("-")]
    return bool(places)


def _tolerate_narrow_encodings() -> None:
    """A terminal that cannot show a character shows a question mark; that is no reason to fail."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _forget_stdout() -> None:
    """The interpreter flushes stdout once more at exit; give it something that can be written to."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
