"""Draws simulations as .png or .svg with matplotlib, which comes with the extra `plot`.

Runs stand side by side in columns with the same axes, so that they can be compared; the outage is shaded. A picture
holds no date and nothing of the machine that drew it: the same simulation gives the same file.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from textwrap import wrap
from typing import Any

from perdure.errors import Unsupported
from perdure.simulator.result import Bucket, Simulation

FRESH, RETRY, WAITING, SHADE, INK = "#1f6fb2", "#d95f02", "#e6ab72", "#f1e3e3", "#333333"
_MOST_POINTS = 200
_LETTERS_PER_INCH = 12
_STYLE = {
    "svg.hashsalt": "perdure",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial", "sans-serif"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.edgecolor": "#999999",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "path.simplify": True,
}

_DIGITS = re.compile(r"\b\d+\.\d{2,}")
_INDENTS = re.compile(r"\n\s+")
_SPACES = re.compile(r" ?\n(?=[L\"z/])")

Curve = tuple[str, str, Callable[[Bucket, float], float]]
"""A curve's label, its colour, and its height in a bucket of so many seconds."""

STARTS: tuple[Curve, ...] = (
    ("fresh starts", FRESH, lambda bucket, width: bucket.fresh_starts / width),
    ("retry starts", RETRY, lambda bucket, width: bucket.retry_starts / width),
)
BACKLOG: tuple[Curve, ...] = (
    ("fresh, ready", FRESH, lambda bucket, _: bucket.fresh_backlog),
    ("retries, due", RETRY, lambda bucket, _: bucket.retry_due),
    ("retries, waiting", WAITING, lambda bucket, _: bucket.retry_waiting),
)
AGE: tuple[Curve, ...] = (("oldest fresh job", FRESH, lambda bucket, _: bucket.oldest_fresh.total_seconds()),)
ATTEMPTS: tuple[Curve, ...] = (("attempts", RETRY, lambda bucket, width: bucket.attempts / width),)

Panel = tuple[str, tuple[Curve, ...]]
PANELS: tuple[Panel, ...] = (
    ("starts per second", STARTS),
    ("jobs not started", BACKLOG),
    ("oldest fresh job, seconds", AGE),
)


def draw(
    path: Path,
    runs: Sequence[tuple[str, Simulation]],
    title: str,
    panels: Sequence[Panel] = PANELS,
    *,
    until: timedelta | None = None,
) -> None:
    """Draw the runs in columns, the panels in rows; all of a row have the same axes."""
    pyplot = _pyplot()
    with pyplot.rc_context(_STYLE):
        figure, axes = pyplot.subplots(
            len(panels),
            len(runs),
            sharex=True,
            sharey="row",
            squeeze=False,
            figsize=(1.6 + max(5.2, 2.7 * len(runs)), 0.8 + 1.75 * len(panels)),
            layout="constrained",
        )
        letters = int(figure.get_figwidth() * _LETTERS_PER_INCH)
        figure.suptitle("\n".join(wrap(title, letters)), fontsize=11, color=INK)
        for column, (name, simulation) in enumerate(runs):
            axes[0][column].set_title(name, color=INK)
            axes[-1][column].set_xlabel("seconds")
            for row, (_, curves) in enumerate(panels):
                _plot(axes[row][column], simulation, curves, until)
        for row, (label, curves) in enumerate(panels):
            axes[row][0].set_ylabel(label)
            axes[row][0].set_ylim(bottom=0)
            if len(curves) > 1 or row == 0:
                axes[row][-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, edgecolor="none")
        _save(figure, path)
        pyplot.close(figure)


def _pyplot() -> Any:
    try:
        import matplotlib  # an extra, and slow to import
    except ImportError as error:
        raise Unsupported(
            "Pictures need matplotlib, and it is not installed.", "Run: pip install perdure[plot]"
        ) from error
    matplotlib.use("agg")
    from matplotlib import pyplot

    return pyplot


def _plot(axes: Any, simulation: Simulation, curves: Sequence[Curve], until: timedelta | None) -> None:
    bucket = simulation.scenario.bucket
    end = until or simulation.buckets[-1].at + bucket
    width = bucket * max(1, -(-(end // bucket) // _MOST_POINTS))
    seconds = width.total_seconds()
    spans = simulation.spans(width, max(1, end // width))
    if simulation.scenario.outage is not None:
        begin, over = (moment.total_seconds() for moment in simulation.scenario.outage)
        axes.axvspan(begin, over, color=SHADE, linewidth=0, zorder=0, label="outage")
    moments = [span.at.total_seconds() + seconds for span in spans]
    for label, colour, height in curves:
        axes.plot(moments, [height(span, seconds) for span in spans], color=colour, label=label, linewidth=1.5)
    axes.set_xlim(0, end.total_seconds())
    axes.locator_params(nbins=5)
    axes.tick_params(bottom=False, left=False)


def _save(figure: Any, path: Path) -> None:
    if path.suffix.lower() != ".svg":
        figure.savefig(path, dpi=150, metadata={"Software": None})
        return
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    # A tenth of a point is finer than any screen; more digits only make the file larger.
    text = _DIGITS.sub(lambda found: f"{float(found[0]):.1f}", drawn.getvalue())
    path.write_text(_SPACES.sub(" ", _INDENTS.sub("\n", text)), encoding="utf-8")
