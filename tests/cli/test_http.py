"""`perdure http`: a request from the shell, and a worker without an app that sends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from tests.cli.conftest import Runner
from tests.http.target import Target, answering

URL = "https://example.com/hook"


@pytest.fixture
def target() -> Iterator[Target]:
    opened = Target()
    yield opened
    opened.close()


def made(perdure: Runner, *args: str, stdin: str | None = None) -> dict[str, object]:
    """The job that `perdure http` made."""
    result = perdure("http", *args, stdin=stdin)
    assert result.exit_code == 0, result.output
    job: dict[str, object] = perdure.json("jobs", "show", result.stdout.strip(), "--reveal")
    return job


def test_a_request_becomes_a_job(perdure: Runner) -> None:
    job = made(
        perdure,
        *("POST", URL, "--json", '{"order": 7}', "--header", "X-Shop: 3", "-H", "X-Time: 1:2"),
        *("--timeout", "10s", "--retry", "standard", "--delay", "5m", "--priority", "3", "--unique", "order-7"),
        *("--queue", "hooks", "--max-retries", "2", "--retry-on", "all", "--delivery", "at_most_once", "--sign"),
    )
    assert job["args"] == {
        "kwargs": {
            "method": "POST",
            "url": URL,
            "headers": {"X-Shop": "3", "X-Time": "1:2"},
            "json": {"order": 7},
            "retry_on": "all",
            "sign": True,
        }
    }
    assert (job["task"], job["queue"], job["state"], job["priority"]) == ("http", "hooks", "waiting", 3)
    assert (job["timeout"], job["max_attempts"], job["delivery"]) == (10.0, 3, "at_most_once")


def test_content_may_come_from_stdin(perdure: Runner) -> None:
    job = made(perdure, "POST", URL, "--json", "-", stdin='{"order": 7}')
    assert job["args"] == {"kwargs": {"method": "POST", "url": URL, "json": {"order": 7}}}
    job = made(perdure, "PUT", URL, "--body", "-", "--sign-with", "partner", stdin="hello")
    assert job["args"] == {"kwargs": {"method": "PUT", "url": URL, "body": "hello", "sign": "partner"}}


def test_a_header_can_name_a_secret(perdure: Runner) -> None:
    args = ("--secret-header", "Authorization: Bearer stripe", "--secret-header", "X-Key:other", "-H", "X-Shop: 3")
    job = made(perdure, "POST", URL, *args)
    assert job["args"] == {
        "kwargs": {
            "method": "POST",
            "url": URL,
            "headers": {
                "X-Shop": "3",
                "Authorization": {"secret": "stripe", "prefix": "Bearer "},
                "X-Key": {"secret": "other"},
            },
        }
    }


def test_json_without_a_content_prints_json(perdure: Runner) -> None:
    for args in (["--json"], ["--json", "[1]", "--json"], ["--body", "x", "--json", "--delay", "1s"]):
        result = perdure("http", "POST", URL, *args)
        assert set(json.loads(result.stdout)) == {"id"}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["POST", "ftp://x/"], "scheme"),
        (["POST", "http://127.1/"], "unusual form"),
        (["PO ST", URL], "method"),
        (["POST", URL, "--json", "{bad"], "not JSON"),
        (["POST", URL, "--json", "NaN"], "not JSON"),
        (["POST", URL, "--json", "1", "--json", "2"], "two contents"),
        (["POST", URL, "--json", "1", "--body", "x"], "both given"),
        (["POST", URL, "--header", "no colon"], "colon"),
        (["POST", URL, "--header", "A: 1", "--header", "A: 2"], "twice"),
        (["POST", URL, "--header", "Host: evil"], "Host"),
        (["POST", URL, "--secret-header", "no colon"], "--secret-header cannot be read"),
        (["POST", URL, "--secret-header", "A:"], "--secret-header cannot be read"),
        (["POST", URL, "--header", "A: 1", "--secret-header", "A: b"], "twice"),
        (["POST", URL, "--timeout", "0s"], "timeout"),
        (["POST", URL, "--sign-with", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"], "secrets are not stored"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_plain_words(perdure: Runner, args: list[str], words: str) -> None:
    result = perdure("http", *args)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr


def test_errors_are_json_only_when_json_is_asked_for(perdure: Runner) -> None:
    assert perdure("http", "POST", "ftp://x/", "--json", "1").stderr.startswith("error: ")
    assert "error" in json.loads(perdure("http", "POST", "ftp://x/", "--json").stderr)


def test_a_worker_without_an_app_sends_requests(perdure: Runner, target: Target) -> None:
    gone = made(perdure, "POST", target.on("/gone", answering("410 Gone", b"no more")), "--json", "{}")
    sent = made(perdure, "POST", f"{target.url}/sent", "--json", '{"order": 7}')
    environment = {**os.environ, "PERDURE_URL": perdure.url, "PERDURE_HTTP_ALLOW": "127.0.0.1"}
    worker = subprocess.Popen([sys.executable, "-m", "perdure", "worker"], env=environment, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 60
        while any(perdure.json("jobs", "show", str(job["id"]))["ended_at"] is None for job in (gone, sent)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        worker.send_signal(signal.SIGTERM)
        _, log = worker.communicate(timeout=300)
    finally:
        worker.kill()
        worker.communicate()
    assert worker.returncode == 0, log
    assert perdure.json("jobs", "show", str(sent["id"]))["result"]["status"] == 200
    shown = perdure("jobs", "show", str(gone["id"])).stdout
    assert "410 Gone from http://127.0.0.1" in shown
    assert "no more" in shown
    assert [request.body for request in target.seen if request.path == "/sent"] == [b'{"order":7}']
