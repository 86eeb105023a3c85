"""`perdure bench`: measures what the user's own engine does on this machine, and says what limits it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from perdure.cli import output
from perdure.cli.options import store_options
from perdure.cli.output import Column
from perdure.cli.progress import progress
from perdure.cli.session import Session
from perdure.errors import BadOption

if TYPE_CHECKING:
    from perdure.cli.bench.measure import Figures

_MOST_JOBS = 1_000_000
_MOST_SECONDS = 3600
_COLUMNS = (
    Column("MEASURED"),
    Column("JOBS", is_number=True),
    Column("SECONDS", is_number=True),
    Column("RESULT", is_number=True),
)


@click.command()
@click.argument("store_url", metavar="[URL]", required=False)
@click.option(
    "--jobs",
    type=click.IntRange(1, _MOST_JOBS),
    default=10_000,
    show_default=True,
    metavar="N",
    help="How many jobs to make.",
)
@click.option(
    "--seconds",
    type=click.IntRange(1, _MOST_SECONDS),
    default=60,
    show_default=True,
    metavar="N",
    help="How long to measure at most; each part has its share.",
)
@store_options
def bench(session: Session, store_url: str | None, jobs: int, seconds: int) -> None:
    """Measure enqueue, drain and latency of your engine with jobs that do nothing, and say what limits it.

    The jobs are in a queue of their own, on SQLite in a file of its own beside yours, and are gone afterwards, also
    after Ctrl-C. Other queues are not touched, but they share the engine while it runs.
    """
    if store_url is not None and session.url is not None:
        raise BadOption("The store is named twice.", "Give it as URL or with --url.")
    from perdure.cli.bench.measure import Counting, measure  # here, so that help does not wait for it
    from perdure.cli.bench.store import bench_place

    counting = Counting()
    with (
        _terminated_like_interrupted(),
        bench_place(store_url or session.url, counting) as place,
        _tidying_undisturbed(),
        progress("measuring", 2 * jobs, is_wanted=not session.is_json) as tell,
    ):
        found = measure(place, counting, jobs=jobs, seconds=seconds, tell=tell)
    if session.is_json:
        session.emit(_document(found))
    else:
        _print(found)


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM ends the measuring as Ctrl-C does, so that it is tidied up after; both are as before in the end."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def terminate(number: int, frame: FrameType | None) -> None:
        # In the background of a script SIGINT may be ignored; SIGTERM is meant for this process all the same.
        if before[signal.SIGINT] is signal.SIG_IGN:
            signal.default_int_handler(number, frame)
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _tidying_undisturbed() -> Iterator[None]:
    """From here on nothing interrupts: what follows is the tidying, which is short."""
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def _print(found: Figures) -> None:
    from perdure.cli.bench.verdict import shown_rate, shown_time, verdict

    slots = output.plural(found.concurrency, "slot")
    output.say(f"{found.engine} {found.version}, one worker with {slots}. {found.durability}")
    output.say("")
    rows = [
        [name, f"{speed.jobs:,}", f"{speed.elapsed:.2f}", shown_rate(speed.rate) if speed.jobs else "-"]
        for name, speed in (
            ("enqueue one by one", found.single),
            ("enqueue in bulk", found.bulk),
            ("run", found.drain),
        )
    ]
    rows.append(["round trip, median", "", "", shown_time(found.round_trip)])
    rows.append(["enqueue of one job, median", "", "", shown_time(found.commit)])
    for part in (0.5, 0.99):
        within = found.start(part)
        shown = "-" if within is None else shown_time(within)
        rows.append([f"enqueue to start, p{part * 100:.0f}", f"{len(found.starts):,}", "", shown])
    output.table(_COLUMNS, rows)
    output.heading("what it means")
    for sentence in verdict(found):
        output.say(f"- {sentence}")
    if found.is_cut:
        output.say("- The time was up before all jobs were through; the rates are of what was done. See --seconds.")


def _document(found: Figures) -> dict[str, Any]:
    from perdure.cli.bench.verdict import verdict

    speeds = {"enqueue_single": found.single, "enqueue_bulk": found.bulk, "run": found.drain}
    return {
        "engine": found.engine,
        "version": found.version,
        "concurrency": found.concurrency,
        **{
            name: {"jobs": speed.jobs, "elapsed": round(speed.elapsed, 6), "jobs_per_second": round(speed.rate, 1)}
            for name, speed in speeds.items()
        },
        "run_cpu": round(found.drain_cpu, 3),
        "round_trip": round(found.round_trip, 6),
        "enqueue_median": round(found.commit, 6),
        "start_samples": len(found.starts),
        "start_p50": _rounded(found.start(0.5)),
        "start_p99": _rounded(found.start(0.99)),
        "is_cut": found.is_cut,
        "verdict": verdict(found),
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)
