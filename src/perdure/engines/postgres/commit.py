"""Writes what follows attempts, fenced by (job id, attempt, worker): a whole batch in one statement.

When the reply to a commit was lost, or a handler completed its job in a transaction of its own, the fence is in doubt:
another commit of it that is not accepted is looked up, and if the attempt was ended just so, that is a success.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import msgspec

from perdure.engines.postgres.rows import (
    are_ids,
    from_array,
    from_batch,
    from_bytes_array,
    from_duration,
    from_failure,
    from_optional_text,
    from_text,
    is_id,
    words_of,
)
from perdure.engines.postgres.verb import Script, Step, Verb
from perdure.model.failure import Failure
from perdure.model.outcome import Outcome
from perdure.store.jobs import Ended
from perdure.system.clock import to_microseconds

Fence = tuple[str, int, str]
_MOST_DOUBTS = 100_000
_FEW = 50
"""So few attempts that are not all alike are written in one statement: a second one would cost more than it saves."""


class _Due(msgspec.Struct, frozen=True):
    """A job that died and has a sink, as commit_forward.sql takes it."""

    id: str
    sink: str


class Doubts:
    """The fences of which nobody knows whether they were committed; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fences: dict[Fence, None] = {}

    def add(self, ended: Sequence[Ended]) -> None:
        with self._lock:
            self._fences.update((fence(one), None) for one in ended)
            while len(self._fences) > _MOST_DOUBTS:
                del self._fences[next(iter(self._fences))]

    def settle(self, ended: Sequence[Ended]) -> None:
        with self._lock:
            for one in ended:
                self._fences.pop(fence(one), None)

    def among(self, ended: Sequence[Ended]) -> set[int]:
        """The places of those that are in doubt."""
        if not self._fences:
            return set()
        with self._lock:
            return {place for place, one in enumerate(ended) if fence(one) in self._fences}


class _Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """An ended attempt as commit.sql takes it."""

    place: int
    id: str
    attempt: int
    worker: str
    started_at: int
    ended_at: int
    outcome: str
    state: str
    lane: str
    failures: int
    recoveries: int
    queue: str | None = None
    delay: int | None = None
    reason: str | None = None
    error: str | None = None
    error_words: str | None = None
    fingerprint: str | None = None
    result: bytes | None = None


def fence(one: Ended) -> Fence:
    """What must match for a commit to be accepted."""
    return (one.job_id, one.attempt, one.worker)


def commit(ended: Sequence[Ended], doubts: Doubts) -> Verb[list[bool]]:
    """Write what follows; for each whether its fence matched."""
    is_uniform = _is_uniform(ended)

    def settling() -> Script[list[bool]]:
        doubtful = doubts.among(ended)
        answers = yield from _parted(ended, doubtful, is_uniform)
        if doubtful:
            doubts.settle([ended[place] for place in doubtful])
        return answers

    return Verb(
        settling,
        # Only a batch in which a job dies that has a sink is more than one statement that changes something.
        is_transaction=not is_uniform and any(one.outcome.sink is not None for one in ended),
        is_repeatable=True,
        plan="commit_succeeded" if is_uniform else "commit",
        when_in_doubt=lambda: doubts.add(ended),
    )


def _is_uniform(ended: Sequence[Ended]) -> bool:
    """Whether all of these are plain successes of one worker with the same numbers, as most batches are."""
    if not ended or ended[0].outcome is not ended[-1].outcome or not _is_plain(ended[0].outcome):
        return False
    return len({(one.attempt, one.worker, id(one.outcome)) for one in ended}) == 1


def _is_plain(outcome: Outcome) -> bool:
    return outcome.state == "succeeded" and outcome.note is None and outcome.queue is None


def _parted(ended: Sequence[Ended], doubtful: set[int], is_uniform: bool) -> Script[list[bool]]:
    """Write the successes that are alike by themselves, if they are most of a batch, and the others as any batch."""
    alike = [] if doubtful else _alike(ended, is_uniform)
    if not alike:
        return (yield from script(ended, doubtful))
    ((accepted,),) = yield Step("commit_succeeded", _succeeded([ended[place] for place in alike]))
    if accepted is None and len(alike) == len(ended):
        return [True] * len(ended)
    answers = [False] * len(ended)
    for number in range(1, len(alike) + 1) if accepted is None else accepted:
        answers[alike[number - 1]] = True
    if len(alike) < len(ended):
        left = sorted(set(range(len(ended))).difference(alike))
        for place, answer in zip(left, (yield from script([ended[place] for place in left], set())), strict=True):
            answers[place] = answer
    return answers


