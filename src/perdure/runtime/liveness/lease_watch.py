"""Tells which workers have vanished, by a clock that does not jump.

The store's clock is set by people and time servers, so it may jump. The watch therefore measures with this process's
monotonic clock: a worker has vanished when its newest renewal stayed the same for what was left of its lease at the
first look. A jump of the store's clock between a renewal and that look makes what is left wrong, so it is bounded on
both sides: never more than the whole lease, and never less than half of it, in which a living worker renews at least
once. A renewal that is looked at soon after it was made, which is the usual case, is judged exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

from perdure.model.job import WorkerId
from perdure.store.workers import Renewal
from perdure.system.clock import Clock


class LeaseWatch:
    """What one reaper has seen of the leases of all workers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[WorkerId, tuple[Renewal, float]] = {}
        """The newest renewal of each worker, and the moment of the monotonic clock at which its lease is over."""

    def silent(self) -> list[Renewal]:
        """The newest renewals of the workers whose lease is over."""
        now = self._clock.monotonic()
        return [renewal for renewal, over_at in self._seen.values() if over_at <= now]

    def look(self, renewals: Sequence[Renewal]) -> None:
        """Take note of the newest renewal of every registered worker."""
        now = self._clock.monotonic()
        before, self._seen = self._seen, {}
        for renewal in renewals:
            known = before.get(renewal.worker)
            if known is not None and known[0].beat_at == renewal.beat_at:
                self._seen[renewal.worker] = known
            else:
                length, left = renewal.length.total_seconds(), renewal.left.total_seconds()
                self._seen[renewal.worker] = renewal, now + min(max(left, length / 2), length)

    def next_in(self) -> float:
        """The seconds until the next lease is over, unless it is renewed; infinity without any worker."""
        return min((over_at for _, over_at in self._seen.values()), default=float("inf")) - self._clock.monotonic()
