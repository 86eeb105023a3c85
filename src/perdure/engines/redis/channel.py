"""A connection of an event loop: one request at a time, answered when its last answer has arrived."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, cast

from perdure.engines.redis.address import CONNECT_TIMEOUT, Address
from perdure.engines.redis.wire import CLOSED, LATE, MORE, check_greeting, greeting, make_context, make_reader, prepare


class Channel(asyncio.Protocol):
    """One connection; whatever goes wrong on it closes it."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._reader = make_reader()
        self._transport: asyncio.Transport | None = None
        self._answers: list[Any] = []
        self._number = 0
        self._done: asyncio.Future[list[Any]] | None = None
        self.number: int | None = None
        """The server's number for this connection, once it was asked for; 0 if it would not say."""

    @property
    def is_at_rest(self) -> bool:
        """Whether it can be used: open, and with nothing left to read."""
        return self._transport is not None and not self._transport.is_closing() and not self._answers

    async def ask(self, packed: bytes, number: int = 1, waits: float = 0.0) -> list[Any]:
        """The answers to so many commands, which may wait so long first; an error of the server is an answer too."""
        if self._transport is None:
            raise ConnectionResetError(CLOSED)
        self._answers, self._number = [], number
        done: asyncio.Future[list[Any]] = self._loop.create_future()
        self._done = done
        alarm = self._loop.call_later(waits + self._patience, self._break, TimeoutError(LATE))
        try:
            self._transport.write(packed)
            return await done
        except BaseException:
            # What is still to come would be taken for the answer to the next request.
            self.close()
            raise
        finally:
            alarm.cancel()
            self._answers, self._done = [], None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while (answer := self._reader.gets()) is not MORE:
                if isinstance(answer, ConnectionError):
                    raise answer
                self._answers.append(answer)
        except ConnectionError as error:
            self._break(error)
            return
        if self._done is not None and not self._done.done() and len(self._answers) == self._number:
            self._done.set_result(self._answers)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._fail(error or ConnectionResetError(CLOSED))

    def _break(self, error: Exception) -> None:
        self._fail(error)
        self.close()

    def _fail(self, error: Exception) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(error)


async def open_channel(address: Address) -> Channel:
    """A channel that leads to the server, ready to be used."""
    loop = asyncio.get_running_loop()
    channel = Channel(address.timeout)

    def make() -> Channel:
        return channel

    async with asyncio.timeout(min(CONNECT_TIMEOUT, address.timeout)):
        if address.socket:
            await loop.create_unix_connection(make, address.socket)
        else:
            context = make_context(address)
            name = address.host if context is not None else None
            transport, _ = await loop.create_connection(
                make, address.host, address.port, ssl=context, server_hostname=name
            )
            prepare(cast("socket.socket", transport.get_extra_info("socket")))
    try:
        for packed in greeting(address):
            check_greeting(*await channel.ask(packed))
    except BaseException:
        channel.close()
        raise
    return channel
