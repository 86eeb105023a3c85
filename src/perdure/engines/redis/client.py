"""Makes the driver's clients: one for all threads, one for each event loop, and none that tries again by itself.

Whether a call may be done twice is the verb's to know; so the driver's own retries are off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

import redis
import redis.asyncio
from redis import exceptions
from redis.asyncio.retry import Retry as LoopRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from perdure.engines.redis.address import Address
from perdure.engines.redis.fault import NotConfirmedError
from perdure.engines.redis.verb import Argument

Command = Sequence[Argument]


class ThreadClient:
    """The connections of all threads."""

    def __init__(self, address: Address) -> None:
        self._confirm = _confirmation(address)
        retry = Retry(NoBackoff(), 0)
        make: Any = redis.RedisCluster if address.is_cluster else redis.Redis
        self.driver: Any = make(**address.driver, retry=retry)

    def send(self, command: Command, *, is_write: bool) -> Any:
        """The server's answer; where the URL asks for it, after the change was confirmed."""
        if not is_write or self._confirm is None:
            return self.driver.execute_command(*command)
        with self.driver.pipeline(transaction=False) as pipeline:
            pipeline.execute_command(*command)
            pipeline.execute_command(*self._confirm)
            return _confirmed(self._confirm, *pipeline.execute(raise_on_error=False))

    def drop(self) -> None:
        """Let all connections go: they do not lead to the server that is wanted."""
        if hasattr(self.driver, "connection_pool"):
            self.driver.connection_pool.disconnect(inuse_connections=False)

    def close(self) -> None:
        self.driver.close()


class LoopClient:
    """The connections of one event loop; made and closed on it."""

    def __init__(self, address: Address) -> None:
        self.loop = asyncio.get_running_loop()
        self.busy = 0
        self._confirm = _confirmation(address)
        retry = LoopRetry(NoBackoff(), 0)
        make: Any = redis.asyncio.RedisCluster if address.is_cluster else redis.asyncio.Redis
        self.driver: Any = make(**address.driver, retry=retry)
        self._life = self._live()

    async def begin(self) -> None:
        """Tie the connections to the loop: a loop that ends closes what generators left open on it."""
        await anext(self._life)

    async def send(self, command: Command, *, is_write: bool) -> Any:
        """The server's answer; where the URL asks for it, after the change was confirmed."""
        self.busy += 1
        try:
            if not is_write or self._confirm is None:
                return await self.driver.execute_command(*command)
            async with self.driver.pipeline(transaction=False) as pipeline:
                pipeline.execute_command(*command)
                pipeline.execute_command(*self._confirm)
                return _confirmed(self._confirm, *await pipeline.execute(raise_on_error=False))
        finally:
            self.busy -= 1

    async def drop(self) -> None:
        """Let all idle connections go."""
        if hasattr(self.driver, "connection_pool"):
            await self.driver.connection_pool.disconnect(inuse_connections=False)

    async def close(self) -> None:
        """Close the connections when the calls on their way are answered; each has its own time limit."""
        while self.busy:
            await asyncio.sleep(0.002)
        await self._life.aclose()

    async def _live(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            try:
                await self.driver.aclose()
            except asyncio.CancelledError:
                # A loop that ends cancels every task once; the connections are closed all the same.
                await self.driver.aclose()
                raise


def _confirmation(address: Address) -> Command | None:
    """The command that waits until a change is where the URL wants it; it goes the same way, right after the change."""
    # Half of a call's time, so that a confirmation that does not come is told as such.
    patience = int(address.timeout * 500)
    if address.wait_aof:
        return ("WAITAOF", 1, address.wait_replicas, patience)
    if address.wait_replicas:
        return ("WAIT", address.wait_replicas, patience)
    return None


def _confirmed(confirm: Command, answer: Any, copies: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    if isinstance(copies, Exception):
        raise copies
    found = copies if isinstance(copies, list) else [copies]
    wanted = cast("Sequence[int]", confirm[1:-1])
    if any(have < want for have, want in zip(found, wanted, strict=True)):
        raise NotConfirmedError(f"{confirm[0]!s} asked for {list(wanted)} and got {found}")
    return answer


NoScript = exceptions.NoScriptError
