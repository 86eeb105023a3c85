"""The network under HTTP jobs: resolves a host itself, lets the guard see every address, and connects to just those.

Between the check and the connection nobody asks DNS again, so an answer that changes in between changes nothing. TLS
and the Host header still see the name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import httpcore2

from perdure.http.errors import AddressRefusedError, NetworkError
from perdure.http.guard import Address, Guard
from perdure.http.url import read_address

Resolve = Callable[[str], Awaitable[list[str]]]
"""Gives the addresses of a host name."""

_TRIED = 4
"""How many addresses of one host are tried, one after the other."""
_PATIENCE = 5.0
"""How many seconds an address that does not answer may take while there is another one."""


class GuardedNetwork(httpcore2.AsyncNetworkBackend):
    """Opens connections for the HTTP client: resolve, check, connect to what was checked."""

    def __init__(self, guard: Guard, resolve: Resolve, inner: httpcore2.AsyncNetworkBackend | None = None) -> None:
        self._guard = guard
        self._resolve = resolve
        self._inner = inner or httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        addresses = (await self._checked(host))[:_TRIED]
        for address in addresses[:-1]:
            try:
                return await self._inner.connect_tcp(str(address), port, timeout=_PATIENCE)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._inner.connect_tcp(str(addresses[-1]), port, timeout=timeout)

    async def connect_unix_socket(self, path: str, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        raise AddressRefusedError("HTTP jobs are not sent to sockets of this machine", {})

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _checked(self, host: str) -> list[Address]:
        """Every address of the host, none of which the guard refuses.

        [INV-19] One address that may not be reached is enough to refuse the host: it could be the only one next time.
        """
        literal = read_address(host)
        if literal is not None:
            addresses = [literal]
        else:
            found = await self._resolve(host)
            addresses = list(dict.fromkeys(_read_answer(host, text) for text in found))
        if not addresses:
            raise NetworkError(f"the host name {host} has no address", {})
        for address in addresses:
            why = self._guard.refusal(host, address)
            if why is not None:
                raise _refused(host, address, why, is_literal=literal is not None)
        return addresses


def _read_answer(host: str, text: str) -> Address:
    address = read_address(text.partition("%")[0])
    if address is None:
        raise NetworkError(f"the host name {host} resolves to something that is no address", {})
    return address


def _refused(host: str, address: Address, why: str, *, is_literal: bool) -> AddressRefusedError:
    led, names = ("", "it") if is_literal else (f"{host} leads to {address}, and ", f"{host} or the address")
    return AddressRefusedError(
        f"the address guard refused the request: {led}{why}; "
        f"only public addresses are reached, unless http_allow (PERDURE_HTTP_ALLOW) names {names}",
        {"address": str(address)},
    )
