"""The verbs of workers: one lease per worker, renewed as a whole."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from perdure.model.job import JobId, WorkerId
from perdure.store.reply import Reply


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as the store knows it."""

    id: WorkerId
    host: str
    pid: int
    queues: tuple[str, ...]
    concurrency: int
    version: str
    started_at: datetime
    beat_at: datetime
    lease_until: datetime
    running: int = 0
    """How many jobs are running under it; filled in by reads."""


class Renewal(msgspec.Struct, frozen=True, kw_only=True):
    """The newest renewal of a worker's lease, as one look at the store finds it."""

    worker: WorkerId
    beat_at: datetime
    """When it was made, by the store's clock; it tells one renewal from the next."""
    length: timedelta
    left: timedelta
    """How long the lease still lasts by the store's clock, which may have jumped; negative when it has run out."""


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """What a beat brings back: what the store believes this worker is running."""

    held: tuple[tuple[JobId, int], ...] | None
    """None: the engine did not list them with this beat, because that takes long at present."""


class WorkerStore(Protocol):
    """The verbs of workers."""

    def register(
        self,
        worker: WorkerId,
        *,
        host: str,
        pid: int,
        queues: tuple[str, ...],
        concurrency: int,
        version: str,
        lease: timedelta,
    ) -> Reply[None]:
        """Count a new worker among the living for the length of a lease."""
        ...

    def beat(self, worker: WorkerId, lease: timedelta) -> Reply[Beat]:
        """Renew the lease from the store's now; raises LeaseLost when the worker was struck off.

        A late renewal counts as long as nobody has struck the worker off: the store's clock may have jumped.
        """
        ...

    def cancelling(self, worker: WorkerId) -> Reply[tuple[JobId, ...]]:
        """Which of the worker's running jobs an operator wants cancelled."""
        ...

    def deregister(self, worker: WorkerId) -> Reply[None]:
        """Strike the worker off; jobs still running under it are then found by reap."""
        ...
