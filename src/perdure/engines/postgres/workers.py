"""The verbs of workers: one row per worker, renewed as a whole."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from perdure.engines.postgres.rows import from_duration, from_text
from perdure.engines.postgres.verb import Script, Step, Verb
from perdure.errors import LeaseLost
from perdure.model.job import JobId, WorkerId
from perdure.store.workers import Beat

_decode_held = msgspec.json.Decoder(tuple[tuple[JobId, int], ...]).decode


def register(
    worker: WorkerId,
    host: str,
    pid: int,
    queues: tuple[str, ...],
    concurrency: int,
    version: str,
    lease: timedelta,
) -> Verb[None]:
    values = {
        "worker": from_text(worker),
        "host": from_text(host),
        "pid": pid,
        "queues": msgspec.json.encode(queues).decode(),
        "concurrency": concurrency,
        "version": from_text(version),
        "lease": from_duration(lease),
    }
    return Verb(lambda: _only("register", values), is_repeatable=True)


def beat(worker: WorkerId, lease: timedelta) -> Verb[Beat]:
    return Verb(lambda: _beat(worker, lease), is_repeatable=True)


def cancelling(worker: WorkerId) -> Verb[tuple[JobId, ...]]:
    return Verb(lambda: _cancelling(worker), is_repeatable=True, plan="cancelling")


def deregister(worker: WorkerId) -> Verb[None]:
    return Verb(lambda: _only("deregister", {"worker": from_text(worker)}), is_repeatable=True)


def _only(statement: str, values: dict[str, object]) -> Script[None]:
    yield Step(statement, values)


def _beat(worker: WorkerId, lease: timedelta) -> Script[Beat]:
    ((is_renewed, held),) = yield Step("beat", {"worker": from_text(worker), "lease": from_duration(lease)})
    if not is_renewed:
        raise LeaseLost(f"The lease of worker {worker} has run out, or it was struck off.", "Register under a new id.")
    return Beat(held=_decode_held(held))


def _cancelling(worker: WorkerId) -> Script[tuple[JobId, ...]]:
    rows = yield Step("cancelling", {"worker": from_text(worker)})
    return tuple(JobId(job_id) for (job_id,) in rows)
