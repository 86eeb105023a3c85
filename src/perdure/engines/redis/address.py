"""Reads the URL of a Redis store: where the server is, and how to talk to it.

No part of the URL gets into an error but names of options and their values: it may hold a password.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from perdure.engines.userinfo import encode_userinfo, shown
from perdure.errors import BadSetting
from perdure.text.credentials import Discreet

EXAMPLES = (
    "Examples: redis://redis.example:6379/0, rediss://user:secret@redis.example, valkey://redis.example?prefix=jobs,"
    " redis://?socket=/run/redis/redis.sock."
)

CONNECT_TIMEOUT = 5.0

_PREFIX = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_WORDS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
_TLS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs")
_CERTIFICATES = ("required", "optional", "none")
"""Whether the server must show a certificate that somebody vouches for; `optional` is no less for a client."""
_OWN = ("prefix", "socket", "timeout", "listen", "wait_replicas", "wait_aof", "cluster")


class Address(Discreet, msgspec.Struct, frozen=True, kw_only=True):
    """Where a store is, and how to talk to it."""

    _secrets = frozenset(("username", "password"))

    host: str = "localhost"
    port: int = 6379
    database: int = 0
    username: str | None = None
    password: str | None = None
    socket: str | None = None
    """The path of a Unix socket; then host and port do not count."""
    tls: dict[str, str] | None = None
    """The driver's options for TLS; None without TLS."""
    prefix: str = "perdure"
    """What all keys of the store begin with, in braces."""
    timeout: float = 15.0
    """How many seconds a call may take before it is given up."""
    has_hints: bool = True
    """Whether to wake other processes, and to listen for them."""
    wait_replicas: int = 0
    """How many replicas must have a change before it counts."""
    wait_aof: bool = False
    """Whether a change must be on disk before it counts."""
    is_cluster: bool = False

    @property
    def name(self) -> str:
        """The server in words, without secrets."""
        return f"the Redis server at {self.socket or f'{self.host}:{self.port}'}"

    @property
    def tag(self) -> str:
        """What all keys begin with: the part in braces keeps them together in a Cluster."""
        return "{" + self.prefix + "}"

    @property
    def driver(self) -> dict[str, Any]:
        """What the driver needs to connect; holds the password."""
        where = {"unix_socket_path": self.socket} if self.socket else {"host": self.host, "port": self.port}
        options: dict[str, Any] = {
            **where,
            "username": self.username,
            "password": self.password,
            "socket_timeout": self.timeout,
            "socket_connect_timeout": min(CONNECT_TIMEOUT, self.timeout),
            "socket_keepalive": True,
            "protocol": 2,
        }
        if not self.is_cluster:
            options["db"] = self.database
        if self.tls is not None:
            options |= {"ssl": True, **self.tls}
        return options


def read_address(rest: str, *, is_tls: bool) -> Address:
    """The address in what follows the scheme of the URL."""
    rest = encode_userinfo(rest)
    try:
        parts = urlsplit(f"redis://{rest}")
        host, port = parts.hostname, parts.port
        given = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        raise BadSetting("The store's URL cannot be read.", EXAMPLES) from None
    options = dict(given)
    if unknown := sorted(set(options) - set(_OWN) - set(_TLS if is_tls else ())):
        known = ", ".join(_OWN + (_TLS if is_tls else ()))
        name = "an option" if "@" in parts.query else f"the option {unknown[0][:40]!r}"
        raise BadSetting(f"The store's URL has {name}, which is none of {known}.", EXAMPLES)
    address = Address(
        host=host or "localhost",
        port=port or 6379,
        database=_database(parts.path),
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
        socket=options.get("socket") or None,
        tls={name: options[name] for name in _TLS if name in options} if is_tls else None,
        prefix=_prefix(options.get("prefix", "perdure")),
        timeout=_number("timeout", options.get("timeout", "15"), 0.1, 3600),
        has_hints=_switch("listen", options.get("listen", "true")),
        wait_replicas=int(_number("wait_replicas", options.get("wait_replicas", "0"), 0, 100)),
        wait_aof=_switch("wait_aof", options.get("wait_aof", "false")),
        is_cluster=_switch("cluster", options.get("cluster", "false")),
    )
    if is_tls and options.get("ssl_cert_reqs", "required") not in _CERTIFICATES:
        raise BadSetting(
            f"The option ssl_cert_reqs of the store's URL must be one of {', '.join(_CERTIFICATES)}.", EXAMPLES
        )
    _check_cluster(address)
    return address


def _check_cluster(address: Address) -> None:
    if not address.is_cluster:
        return
    for is_used, what in (
        (address.wait_replicas or address.wait_aof, "wait_replicas and wait_aof need one connection to one server"),
        (address.database, "a Cluster has the database 0 only"),
        (address.socket, "a Cluster is not reached through a socket"),
    ):
        if is_used:
            raise BadSetting(f"The store's URL says cluster=true and more than goes with it: {what}.", EXAMPLES)


def _database(path: str) -> int:
    text = path.strip("/")
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise BadSetting("The store's URL names a database that is no number.", EXAMPLES)
    return int(text)


def _prefix(name: str) -> str:
    if not _PREFIX.fullmatch(name):
        raise BadSetting(
            f"The option prefix of the store's URL is {shown(name)}, which cannot be used.",
            "A prefix has up to 64 letters, digits, or any of _ . -",
        )
    return name


def _switch(option: str, value: str) -> bool:
    found = _WORDS.get(value.lower())
    if found is None:
        raise BadSetting(f"The option {option} of the store's URL is {shown(value)}; it must be true or false.")
    return found


def _number(option: str, value: str, least: float, most: float) -> float:
    try:
        found = float(value)
    except ValueError:
        found = float("nan")
    if not least <= found <= most:
        raise BadSetting(
            f"The option {option} of the store's URL is {shown(value)}; it must be a number from {least:g} to {most:g}."
        )
    return found
