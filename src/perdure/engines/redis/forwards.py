"""The forwarding of dead jobs: who tries it, what came of it, and how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import cast

from perdure.engines.redis.filter import LOOK_AT, Search, dead_among
from perdure.engines.redis.record import to_moment
from perdure.engines.redis.rows import from_duration, to_count, to_fields
from perdure.engines.redis.verb import Argument, Call, Verb, optional
from perdure.engines.set_aside import each_readable, moment_or_none, one_of, readable
from perdure.model.forward import FORWARD_STATES, Forward, ForwardState, Tried
from perdure.model.job import JobId
from perdure.store.forwards import DueForwards
from perdure.store.reads import JobFilter

MOST = 1000
"""The most forwards that one script claims."""


def forward(queues: Sequence[str], limit: int, lease: timedelta) -> Verb[DueForwards]:
    arguments: tuple[Argument, ...] = (
        max(0, min(limit, MOST)),
        from_duration(lease),
        *(queue.encode() for queue in queues),
    )
    next_at, claimed = yield Call("forward", arguments, is_write=True)
    pairs = zip(claimed[::2], claimed[1::2], strict=True)
    found = each_readable("forward", pairs, lambda pair: pair[0], lambda pair: _to_forward(*pair))
    return DueForwards(forwards=tuple(found), next_at=moment_or_none(lambda: to_moment(next_at)))


def forwarded(tried: Sequence[Tried]) -> Verb[list[bool]]:
    answers: list[bool] = []
    for first in range(0, len(tried), MOST):
        arguments: list[Argument] = []
        for one in tried[first : first + MOST]:
            arguments += _arguments(one)
        answer = yield Call("forwarded", arguments, is_write=True)
        answers += [accepted == 1 for accepted in answer]
    return answers


def forward_now(where: JobFilter) -> Verb[int]:
    dead = dead_among(where)
    if dead is None:
        return 0
    search = Search(dead, "brief", "up", "")
    done = 0
    while not search.is_over:
        page = yield from search.page(LOOK_AT)
        if page:
            done += yield Call("forward_now", [match[0] for match in page], is_write=True)
    return done


def forwards(ids: Sequence[JobId]) -> Verb[dict[JobId, Forward]]:
    found: dict[JobId, Forward] = {}
    for first in range(0, len(ids), LOOK_AT):
        page = [job_id.encode() for job_id in ids[first : first + LOOK_AT]]
        _, records = yield Call("forwards", page)
        for job_id, flat in zip(page, records, strict=True):
            one = readable("forward", job_id, partial(_to_forward, job_id, flat)) if flat else None
            if one is not None:
                found[one.job_id] = one
    return found


def forward_counts() -> Verb[dict[ForwardState, int]]:
    counts, _ = yield Call("forwards")
    return {
        cast("ForwardState", state.decode()): to_count(state, number)
        for state, number in to_fields(counts).items()
        if state.decode(errors="replace") in FORWARD_STATES
    }


def _arguments(one: Tried) -> list[Argument]:
    return [
        one.job_id.encode(),
        one.attempt,
        one.number,
        one.state,
        optional(one.sink),
        optional(one.error),
        optional(None if one.delay is None else from_duration(one.delay)),
    ]


def _to_forward(job_id: bytes, flat: Sequence[bytes]) -> Forward:
    fields = to_fields(flat)
    found = fields.get
    return Forward(
        job_id=JobId(job_id.decode()),
        attempt=int(fields[b"attempt"]),
        queue=fields[b"queue"].decode(),
        state=one_of(fields[b"state"].decode(), FORWARD_STATES, "its state"),
        tries=int(found(b"tries", 0)),
        sink=_text(found(b"sink")),
        error=_text(found(b"error")),
        next_at=to_moment(found(b"next_at")),
        tried_at=to_moment(found(b"tried_at")),
        forwarded_at=to_moment(found(b"forwarded_at")),
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
