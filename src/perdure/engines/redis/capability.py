"""What the Redis engine can do on the server that it found: what survives a crash there, and what should be known.

A server that may evict keys is refused: it would drop jobs without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from perdure.engines.redis.address import Address
from perdure.engines.redis.wire import ServerError
from perdure.errors import EngineUnusable, Unsupported
from perdure.store.capability import Capabilities

OLDEST = {"redis": (6, 2), "valkey": (7, 2)}
FIRST_WAITAOF = (7, 2)

_SURVIVES = {
    "always": "What was answered survives a crash of the server and power loss: append-only file, one fsync for each"
    " round of commands.",
    "everysec": "What was answered survives a crash of the server once it is on disk, which takes up to about a second:"
    " append-only file, one fsync a second.",
    "no": "What was answered survives a crash of the server process, not of its machine: append-only file, written to"
    " disk when the operating system likes.",
    "unknown": "What was answered survives as the server's append-only file does; how often that is synced, it does not"
    " tell.",
}
_SNAPSHOT = "What was answered survives a crash of the server only if a snapshot was made since: no append-only file."
_NO_AOF = (
    "appendonly is no: a crash of the server loses everything since the last snapshot. Set appendonly yes, and"
    " appendfsync always where nothing may be lost."
)
_SLOW_SYNC = {
    "everysec": "appendfsync is everysec: a crash of the server can lose about the last second of answered calls. Set"
    " appendfsync always where nothing may be lost.",
    "no": "appendfsync is no: a crash of the server's machine can lose up to half a minute of answered calls. Set"
    " appendfsync everysec or always.",
}
_EARLY_WAITAOF = (
    "appendfsync is everysec, and some servers, Redis 7.4 and Valkey 9.1 among them, then answer WAITAOF too early."
    " Set appendfsync always where nothing may be lost."
)

Ask = Callable[..., Any]
"""Sends a command, gives its answer."""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A server as it was found."""

    kind: str
    version: str
    has_aof: bool
    fsync: str
    """`always`, `everysec`, `no` or `unknown`."""
    policy: str
    """What it does when memory is full; `unknown` when it does not tell."""
    is_configured_openly: bool
    """Whether it answered CONFIG GET."""


def look(ask: Ask) -> Server:
    """Ask the server what it is; managed servers do not answer CONFIG, but all answer INFO."""
    info = _info(ask("INFO"))
    try:
        settings = {name: _setting(ask("CONFIG", "GET", name)) for name in ("appendonly", "appendfsync")}
    except ServerError:
        settings = {}
    kind = "valkey" if "valkey_version" in info else "redis"
    return Server(
        kind=kind,
        version=info.get("valkey_version") or info.get("redis_version", "unknown"),
        has_aof=(settings.get("appendonly") or info.get("aof_enabled", "0")) in ("yes", "1"),
        fsync=settings.get("appendfsync") or "unknown",
        policy=info.get("maxmemory_policy", "unknown"),
        is_configured_openly=bool(settings),
    )


def check(server: Server, address: Address) -> None:
    """Refuse a server that is too old or may evict keys."""
    where = address.name
    numbers = tuple(int(part) for part in server.version.split(".")[:2] if part.isdigit())
    if numbers and numbers < OLDEST[server.kind]:
        raise EngineUnusable(
            f"There is {server.kind.capitalize()} {server.version} at {where}, and Perdure needs Redis 6.2 or Valkey"
            " 7.2.",
            "Upgrade the server.",
        )
    if numbers and address.wait_aof and numbers < FIRST_WAITAOF:
        raise Unsupported(
            f"The store's URL says wait_aof=true, and {server.kind.capitalize()} {server.version} at {where} has no"
            " WAITAOF.",
            "Leave the option out and set appendfsync always on the server, or upgrade it to 7.2 or newer.",
        )
    if server.policy not in ("noeviction", "unknown"):
        raise Unsupported(
            f"When its memory is full, {where} would evict keys and so lose jobs without a word: its maxmemory-policy"
            f" is {server.policy}.",
            "Set it on the server: CONFIG SET maxmemory-policy noeviction, and the same in its configuration file.",
        )


def capabilities(server: Server, address: Address) -> Capabilities:
    """What the store can do there."""
    return Capabilities(
        engine="redis",
        version=f"{server.kind.capitalize()} {server.version}",
        durability=_durability(server, address),
        has_caller_transactions=False,
        is_shared=True,
        warnings=_warnings(server, address),
    )


def _durability(server: Server, address: Address) -> str:
    if not server.has_aof:
        sentence = _SNAPSHOT
    elif address.wait_aof:
        sentence = (
            "What was answered survives a crash of the server and power loss as far as the server's WAITAOF tells the"
            " truth: each change waits for it."
        )
    else:
        sentence = _SURVIVES.get(server.fsync, _SURVIVES["unknown"])
    if address.wait_replicas:
        copies = "a replica has" if address.wait_replicas == 1 else f"{address.wait_replicas} replicas have"
        sentence += f" Before it is answered, {copies} it too."
    return sentence


def _warnings(server: Server, address: Address) -> tuple[str, ...]:
    found = []
    if not server.has_aof:
        found.append(_NO_AOF)
    elif address.wait_aof and server.fsync == "everysec":
        found.append(_EARLY_WAITAOF)
    elif not address.wait_aof and server.fsync in _SLOW_SYNC:
        found.append(_SLOW_SYNC[server.fsync])
    if server.policy == "unknown":
        found.append("The server does not tell its maxmemory-policy. Make sure that it is noeviction.")
    if not server.is_configured_openly:
        found.append("The server does not answer CONFIG GET. Make sure that it has an append-only file that is synced.")
    return tuple(found)


def _info(answer: Any) -> dict[str, str]:
    """What INFO tells, by name, whether the driver has taken it apart or not."""
    if isinstance(answer, Mapping):
        return {str(name): str(value) for name, value in answer.items()}
    lines = bytes(answer).decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line and not line.startswith("#"))


def _setting(answer: Any) -> str:
    if isinstance(answer, Mapping):
        answer = [part for pair in answer.items() for part in pair]
    value = answer[1] if len(answer) > 1 else b"unknown"
    return value.decode() if isinstance(value, bytes) else str(value)
