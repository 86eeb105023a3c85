"""Workers whose sessions are cut go on, and a command that finds no server says so."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.chaos.checker import check
from tests.chaos.crew import Crew, Engine, until
from tests.servers import postgres
from tests.servers.postgres import PostgresServer

from perdure.errors import EngineError


@pytest.fixture
def crew(own_server: PostgresServer, tmp_path: Path) -> Iterator[Crew]:
    url = postgres.make_url(tmp_path, own_server.dsn)
    made = Crew(Engine(url=url, find_damage=list, is_free=lambda: True), tmp_path)
    try:
        yield made
    finally:
        made.close()
        print(made.output()[-5_000:])


def is_drained(crew: Crew) -> bool:
    try:
        return crew.is_drained()
    except EngineError:
        return False


@pytest.mark.crash
def test_a_worker_whose_sessions_are_killed_again_and_again_goes_on(crew: Crew, own_server: PostgresServer) -> None:
    worker = crew.worker(lease="3s", concurrency=8)
    until(lambda: worker.pid in crew.registered(), "the worker is there")
    producer = crew.produce("job", 600, "batches", seed=6, seconds=0.02)
    assert producer.wait(300) == 0
    kills = 0
    deadline = time.monotonic() + 300
    with psycopg.connect(own_server.dsn, autocommit=True) as operator:
        while not is_drained(crew):
            assert time.monotonic() < deadline
            if kills < 20:
                cursor = operator.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'perdure' ORDER BY random() LIMIT 3"
                )
                kills += len(cursor.fetchall())
            time.sleep(0.1)
    assert worker.poll() is None
    assert crew.stop(worker) == [0]
    assert kills >= 10
    assert check(crew.events(), crew.jobs()).problems() == {}


def test_a_command_that_finds_no_server_says_so_with_its_own_exit_code(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "perdure", "db", "status", "--url", "postgresql://127.0.0.1:1/app"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path)
    assert done.returncode == 5
    assert "There is no connection to the PostgreSQL database app at 127.0.0.1:1" in done.stderr
