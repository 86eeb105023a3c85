"""A number of places that threads take and give back; threads that wait get them in the order in which they came.

`threading.Semaphore` and `Condition` let a thread that just came take a place before those that wait for it. A program
with more threads than places would let some of its threads wait until their timeout, again and again.
"""

from __future__ import annotations

import threading
from collections import deque


class _Waiter:
    """One thread that waits for a place; its lock is released when it has one."""

    __slots__ = ("has_place", "lock")

    def __init__(self) -> None:
        self.has_place = False
        self.lock = threading.Lock()


class FairPlaces:
    """Used by any number of threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._waiting: deque[_Waiter] = deque()
        self.taken = 0
        """How many places are taken, counting those that were handed to threads that have yet to wake up."""

    def take(self, timeout: float) -> bool:
        """Wait for a place for this many seconds at most; whether there was one."""
        waiter = _Waiter()
        try:
            with self._changed:
                if self.taken < self._most and not self._waiting:
                    self.taken += 1
                    return True
                waiter.lock.acquire()
                self._waiting.append(waiter)
            waiter.lock.acquire(timeout=timeout)
        except BaseException:
            if self._leave(waiter):
                self.give_back()
            raise
        # A place that came at the last moment is taken all the same: nobody else was given it.
        return self._leave(waiter)

    def give_back(self) -> None:
        """Hand a place to the thread that has waited for longest, if any does."""
        with self._changed:
            if self._waiting:
                waiter = self._waiting.popleft()
                waiter.has_place = True
                waiter.lock.release()
            else:
                self.taken -= 1
                self._changed.notify_all()

    def wait_until_free(self, timeout: float) -> None:
        """Wait until no place is taken, for this many seconds at most."""
        with self._changed:
            self._changed.wait_for(lambda: not self.taken, timeout)

    def _leave(self, waiter: _Waiter) -> bool:
        """Wait no longer; whether the thread has a place."""
        with self._changed:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            return waiter.has_place
