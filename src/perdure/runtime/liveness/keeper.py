"""Keeps the worker's lease: a thread that beats every third of it, so that a blocked event loop does not lose it.

It beats, hands what the store believes about this worker to the event loop, and sleeps. When the store refuses the
beat, or cannot be reached until the lease must have run out, it reports the loss and ends; the worker then registers
anew. It renews the lease only while `may_renew` says that the rest of the worker is alive. An error that is no outage
is a defect: the keeper reports it and ends, and the worker ends too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

from perdure.errors import LeaseLost
from perdure.model.job import WorkerId
from perdure.runtime.backoff import is_outage
from perdure.store import Store
from perdure.store.workers import Beat
from perdure.system.clock import Clock

_LAST_BEAT = 1.0
"""How many seconds a stopping worker waits for a beat that is under way."""


class Lease:
    """How long this worker may believe that it is among the living: counted from before each successful request."""

    def __init__(self, *, length: timedelta, clock: Clock, since: float) -> None:
        self._length = length.total_seconds()
        self._clock = clock
        self._until = since + self._length
        self._is_over = False

    def is_trusted(self) -> bool:
        return not self._is_over and self._clock.monotonic() < self._until

    def renew(self, since: float) -> None:
        self._until = since + self._length

    def end(self) -> None:
        self._is_over = True


class Keeper:
    """The thread that keeps one lease."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        worker: WorkerId,
        length: timedelta,
        lease: Lease,
        heard: Callable[[Beat], None],
        lost: Callable[[], None],
        failed: Callable[[BaseException], None],
        may_renew: Callable[[], bool],
    ) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker
        self._length = length
        self._lease = lease
        self._heard = heard
        self._lost = lost
        self._failed = failed
        self._may_renew = may_renew
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="perdure-keeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def join(self) -> None:
        """Wait until it has ended, if that is soon: it may wait for a store that does not answer."""
        self._thread.join(timeout=_LAST_BEAT)

    def _keep(self) -> None:
        try:
            self._beat_until_lost()
        except BaseException as error:
            self._lease.end()
            self._failed(error)
            return
        if not self._stopped.is_set():
            self._lease.end()
            self._lost()

    def _beat_until_lost(self) -> None:
        pause = self._length.total_seconds() / 3
        while not self._stopped.wait(pause):
            if not self._may_renew():
                continue
            since = self._clock.monotonic()
            try:
                beat = self._store.beat(self._worker, self._length).wait()
            except LeaseLost:
                break
            except Exception as error:
                if not is_outage(error):
                    raise
                if not self._lease.is_trusted():
                    break
                pause = self._length.total_seconds() / 15
                continue
            self._lease.renew(since)
            pause = self._length.total_seconds() / 3
            self._heard(beat)
