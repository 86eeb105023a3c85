"""A fetch that is made ahead and waits for something to claim: an idle worker has its job with fewer steps.

It may wait in the server, which then calls the worker by its answer, or on this side, to be sent with the first hint.
An engine may have it. Where it has not, or cannot at the moment, a worker fetches after hints and polls.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from datetime import timedelta
from typing import Any, Protocol, runtime_checkable

from perdure.model.job import WorkerId
from perdure.store.jobs import Fetched, Want


class Standby(Protocol):
    """A fetch on its way; used once, on an event loop."""

    def __await__(self) -> Generator[Any, None, Fetched | None]:
        """What was claimed; None when nobody knows, and a fetch will tell. Raises what a fetch raises."""
        ...

    def hint(self) -> bool:
        """Take a hint that something may be ready; whether it is what was waited for, so that nobody else need look."""
        ...

    def end(self) -> None:
        """Wait no longer: claim what there is, and answer."""
        ...


@runtime_checkable
class StandbyStore(Protocol):
    """The verb of engines that can call a worker."""

    @property
    def can_stand_by(self) -> bool:
        """Whether the store can do so as it is used now."""
        ...

    def stand_by(self, worker: WorkerId, wants: Sequence[Want], limit: int, patience: timedelta) -> Standby:
        """Fetch as soon as one of the queues has something ready, and in any case when patience is over.

        Whoever hears a hint meanwhile tells it to the standby: it may be what calls it. For a worker that holds
        nothing: one that is busy might be called and not come. A worker that vanishes while it stands by may be given
        jobs until its connection is seen to be closed or its patience is over; they are lost with it, as those are
        whose fetch is never answered.
        """
        ...
