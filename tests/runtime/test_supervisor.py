"""`perdure worker --processes`: the supervisor replaces what crashes, passes signals on, and never leaves orphans."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.chaos.crew import Crew, is_alive, until
from tests.servers.ports import free_port

from perdure.engines.opener import open_store
from perdure.system.clock import SystemClock

Supervised = subprocess.Popen[bytes]


@pytest.fixture
def supervisor(crew: Crew) -> Iterator[Supervised]:
    """A supervisor with two workers at work."""
    arguments = ["worker", "tests.chaos.work:app", "--processes", "2", "--lease", "2s", "--grace", "10s"]
    process = crew.start("-m", "perdure", *arguments, poll="200ms")
    until(lambda: len(crew.registered()) == 2, "both workers are there")
    started = set(crew.registered())
    yield process
    started |= set(crew.registered())
    process.kill()
    process.wait()
    for pid in started:
        # Only where the test failed is anything left; whatever is registered here was started here.
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.crash
def test_a_worker_that_crashes_is_replaced(crew: Crew, supervisor: Supervised) -> None:
    victim, survivor = crew.registered()
    os.kill(victim, signal.SIGKILL)
    until(lambda: len(set(crew.registered()) - {victim, survivor}) == 1, "another worker takes its place")
    until(lambda: victim not in crew.registered(), "the dead one is struck off")
    assert survivor in crew.registered()
    job_id = crew.enqueue("on_loop")
    until(crew.is_drained, "the workers work")
    assert crew.state(job_id) == "succeeded"
    assert crew.stop(supervisor) == [0]


@pytest.mark.crash
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_every_worker_and_the_exit_code_is_zero(
    crew: Crew, supervisor: Supervised, number: signal.Signals
) -> None:
    workers = list(crew.registered())
    jobs = [crew.enqueue("on_loop", seconds=1.0) for _ in range(4)]
    until(lambda: len(crew.seen("start")) == 4, "the jobs run")
    supervisor.send_signal(number)
    assert supervisor.wait(300) == 0
    assert [crew.state(job_id) for job_id in jobs] == ["succeeded"] * 4
    assert crew.registered() == {}
    assert not any(is_alive(pid) for pid in workers)


@pytest.mark.crash
def test_workers_stop_by_themselves_when_their_supervisor_is_killed(crew: Crew, supervisor: Supervised) -> None:
    workers = list(crew.registered())
    crew.kill(supervisor)
    until(lambda: not any(is_alive(pid) for pid in workers), "the workers end")
    assert crew.registered() == {}


def is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/healthz/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def test_every_process_serves_its_metrics_at_a_port_of_its_own(crew: Crew) -> None:
    first = free_port(also=(1,))
    process = crew.start(
        "-m", "perdure", "worker", "tests.chaos.work:app", "--processes", "2", "--metrics-port", str(first)
    )
    try:
        until(lambda: is_ready(first) and is_ready(first + 1), "both are ready")
        assert crew.stop(process) == [0]
    finally:
        process.kill()
        process.wait()
    assert not is_ready(first)


def test_the_stores_url_is_not_among_the_arguments_of_workers(crew: Crew, tmp_path: Path) -> None:
    """Arguments of a process are seen by everybody on the machine; its environment only by its user."""
    secret = f"sqlite:///{tmp_path}/hush.db"
    process = crew.start("-m", "perdure", "worker", "--processes", "2", "--url", secret)
    try:
        until(lambda: (tmp_path / "hush.db").exists() and len(workers_of(secret)) == 2, "both workers are there")
        for pid in workers_of(secret):
            arguments = subprocess.run(
                ["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=True
            )
            assert "perdure worker" in arguments.stdout
            assert "hush" not in arguments.stdout
            assert "--url" not in arguments.stdout
        assert crew.stop(process) == [0]
    finally:
        process.kill()
        process.wait()


def workers_of(url: str) -> list[int]:
    with closing(open_store(url, clock=SystemClock())) as store:
        return [worker.pid for worker in store.workers().wait()]
