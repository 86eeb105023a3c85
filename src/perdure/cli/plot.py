"""Small pictures of text: jitter bands, and attempts per second with and without jitter side by side."""

from __future__ import annotations

from datetime import timedelta

from perdure.admin.forecast import Span
from perdure.admin.policies import spans
from perdure.admin.simulate import Simulation
from perdure.cli import output
from perdure.cli.output import Column, can_draw, rough

_BAR_WIDTH = 28


def band(span: Span, scale: timedelta, width: int) -> str:
    """The place of a jitter band on a line from nothing to `scale`, with a mark at the expected wait."""
    if not scale:
        return ""
    filled, mark = ("█", "┃") if can_draw() else ("=", "|")
    start = _place(span.least, scale, width)
    end = max(start + 1, _place(span.greatest, scale, width))
    line = [filled if start <= place < end else " " for place in range(width)]
    if span.least != span.greatest:
        line[min(_place(span.expected, scale, width), width - 1)] = mark
    return _visible("".join(line).rstrip())


def print_simulations(jittered: Simulation, bare: Simulation) -> None:
    """Print both runs: attempts over time side by side, then how they ended."""
    width, count = spans(jittered, bare)
    pairs = list(zip(jittered.bucketed(width, count), bare.bucketed(width, count), strict=True))
    highest = max(max(pair) for pair in pairs)
    columns = (
        Column("FROM", is_number=True),
        Column(f"ATTEMPTS PER {rough(timedelta(seconds=width))}", is_number=True),
        Column("WITH JITTER"),
        Column("ATTEMPTS", is_number=True),
        Column("WITHOUT"),
    )
    rows = [
        [
            rough(timedelta(seconds=place * width)),
            str(with_jitter),
            _bar(with_jitter, highest),
            str(without),
            _bar(without, highest),
        ]
        for place, (with_jitter, without) in enumerate(pairs)
    ]
    output.table(columns, rows)
    output.say("")
    output.fields([("with jitter", _summary(jittered)), ("without", _summary(bare))])


def _place(duration: timedelta, scale: timedelta, width: int) -> int:
    return min(width, round(duration / scale * width))


def _visible(line: str) -> str:
    # Tables collapse runs of spaces; what stands before the band must not move.
    return line.replace(" ", "·" if can_draw() else ".")


def _bar(count: int, highest: int) -> str:
    if not count:
        return ""
    return ("█" if can_draw() else "#") * max(1, round(count / highest * _BAR_WIDTH))


def _summary(run: Simulation) -> str:
    return (
        f"{run.succeeded:,} succeeded, {run.dead:,} dead, {run.attempts:,} attempts; "
        f"peak after the start {run.peak:,} in one second; last ended after {rough(run.last_ended)}"
    )
