"""A worker whose engine is away at its start: it waits and says so once, or ends at once where that is asked for."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.chaos.crew import ROOT, until
from tests.servers import postgres
from tests.servers.ports import free_port
from tests.servers.redis import RedisServer

from perdure import App

SOURCE = "from perdure import App\napp = App()\n@app.task\ndef hello() -> str:\n    return 'hello'\n"
AWAY = "cannot reach the store and keeps trying"
BACK = "reaches the store again"


class Started:
    """A command on a store that may not be there."""

    def __init__(self, directory: Path, url: str, *arguments: str) -> None:
        (directory / "start_app.py").write_text(SOURCE)
        self.url = url
        self.log = directory / "log.txt"
        self._output = self.log.open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "perdure", *arguments],
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")},
                "PERDURE_URL": url,
                "PERDURE_CONFIG": "none",
                "PYTHONPATH": str(ROOT),
            },
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
        )

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def count(self, words: str) -> int:
        return self.said().count(words)

    def until_said(self, words: str) -> None:
        until(lambda: words in self.said() or self.process.poll() is not None, f"it says {words!r}")
        assert words in self.said(), self.said()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def works(self) -> None:
        """Show that it runs jobs now."""
        app = App(self.url)
        try:
            job_id = app.enqueue_named("hello", [], {})
            until(lambda: app.client().get(job_id).state == "succeeded", "the job is done")
        finally:
            app.close()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._output.close()


Start = Callable[..., Started]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts commands in a directory of their own; none is left behind."""
    made: list[Started] = []

    def begin(url: str, *arguments: str) -> Started:
        made.append(Started(tmp_path, url, *arguments))
        return made[-1]

    yield begin
    for each in made:
        print(each.said()[-5000:])
        each.close()


COMMANDS = {
    "worker": ["worker", "start_app:app", "--grace", "5s"],
    "processes": ["worker", "start_app:app", "--processes", "2", "--grace", "5s"],
    "up": ["up", "start_app:app", "--port", "0", "--grace", "5s"],
    "scheduler": ["server", "start_app:app", "--scheduler", "--port", "0"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_server_that_is_not_there_yet_is_waited_for(start: Start, command: str) -> None:
    with closing(RedisServer()) as server:
        server.kill()
        started = start(f"{server.url}", *COMMANDS[command])
        count = 2 if command == "processes" else 1
        until(lambda: started.count(AWAY) == count, "each process says that the store is away")
        server.start()
        until(lambda: started.count(BACK) == count, "each process says that the store is there")
        if command != "scheduler":
            started.works()
        assert started.count(AWAY) == count
        assert started.stop() == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_a_stop_ends_the_wait_at_once_and_well(start: Start, command: str) -> None:
    started = start(f"redis://127.0.0.1:{free_port()}", *COMMANDS[command])
    started.until_said(AWAY)
    assert started.stop() == 0
    assert "Traceback" not in started.said()


@pytest.mark.parametrize("command", [*COMMANDS, "server"])
def test_no_wait_ends_with_exit_code_5(start: Start, command: str) -> None:
    arguments = COMMANDS.get(command, ["server", "start_app:app", "--port", "0"])
    started = start(f"redis://127.0.0.1:{free_port()}", *arguments, "--no-wait")
    assert started.process.wait(60) == 5
    assert "error:" in started.said()


def test_a_host_that_does_not_answer_does_not_hold_up_a_stop(start: Start) -> None:
    """Connecting takes as long as it takes; the process ends without it."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as silent:
        port = silent.getsockname()[1]
        started = start(f"redis://127.0.0.1:{port}", *COMMANDS["worker"])
        silent.settimeout(60)
        connection, _ = silent.accept()
        with connection:
            assert started.stop() == 0


def test_postgres_is_waited_for_while_it_is_down_and_while_it_is_crowded(
    start: Start,
    tmp_path: Path,
) -> None:
    server = postgres.PostgresServer(max_connections="6", superuser_reserved_connections="0", max_wal_senders="0")
    try:
        url = postgres.make_url(tmp_path, server.dsn)
        server.stop()
        started = start(url, *COMMANDS["worker"])
        started.until_said(AWAY)
        server.start()
        started.until_said(BACK)
        assert started.stop() == 0
        crowd = [psycopg.connect(server.dsn) for _ in range(6)]
        crowded = start(url, *COMMANDS["worker"])
        until(lambda: crowded.count(AWAY) == 2, "it says that there is no connection left")
        for connection in crowd:
            connection.close()
        until(lambda: crowded.count(BACK) == 2, "it starts when there is one")
        assert crowded.stop() == 0
    finally:
        server.close()


def test_redis_that_is_full_is_waited_for(start: Start) -> None:
    with closing(RedisServer()) as server:
        server.ask("CONFIG", "SET", "maxmemory", "1")
        started = start(server.url, *COMMANDS["worker"])
        started.until_said(AWAY)
        server.ask("CONFIG", "SET", "maxmemory", "0")
        started.until_said(BACK)
        started.works()
        assert started.stop() == 0


def test_a_sqlite_file_that_another_program_holds_is_waited_for(
    start: Start,
    tmp_path: Path,
) -> None:
    path = tmp_path / "jobs.db"
    App(f"sqlite:///{path}").client()
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        started = start(f"sqlite:///{path}", *COMMANDS["worker"])
        started.until_said(AWAY)
        holder.execute("ROLLBACK")
    started.until_said(BACK)
    started.works()
    assert started.stop() == 0


def test_what_waiting_does_not_help_ends_at_once(start: Start, tmp_path: Path) -> None:
    server = postgres.shared_server()
    (tmp_path / "no.db").write_text("this is no database, whatever its name says" * 100)
    wrong = {
        "nowhere does not exist": f"sqlite:///{tmp_path}/nowhere/x.db",
        "file is not a database": f"sqlite:///{tmp_path}/no.db",
        "perdure db migrate": postgres.with_options(server, schema="perdure_absent"),
        'database "no_such_base" does not exist': server.removesuffix("/postgres") + "/no_such_base",
        "The store's URL begins with mysql": "mysql://x",
    }
    for words, url in wrong.items():
        started = start(url, *COMMANDS["worker"])
        assert started.process.wait(60) in (2, 5), started.said()
        assert words in started.said()
        assert AWAY not in started.said()


def test_a_wrong_password_ends_at_once(start: Start) -> None:
    with closing(RedisServer()) as server:
        server.ask("CONFIG", "SET", "requirepass", "right")
        started = start(server.url.replace("redis://", "redis://:wrong@"), *COMMANDS["worker"])
        assert started.process.wait(60) == 5
    assert "may not do that" in started.said()
    assert AWAY not in started.said()
