"""How many connections a server keeps open, in all and for one client, and which one it closes for the sake of another.

A client is an IP address, or the first 64 bits of an IPv6 address, which one machine may change as it likes. A new
connection over a limit takes the place of the oldest one that waits for its client: over the limit of a client, of that
client's own; over the total, of the client with the most. So a client that holds many connections open without using
them cannot keep others out, nor itself.
"""

from __future__ import annotations

import ipaddress
import os
import resource
from typing import Protocol

MOST_CONNECTIONS = 1000
"""How many connections a server keeps open by default, where the process may have enough descriptors."""
_KEPT_BACK = 64
"""How many descriptors are left to the rest of the process, whatever limit is asked for."""


class Guest(Protocol):
    """A connection, as the limit sees it."""

    def is_waiting(self) -> bool:
        """Whether the server waits for the client, so that nothing is lost by closing it but the client's time."""
        ...

    def evict(self) -> None:
        """Close the connection at once."""
        ...


class ConnectionLimit:
    """The open connections of one server; used in one thread, or under a lock."""

    def __init__(self, most: int, most_per_client: int) -> None:
        self.most = most
        self.most_per_client = most_per_client
        self._count = 0
        self._clients: dict[str, dict[Guest, None]] = {}

    def __len__(self) -> int:
        return self._count

    def enter(self, client: str, guest: Guest) -> bool:
        """Count a new connection in, closing another if need be; whether there is room for it."""
        own = len(self._clients.get(client, ()))
        if own >= self.most_per_client:
            has_room = self._evict_from(client)
        elif self._count >= self.most:
            has_room = self._evict_elsewhere(own)
        else:
            has_room = True
        if has_room:
            self._clients.setdefault(client, {})[guest] = None
            self._count += 1
        return has_room

    def leave(self, client: str, guest: Guest) -> None:
        """Count a connection out; one that is out already is not counted twice."""
        guests = self._clients.get(client)
        if guests is not None and guest in guests:
            del guests[guest]
            self._count -= 1
            if not guests:
                del self._clients[client]

    def guests(self) -> list[Guest]:
        """All open connections."""
        return [guest for guests in self._clients.values() for guest in guests]

    def _evict_elsewhere(self, own: int) -> bool:
        """Close a connection of a client that has more of them than the one that asks, busiest clients first."""
        by_count = sorted(self._clients.items(), key=lambda item: -len(item[1]))
        return any(len(guests) > own and self._evict_from(client) for client, guests in by_count)

    def _evict_from(self, client: str) -> bool:
        # In the order of their arrival, so the first found is the oldest.
        victim = next((guest for guest in self._clients[client] if guest.is_waiting()), None)
        if victim is None:
            return False
        self.leave(client, victim)
        victim.evict()
        return True


def client_of(address: object) -> str:
    """The name under which a peer's connections are counted; all peers without an IP address are one client."""
    host = address[0] if isinstance(address, tuple) and address else None
    try:
        found = ipaddress.ip_address(str(host).partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((found, 64), strict=False))


def affordable(wanted: int | None) -> int:
    """How many connections the process's limit of descriptors allows: what is wanted, or about half of those left.

    The other half is for the worker, its handlers, the store and its files.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return wanted or MOST_CONNECTIONS
    free = max(2, limit - _open_descriptors())
    return max(1, min(wanted, free - _KEPT_BACK) if wanted is not None else min(MOST_CONNECTIONS, free // 2))


def _open_descriptors() -> int:
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(folder))
        except OSError:
            continue
    return 0
