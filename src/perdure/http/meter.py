"""Bounds what an answer may cost: informational responses, headers, and the framing around a body.

The HTTP client bounds a single header section, but neither how many informational responses (100, 102, 103) come before
the answer nor how much surrounds the bytes of its body. A meter counts what is read from the connection, before the
client parses it, and breaks the exchange off where an answer has more than any honest one.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2

MOST_INFORMATIONAL = 100
"""How many informational responses may come before the answer. A server that says every 20 s that it is still at work
has half an hour."""
MOST_HEAD = 64 * 1024
"""How many bytes status lines and headers may have, those of informational responses included."""
MOST_BODY = 256 * 1024
"""How many bytes may be read after the headers: four times what is read of a body, for chunk sizes and trailers."""

_END_OF_HEAD = re.compile(rb"\n\r?\n")
_INFORMATIONAL = re.compile(rb"HTTP/[0-9]\.[0-9] +1(?!01)[0-9][0-9]\b")
"""The status lines of informational responses; 101 is the last response on its connection."""


class Meter:
    """Counts the bytes of one answer after the other on one connection."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """The next bytes belong to the answer of another request."""
        self._is_in_head = True
        self._head = bytearray()
        self._searched = 0
        self._informational = 0
        self._head_bytes = 0
        self._body_bytes = 0

    def count(self, data: bytes) -> None:
        """Count what was read; raises RemoteProtocolError where it is too much."""
        if self._is_in_head:
            data = self._count_head(data)
        self._body_bytes += len(data)
        if self._body_bytes > MOST_BODY:
            raise httpcore2.RemoteProtocolError(
                f"chunk sizes, chunk extensions and trailers make its body larger than {MOST_BODY // 1024} KiB"
            )

    def _count_head(self, data: bytes) -> bytes:
        """Count status lines and headers; gives what follows them."""
        self._head += data
        while (end := _END_OF_HEAD.search(self._head, self._searched)) is not None:
            is_informational = _INFORMATIONAL.match(self._head) is not None
            self._add_head(end.end())
            rest = bytes(self._head[end.end() :])
            if not is_informational:
                self._is_in_head = False
                self._head = bytearray()
                return rest
            self._informational += 1
            if self._informational > MOST_INFORMATIONAL:
                raise httpcore2.RemoteProtocolError(
                    f"it sent more than {MOST_INFORMATIONAL} informational responses (1xx) and no answer"
                )
            self._head, self._searched = bytearray(rest), 0
        # The end may be cut in two: its first two bytes are looked at again.
        self._searched = max(0, len(self._head) - 2)
        if self._head_bytes + len(self._head) > MOST_HEAD:
            self._add_head(len(self._head))
        return b""

    def _add_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MOST_HEAD:
            raise httpcore2.RemoteProtocolError(
                f"its status line and headers are larger than {MOST_HEAD // 1024} KiB in all"
            )


class MeteredNetwork(httpcore2.AsyncNetworkBackend):
    """Opens the one connection that a meter counts."""

    def __init__(self, inner: httpcore2.AsyncNetworkBackend, meter: Meter) -> None:
        self._inner = inner
        self._meter = meter

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        stream = await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        return _MeteredStream(stream, self._meter)

    async def connect_unix_socket(self, path: str, *rest: Any, **named: Any) -> httpcore2.AsyncNetworkStream:
        return await self._inner.connect_unix_socket(path, *rest, **named)

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _MeteredStream(httpcore2.AsyncNetworkStream):
    """A connection whose bytes are counted as they are read, behind TLS where there is TLS."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream, meter: Meter) -> None:
        self._inner = inner
        self._meter = meter

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await self._inner.read(max_bytes, timeout)
        self._meter.count(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        return _MeteredStream(await self._inner.start_tls(ssl_context, server_hostname, timeout), self._meter)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
