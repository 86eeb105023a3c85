"""What follows an HTTP job's answer, or the lack of one, through the whole pipeline against a real server."""

from __future__ import annotations

import gzip
import json
import socket
from datetime import timedelta
from email.utils import format_datetime

import pytest
from tests.http import target as behaviours
from tests.http.target import Exchange, Target, answering

from perdure import App, Job
from perdure.testing import Harness


def result(job: Job) -> dict[str, object]:
    assert job.result is not None
    value: dict[str, object] = json.loads(job.result)
    return value


def ended(t: Harness, job_id: str) -> tuple[str, str | None, int]:
    job = t.job(job_id)
    return job.state, job.reason, job.attempt


@pytest.mark.parametrize("status", ["200 OK", "201 Created", "202 Accepted", "299 Fine"])
def test_every_2xx_is_a_success_and_its_status_and_excerpt_are_the_result(app: App, target: Target, status: str):
    url = target.on("/ok", answering(status, b"thank you"))
    with app.testing() as t:
        job_id = app.http.post(url, json={"order": 7}).enqueue()
        t.drain()
        job = t.job(job_id)
        history = t.history(job_id)
    number, _, phrase = status.partition(" ")
    assert job.state == "succeeded"
    assert result(job) == {"status": int(number), "reason": phrase, "ms": 0.0, "excerpt": "thank you"}
    assert [(record.attempt, record.outcome) for record in history] == [(1, "succeeded")]


def test_an_answer_without_content_is_a_success(app: App, target: Target):
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    with app.testing() as t:
        job_id = app.http.post(target.on("/none", behave)).enqueue()
        t.drain()
        assert result(t.job(job_id)) == {"status": 204, "reason": "No Content", "ms": 0.0}


@pytest.mark.parametrize("status", [408, 425, 429, 500, 501, 502, 503, 504, 599])
def test_a_status_that_may_pass_is_tried_again_until_the_limit(app: App, target: Target, status: int):
    url = target.on("/down", answering(f"{status} Not Now", b"later"))
    with app.testing() as t:
        job_id = app.http.post(url, max_attempts=3, retry="immediate").enqueue()
        t.drain()
        assert ended(t, job_id) == ("dead", "exhausted", 3)
        errors = [record.error for record in t.history(job_id)]
    assert len(target.seen) == 3
    for error in errors:
        assert error is not None
        assert error.detail == {"status": status, "reason": "Not Now", "ms": 0.0, "excerpt": "later"}
        assert error.message == f"{status} Not Now from {target.url}"


@pytest.mark.parametrize(
    "status", [400, 401, 403, 404, 405, 409, 410, 413, 418, 422, 451, 300, 301, 302, 304, 307, 308]
)
def test_any_other_status_is_final(app: App, target: Target, status: int):
    url = target.on("/no", answering(f"{status} No"))
    with app.testing() as t:
        job_id = app.http.post(url).enqueue()
        t.advance("1d")
        assert ended(t, job_id) == ("dead", "unrecoverable", 1)
    assert len(target.seen) == 1


@pytest.mark.parametrize("status", [302, 400, 404, 410, 503])
def test_retry_on_all_tries_every_failure_again(app: App, target: Target, status: int):
    url = target.on("/no", answering(f"{status} No", Location="http://127.0.0.1/"))
    with app.testing() as t:
        job_id = app.http.post(url, retry_on="all", max_retries=2).enqueue()
        t.advance("1d")
        assert ended(t, job_id) == ("dead", "exhausted", 3)
    assert len(target.seen) == 3


def test_a_redirect_is_not_followed(app: App, target: Target):
    other = Target()
    try:
        url = target.on("/moved", answering("302 Found", Location=f"{other.url}/inside"))
        with app.testing() as t:
            job_id = app.http.get(url).enqueue()
            t.advance("1d")
            error = t.job(job_id).error
        assert error is not None
        assert "redirects are not followed" in error.message
        assert other.connections == 0
    finally:
        other.close()


