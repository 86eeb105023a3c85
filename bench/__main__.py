"""Measures Perdure beside its peers and beside the raw engine in one run: `python -m bench --help`."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from bench.allocator import provide
from bench.catalogue import ENGINES, EVERYBODY, PERDURE, RAW, REDIS, Peer, before
from bench.environments import NotMadeError
from bench.ground import FailedError
from bench.picture import draw
from bench.report import Figure, markdown
from bench.servers import started
from bench.targets import judge
from bench.works import WORKS, Course, takes_part


def main() -> int:
    options = _options()
    # Asked to end, it ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    engines: tuple[str, ...] = options.engines
    peers = [peer for peer in EVERYBODY if peer.name in options.peers]
    if options.before:
        peers.insert(0, before(options.before))
    figures: list[Figure] = []
    if REDIS in engines and not options.quick:
        provide()
    with started(engines) as servers:
        settings = {engine: server.settings for engine, server in servers.items()}
        try:
            for number, engine, work in itertools.product(range(options.rounds), engines, options.works):
                course = Course(engine=engine, server=servers[engine], jobs=options.jobs, seconds=options.seconds)
                _round(figures, number, work, [peer for peer in peers if engine in peer.engines], course)
        except KeyboardInterrupt:
            print("stopped; this is what was measured so far", file=sys.stderr)
    head = (
        f"Drains of {options.jobs:,} jobs where the pace allows it, medians of {options.rounds} rounds, everybody in"
        " turn; in square brackets Perdure's figure over the peer's, with the spread over the rounds."
        f" Python {platform.python_version()}, {os.cpu_count()} cores."
    )
    text = markdown(figures, judge(figures), settings, {peer.name: peer.note for peer in peers}, head)
    print(text)
    if options.output:
        _write(options.output, text, figures)
    return 0


def _round(figures: list[Figure], number: int, work: str, peers: list[Peer], course: Course) -> None:
    """One work of everybody, one after the other, so that whatever else the machine does falls on all alike."""
    engine = course.engine
    broken = {(figure.peer, figure.work) for figure in figures if figure.engine == engine and figure.value is None}
    for peer in peers:
        if not takes_part(work, peer) or (peer.name, work) in broken:
            continue
        began = time.monotonic()
        try:
            found = WORKS[work](course, peer)
        except (FailedError, NotMadeError) as failure:
            figures.append(Figure(engine, work, peer.name, number, work, None, 0, (str(failure),)))
            said = f"failed: {failure}"
        else:
            for name, value in found.figures.items():
                figures.append(Figure(engine, work, peer.name, number, name, value, found.jobs, found.notes))
            said = ", ".join(f"{name} {value:,.1f}" for name, value in found.figures.items())
            said = f"{said} ({found.jobs:,} jobs) {'; '.join(found.notes)}"
        print(
            f"{number + 1} {engine:9}{peer.name:14}{said} [{time.monotonic() - began:.1f} s]",
            file=sys.stderr,
            flush=True,
        )


def _write(folder: Path, text: str, figures: list[Figure]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.md").write_text(text + "\n")
    (folder / "bench.json").write_text(json.dumps([asdict(figure) for figure in figures], indent=1) + "\n")
    (folder / "verdicts.json").write_text(json.dumps([asdict(each) for each in judge(figures)], indent=1) + "\n")
    draw(folder / "bench.svg", figures)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    names = tuple(peer.name for peer in EVERYBODY)
    parser.add_argument("--engines", type=_some(ENGINES), default=ENGINES, help=", ".join(ENGINES))
    parser.add_argument("--peers", type=_some(names), default=names, help=", ".join(names))
    parser.add_argument("--works", type=_some(tuple(WORKS)), default=tuple(WORKS), help=", ".join(WORKS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=20_000, help="jobs of a drain; other works take their share")
    parser.add_argument("--seconds", type=float, default=20.0, help="about how long one measurement may take")
    parser.add_argument("--output", type=Path, help="a folder for the table, the figures and the picture")
    parser.add_argument("--before", type=Path, help="another checkout of Perdure, set up, to measure in turn with this")
    parser.add_argument("--quick", action="store_true", help="a handful of jobs, Perdure and the raw engine only")
    options = parser.parse_args()
    if options.quick:
        options.peers, options.rounds = (PERDURE.name, RAW.name), 1
        options.jobs, options.seconds = 200, 5.0
    return options


def _some(known: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """Reads names with commas between them."""

    def read(text: str) -> tuple[str, ...]:
        names = tuple(name.strip() for name in text.split(",") if name.strip())
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
        return names

    return read


if __name__ == "__main__":
    sys.exit(main())
