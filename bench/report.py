"""The report: figures as tables, Perdure's ratio to each peer with its spread, and a verdict for each target."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One value of one work of one peer in one round; no value where it could not be measured, and why."""

    engine: str
    work: str
    peer: str
    round: int
    name: str
    value: float | None
    jobs: int
    notes: tuple[str, ...] = ()


def markdown(figures: list[Figure], settings: dict[str, str], jobs: int) -> str:
    lines: list[str] = []
    for engine, said in settings.items():
        lines += [f"## {engine} ({said})", ""]
        own = [figure for figure in figures if figure.engine == engine]
        names = list(dict.fromkeys(figure.name for figure in own if figure.value is not None))
        peers = list(dict.fromkeys(figure.peer for figure in own))
        lines += ["| peer | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
        for peer in peers:
            cells = [_cell([f for f in own if f.peer == peer and f.name == name]) for name in names]
            lines.append(f"| {peer} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _cell(figures: Iterable[Figure]) -> str:
    values = [figure.value for figure in figures if figure.value is not None]
    if not values:
        return "–"
    return f"{statistics.median(values):,.3g}" if max(values) < 1000 else f"{statistics.median(values):,.0f}"
