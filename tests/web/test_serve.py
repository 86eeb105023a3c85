"""`perdure server`, `perdure up` and `perdure token` as processes: where they listen, what they run, how they stop."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner
from tests.http.target import Target
from tests.servers.redis import RedisServer

from perdure.cli.main import root
from perdure.web.access.tokens import GRANTS, read_tokens

PATIENCE = 60.0
MODULE = """
import time
from pathlib import Path

from perdure import App

app = App()


@app.task
def note(name: str) -> None:
    Path(name).write_text("done")


@app.task
async def linger(name: str) -> None:
    import asyncio

    Path(name).write_text("begun")
    await asyncio.sleep(3600)
"""


class Process:
    """A command that runs until it is stopped."""

    def __init__(self, directory: Path, *args: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "perdure", *args, "--port", "0", "--json"],
            cwd=directory,
            env={**os.environ, "PERDURE_URL": f"sqlite:///{directory}/jobs.db", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.said = json.loads(line)
        self.client = httpx2.Client(base_url=self.said["url"], timeout=PATIENCE)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def target() -> Iterator[Target]:
    opened = Target()
    yield opened
    opened.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    (tmp_path / "tasks_here.py").write_text(MODULE, encoding="utf-8")
    started: list[Process] = []

    def run(*args: str, **environment: str) -> Process:
        started.append(Process(tmp_path, *args, **environment))
        return started[-1]

    yield run
    for process in started:
        process.close()


def run(tmp_path: Path, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "perdure", *args],
        cwd=tmp_path,
        env={**os.environ, "PERDURE_URL": f"sqlite:///{tmp_path}/jobs.db", **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def wait_for(path: Path, content: str) -> None:
    until = time.monotonic() + PATIENCE
    while not path.exists() or path.read_text() != content:
        assert time.monotonic() < until, f"{path} never said {content}"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_stops_at_once_although_clients_listen_to_its_events(start, number: int) -> None:
    server = start("server")
    assert server.said["has_tokens"] is False
    made = server.client.post("/api/v1/jobs", json={"task": "anything", "args": [1]})
    assert made.status_code == 201
    with server.client.stream("GET", "/api/v1/events") as events:
        lines = events.iter_lines()
        assert next(line for line in lines if line.startswith("event:")) == "event: stats"
        assert server.stop(number) == 0
        assert list(lines) is not None, "the stream ends as a stream should"


def test_up_runs_the_jobs_that_the_api_takes_and_stops_as_a_worker_does(start, tmp_path: Path) -> None:
    up = start("up", "tasks_here:app")
    assert up.client.post("/api/v1/jobs", json={"task": "nothing"}).status_code == 422
    made = up.client.post("/api/v1/jobs", json={"task": "note", "kwargs": {"name": "done.txt"}})
    assert made.status_code == 201
    wait_for(tmp_path / "done.txt", "done")
    assert len(up.client.get("/api/v1/workers").json()["workers"]) == 1
    assert up.stop() == 0


def test_the_second_signal_stops_up_at_once_and_gives_the_job_back(start, tmp_path: Path) -> None:
    up = start("up", "tasks_here:app", "--grace", "1h", "--any-task")
    made = up.client.post("/api/v1/jobs", json={"task": "linger", "kwargs": {"name": "begun.txt"}}).json()
    wait_for(tmp_path / "begun.txt", "begun")
    up.process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        up.process.wait(1.0)
    assert up.stop() == 0
    again = start("server")
    job = again.client.get(f"/api/v1/jobs/{made['id']}").json()
    assert (job["state"], job["reason"], job["failures"]) == ("ready", "released", 0)


def test_up_without_an_app_fires_schedules_and_sends_requests(start, target: Target) -> None:
    up = start("up", PERDURE_HTTP_ALLOW="127.0.0.1")
    form = {"schedule": "* * * * * *", "api": f"{target.url}/hook"}
    made = up.client.post("/api/v1/jobs", json=form)
    assert made.status_code == 201
    until = time.monotonic() + PATIENCE
    while not target.seen:
        assert time.monotonic() < until, "no request came"
        time.sleep(0.02)
    assert (target.seen[0].method, target.seen[0].path) == ("POST", "/hook")
    assert up.stop() == 0


def fired(server: Process) -> int:
    count = server.client.get("/api/v1/schedules/each").json()["fired"]
    assert isinstance(count, int)
    return count


def test_a_server_fires_schedules_only_if_it_is_asked_to(start) -> None:
    silent = start("server")
    body = {"name": "each", "cron": "* * * * * *", "task": "elsewhere", "overlap": "allow"}
    made = silent.client.post("/api/v1/schedules", json=body)
    assert made.status_code == 201
    tick = datetime.fromisoformat(made.json()["next_at"])
    while datetime.now(UTC) < tick + timedelta(milliseconds=500):
        time.sleep(0.05)
    assert fired(silent) == 0
    firing = start("server", "--scheduler")
    until = time.monotonic() + PATIENCE
    while not fired(firing):
        assert time.monotonic() < until, "it never fired"
        time.sleep(0.02)
    assert firing.stop() == 0
    assert silent.stop() == 0


def test_a_server_with_tokens_asks_for_them(start, tmp_path: Path) -> None:
    made = json.loads(run(tmp_path, "token", "new", "--scope", "read,enqueue", "--json").stdout)
    server = start("server", "tasks_here:app", "--token", made["entry"], PERDURE_TOKENS="admin:a-secret-of-some-length")
    assert server.said["has_tokens"] is True
    for token, status in {"": 401, made["token"]: 200, "a-secret-of-some-length": 200}.items():
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        assert server.client.get("/api/v1/stats", headers=headers).status_code == status
    assert server.client.get("/healthz/ready").status_code == 200


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["--host", "0.0.0.0"], 4, "perdure token new"),
        (["--host", "::"], 4, "perdure token new"),
        (["--host", "no.such.host.invalid", "--token", "a-secret-of-some-length"], 2, "none that this machine knows"),
        (["--token", "short"], 2, "cannot be read"),
        (["--url", "nonsense://x"], 2, "nonsense://"),
        (["--port", "99999"], 2, "--port"),
        (["no_such_module:app"], 2, "no_such_module"),
    ],
)
@pytest.mark.parametrize("command", ["server", "up"])
def test_a_server_that_cannot_be_started_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, command: str, args, code: int, says: str
) -> None:
    port = [] if "--port" in args else ["--port", "0"]
    ended = CliRunner().invoke(root, [command, *port, *args], env={"PERDURE_URL": f"sqlite:///{tmp_path}/jobs.db"})
    assert ended.exit_code == code, ended.stderr
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr
    gc.collect()
    assert "never retrieved" not in caplog.text


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run(tmp_path, "server", "--port", str(port))
    assert (ended.returncode, "Traceback" in ended.stderr) == (4, False)
    assert f"port {port}" in ended.stderr


def test_a_server_starts_without_its_engine_and_finds_it_later(start) -> None:
    redis = RedisServer(appendonly="yes")
    redis.kill()
    try:
        server = start("server", PERDURE_URL=redis.url)
        ready = server.client.get("/healthz/ready")
        assert (ready.status_code, ready.json()["code"]) == (503, "not-ready")
        assert server.client.get("/api/v1/stats").status_code == 503
        redis.start()
        assert server.client.post("/api/v1/jobs", json={"task": "anything"}).status_code == 201
        assert server.client.get("/healthz/ready").status_code == 200
        assert server.stop() == 0
    finally:
        redis.close()


def test_a_new_token_is_printed_with_the_entry_that_knows_it() -> None:
    shown = CliRunner().invoke(root, ["token", "new", "--scope", "write"])
    assert shown.exit_code == 0
    entry = next(line.split()[-1] for line in shown.stdout.splitlines() if line.startswith("entry"))
    assert read_tokens([entry])[0].allows == GRANTS["write"]
    assert CliRunner().invoke(root, ["token", "new", "--scope", "everything"]).exit_code == 2
