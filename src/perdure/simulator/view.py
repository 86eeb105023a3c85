"""Long runs cut into few lines: a width that fits on a screen, and two runs side by side."""

from __future__ import annotations

from datetime import timedelta

from perdure.simulator.result import Simulation

_ROWS = 24
_WIDTHS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400)


def fit(*runs: Simulation) -> tuple[timedelta, int]:
    """A width of whole buckets with which all runs fit on the screen, and how many lines that makes."""
    last = max(run.buckets[-1].at for run in runs)
    bucket = runs[0].scenario.bucket
    known = (timedelta(seconds=width) for width in _WIDTHS)
    fitting = (width for width in [bucket, *known] if last // width < _ROWS and not width % bucket)
    width = next(fitting, (last // bucket // _ROWS + 1) * bucket)
    return width, last // width + 1


def side_by_side(jittered: Simulation, bare: Simulation) -> tuple[timedelta, list[tuple[int, int]]]:
    """The attempts of both runs in each span, and its width."""
    width, count = fit(jittered, bare)
    pairs = zip(jittered.spans(width, count), bare.spans(width, count), strict=True)
    return width, [(one.attempts, other.attempts) for one, other in pairs]


def peak(run: Simulation) -> int:
    """The most attempts in one bucket after the first second, in which all jobs start together."""
    return max((bucket.attempts for bucket in run.buckets if bucket.at), default=0)