@pytest.mark.parametrize(
    "behaviour",
    [
        behaviours.close_at_once,
        behaviours.reset,
        behaviours.reset_in_body,
        behaviours.speak_nonsense,
        behaviours.send_too_many_headers,
    ],
    ids=lambda behaviour: behaviour.__name__,
)
def test_a_broken_exchange_is_a_failure_that_is_tried_again(app: App, target: Target, behaviour):
    url = target.on("/broken", behaviour)
    with app.testing() as t:
        job_id = app.http.post(url, max_attempts=2).enqueue()
        t.advance("1d")
        assert ended(t, job_id) == ("dead", "exhausted", 2)
        error = t.job(job_id).error
    assert error is not None
    assert error.type == "perdure.http.errors.NetworkError"
    assert error.message.startswith(f"no whole answer from {target.url}: ")
    assert error.detail == {"ms": 0.0}
    assert error.trace == ""


def test_a_refused_connection_says_so_and_is_tried_again(app: App):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
        with app.testing() as t:
            job_id = app.http.post(url, max_attempts=2).enqueue()
            t.advance("1d")
            assert ended(t, job_id) == ("dead", "exhausted", 2)
            error = t.job(job_id).error
    assert error is not None
    assert error.message.endswith("Connection refused")


def test_a_name_that_does_not_resolve_is_tried_again(app: App):
    with app.testing() as t:
        job_id = app.http.post("http://no-such-name.invalid/", max_attempts=2).enqueue()
        t.advance("1d")
        assert ended(t, job_id) == ("dead", "exhausted", 2)
        error = t.job(job_id).error
    assert error is not None
    assert "no-such-name.invalid cannot be resolved" in error.message


@pytest.mark.parametrize(
    "behaviour",
    [behaviours.hang, behaviours.drip_header, behaviours.drip_body],
    ids=lambda behaviour: behaviour.__name__,
)
def test_the_timeout_bounds_the_whole_request(app: App, target: Target, behaviour):
    url = target.on("/slow", behaviour)
    with app.testing() as t:
        job_id = app.http.post(url, timeout="200ms", max_attempts=2, retry="immediate").enqueue()
        t.drain()
        assert ended(t, job_id) == ("dead", "timeout", 2)
        error = t.job(job_id).error
    assert error is not None
    assert error.message == f"the attempt ran past its timeout of 0.2 s while it waited for {target.url}"
    assert len(target.seen) == 2


def test_a_body_without_an_end_is_read_in_part_only(app: App, target: Target):
    url = target.on("/huge", behaviours.send_huge_body)
    with app.testing() as t:
        job_id = app.http.post(url, timeout="20s").enqueue()
        t.drain()
        job = t.job(job_id)
    assert job.state == "succeeded"
    assert result(job)["is_cut"] is True
    assert result(job)["excerpt"] == "z" * 1024
    # Sockets hold a few megabytes that nobody has read.
    assert target.sent < 30_000_000


def test_a_compressed_bomb_stays_small(app: App, target: Target):
    bomb = gzip.compress(b"\0" * 50_000_000)
    url = target.on("/bomb", answering("200 OK", bomb, Content_Encoding="gzip"))
    with app.testing() as t:
        job_id = app.http.get(url).enqueue()
        t.drain()
        assert result(t.job(job_id))["excerpt"] == "(gzip content, not decoded)"
    assert target.seen[0].headers["accept-encoding"] == "identity"


def test_control_characters_and_broken_text_of_an_answer_are_kept_escaped(app: App, target: Target):
    url = target.on("/odd", answering("500 \x1b[31mBad", b"\x1b[2J\x00\xff ok"))
    with app.testing() as t:
        job_id = app.http.post(url, max_attempts=1).enqueue()
        t.drain()
        error = t.job(job_id).error
    assert error is not None
    kept = error.message + json.dumps(error.detail, ensure_ascii=False)
    assert kept.isprintable()


@pytest.mark.parametrize(
    ("header", "wait"),
    [("40", 40), ("0", 1), ("999999999999999", 86400), ("soon", 1), ("-5", 1), ("1.5", 1), ("", 1)],
)
def test_retry_after_in_seconds_is_honoured_above_the_policys_delay(app: App, target: Target, header: str, wait: int):
    url = target.on("/busy", answering("429 Too Many Requests", Retry_After=header))
    with app.testing() as t:
        job_id = app.http.post(url, retry="scheduler").enqueue()
        t.drain()
        assert t.job(job_id).delay == timedelta(seconds=wait)


