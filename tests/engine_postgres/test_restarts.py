"""The server crashes and comes back while workers are killed and replaced: nothing is lost, and workers go on."""

from __future__ import annotations

import signal
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

JOBS = 1500
RESTARTS = 3


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
def test_nothing_is_lost_and_workers_go_on_though_the_server_crashes(
    crew: Crew, own_server: PostgresServer, record_property: pytest.RecordProperty
) -> None:
    began = time.monotonic()
    workers = [crew.worker(lease="3s", concurrency=8) for _ in range(3)]
    until(lambda: len(crew.registered()) == 3, "the workers are there")
    assert crew.produce("job", JOBS, "batches", seed=5, seconds=0.02).wait(300) == 0
    for turn in range(RESTARTS):
        target = JOBS * (turn + 1) // 8
        until(lambda target=target: len(crew.seen("end")) >= target, "the work goes on")
        # One worker is killed and replaced as well; the others live through it all.
        crew.kill(workers[0])
        crew.ledger.write("kill", note="server")
        own_server.restart(signal.SIGQUIT)
        workers[0] = crew.worker(lease="3s", concurrency=8)
    until(lambda: is_drained(crew), "every job has ended")
    assert [worker.poll() for worker in workers] == [None] * 3, "no worker ended by itself"
    until(lambda: {worker.pid for worker in workers} <= set(crew.registered()), "the last newcomer is at work")
    assert crew.stop(*workers) == [0, 0, 0]
    verdict = check(crew.events(), crew.jobs())
    figures = f"{RESTARTS} crashes of the server in {time.monotonic() - began:.1f} s; {verdict.figures()}"
    record_property("campaign", figures)
    print(figures)
    assert verdict.problems() == {}
    assert verdict.accepted == JOBS


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
