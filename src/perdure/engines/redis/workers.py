"""The verbs of workers: one lease per worker, renewed as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from perdure.engines.redis.rows import from_duration, to_fields
from perdure.engines.redis.verb import Call, Verb
from perdure.engines.set_aside import each_readable
from perdure.errors import LeaseLost
from perdure.model.job import JobId, WorkerId
from perdure.store.workers import Beat, WorkerInfo
from perdure.system.clock import from_microseconds

_encode_queues = msgspec.json.Encoder().encode
_decode_queues = msgspec.json.Decoder(tuple[str, ...]).decode


def register(
    worker: WorkerId,
    host: str,
    pid: int,
    queues: tuple[str, ...],
    concurrency: int,
    version: str,
    lease: timedelta,
) -> Verb[None]:
    arguments = (
        worker.encode(),
        host.encode(),
        pid,
        _encode_queues(queues),
        concurrency,
        version.encode(),
        from_duration(lease),
    )
    yield Call("register", arguments, is_write=True)


def beat(worker: WorkerId, lease: timedelta) -> Verb[Beat]:
    held = yield Call("beat", (worker.encode(), from_duration(lease)), is_write=True)
    if held is None:
        raise LeaseLost(f"The lease of worker {worker} has run out, or it was struck off.", "Register under a new id.")
    pairs = zip(held[::2], held[1::2], strict=True)
    return Beat(held=tuple((JobId(job_id.decode()), int(attempt)) for job_id, attempt in pairs))


def cancelling(worker: WorkerId) -> Verb[tuple[JobId, ...]]:
    ids = yield Call("cancelling", (worker.encode(),))
    return tuple(JobId(job_id.decode()) for job_id in ids)


def deregister(worker: WorkerId) -> Verb[None]:
    yield Call("deregister", (worker.encode(),), is_write=True)


def workers() -> Verb[list[WorkerInfo]]:
    found = yield Call("workers")
    infos = each_readable("worker", found, lambda one: one[0], _to_info)
    return sorted(infos, key=lambda info: (info.started_at, info.id))


def _to_info(answer: Sequence[Any]) -> WorkerInfo:
    worker, lease_until, flat, running = answer
    fields = to_fields(flat)
    return WorkerInfo(
        id=WorkerId(worker.decode()),
        host=fields[b"host"].decode(),
        pid=int(fields[b"pid"]),
        queues=_decode_queues(fields[b"queues"]),
        concurrency=int(fields[b"concurrency"]),
        version=fields[b"version"].decode(),
        started_at=from_microseconds(int(fields[b"started_at"])),
        beat_at=from_microseconds(int(fields[b"beat_at"])),
        lease_until=from_microseconds(int(lease_until)),
        running=running,
    )
