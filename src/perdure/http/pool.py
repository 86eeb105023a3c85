"""Connections that are kept for the next request to the same place, for any number of requests at once.

There is no waiting line: a worker's slots bound the requests, and each has its own connection. What a request leaves in
good order is kept for a few seconds, the newest used first; taking and giving back cost the same for one and for
thousands. Nothing else is kept from one request to the next: no cookies, no credentials.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque

import httpcore2

from perdure.http.meter import Meter, MeteredNetwork
from perdure.http.url import Target

_KEPT = 4.0
"""How many seconds an unused connection is kept: less than the 5 s after which many servers close theirs."""
_MOST_KEPT = 4096

Place = tuple[str, str, int]


class Connection:
    """One connection, and the meter that bounds what its answers may cost."""

    def __init__(self, target: Target, network: httpcore2.AsyncNetworkBackend, tls: ssl.SSLContext | None) -> None:
        self._meter = Meter()
        self._http = httpcore2.AsyncHTTPConnection(
            origin=httpcore2.Origin(target.scheme.encode(), target.host.encode(), target.port),
            ssl_context=tls,
            keepalive_expiry=_KEPT,
            network_backend=MeteredNetwork(network, self._meter),
        )

    async def send(self, request: httpcore2.Request) -> httpcore2.Response:
        """Send a request and read the answer up to its body."""
        self._meter.begin()
        return await self._http.handle_async_request(request)

    def is_available(self) -> bool:
        """Whether another request can be sent on it."""
        return self._http.is_available()

    def is_usable(self) -> bool:
        """Whether it was kept for less than the limit, and the other side has not closed it."""
        return self._http.is_available() and not self._http.has_expired()

    async def aclose(self) -> None:
        await self._http.aclose()


class Pool:
    """The connections of one worker."""

    def __init__(self, network: httpcore2.AsyncNetworkBackend, ssl_context: ssl.SSLContext | None = None) -> None:
        self._network = network
        self._ssl_context = ssl_context
        self._kept: dict[Place, deque[Connection]] = {}
        self._count = 0
        self._sweeper: asyncio.Task[None] | None = None

    async def take(self, target: Target, *, is_fresh: bool) -> Connection:
        """A connection for one request: a kept one that is still good, unless a fresh one is asked for."""
        kept = None if is_fresh else self._kept.get(_place(target))
        while kept:
            connection = kept.pop()
            self._count -= 1
            if connection.is_usable():
                return connection
            await connection.aclose()
        return self._open(target)

    async def give_back(self, target: Target, connection: Connection) -> None:
        """Keep the connection if it can serve again, else close it."""
        if not connection.is_available() or self._count >= _MOST_KEPT:
            await connection.aclose()
            return
        self._kept.setdefault(_place(target), deque()).append(connection)
        self._count += 1
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().create_task(self._sweep())

    async def close(self) -> None:
        """Close what is kept."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for kept in self._kept.values():
            while kept:
                await kept.pop().aclose()
        self._kept.clear()
        self._count = 0

    def _open(self, target: Target) -> Connection:
        if target.scheme == "https" and self._ssl_context is None:
            self._ssl_context = httpcore2.default_ssl_context()
        return Connection(target, self._network, self._ssl_context)

    async def _sweep(self) -> None:
        """Close what nobody has used for too long, until nothing is kept."""
        try:
            while self._count:
                await asyncio.sleep(_KEPT)
                for place, kept in list(self._kept.items()):
                    # The oldest stand first: used ones go to the other end.
                    while kept and not kept[0].is_usable():
                        connection = kept.popleft()
                        self._count -= 1
                        await connection.aclose()
                    if not kept:
                        self._kept.pop(place, None)
        finally:
            self._sweeper = None


def _place(target: Target) -> Place:
    return (target.scheme, target.host, target.port)
