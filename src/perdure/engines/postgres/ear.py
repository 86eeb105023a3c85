"""Listens on an event loop for the hints of other processes.

It waits for what the server says on a connection of its own, and tells it on the loop at once: a thread that listened
would have to wake the loop first. It mends its connection with growing pauses, and stops with `stop()` or its loop.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import psycopg
from psycopg import AsyncRawCursor

from perdure.clock import SystemClock
from perdure.engines.postgres.address import Address
from perdure.engines.postgres.connection import LoopConnection, connect_on_loop, shut
from perdure.engines.postgres.fault import NoConnectionError, TookTooLongError
from perdure.engines.postgres.sql import quoted

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 5.0
"""Between these lies how long to wait before a connection that broke is made anew, in seconds."""

Heard = Callable[[bytes | None], None]
"""Told who sent a hint; None when listening begins, since something may have been missed before."""


def pause_after(failures: int, chance: random.Random) -> float:
    """How many seconds to wait after so many failures in a row."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**failures) * chance.uniform(0.5, 1.0)


class LoopEar:
    """The one who listens on one event loop; made on it."""

    def __init__(self, address: Address, channel: str, heard: Heard) -> None:
        self.users = 0
        """How many subscribers it listens for."""
        self._address = address
        self._channel = channel
        self._heard = heard
        self._random = random.Random()
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._listen())

    def call_later(self, seconds: float, call: Callable[[], None]) -> bool:
        """Make a call on the loop in a moment, from any thread; whether there is still a loop."""
        try:
            self._loop.call_soon_threadsafe(self._loop.call_later, seconds, call)
        except RuntimeError:
            return False
        return True

    def stop(self) -> None:
        """Listen no more; from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._task.cancel)
        except RuntimeError:
            pass  # the loop is closed, and its tasks are gone with it

    async def _listen(self) -> None:
        failures = 0
        while True:
            connection: LoopConnection | None = None
            try:
                connection = await connect_on_loop(self._address)
                connection.deadline = SystemClock().monotonic() + self._address.timeout
                await AsyncRawCursor(connection).execute(f"LISTEN {quoted(self._channel)}")
                failures = 0
                self._heard(None)
                await self._until_broken(connection)
            except (psycopg.Error, NoConnectionError, TookTooLongError, OSError):
                # Polling is the safety net; the verbs report what is wrong with the server.
                failures += 1
                await asyncio.sleep(pause_after(failures, self._random))
            finally:
                if connection is not None:
                    shut(connection)

    async def _until_broken(self, connection: LoopConnection) -> None:
        broken = self._loop.create_future()
        number = connection.pgconn.socket
        self._loop.add_reader(number, self._hear, connection, broken)
        # What the server said together with its last answer has been read already.
        self._tell(connection)
        try:
            await broken
        finally:
            self._loop.remove_reader(number)

    def _hear(self, connection: LoopConnection, broken: asyncio.Future[None]) -> None:
        try:
            connection.pgconn.consume_input()
        except psycopg.Error as error:
            if not broken.done():
                broken.set_exception(error)
        else:
            self._tell(connection)

    def _tell(self, connection: LoopConnection) -> None:
        while (notice := connection.pgconn.notifies()) is not None:
            self._heard(notice.extra)