def _alike(ended: Sequence[Ended], is_uniform: bool) -> list[int]:
    """The places of the largest group of plain successes, in the order of ids; none if they are not worth it."""
    largest = list(range(len(ended))) if is_uniform else _largest_group(ended)
    is_worth_it = len(largest) == len(ended) or len(largest) > max(_FEW, len(ended) // 2)
    ids = [one.job_id for one in ended]
    # What to do about a fence twice, or an id that can be no job's, is known by script().
    if not is_worth_it or len(set(ids)) < len(ids) or not are_ids(ids):
        return []
    return sorted(largest, key=ids.__getitem__)


def _largest_group(ended: Sequence[Ended]) -> list[int]:
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, one in enumerate(ended):
        outcome = one.outcome
        if _is_plain(outcome):
            key = (one.attempt, one.worker, outcome.lane, outcome.failures, outcome.recoveries)
            groups.setdefault(key, []).append(place)
    return max(groups.values(), key=len, default=[])


def _succeeded(ended: Sequence[Ended]) -> dict[str, object]:
    """Successes that are alike, as commit_succeeded.sql takes them."""
    first = ended[0]
    results = [one.outcome.result for one in ended]
    is_same = len(set(results)) == 1
    return {
        "ids": from_array([one.job_id for one in ended]),
        "started_at": from_array([str(to_microseconds(one.started_at)) for one in ended]),
        "ended_at": from_array([str(to_microseconds(one.ended_at)) for one in ended]),
        "results": "{}" if is_same else from_bytes_array(results),
        "result": results[0] if is_same else None,
        "worker": from_text(first.worker),
        "attempt": str(first.attempt),
        "failures": str(first.outcome.failures),
        "recoveries": str(first.outcome.recoveries),
        "lane": first.outcome.lane,
    }


def script(ended: Sequence[Ended], doubtful: set[int]) -> Script[list[bool]]:
    """Write a batch; where a fence in doubt was refused, look whether it had been accepted before."""
    # Of one fence twice in a batch the first stands, as if they had come one after the other.
    firsts: dict[Fence, int] = {}
    for place, one in enumerate(ended):
        if is_id(one.job_id):
            firsts.setdefault(fence(one), place)
    answers = [False] * len(ended)
    # Rows are locked in the order of ids by everybody who can.
    rows = sorted((_row(place, ended[place]) for place in firsts.values()), key=lambda row: row.id)
    if rows:
        for (place,) in (yield Step("commit", {"ended": from_batch(rows)})):
            answers[place] = True
    due = [
        _Due(row.id, from_text(sink)) for row in rows if (sink := ended[row.place].outcome.sink) and answers[row.place]
    ]
    if due:
        # [INV-22] Due to its sink in the very step in which it dies.
        yield Step("commit_forward", {"due": from_batch(due)})
    refused = [row for row in rows if row.place in doubtful and not answers[row.place]]
    if refused:
        for (place,) in (yield Step("commit_recognised", {"ended": from_batch(refused)})):
            answers[place] = True
    return answers


def _row(place: int, one: Ended) -> _Row:
    outcome = one.outcome
    return _Row(
        place=place,
        id=one.job_id,
        attempt=one.attempt,
        worker=from_text(one.worker),
        started_at=to_microseconds(one.started_at),
        ended_at=to_microseconds(one.ended_at),
        outcome=outcome.attempt,
        state=outcome.state,
        lane=outcome.lane,
        queue=from_optional_text(outcome.queue),
        delay=from_duration(outcome.delay),
        failures=outcome.failures,
        recoveries=outcome.recoveries,
        reason=from_optional_text(outcome.note if outcome.state == "succeeded" else outcome.reason),
        error=from_failure(outcome.error),
        error_words=words_of(outcome.error),
        fingerprint=_fingerprint(one) if outcome.state == "dead" else None,
        result=outcome.result,
    )


def _fingerprint(one: Ended) -> str:
    """The error group of a dead job; jobs that died without an error are grouped by reason."""
    error = one.outcome.error or Failure(type=one.outcome.reason or "unknown", message="")
    return error.fingerprint(one.task)
