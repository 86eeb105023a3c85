"""The targets: what Perdure has to reach beside each peer, beside the raw engine and beside itself, as data."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.catalogue import ENGINES, EVERYBODY, PERDURE, POSTGRES, RAW, REDIS, SQLITE, Peer
from bench.report import BUSY, Figure, Verdict, shown

FLAT = 5.0
"""How many MiB a worker may grow by over many jobs and still count as flat."""

COMPUTING = "two processes ÷ one, handlers that compute"
"""Jobs that do nothing leave a second process only what one worker and its server left of the processors."""

Whom = Callable[[Peer, str], bool]


@dataclass(frozen=True, kw_only=True)
class Target:
    """One line: Perdure's figure over another's, at least or at most so much."""

    engine: str
    what: str
    figure: str
    whom: Whom | None = None
    """Whose figure it is held against: the best of these; nobody: Perdure's own other figure, or a limit."""
    own: str | None = None
    """The figure of Perdure's own that it is held against."""
    least: float | None = None
    most: float | None = None


def one(name: str) -> Whom:
    return lambda peer, engine: peer.name == name


def any_peer(peer: Peer, engine: str) -> bool:
    return peer not in (PERDURE, RAW)


def keeping(peer: Peer, engine: str) -> bool:
    return any_peer(peer, engine) and peer.keeps


def durable(peer: Peer, engine: str) -> bool:
    return any_peer(peer, engine) and engine not in peer.lax


def raw(peer: Peer, engine: str) -> bool:
    return peer is RAW


def _targets() -> tuple[Target, ...]:
    drain, one_by_one, bulk = "drain 1 async", "enqueue one by one", "enqueue in bulk"
    found = [
        Target(engine=POSTGRES, what="drain ÷ PgQueuer", figure=drain, whom=one("pgqueuer"), least=3),
        Target(engine=POSTGRES, what="drain ÷ Procrastinate", figure=drain, whom=one("procrastinate"), least=15),
        Target(engine=POSTGRES, what="drain ÷ fastest peer", figure=drain, whom=any_peer, least=1),
        Target(engine=REDIS, what="drain ÷ fastest at-least-once peer", figure=drain, whom=keeping, least=10),
        Target(engine=SQLITE, what="drain ÷ fastest peer", figure=drain, whom=any_peer, least=10),
    ]
    for engine, beside_raw, two, many in ((POSTGRES, 0.5, 1.4, 1.2), (REDIS, 0.3, 1.4, 1.5), (SQLITE, 0.3, 0.9, 1.5)):
        found += [
            Target(engine=engine, what="drain ÷ raw engine", figure=drain, whom=raw, least=beside_raw),
            Target(engine=engine, what="two processes ÷ one", figure="drain 2 async", own=drain, least=two),
            Target(engine=engine, what=COMPUTING, figure="drain 2 computing", own="drain 1 computing", least=1.4),
            Target(engine=engine, what="bulk enqueue ÷ fastest peer", figure=bulk, whom=any_peer, least=many),
            Target(engine=engine, what="one by one ÷ fastest durable peer", figure=one_by_one, whom=durable, least=1),
            Target(engine=engine, what="latency p50 ÷ best peer", figure="latency p50", whom=any_peer, most=1),
            Target(engine=engine, what="latency p99 ÷ best peer", figure="latency p99", whom=any_peer, most=1),
            Target(engine=engine, what="fail twice ÷ fastest peer", figure="fail twice", whom=any_peer, least=8),
            Target(engine=engine, what="due at once: rate ÷ plain drain", figure="due rate", own=drain, least=1 / 1.3),
            Target(engine=engine, what="idle memory, MiB", figure="idle memory", most=60),
            Target(engine=engine, what="memory growth, MiB", figure="memory growth", most=FLAT),
            Target(engine=engine, what="drain with a large backlog ÷ small", figure="backlog", least=0.9),
        ]
    return tuple(sorted(found, key=lambda target: ENGINES.index(target.engine)))


TARGETS = _targets()


def judge(figures: Sequence[Figure]) -> list[Verdict]:
    """A verdict for each target whose figures were asked for."""
    measured = {(figure.engine, figure.name) for figure in figures}
    return [_judge(target, figures) for target in TARGETS if (target.engine, target.figure) in measured]


def _judge(target: Target, figures: Sequence[Figure]) -> Verdict:
    own = _rounds(figures, target.engine, PERDURE.name, target.figure)
    name, other = _other(target, figures)
    is_limit = target.whom is None and target.own is None
    if not own or not (other or is_limit):
        return Verdict(target.engine, target.what, "–", name or "–", "–", _wanted(target), "not measured")
    usual = statistics.median(other.values()) if other else 1.0
    # Round by round, so that what fell on both alike cancels out.
    ratios = [value / (other.get(number, usual) if other else 1.0) for number, value in own.items()]
    ratio = statistics.median(ratios)
    is_met = (target.least is None or ratio >= target.least) and (target.most is None or ratio <= target.most)
    spread = shown(ratio) if len(ratios) < 2 else f"{shown(ratio)} ({shown(min(ratios))}–{shown(max(ratios))})"
    beside = "–" if is_limit else f"{name} {shown(usual)}"
    mine = shown(statistics.median(own.values()))
    verdict = "met" if is_met else f"missed{_why(target, figures)}"
    return Verdict(target.engine, target.what, mine, beside, spread, _wanted(target), verdict)


def _why(target: Target, figures: Sequence[Figure]) -> str:
    """What the machine has to say for it: a second worker can use no more of the processors than the first left."""
    busy = _rounds(figures, target.engine, PERDURE.name, f"{BUSY}{target.own}")
    if not busy or target.least is None:
        return ""
    usual, count = statistics.median(busy.values()), os.cpu_count() or 1
    if count / usual >= target.least:
        return ""
    return f": one kept {shown(usual)} of {count} processors busy, which leaves room for {shown(count / usual)}"


def _other(target: Target, figures: Sequence[Figure]) -> tuple[str, dict[int, float]]:
    """Who it is held against, with a value for each round."""
    if target.own is not None:
        return target.own, _rounds(figures, target.engine, PERDURE.name, target.own)
    if target.whom is None:
        return "", {}
    names = [peer.name for peer in EVERYBODY if target.whom(peer, target.engine)]
    found = {name: rounds for name in names if (rounds := _rounds(figures, target.engine, name, target.figure))}
    if not found:
        return "", {}
    best = min if target.most is not None else max
    name = best(found, key=lambda each: statistics.median(found[each].values()))
    return name, found[name]


def _rounds(figures: Sequence[Figure], engine: str, peer: str, name: str) -> dict[int, float]:
    return {
        each.round: each.value
        for each in figures
        if (each.engine, each.peer, each.name) == (engine, peer, name) and each.value is not None
    }


def _wanted(target: Target) -> str:
    return f"≥ {target.least:.3g}" if target.least is not None else f"≤ {target.most:.3g}"
