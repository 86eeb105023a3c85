"""Writes what follows attempts, fenced by (job id, attempt, worker): a whole batch in one script.

Each commit carries a token of its own. When its reply was lost, the fence is in doubt: the next commit of it carries
the same token, and if the first one was done, the server knows it again.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from typing import cast

from perdure.engines.redis.record import END, within_or_beside
from perdure.engines.redis.rows import AttemptRecord, from_duration, from_failure, from_record
from perdure.engines.redis.verb import Argument, Call, Verb, optional
from perdure.model.failure import Failure
from perdure.store.jobs import Ended
from perdure.system.clock import to_microseconds

MOST = 1000
"""The most attempts that one script settles."""

_HEAD = END.join((b"succeeded", b"%d", b"", b"%d", b"", b"%b", b"%d", b"%d", b"%d", b"%b", b"", b"", b"", b"%b", b""))
"""A record up to its result, as fragments/record.lua has it: attempt, started_at, reason, failures, recoveries,
attempt_ended_at, token, result."""

_SUCCESS = 2
"""How many arguments a success takes beside its fence."""
_HEAD_END = b"\xfe"
"""What stands after each head of many; no text in UTF-8 has this byte either."""
_ID_WIDTH = 36

Fence = tuple[str, int, str]
_MOST_DOUBTS = 100_000


class Doubts:
    """The tokens of commits of which nobody knows whether they were done; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens: dict[Fence, str] = {}

    def tokens(self, ended: Sequence[Ended]) -> list[str]:
        """A token for each: that of the commit in doubt, or a new one."""
        new = secrets.token_hex(6)
        with self._lock:
            return [self._tokens.get(_fence(one), f"{new}.{place}") for place, one in enumerate(ended)]

    def add(self, ended: Sequence[Ended], tokens: Sequence[str]) -> None:
        with self._lock:
            self._tokens.update((_fence(one), token) for one, token in zip(ended, tokens, strict=True))
            while len(self._tokens) > _MOST_DOUBTS:
                del self._tokens[next(iter(self._tokens))]

    def settle(self, ended: Sequence[Ended]) -> None:
        if self._tokens:
            with self._lock:
                for one in ended:
                    self._tokens.pop(_fence(one), None)


def commit(ended: Sequence[Ended], doubts: Doubts) -> Verb[list[bool]]:
    """Write what follows; for each whether its fence matched."""
    answers: list[bool] = []
    for first in range(0, len(ended), MOST):
        answers += yield from _commit(ended[first : first + MOST], doubts)
    return answers


def _commit(ended: Sequence[Ended], doubts: Doubts) -> Verb[list[bool]]:
    tokens = doubts.tokens(ended)

    def remember() -> None:
        doubts.add(ended, tokens)

    settled = [
        _success(one, token) if one.outcome.state == "succeeded" else _other(one, token)
        for one, token in zip(ended, tokens, strict=True)
    ]
    successes = _first_successes(ended, settled)
    if successes is not None and (yield Call("succeed", successes, is_write=True, when_in_doubt=remember)):
        doubts.settle(ended)
        return [True] * len(ended)
    arguments: list[Argument] = []
    fences: dict[tuple[int, str], bytes] = {}
    for one, what in zip(ended, settled, strict=True):
        held = one.attempt, one.worker
        fence = fences.get(held)
        if fence is None:
            fence = fences[held] = b"running\xff%d\xff%b\xff" % (one.attempt, one.worker.encode())
        arguments += (one.job_id, fence, *what)
    refused = yield Call("commit", arguments, is_write=True, when_in_doubt=remember)
    doubts.settle(ended)
    answers = [True] * len(ended)
    for place in refused:
        answers[place - 1] = False
    return answers


def _first_successes(ended: Sequence[Ended], settled: Sequence[tuple[Argument, ...]]) -> list[Argument] | None:
    """What lua/succeed.lua takes, if that is all there is: first attempts of one worker that succeeded, each once."""
    worker = ended[0].worker
    for one, what in zip(ended, settled, strict=True):
        if one.attempt != 1 or one.worker != worker or len(what) != _SUCCESS or what[1]:
            return None
    ids = [one.job_id for one in ended]
    joined = "".join(ids)
    if len(set(ids)) != len(ids) or len(joined) != _ID_WIDTH * len(ids):
        return None
    heads = cast("list[bytes]", [what[0] for what in settled])
    return [b"running\xff1\xff%b\xff" % worker.encode(), worker.encode(), joined, _HEAD_END.join([*heads, b""])]


def _success(one: Ended, token: str) -> tuple[Argument, Argument]:
    """The record's beginning from now on, and the result if the record is not the place for it."""
    outcome = one.outcome
    result = outcome.result
    within, beside = (b"", b"") if result is None else within_or_beside(result)
    head = _HEAD % (
        one.attempt,
        to_microseconds(one.started_at),
        b"" if outcome.note is None else optional(outcome.note),
        outcome.failures,
        outcome.recoveries,
        to_microseconds(one.ended_at),
        token.encode(),
        within,
    )
    return head, beside


def _other(one: Ended, token: str) -> tuple[Argument, ...]:
    outcome = one.outcome
    started_at = to_microseconds(one.started_at)
    record = AttemptRecord(
        attempt=one.attempt,
        outcome=outcome.attempt,
        reason=outcome.reason,
        error=outcome.error,
        worker=one.worker,
        started_at=started_at,
        ended_at=to_microseconds(one.ended_at),
    )
    return (
        b"",
        token,
        outcome.state,
        outcome.lane,
        outcome.failures,
        outcome.recoveries,
        optional(outcome.reason),
        started_at,
        optional(outcome.queue),
        optional(None if outcome.delay is None else from_duration(outcome.delay)),
        optional(from_failure(outcome.error)),
        optional(_fingerprint(one) if outcome.state == "dead" else None),
        optional(outcome.sink),
        from_record(record),
    )


def _fence(one: Ended) -> Fence:
    return (one.job_id, one.attempt, one.worker)


def _fingerprint(one: Ended) -> str:
    """The error group of a dead job; jobs that died without an error are grouped by reason."""
    error = one.outcome.error or Failure(type=one.outcome.reason or "unknown", message="")
    return error.fingerprint(one.task)
