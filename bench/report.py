"""The report: figures as tables with Perdure's ratio to each peer, who could not be measured and why, and verdicts."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

LESS_IS_BETTER = ("latency p50", "latency p99", "due", "idle memory", "memory growth")
BUSY = "busy in "
"""What the names of figures begin with that tell how many processors a drain kept busy."""
UNITS = {
    "latency p50": "ms",
    "latency p99": "ms",
    "due": "s",
    "idle memory": "MiB",
    "memory growth": "MiB",
    "backlog": "ratio",
}


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


@dataclass(frozen=True)
class Verdict:
    """How one target was kept."""

    engine: str
    what: str
    perdure: str
    other: str
    ratio: str
    wanted: str
    verdict: str


def markdown(
    figures: Sequence[Figure],
    verdicts: Sequence[Verdict],
    settings: Mapping[str, str],
    notes: Mapping[str, str],
    head: str,
) -> str:
    """The whole report."""
    lines = ["# Perdure beside its peers", "", head, ""]
    for engine, said in settings.items():
        own = [figure for figure in figures if figure.engine == engine]
        lines += [f"## {engine} ({said})", "", *_table(own), *_absent(own)]
    lines += ["## Targets", "", *_verdicts(verdicts), "", "## Settings", ""]
    named = dict.fromkeys(figure.peer for figure in figures)
    lines += [f"- {peer}: {notes[peer]}" for peer in named if notes.get(peer)]
    return "\n".join(lines)


def unit(name: str) -> str:
    """What a figure of that name counts."""
    return "processors" if name.startswith(BUSY) else UNITS.get(name, "jobs/s")


def shown(value: float) -> str:
    """A number with as many digits as mean something."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _table(figures: Sequence[Figure]) -> list[str]:
    """A line a peer, a column a figure: the median, and in brackets Perdure's over it with the spread over rounds."""
    names = list(dict.fromkeys(figure.name for figure in figures if figure.value is not None))
    peers = list(dict.fromkeys(figure.peer for figure in figures))
    heads = [f"{name}, {unit(name)}" for name in names]
    lines = ["| peer | " + " | ".join(heads) + " |", "|---" * (len(names) + 1) + "|"]
    for peer in peers:
        cells = [_cell(figures, peer, name) for name in names]
        lines.append(f"| {peer} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def _cell(figures: Sequence[Figure], peer: str, name: str) -> str:
    own = {each.round: each for each in figures if (each.peer, each.name) == (peer, name) and each.value is not None}
    if not own:
        return "–"
    values = {number: each.value for number, each in own.items() if each.value is not None}
    mark = "*" if any(each.notes for each in own.values()) else ""
    text = f"{shown(statistics.median(values.values()))}{mark}"
    reference = {
        each.round: each.value
        for each in figures
        if (each.peer, each.name) == ("perdure", name) and each.value is not None
    }
    ratios = [reference[number] / value for number, value in values.items() if number in reference and value]
    if peer == "perdure" or not ratios or name in ("memory growth", "backlog") or name.startswith(BUSY):
        return text
    spread = f" {shown(min(ratios))}–{shown(max(ratios))}" if len(ratios) > 1 else ""
    return f"{text} [{shown(statistics.median(ratios))}×{spread}]"


def _absent(figures: Sequence[Figure]) -> list[str]:
    """What is not in the table or not as it should be, with the reason."""
    lines = [
        f"- {figure.peer}, {figure.work}: {'could not be measured: ' if figure.value is None else '* '}{note}"
        for figure in figures
        for note in figure.notes
    ]
    few = {
        (figure.peer, figure.work): figure.jobs
        for figure in figures
        if figure.value is not None and figure.jobs < max(f.jobs for f in figures if f.work == figure.work)
    }
    fewer = ", ".join(f"{peer} {work} {jobs:,}" for (peer, work), jobs in few.items())
    lines += [f"- With fewer jobs, since their pace allows no more in the time: {fewer}."] if fewer else []
    return [*dict.fromkeys(lines), ""] if lines else []


def _verdicts(verdicts: Sequence[Verdict]) -> list[str]:
    lines = ["| engine | target | Perdure | beside | ratio (spread) | wanted | verdict |", "|---" * 7 + "|"]
    return [*lines, *(f"| {' | '.join(astuple(each))} |" for each in verdicts)]