@pytest.mark.parametrize(("after", "wait"), [(90, 90), (-90, 1), (10 * 86400, 86400)])
def test_retry_after_as_a_date_is_counted_from_the_clock(app: App, target: Target, after: int, wait: int):
    with app.testing() as t:
        date = format_datetime(t.now + timedelta(seconds=after), usegmt=True)
        url = target.on("/busy", answering("503 Service Unavailable", Retry_After=date))
        job_id = app.http.post(url, retry="scheduler").enqueue()
        t.drain()
        assert t.job(job_id).delay == timedelta(seconds=wait)


def test_a_target_that_always_fails_is_called_at_0_1_3_and_7_seconds(app: App, target: Target):
    with app.testing() as t:
        begin, times = t.now, []

        async def fail(exchange: Exchange) -> None:
            times.append((t.now - begin).total_seconds())
            await exchange.answer("404 Not Found")

        url = target.on("/webhook", fail)
        job_id = app.http.post(url, retry_on="all", retry="scheduler", max_retries=3).enqueue()
        t.advance("1h")
        history = t.history(job_id)
        assert ended(t, job_id) == ("dead", "exhausted", 4)
    assert times == [0, 1, 3, 7]
    assert [(record.attempt, record.outcome) for record in history] == [(n, "failed") for n in (1, 2, 3, 4)]


def test_a_retry_that_succeeds_ends_the_story(app: App, target: Target):
    async def third_time_lucky(exchange: Exchange) -> None:
        await exchange.answer("200 OK" if len(target.seen) == 3 else "500 Oops")

    url = target.on("/flaky", third_time_lucky)
    with app.testing() as t:
        job_id = app.http.post(url, retry="scheduler").enqueue()
        t.advance("1h")
        outcomes = [record.outcome for record in t.history(job_id)]
        assert t.job(job_id).state == "succeeded"
    assert outcomes == ["failed", "failed", "succeeded"]


@pytest.mark.parametrize(
    "behaviour",
    [answering("503 Later"), answering("429 Later", Retry_After="1"), behaviours.close_at_once, behaviours.hang],
)
def test_an_at_most_once_job_is_sent_exactly_once(app: App, target: Target, behaviour):
    url = target.on("/once", behaviour)
    with app.testing() as t:
        job_id = app.http.post(url, delivery="at_most_once", retry_on="all", timeout="2s").enqueue()
        t.advance("1d")
        assert t.job(job_id).state == "dead"
        assert len(t.history(job_id)) == 1
    assert len(target.seen) == 1


def test_dead_letters_are_grouped_by_target_and_status(app: App, target: Target):
    with app.testing() as t:
        for status in ("404 Not Found", "404 Not Found", "410 Gone"):
            app.http.post(target.on(f"/{status[:3]}", answering(status))).enqueue()
        t.drain()
        groups = app.client().groups()
    assert sorted(group.count for group in groups) == [1, 2]


def test_a_stored_request_that_cannot_be_sent_is_dead_and_says_why(app: App):
    with app.testing() as t:
        bound = app.http.task.options(unique="x").bind(url="gopher://old/", method="POST")
        job_id = app.enqueue_many([bound])[0]
        t.drain()
        job = t.job(job_id)
    assert (job.state, job.reason) == ("dead", "unrecoverable")
    assert job.error is not None
    assert "gopher" in job.error.message


def test_a_schedule_of_the_app_sends_its_request_at_each_tick(app: App, target: Target):
    app.schedule("ping", app.http.post(f"{target.url}/ping", json={"n": 1}), cron="*/10 * * * * *")
    with app.testing() as t:
        t.advance("30s")
        assert [job.state for job in t.jobs(schedule="ping")] == ["succeeded"] * 3
    assert [(seen.method, seen.path, seen.body) for seen in target.seen] == [("POST", "/ping", b'{"n":1}')] * 3
