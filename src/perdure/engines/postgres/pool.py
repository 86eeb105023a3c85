"""Pools of connections: one for all threads, one for each event loop.

Connections are made when they are needed and kept for the next who needs one; the last one given back goes out first,
so that those too many fall idle and are let go. Those that keep plans are a kind of their own, and among them one that
has the plan goes first: another would have to make it, and its process in the server has other things at hand. There
is no thread and no task behind a pool: who needs a connection makes it, and learns at once why it cannot be made.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Generic, TypeVar

from perdure.engines.postgres.address import Address
from perdure.engines.postgres.connection import (
    AnyConnection,
    LoopConnection,
    ThreadConnection,
    connect,
    connect_on_loop,
    is_settled,
    is_usable,
    shut,
)
from perdure.engines.postgres.fair_places import FairPlaces
from perdure.engines.postgres.fault import TookTooLongError
from perdure.system.clock import SystemClock

C = TypeVar("C", bound=AnyConnection)

_IDLE = 60.0
"""How many seconds a connection that nobody needs is kept."""


class _Kept(Generic[C]):
    """Idle connections; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[C] = []
        self._is_closed = False
        self._clock = SystemClock()

    def take(self, timeout: float, plan: str | None) -> C | None:
        """An idle connection of that kind that is still there, with a new deadline; None if there is none."""
        while True:
            with self._lock:
                connection = self._pick(plan)
            if connection is None:
                return None
            if is_usable(connection):
                connection.deadline = self._clock.monotonic() + timeout
                return connection
            shut(connection)

    def _pick(self, plan: str | None) -> C | None:
        """The last one given back that has the plan, or else that could make it; with the lock held."""
        found = None
        for place in range(len(self._idle) - 1, -1, -1):
            connection = self._idle[place]
            if connection.is_for_plans is (plan is not None):
                if plan is None or connection.plans is None or plan in connection.plans:
                    return self._idle.pop(place)
                if found is None:
                    found = place
        return None if found is None else self._idle.pop(found)

    def give_back(self, connection: C) -> None:
        """Keep a connection for the next, if it can be used again."""
        now = connection.idle_since = self._clock.monotonic()
        connection.deadline = float("inf")
        # Whether it is still there is looked at when it is needed.
        ending = [] if is_settled(connection) else [connection]
        with self._lock:
            if not ending:
                (ending if self._is_closed else self._idle).append(connection)
            while self._idle and now - self._idle[0].idle_since > _IDLE:
                ending.append(self._idle.pop(0))
        for one in ending:
            shut(one)

    def drop(self, most: int = 0) -> None:
        """Let idle connections go, those idle for longest first, until there are so many at most."""
        with self._lock:
            ending = self._idle[: max(0, len(self._idle) - most)]
            del self._idle[: len(ending)]
        for connection in ending:
            shut(connection)

    def close(self) -> None:
        self._is_closed = True
        self.drop()


class ThreadPool:
    """The connections of all threads of a store."""

    def __init__(self, address: Address, most: int) -> None:
        self._address = address
        self._most = most
        self._kept: _Kept[ThreadConnection] = _Kept()
        self._places = FairPlaces(most)

    def lend(self, plan: str | None = None) -> ThreadConnection:
        """A connection for the length of a call, one for that plan if need be; to be given back whatever happens."""
        timeout = self._address.timeout
        if not self._places.take(timeout):
            raise TookTooLongError(f"all connections of this process were busy (it may have {self._most})")
        try:
            connection = self._kept.take(timeout, plan)
            if connection is None:
                self._kept.drop(self._most - self._places.taken)
                connection = connect(self._address, is_for_plans=plan is not None)
                connection.deadline = SystemClock().monotonic() + timeout
        except BaseException:
            self._places.give_back()
            raise
        return connection

    def give_back(self, connection: ThreadConnection) -> None:
        """Take a connection back; one that broke, or is in the middle of something, is not kept."""
        try:
            self._kept.give_back(connection)
        finally:
            self._places.give_back()

    def drop(self) -> None:
        """Let idle connections go, so that the next ones are new."""
        self._kept.drop()

    def close(self) -> None:
        """Wait for the calls under way, and let everything go."""
        self._places.wait_until_free(self._address.timeout)
        self._kept.close()


class LoopPool:
    """The connections of one event loop."""

    def __init__(self, address: Address, loop: asyncio.AbstractEventLoop) -> None:
        self._address = address
        self._kept: _Kept[LoopConnection] = _Kept()
        self._places = asyncio.Semaphore(address.connections)
        self._busy = 0
        self.loop = loop

    async def lend(self, plan: str | None = None) -> LoopConnection:
        """A connection for the length of a call, one for that plan if need be; to be given back whatever happens."""
        timeout, most = self._address.timeout, self._address.connections
        if self._places.locked():
            try:
                async with asyncio.timeout(timeout):
                    await self._places.acquire()
            except TimeoutError:
                raise TookTooLongError(f"all connections of this loop were busy (it may have {most})") from None
        else:
            await self._places.acquire()
        self._busy += 1
        try:
            connection = self._kept.take(timeout, plan)
            if connection is None:
                self._kept.drop(most - self._busy)
                connection = await connect_on_loop(self._address, is_for_plans=plan is not None)
                connection.deadline = SystemClock().monotonic() + timeout
        except BaseException:
            self._free()
            raise
        return connection

    def give_back(self, connection: LoopConnection) -> None:
        """Take a connection back."""
        try:
            self._kept.give_back(connection)
        finally:
            self._free()

    def drop(self) -> None:
        """Let idle connections go, so that the next ones are new."""
        self._kept.drop()

    def close(self) -> None:
        """Let everything go; what is still under way ends with its connection's return."""
        self._kept.close()

    def _free(self) -> None:
        self._busy -= 1
        self._places.release()
