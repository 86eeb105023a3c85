"""What the hostile tests share: raw clients, a server in a thread, and `perdure` as a process with few descriptors."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
from tests.web.conftest import make_app

from perdure import App, Settings
from perdure.web.app import Api, create_app
from perdure.web.server.deadlines import Deadlines
from perdure.web.server.serve import Server, make_server

IS_LONG = os.environ.get("PERDURE_HOSTILE") == "long"
PATIENCE = 60.0
"""How many seconds a test waits for what must come."""
ROOT = Path(__file__).parents[2]


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait for a condition, and give what it gives."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {PATIENCE:g} s: {what}"
        time.sleep(0.02)
    return found


class RawClient:
    """A connection on which anything can be said."""

    def __init__(self, port: int, *, source: str = "127.0.0.1", receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.bind((source, 0))
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))

    def say(self, data: bytes) -> None:
        # Whether the other side is still there is seen when reading.
        with suppress(OSError):
            self.socket.sendall(data)

    def hear(self, wanted: bytes) -> bytes:
        """Read until the text has come."""
        heard = b""
        while wanted not in heard:
            piece = self.socket.recv(65536)
            assert piece, f"closed after {heard[-200:]!r}"
            heard += piece
        return heard

    def rest(self) -> bytes:
        """Everything until the server closes; a reset is an end, too."""
        heard = b""
        with suppress(ConnectionError):
            while piece := self.socket.recv(65536):
                heard += piece
        return heard

    def drip(self, data: bytes = b"x", every: float = 0.03) -> None:
        """Say a little again and again until the server closes the connection."""
        deadline = time.monotonic() + PATIENCE
        self.socket.settimeout(every)
        while time.monotonic() < deadline:
            try:
                self.socket.sendall(data)
                while self.socket.recv(65536):
                    pass
                return
            except TimeoutError:
                continue
            except OSError:
                return
        raise AssertionError("the server goes on listening")

    @property
    def is_open(self) -> bool:
        """Whether the server has not closed the connection; what it said meanwhile is passed over."""
        self.socket.setblocking(False)
        try:
            while self.socket.recv(65536):
                pass
            return False
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            self.socket.settimeout(PATIENCE)

    def close(self) -> None:
        self.socket.close()


class Hosted:
    """An API behind its real server, in a thread of the test's process."""

    def __init__(self, api: Api, server: Server, port: int) -> None:
        self.api = api
        self.server = server
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._clients: list[RawClient] = []

    def client(self, **options: Any) -> RawClient:
        self._clients.append(RawClient(self.port, **options))
        return self._clients[-1]

    def get(self, path: str = "/healthz/live") -> int:
        with httpx2.Client(base_url=self.url, timeout=PATIENCE) as client:
            return client.get(path).status_code

    def close_clients(self) -> None:
        for client in self._clients:
            client.close()


@contextmanager
def hosted(directory: Path, deadlines: Deadlines | None = None, **settings: Any) -> Iterator[Hosted]:
    """Serve an app's API until the block ends; the server must then stop by itself."""
    app: App = make_app(None, settings=Settings(url=f"sqlite:///{directory}/jobs.db", **settings))  # type: ignore[arg-type]
    api = create_app(app)
    started = threading.Event()
    server = make_server(api, announce=started.set, grace=5.0, deadlines=deadlines)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 * 1024)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    assert started.wait(PATIENCE)
    host = Hosted(api, server, listener.getsockname()[1])
    try:
        yield host
    finally:
        host.close_clients()
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the server did not stop"
        listener.close()
        app.close()


class Process:
    """A command of Perdure with few descriptors, whose log is kept in a file."""

    def __init__(self, directory: Path, *args: str, open_files: int, **environment: str) -> None:
        self.log = directory / "log.txt"
        self._stream = self.log.open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "perdure", *args],
            cwd=directory,
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")},
                "PERDURE_URL": f"sqlite:///{directory}/jobs.db",
                "PERDURE_CONFIG": "none",
                "PYTHONPATH": str(ROOT),
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=self._stream,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files)),
        )

    def announced(self) -> dict[str, Any]:
        """What the command says when it listens."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        found: dict[str, Any] = json.loads(line)
        return found

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self._stream.close()
