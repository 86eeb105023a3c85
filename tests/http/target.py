"""A server on loopback that misbehaves as it is told, path by path, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    """The number of the connection that it came on."""


@dataclass
class Exchange:
    """One request and the way to answer it."""

    seen: Seen
    target: Target
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    is_open: bool = field(default=True)
    """Whether the connection may serve another request."""

    async def answer(self, status: str = "200 OK", body: bytes = b"", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    async def send(self, data: bytes) -> None:
        self.target.sent += len(data)
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        """End the connection in the hard way."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.is_open = False


Behaviour = Callable[[Exchange], Awaitable[None]]


class Target:
    """The server; `on` says how a path behaves, anything else answers 200."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._loop = asyncio.new_event_loop()
        self._behaviours: dict[str, Behaviour] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.seen: list[Seen] = []
        self.connections = 0
        self.sent = 0
        """How many bytes of answers were taken by those who asked."""
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, host, 0, backlog=4096))
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http://{host}:{self.port}"
        self._thread = threading.Thread(target=self._loop.run_forever, name="target", daemon=True)
        self._thread.start()

    def on(self, path: str, behaviour: Behaviour) -> str:
        """Let a path behave so; gives its URL."""
        self._behaviours[path] = behaviour
        return self.url + path

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        number = self.connections
        try:
            while await self._one(reader, writer, number):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        seen = Seen(method=method, path=path, headers=headers, body=body, connection=number)
        self.seen.append(seen)
        exchange = Exchange(seen, self, reader, writer)
        await self._behaviours.get(path.partition("?")[0], answer_ok)(exchange)
        return exchange.is_open


async def answer_ok(exchange: Exchange) -> None:
    await exchange.answer("200 OK", b"fine")


def answering(status: str, body: bytes = b"", **headers: str) -> Behaviour:
    """Always this answer."""

    async def behave(exchange: Exchange) -> None:
        await exchange.answer(status, body, **headers)

    return behave


async def hang(exchange: Exchange) -> None:
    """No answer at all."""
    await asyncio.sleep(3600)


async def drip_header(exchange: Exchange) -> None:
    """A header that never ends, a byte now and then."""
    await exchange.send(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while True:
        await exchange.send(b"x")
        await asyncio.sleep(0.02)


async def drip_body(exchange: Exchange) -> None:
    """A body that never ends, a byte now and then."""
    await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while True:
        await exchange.send(b"x")
        await asyncio.sleep(0.02)


async def close_at_once(exchange: Exchange) -> None:
    """The connection ends without an answer."""
    exchange.is_open = False


async def reset(exchange: Exchange) -> None:
    """The connection breaks without an answer."""
    exchange.reset()


async def reset_in_body(exchange: Exchange) -> None:
    """The connection breaks inside a body that was announced as longer."""
    await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    exchange.is_open = False


async def speak_nonsense(exchange: Exchange) -> None:
    """Something that is not HTTP."""
    await exchange.send(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")
    exchange.is_open = False


async def send_too_many_headers(exchange: Exchange) -> None:
    """A header section that is larger than anybody needs."""
    await exchange.send(b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: %s\r\n" % (n, b"y" * 1000) for n in range(300)))
    exchange.is_open = False


async def send_huge_body(exchange: Exchange) -> None:
    """A body without an end, as fast as it is taken."""
    await exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while exchange.target.sent < 200_000_000:
        await exchange.send(b"10000\r\n" + b"z" * 65536 + b"\r\n")
