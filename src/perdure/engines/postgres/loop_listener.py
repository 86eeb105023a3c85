"""Listens on an event loop for the hints of other processes.

It waits for what the server says on a connection of its own, and tells it on the loop at once: a thread that listened
would have to wake the loop first. The connection keeps plans where any does, and is lent to who wants to ask something
because of a hint: the server's process behind it is the one that is awake. It mends its connection with growing
pauses, and stops with `stop()` or its loop.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import psycopg
from psycopg import AsyncRawCursor

from perdure.engines.postgres.address import Address
from perdure.engines.postgres.connection import LoopConnection, connect_on_loop, is_settled, shut
from perdure.engines.postgres.fault import NoConnectionError, TookTooLongError
from perdure.engines.postgres.sql import quoted
from perdure.system.clock import SystemClock

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 5.0
"""Between these lies how long to wait before a connection that broke is made anew, in seconds."""

Heard = Callable[[bytes | None], None]
"""Told who sent a hint; None when listening begins, since something may have been missed before."""


def pause_after(failures: int, chance: random.Random) -> float:
    """How many seconds to wait after so many failures in a row."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**failures) * chance.uniform(0.5, 1.0)


class LoopListener:
    """The one who listens on one event loop; made on it."""

    def __init__(self, address: Address, channel: str, heard: Heard) -> None:
        self.users = 0
        """How many subscribers it listens for."""
        self._address = address
        self._channel = channel
        self._heard = heard
        self._random = random.Random()
        self._loop = asyncio.get_running_loop()
        self._connection: LoopConnection | None = None
        self._number = -1
        """Of its connection's socket: one that broke cannot be asked for it any more."""
        self._broken = self._loop.create_future()
        self._task = self._loop.create_task(self._listen())

    def call_later(self, seconds: float, call: Callable[[], None]) -> bool:
        """Make a call on the loop in a moment, from any thread; whether there is still a loop."""
        try:
            self._loop.call_soon_threadsafe(self._loop.call_later, seconds, call)
        except RuntimeError:
            return False
        return True

    @property
    def can_lend(self) -> bool:
        """Whether it listens at the moment, on a connection that keeps plans and is not lent already."""
        return self._connection is not None and self._connection.plans is not None and not self._broken.done()

    def lend(self) -> LoopConnection | None:
        """Its connection for one call, to be given back whatever happens; None if it cannot."""
        if not self.can_lend:
            return None
        lent, self._connection = self._connection, None
        assert lent is not None, "what can be lent is there"
        # Whoever asks on it reads it.
        self._loop.remove_reader(self._number)
        lent.deadline = SystemClock().monotonic() + self._address.timeout
        return lent

    def give_back(self, lent: LoopConnection) -> None:
        """Listen on it again."""
        if is_settled(lent) and not self._broken.done():
            self._attend(lent)
            return
        shut(lent)
        if not self._broken.done():
            self._broken.set_result(None)

    def stop(self) -> None:
        """Listen no more; from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._task.cancel)
        except RuntimeError:
            pass  # the loop is closed, and its tasks are gone with it

    async def _listen(self) -> None:
        failures = 0
        while True:
            try:
                connection = await self._connect()
                failures = 0
                self._heard(None)
                await self._until_broken(connection)
            except (psycopg.Error, NoConnectionError, TookTooLongError, OSError):
                pass  # polling is the safety net; the verbs report what is wrong with the server
            failures += 1
            await asyncio.sleep(pause_after(failures, self._random))

    async def _connect(self) -> LoopConnection:
        connection = await connect_on_loop(self._address, is_for_plans=self._address.keeps_plans)
        try:
            connection.deadline = SystemClock().monotonic() + self._address.timeout
            await AsyncRawCursor(connection).execute(f"LISTEN {quoted(self._channel)}")
        except BaseException:
            shut(connection)
            raise
        return connection

    async def _until_broken(self, connection: LoopConnection) -> None:
        self._number = connection.pgconn.socket
        self._broken = self._loop.create_future()
        self._attend(connection)
        try:
            await self._broken
        finally:
            if self._connection is not None:
                self._connection = None
                self._loop.remove_reader(self._number)
                shut(connection)

    def _attend(self, connection: LoopConnection) -> None:
        self._connection = connection
        self._loop.add_reader(self._number, self._hear, connection)
        # What the server said together with its last answer has been read already.
        self._tell(connection)

    def _hear(self, connection: LoopConnection) -> None:
        try:
            connection.pgconn.consume_input()
        except psycopg.Error:
            if not self._broken.done():
                self._broken.set_result(None)
        else:
            self._tell(connection)

    def _tell(self, connection: LoopConnection) -> None:
        while (notice := connection.pgconn.notifies()) is not None:
            self._heard(notice.extra)
