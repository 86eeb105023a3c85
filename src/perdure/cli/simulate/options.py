"""The options of `perdure policy simulate`: the load, the trouble, the workers and how they treat retries."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from perdure.cli.options import Command, read_duration
from perdure.errors import BadOption, BadPolicy
from perdure.model.policy.limit import read_limit
from perdure.simulator.ready import READY
from perdure.simulator.scenario import Batch, read_batches
from perdure.text.duration import parse_duration

Decorator = Callable[[Command], Command]

_PLOTS = (".png", ".svg")


def load_options(command: Command) -> Command:
    """Adds all of them; what is not given is None."""
    return functools.reduce(lambda decorated, option: option(decorated), reversed(_OPTIONS), command)


def _duration(name: str, meaning: str) -> Decorator:
    return click.option(name, callback=read_duration, metavar="DURATION", help=meaning)


def _whole(name: str, meaning: str, least: int = 1) -> Decorator:
    return click.option(name, type=click.IntRange(min=least), metavar="N", help=meaning)


def _chance(name: str, meaning: str) -> Decorator:
    return click.option(name, type=click.FloatRange(0, 1), metavar="P", help=meaning)


def _read_batch(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[Batch, ...] | None:
    """`AT:JOBS` or `AT:JOBS:PRIORITY`, any number of them."""
    batches: list[tuple[Any, ...]] = []
    for value in values:
        at, *numbers = value.split(":")
        try:
            batches.append((at, *(int(number) for number in numbers)))
        except ValueError:
            raise BadOption(f"--batch is {value!r}, which cannot be read.", "Write AT:JOBS, such as 10s:100.") from None
    return read_batches(batches) if batches else None


def _read_limit(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """`N` or `unlimited`."""
    if value is None:
        return None
    try:
        return read_limit("unlimited" if value == "unlimited" else int(value), None)
    except ValueError as error:
        if isinstance(error, BadPolicy):
            raise
        raise BadOption(f"--max-attempts is {value!r}, which cannot be read.", "Write 20, or unlimited.") from None


def _read_outage(_: click.Context, __: click.Parameter, value: str | None) -> tuple[timedelta, timedelta] | None:
    """`FROM-UNTIL`."""
    if value is None:
        return None
    begin, dash, end = value.partition("-")
    if not dash:
        raise BadOption(f"--outage is {value!r}, which cannot be read.", "Write FROM-UNTIL, such as 20s-50s.")
    return parse_duration(begin, what="--outage"), parse_duration(end, what="--outage")


def _read_rates(_: click.Context, __: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    """`P`, or `P,P,P` for attempt 1, 2, 3…"""
    try:
        return None if value is None else tuple(float(part) for part in value.split(","))
    except ValueError:
        raise BadOption(f"--failure-rate is {value!r}, which cannot be read.", "Write 0.1, or 0.5,0.2,0.1.") from None


def _read_plot(_: click.Context, __: click.Parameter, value: str | None) -> Path | None:
    if value is None:
        return None
    if Path(value).suffix.lower() not in _PLOTS:
        raise BadOption(f"--plot is {value!r}, and only .png and .svg can be drawn.", "Such as --plot load.svg.")
    return Path(value)


_OPTIONS: list[Decorator] = [
    _whole("--jobs", "So many jobs at the start; 1000 if nothing else is said about the load."),
    _duration("--fail-for", "From the start every attempt fails for so long; 60s if nothing else is said."),
    click.option("--rate", type=click.FloatRange(min=0), metavar="N", help="So many jobs arrive per second."),
    _duration("--duration", "For so long they arrive; 60s if not given."),
    click.option(
        "--batch",
        "batches",
        multiple=True,
        callback=_read_batch,
        metavar="AT:JOBS[:PRIORITY]",
        help="So many jobs arrive together then; may be repeated.",
    ),
    click.option(
        "--max-attempts",
        callback=_read_limit,
        metavar="N|unlimited",
        help="The limit that every job asks for itself; else the policy's holds.",
    ),
    _whole("--workers", "How many workers."),
    _whole("--slots", "How many attempts each of them runs at once."),
    _whole("--prefetch", "How many jobs a worker holds in advance.", 0),
    _whole("--fetch", "The most jobs of one fetch."),
    _duration("--run-time", "How long an attempt runs."),
    click.option("--exponential", is_flag=True, default=None, help="Draw run times around that mean."),
    _duration("--failure-time", "How long a failing attempt runs, if not as long as others."),
    click.option(
        "--outage", callback=_read_outage, metavar="FROM-UNTIL", help="Attempts that start then fail: 20s-50s."
    ),
    _chance("--outage-hits", "The part of the jobs that the outage hits."),
    click.option(
        "--failure-rate",
        "failure_rates",
        callback=_read_rates,
        metavar="P[,P…]",
        help="The chance to fail otherwise; with commas for attempt 1, 2, 3…",
    ),
    _whole("--capacity", "How many attempts per second the other side serves; more fail."),
    _chance("--retry-share", "The retry lane's part of what is fetched."),
    click.option("--strict", is_flag=True, default=None, help="An empty lane's part stays unused."),
    _whole("--max-retries-running", "At most so many retries run at once."),
    click.option("--retry-queue", metavar="NAME", help="Retries move to a queue with workers of its own."),
    _whole("--retry-workers", "How many workers the retry queue has."),
    _whole("--retry-slots", "How many attempts each of those runs at once."),
    _whole("--concurrency", "At most so many jobs of the queue run at once."),
    _duration("--bucket", "The width of a line; 1s if not given."),
    _duration("--until", "Stop then, and not when every job has ended."),
    click.option("--seed", type=int, metavar="N", help="The same seed gives the same numbers; 1 if not given."),
    _whole("--most-attempts", "Refuse to simulate more than this; a million if not given."),
    click.option("--scenario", type=click.Choice(list(READY)), help="A ready scenario; other options change it."),
    click.option("--compare", is_flag=True, help="Each mechanism of fairness, with and without jitter, side by side."),
    click.option("--plot", callback=_read_plot, metavar="FILE", help="Draw it as .png or .svg (needs perdure[plot])."),
]
