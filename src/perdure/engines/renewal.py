"""Makes the renewals that a reap shows from what the engines keep: whole microseconds."""

from __future__ import annotations

from datetime import timedelta

from perdure.model.job import WorkerId
from perdure.store.workers import Renewal
from perdure.system.clock import from_microseconds


def to_renewal(worker: str, beat_at: int, length: int, left: int) -> Renewal:
    """The newest renewal of a worker's lease."""
    return Renewal(
        worker=WorkerId(worker),
        beat_at=from_microseconds(beat_at),
        length=timedelta(microseconds=length),
        left=timedelta(microseconds=left),
    )
