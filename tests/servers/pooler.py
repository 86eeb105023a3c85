"""A small pooler in transaction mode: each transaction of a client may go to another session of the server.

It speaks just enough of PostgreSQL's protocol for that, takes sessions by turns so that whatever is kept in one is
missed in the next, and writes down what it saw.
"""

from __future__ import annotations

import collections
import contextlib
import socket
import struct
import threading

_SSL = 80877103
_GSS = 80877104
_SESSIONS = 3
_READY = b"Z\0\0\0\5I"


class Pooler:
    """Listens on a port of its own."""

    def __init__(self, host: str, port: int, user: str, database: str) -> None:
        self._target = (host, port)
        self._startup = _startup(user, database)
        self._sessions: collections.deque[_Session] = collections.deque()
        self._lock = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.statements: list[str] = []
        """The text of every statement that passed."""
        self.names: set[str] = set()
        """The names under which statements were prepared; the empty one is not kept by the session."""
        self.transactions: collections.Counter[int] = collections.Counter()
        """How many transactions each session has seen."""
        self._open: list[socket.socket] = [self._listener]
        for number in range(_SESSIONS):
            far = socket.create_connection(self._target)
            self._open.append(far)
            self._sessions.append(_Session(number, far, self._startup))
        # Like any pooler, it makes up the process and the key that its clients may cancel with.
        self._greeting = (
            _without_key(self._sessions[0].greeting) + b"K" + struct.pack("!III", 12, 4_000_000, 7) + _READY
        )
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open.append(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            self._greet(client)
            while True:
                self._transact(client, _message(client))
        except (EOFError, OSError):
            client.close()

    def _greet(self, client: socket.socket) -> None:
        while True:
            (length,) = struct.unpack("!I", _exactly(client, 4))
            body = _exactly(client, length - 4)
            if struct.unpack("!I", body[:4])[0] not in (_SSL, _GSS):
                client.sendall(self._greeting)
                return
            client.sendall(b"N")

    def _transact(self, client: socket.socket, first: bytes) -> None:
        """Hand messages to and fro on one session until its transaction is over."""
        if first[:1] == b"X":
            raise EOFError
        with self._lock:
            self._lock.wait_for(lambda: self._sessions)
            session = self._sessions.popleft()
        self.transactions[session.number] += 1
        try:
            message = first
            while True:
                self._note(message)
                session.socket.sendall(message)
                if message[:1] in (b"Q", b"S") and self._answer(session, client) == b"I":
                    return
                message = _message(client)
        finally:
            with self._lock:
                self._sessions.append(session)
                self._lock.notify()

    def _answer(self, session: _Session, client: socket.socket) -> bytes:
        """Hand the server's messages on until it is ready; gives the state of the transaction."""
        while True:
            message = _message(session.socket)
            client.sendall(message)
            if message[:1] == b"Z":
                return message[5:6]

    def _note(self, message: bytes) -> None:
        if message[:1] == b"P":
            name, text, _ = message[5:].split(b"\0", 2)
            self.names.add(name.decode())
            self.statements.append(text.decode())
        elif message[:1] == b"Q":
            self.statements.append(message[5:-1].decode())


class _Session:
    """One session of the server."""

    def __init__(self, number: int, one: socket.socket, startup: bytes) -> None:
        self.number = number
        self.socket = one
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one.sendall(startup)
        self.greeting = b""
        while not self.greeting.endswith(b"I") or self.greeting[-6:-5] != b"Z":
            self.greeting += _message(one)


def _startup(user: str, database: str) -> bytes:
    given = f"user\0{user}\0database\0{database}\0client_encoding\0UTF8\0\0".encode()
    return struct.pack("!II", len(given) + 8, 196608) + given


def _without_key(greeting: bytes) -> bytes:
    """The greeting without the server's own key, and without the word that it is ready."""
    kept, at = b"", 0
    while at < len(greeting):
        end = at + 1 + struct.unpack("!I", greeting[at + 1 : at + 5])[0]
        if greeting[at : at + 1] not in (b"K", b"Z"):
            kept += greeting[at:end]
        at = end
    return kept


def _message(one: socket.socket) -> bytes:
    head = _exactly(one, 5)
    return head + _exactly(one, struct.unpack("!I", head[1:])[0] - 4)


def _exactly(one: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        part = one.recv(size - len(parts))
        if not part:
            raise EOFError
        parts += part
    return parts
