"""The picture: bars for each engine and work, Perdure's in another colour, written as SVG."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from bench.report import LESS_IS_BETTER, Figure, shown, unit

SHOWN = ("drain 1 async", "drain 2 async", "enqueue one by one", "enqueue in bulk", "latency p50", "fail twice")
COLOURS = {"perdure": "#1f6f5c", "raw": "#b8b8b8"}
OTHERS = "#7d9fc4"


def draw(path: Path, figures: Sequence[Figure]) -> None:
    """One picture of all engines: a row each, a column a work."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    engines = list(dict.fromkeys(figure.engine for figure in figures))
    names = [name for name in SHOWN if any(f.name == name and f.value is not None for f in figures)]
    if not names:
        return
    grid, axes = pyplot.subplots(
        len(engines), len(names), figsize=(3.4 * len(names), 3.0 * len(engines)), squeeze=False, layout="constrained"
    )
    for row, engine in enumerate(engines):
        for column, name in enumerate(names):
            _bars(axes[row][column], [f for f in figures if f.engine == engine and f.name == name])
            is_less = name in LESS_IS_BETTER
            axes[row][column].set_title(
                f"{engine}: {name}, {unit(name)}{' (less is better)' if is_less else ''}", fontsize=8
            )
    grid.savefig(path)
    pyplot.close(grid)


def _bars(axis: object, figures: Sequence[Figure]) -> None:
    medians: dict[str, float] = {}
    for peer in dict.fromkeys(figure.peer for figure in figures):
        values = [figure.value for figure in figures if figure.peer == peer and figure.value is not None]
        if values:
            medians[peer] = statistics.median(values)
    ordered = sorted(medians.items(), key=lambda pair: pair[1])
    labels, values = [peer for peer, _ in ordered], [value for _, value in ordered]
    bars = axis.barh(labels, values, color=[COLOURS.get(peer, OTHERS) for peer in labels])  # type: ignore[attr-defined]
    axis.bar_label(bars, [shown(value) for value in values], fontsize=7, padding=2)  # type: ignore[attr-defined]
    axis.margins(x=0.25)  # type: ignore[attr-defined]
    axis.tick_params(labelsize=7)  # type: ignore[attr-defined]
