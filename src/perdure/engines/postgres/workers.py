"""The verbs of workers: one row per worker, renewed as a whole."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from perdure.engines.postgres.rows import from_duration, from_text
from perdure.engines.postgres.verb import Script, Step, Verb
from perdure.errors import LeaseLost
from perdure.model.job import JobId, WorkerId
from perdure.store.workers import Beat
from perdure.system.clock import Clock, SystemClock

SLOW_LIST = 0.05
"""A list of a worker's jobs that takes more seconds than this is slow."""
LIST_PAUSE = 100.0
"""After a slow list, beats go without one for this many times as long as it took."""
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


class HeldListings:
    """Decides with which beats a worker's jobs are listed: with all, unless that is measured to be slow.

    Where an old snapshot is open, the list takes longer with every job that ended since.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._rests_until: dict[WorkerId, float] = {}

    def is_due(self, worker: WorkerId) -> bool:
        return self._clock.monotonic() >= self._rests_until.get(worker, float("-inf"))

    def took(self, worker: WorkerId, seconds: float) -> None:
        self._rests_until.pop(worker, None)
        if seconds > SLOW_LIST:
            self._rests_until[worker] = self._clock.monotonic() + LIST_PAUSE * seconds


def beat(worker: WorkerId, lease: timedelta, listings: HeldListings) -> Verb[Beat]:
    return Verb(lambda: _beat(worker, lease, listings), is_repeatable=True)


def cancelling(worker: WorkerId) -> Verb[tuple[JobId, ...]]:
    return Verb(lambda: _cancelling(worker), is_repeatable=True, plan="cancelling")


def deregister(worker: WorkerId) -> Verb[None]:
    return Verb(lambda: _only("deregister", {"worker": from_text(worker)}), is_repeatable=True)


def _only(statement: str, values: dict[str, object]) -> Script[None]:
    yield Step(statement, values)


def _beat(worker: WorkerId, lease: timedelta, listings: HeldListings) -> Script[Beat]:
    ((is_renewed,),) = yield Step("beat", {"worker": from_text(worker), "lease": from_duration(lease)})
    if not is_renewed:
        raise LeaseLost(f"The lease of worker {worker} has run out, or it was struck off.", "Register under a new id.")
    if not listings.is_due(worker):
        return Beat(held=None)
    ((held, took),) = yield Step("beat_held", {"worker": from_text(worker)})
    listings.took(worker, took / 1e6)
    return Beat(held=_decode_held(held))


def _cancelling(worker: WorkerId) -> Script[tuple[JobId, ...]]:
    rows = yield Step("cancelling", {"worker": from_text(worker)})
    return tuple(JobId(job_id) for (job_id,) in rows)
