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


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """What a beat brings back: what the store believes this worker is running."""

    held: tuple[tuple[JobId, int], ...]


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
        """Renew the lease from the store's now; raises LeaseLost when it has run out or the worker was struck off."""
        ...

    def cancelling(self, worker: WorkerId) -> Reply[tuple[JobId, ...]]:
        """Which of the worker's running jobs an operator wants cancelled."""
        ...

    def deregister(self, worker: WorkerId) -> Reply[None]:
        """Strike the worker off; jobs still running under it are then found by reap."""
        ...
