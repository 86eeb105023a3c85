"""A proxy that can lose what passes through it: replies, or everything."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Literal

Mode = Literal["pass", "hang", "eat reply"]
"""pass: hands everything on · hang: takes everything and hands nothing on · eat reply: hands requests on, and instead
of the next reply ends the connection."""


class Proxy:
    """Listens on a port of its own, and connects to the server for each client."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.mode: Mode = "pass"
        self.eaten = threading.Event()
        self._sockets: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(60)
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(client)
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            self._sockets.append(server)
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._hand_on, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._hand_on, args=(server, client, True), daemon=True).start()

    def _hand_on(self, source: socket.socket, target: socket.socket, is_reply: bool) -> None:
        try:
            while part := source.recv(65536):
                if self.mode == "hang":
                    continue
                if self.mode == "eat reply" and is_reply:
                    self.mode = "pass"
                    self.eaten.set()
                    break
                target.sendall(part)
        except OSError:
            pass
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
