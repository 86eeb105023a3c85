"""The connections of an open store: those of all threads, and those of each event loop; nothing is tried again here.

Whether a call may be done twice is the verb's to know. A Cluster has a driver of its own, which is loaded only for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any, cast

from perdure.engines.redis.address import Address
from perdure.engines.redis.channel import Channel, open_channel
from perdure.engines.redis.connection import Connection
from perdure.engines.redis.fault import NotConfirmedError
from perdure.engines.redis.verb import Argument, Waiting
from perdure.engines.redis.wire import Command, ServerError, pack

if TYPE_CHECKING:
    from perdure.engines.redis.cluster import LoopCluster, ThreadCluster


_SOON = 0.005
"""How long until a wait that had not begun is broken off again, in seconds."""


class ThreadClient:
    """The connections of all threads."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._confirm = _confirmation(address)
        self.takes_packed = self._confirm is None and not address.is_cluster
        """Whether `send_packed` is enough for a change."""
        self._cluster: ThreadCluster | None = None
        self._idle: list[Connection] = []
        self._is_closed = False
        if address.is_cluster:
            from perdure.engines.redis.cluster import ThreadCluster

            self._cluster = ThreadCluster(address)

    def send(self, command: Command, *, is_write: bool) -> Any:
        """The server's answer; where the URL asks for it, after the change was confirmed."""
        if self._cluster is not None:
            return self._cluster.ask(command)
        packed = pack(*command)
        if not is_write or self._confirm is None:
            return _answer(*self._ask(packed, 1))
        return _confirmed(self._confirm, *self._ask(packed + pack(*self._confirm), 2))

    def send_packed(self, packed: bytes) -> Any:
        """The server's answer to a change that needs no confirmation, as it goes over the wire; not for a Cluster."""
        connection = self._take()
        answer = connection.ask_one(packed)
        self._idle.append(connection)
        if self._is_closed:
            self.drop()
        return _answer(answer)

    def ask(self, *command: Argument) -> Any:
        """The server's answer to a command that changes nothing."""
        return self.send(command, is_write=False)

    def drop(self) -> None:
        """Let all idle connections go: they do not lead to the server that is wanted."""
        while self._idle:
            self._idle.pop().close()

    def close(self) -> None:
        self._is_closed = True
        self.drop()
        if self._cluster is not None:
            self._cluster.close()

    def _ask(self, packed: bytes, number: int) -> list[Any]:
        connection = self._take()
        answers = connection.ask(packed, number)
        self._idle.append(connection)
        if self._is_closed:
            self.drop()
        return answers

    def _take(self) -> Connection:
        try:
            connection = self._idle.pop()
        except IndexError:
            return Connection(self._address)
        if connection.is_at_rest:
            return connection
        connection.close()
        return Connection(self._address)


class LoopClient:
    """The connections of one event loop; made and closed on it."""

    def __init__(self, address: Address) -> None:
        self.loop = asyncio.get_running_loop()
        self.busy = 0
        self._address = address
        self._confirm = _confirmation(address)
        self._cluster: LoopCluster | None = None
        self._idle: list[Channel] = []
        self._waiting: set[Waiting] = set()
        self._unblocking: set[asyncio.Task[None]] = set()
        if address.is_cluster:
            from perdure.engines.redis.cluster import LoopCluster

            self._cluster = LoopCluster(address)
        self._life = self._live()

    async def begin(self) -> None:
        """Tie the connections to the loop: a loop that ends closes what generators left open on it."""
        await anext(self._life)

    async def send(self, command: Command, *, is_write: bool, waiting: Waiting | None = None) -> Any:
        """The server's answer; where the URL asks for it, after the change was confirmed."""
        self.busy += 1
        try:
            if self._cluster is not None:
                return await self._cluster.ask(command)
            packed = pack(*command)
            if not is_write or self._confirm is None:
                return _answer(*await self._ask(packed, 1, waiting))
            return _confirmed(self._confirm, *await self._ask(packed + pack(*self._confirm), 2, waiting))
        finally:
            self.busy -= 1

    async def drop(self) -> None:
        """Let all idle connections go."""
        while self._idle:
            self._idle.pop().close()

    async def close(self) -> None:
        """Close the connections when the calls on their way are answered; each has its own time limit."""
        for waiting in self._waiting:
            waiting.end()
        while self.busy:
            await asyncio.sleep(0.002)
        await self._life.aclose()

    async def _ask(self, packed: bytes, number: int, waiting: Waiting | None = None) -> list[Any]:
        channel = self._idle.pop() if self._idle else None
        if channel is not None and not channel.is_at_rest:
            channel.close()
            channel = None
        if channel is None:
            channel = await open_channel(self._address)
        if waiting is None:
            answers = await channel.ask(packed, number)
        else:
            answers = await self._wait(channel, packed, number, waiting)
        self._idle.append(channel)
        return answers

    async def _wait(self, channel: Channel, packed: bytes, number: int, waiting: Waiting) -> list[Any]:
        """The answers to commands that the server does when a bell rings: they are sent at once, behind the wait."""
        if channel.number is None:
            (found,) = await channel.ask(pack("CLIENT", "ID"))
            channel.number = found if isinstance(found, int) else 0
        if waiting.is_ended:
            return await channel.ask(packed, number)
        waiting.break_off = lambda: self._break_off(channel.number, waiting)
        self._waiting.add(waiting)
        try:
            wait = pack("BLPOP", *waiting.bells, f"{waiting.patience:.3f}")
            rung, *answers = await channel.ask(wait + packed, number + 1, waiting.patience)
        finally:
            waiting.is_over = True
            self._waiting.discard(waiting)
        if isinstance(rung, ServerError):
            waiting.refusal = rung
        return answers

    def _break_off(self, number: int | None, waiting: Waiting) -> None:
        if number:
            task = self.loop.create_task(self._unblock(number, waiting))
            self._unblocking.add(task)
            task.add_done_callback(self._unblocking.discard)

    async def _unblock(self, number: int, waiting: Waiting) -> None:
        self.busy += 1
        try:
            # What is not blocked yet is about to be; a server that refuses lets the wait end by itself.
            while not waiting.is_over and (await self._ask(pack("CLIENT", "UNBLOCK", number), 1)) == [0]:
                await asyncio.sleep(_SOON)
        except OSError:
            pass
        finally:
            self.busy -= 1

    async def _live(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            try:
                await self._end()
            except asyncio.CancelledError:
                # A loop that ends cancels every task once; the connections are closed all the same.
                await self._end()
                raise

    async def _end(self) -> None:
        if self._cluster is not None:
            await self._cluster.close()
        await self.drop()
        # A connection is closed when the loop has turned once more.
        await asyncio.sleep(0)


def _confirmation(address: Address) -> Command | None:
    """The command that waits until a change is where the URL wants it; it goes the same way, right after the change."""
    # Half of a call's time, so that a confirmation that does not come is told as such.
    patience = int(address.timeout * 500)
    if address.wait_aof:
        return ("WAITAOF", 1, address.wait_replicas, patience)
    if address.wait_replicas:
        return ("WAIT", address.wait_replicas, patience)
    return None


def _answer(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


def _confirmed(confirm: Command, answer: Any, copies: Any) -> Any:
    _answer(answer)
    _answer(copies)
    found = copies if isinstance(copies, list) else [copies]
    wanted = cast("Sequence[int]", confirm[1:-1])
    if any(have < want for have, want in zip(found, wanted, strict=True)):
        raise NotConfirmedError(f"{confirm[0]!s} asked for {list(wanted)} and got {found}")
    return answer
