"""Writes what follows attempts, fenced by (job id, attempt, worker): a whole batch in one script.

Each commit carries a token of its own. When its reply was lost, the fence is in doubt: the next commit of it carries
the same token, and if the first one was done, the server knows it again.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence

from perdure.clock import to_microseconds
from perdure.engines.redis.rows import Record, from_duration, from_failure, from_record
from perdure.engines.redis.verb import Argument, Call, Verb, optional
from perdure.model.failure import Failure
from perdure.store.jobs import Ended

MOST = 1000
"""The most attempts that one script settles."""

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
    arguments: list[Argument] = []
    for one, token in zip(ended, tokens, strict=True):
        arguments += _arguments(one, token)
    answer = yield Call("commit", arguments, is_write=True, when_in_doubt=lambda: doubts.add(ended, tokens))
    doubts.settle(ended)
    return [accepted == 1 for accepted in answer]


def _arguments(one: Ended, token: str) -> list[Argument]:
    outcome = one.outcome
    is_success = outcome.state == "succeeded"
    started_at, ended_at = to_microseconds(one.started_at), to_microseconds(one.ended_at)
    head: list[Argument] = [
        one.job_id.encode(),
        one.attempt,
        one.worker.encode(),
        token,
        outcome.state,
        outcome.lane,
        outcome.failures,
        outcome.recoveries,
        optional(outcome.note if is_success else outcome.reason),
        started_at,
    ]
    if is_success:
        return [*head, ended_at, optional(outcome.result)]
    record = Record(
        attempt=one.attempt,
        outcome=outcome.attempt,
        reason=outcome.reason,
        error=outcome.error,
        worker=one.worker,
        started_at=started_at,
        ended_at=ended_at,
    )
    return [
        *head,
        optional(outcome.queue),
        optional(None if outcome.delay is None else from_duration(outcome.delay)),
        optional(from_failure(outcome.error)),
        optional(_fingerprint(one) if outcome.state == "dead" else None),
        optional(outcome.sink),
        from_record(record),
    ]


def _fence(one: Ended) -> Fence:
    return (one.job_id, one.attempt, one.worker)


def _fingerprint(one: Ended) -> str:
    """The error group of a dead job; jobs that died without an error are grouped by reason."""
    error = one.outcome.error or Failure(type=one.outcome.reason or "unknown", message="")
    return error.fingerprint(one.task)
