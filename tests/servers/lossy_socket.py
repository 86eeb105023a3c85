"""A door in front of a server that can be slammed: forwards all, and on demand loses the reply to a request."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from pathlib import Path


class LossyProxy:
    """Listens on a Unix socket of its own and forwards to the server's."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self.directory = tempfile.TemporaryDirectory(prefix="pd-")
        self.socket = Path(self.directory.name) / "p"
        self._lock = threading.Lock()
        self._marks: list[bytes] = []
        self.lost = 0
        """How many replies were lost."""
        self._open: set[socket.socket] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.socket))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"redis://?socket={self.socket}"

    def lose_reply_to(self, *marks: bytes) -> None:
        """Lose the replies to the next requests that hold these marks, one each, and cut their connections."""
        with self._lock:
            self._marks = list(marks)

    def close(self) -> None:
        self._listener.close()
        for end in list(self._open):
            _shut(end)
        self.directory.cleanup()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(str(self._server))
            except OSError:
                near.close()
                continue
            self._open |= {near, far}
            is_marked = threading.Event()
            threading.Thread(target=self._forward, args=(near, far, is_marked), daemon=True).start()
            threading.Thread(target=self._bring_back, args=(far, near, is_marked), daemon=True).start()

    def _forward(self, near: socket.socket, far: socket.socket, is_marked: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := near.recv(65536):
                with self._lock:
                    mark = next((mark for mark in self._marks if mark in data), None)
                    if mark is not None:
                        self._marks.remove(mark)
                        is_marked.set()
                far.sendall(data)
        _shut(near)
        _shut(far)

    def _bring_back(self, far: socket.socket, near: socket.socket, is_marked: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := far.recv(65536):
                if is_marked.is_set():
                    self.lost += 1
                    break
                near.sendall(data)
        _shut(near)
        _shut(far)


def _shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
