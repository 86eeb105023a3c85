"""What goes over a connection: commands packed into bytes, answers read from them, and what a connection begins with.

The driver is hiredis, which packs and reads; connections are made here, since nothing else is needed of a client.
"""

from __future__ import annotations

import socket
import ssl
import struct
import sys
from collections.abc import Sequence
from typing import Any

import hiredis

from perdure.engines.redis.address import CONNECT_TIMEOUT, Address
from perdure.engines.redis.verb import Argument

Command = Sequence[Argument]

MORE = object()
"""Given by a reader whose answer has not arrived whole."""
CHUNK = 1 << 16
CLOSED = "the server closed the connection"
LATE = "no answer in time"


class ServerError(Exception):
    """What the server says instead of an answer."""


class NoScriptError(ServerError):
    """The server does not know the script."""


class DeniedError(ServerError):
    """The server does not let us in."""


# What its stub says of the tuple's length is not what it takes.
_pack: Any = hiredis.pack_command


def pack(*command: Argument) -> bytes:
    packed: bytes = _pack(command)
    return packed


def make_reader() -> Any:
    """Reads answers from bytes as they come; an error is an answer too."""
    return hiredis.Reader(protocolError=ConnectionError, replyError=_to_error, notEnoughData=MORE)


def greeting(address: Address) -> list[bytes]:
    """The commands that a connection begins with, each answered before the next: who we are, and which database."""
    commands = []
    if address.password is not None:
        user = () if address.username is None else (address.username,)
        commands.append(pack("AUTH", *user, address.password))
    if address.database:
        commands.append(pack("SELECT", address.database))
    # A connection behind TLS is only then at rest when something was answered on it.
    return commands or [pack("PING")]


def check_greeting(answer: object) -> None:
    if isinstance(answer, NoScriptError | ConnectionError):
        raise answer
    if isinstance(answer, ServerError):
        said = str(answer)
        is_wrong = "AUTH" in said or "PASS" in said or "password" in said
        raise DeniedError(said) if is_wrong else answer


def make_context(address: Address) -> ssl.SSLContext | None:
    """How to talk to a server behind TLS; None without TLS."""
    if address.tls is None:
        return None
    given = address.tls
    context = ssl.create_default_context(cafile=given.get("ssl_ca_certs"))
    if given.get("ssl_cert_reqs") == "none":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if "ssl_certfile" in given:
        context.load_cert_chain(given["ssl_certfile"], given.get("ssl_keyfile"))
    return context


def connect(address: Address) -> socket.socket:
    """A blocking socket that leads to the server."""
    patience = min(CONNECT_TIMEOUT, address.timeout)
    if address.socket:
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    else:
        opened = socket.create_connection((address.host, address.port), patience)
    try:
        opened.settimeout(patience)
        if address.socket:
            opened.connect(address.socket)
        else:
            prepare(opened)
        context = make_context(address)
        if context is not None:
            opened = context.wrap_socket(opened, server_hostname=address.host)
        opened.settimeout(address.timeout)
        if context is None and sys.platform == "linux":
            _let_the_system_wait(opened, address.timeout)
    except BaseException:
        opened.close()
        raise
    return opened


def _let_the_system_wait(opened: socket.socket, patience: float) -> None:
    """Bound sends and reads by the system's own timeouts: Python would ask before each whether it can be done now."""
    opened.settimeout(None)
    limit = struct.pack("@ll", int(patience), int(patience % 1 * 1_000_000))
    for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
        opened.setsockopt(socket.SOL_SOCKET, option, limit)


def prepare(opened: socket.socket) -> None:
    """Send at once, and notice a peer that is gone."""
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def _to_error(said: str) -> Exception:
    if said.startswith("NOSCRIPT"):
        return NoScriptError(said)
    if "max number of clients reached" in said:
        return ConnectionError(said)
    return ServerError(said)
