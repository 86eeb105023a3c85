"""A URL as the sink of dead jobs: what is posted, and what every way of refusing it leads to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.http.conftest import SECRET
from tests.http.target import (
    Behaviour,
    Exchange,
    Target,
    answer_ok,
    answering,
    close_at_once,
    drip_body,
    drip_header,
    hang,
    reset,
    reset_in_body,
    speak_nonsense,
)

from perdure import App, DeadLetter, Retry, Settings
from perdure.http.sign import verify
from perdure.model.forward import Forward
from perdure.testing import Harness

EVERY_SECOND = Retry.fixed("1s", jitter="none", max_attempts="unlimited")


@pytest.fixture(autouse=True)
def fail(app: App) -> None:
    add_fail(app)


def add_fail(app: App) -> None:
    @app.task(name="fail", retry=Retry.never_retry())
    def fail(*args: Any) -> None:
        raise ValueError("it broke")


def forward_of(t: Harness, job_id: str) -> Forward:
    return t.store.forwards([t.job(job_id).id]).wait()[t.job(job_id).id]


def test_the_document_of_the_dead_job_is_posted(app: App, target: Target) -> None:
    app.queue("default", dead_letter=f"{target.url}/dead?token=7")
    with app.testing() as t:
        job_id = app.tasks["fail"].enqueue("ünïcode", 2)
        t.drain()
        assert forward_of(t, job_id).state == "forwarded"
        assert t.job(job_id).state == "dead"
    (seen,) = target.seen
    assert (seen.method, seen.path) == ("POST", "/dead?token=7")
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["idempotency-key"] == job_id
    letter = json.loads(seen.body)
    assert (letter["id"], letter["task"], letter["args"]) == (job_id, "fail", {"args": ["ünïcode", 2]})
    assert (letter["state"], letter["reason"]) == ("dead", "exhausted")
    assert (letter["error"]["type"], letter["error"]["message"]) == ("ValueError", "it broke")
    assert [attempt["outcome"] for attempt in letter["attempts"]] == ["failed"]


def second_time_lucky(first: Behaviour) -> Behaviour:
    async def behave(exchange: Exchange) -> None:
        await (first if len(exchange.target.seen) == 1 else answer_ok)(exchange)

    return behave


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (answering("500 Internal Server Error", b"oops"), "500 Internal Server Error from http://127.0.0.1"),
        (answering("404 Not Found"), "404 Not Found"),
        (answering("302 Found", Location="http://127.0.0.1/"), "redirects are not followed"),
        (answering("429 Too Many Requests", Retry_After="1"), "429"),
        (hang, "it did not accept the job within 2s"),
        (drip_header, "within 2s"),
        (drip_body, "within 2s"),
        (reset, "no whole answer"),
        (reset_in_body, "no whole answer"),
        (close_at_once, "no whole answer"),
        (speak_nonsense, "no whole answer"),
    ],
    ids=["500", "404", "302", "429", "hang", "drip header", "drip body", "reset", "reset in body", "close", "nonsense"],
)
def test_a_target_that_does_not_accept_gets_the_job_again(
    app: App, target: Target, behaviour: Behaviour, error: str
) -> None:
    url = target.on("/dead", second_time_lucky(behaviour))
    # Long enough for a slow machine to answer, short where nobody is going to.
    timeout = "2s" if "within" in error else "20s"
    app.queue("default", dead_letter=DeadLetter.http(url, timeout=timeout, retry=EVERY_SECOND))
    with app.testing() as t:
        job_id = app.tasks["fail"].enqueue()
        t.drain()
        forward = forward_of(t, job_id)
        assert (forward.state, forward.tries, t.job(job_id).state) == ("failing", 1, "dead")
        assert forward.error is not None
        assert error in forward.error
        assert forward.sink == target.url
        t.advance("1s")
        assert (forward_of(t, job_id).state, forward_of(t, job_id).tries) == ("forwarded", 2)
    first, second = target.seen
    assert first.body == second.body
    assert (first.headers["idempotency-key"], second.headers["idempotency-key"]) == (job_id, job_id)
    assert (first.headers["perdure-attempt"], second.headers["perdure-attempt"]) == ("1", "2")


def test_retry_after_is_honoured(app: App, target: Target) -> None:
    busy = answering("503 Service Unavailable", Retry_After="120")
    url = target.on("/dead", second_time_lucky(busy))
    app.queue("default", dead_letter=DeadLetter.http(url, retry=EVERY_SECOND))
    with app.testing() as t:
        job_id = app.tasks["fail"].enqueue()
        t.advance("119s")
        assert len(target.seen) == 1
        t.advance("1s")
        assert forward_of(t, job_id).state == "forwarded"


@pytest.mark.parametrize(("sign", "is_signed"), [(None, True), (True, True), (False, False)])
def test_letters_are_signed_where_there_is_a_secret(
    app: App, target: Target, sign: bool | None, is_signed: bool
) -> None:
    app.queue("default", dead_letter=DeadLetter.http(target.url, sign=sign))
    with app.testing() as t:
        job_id = app.tasks["fail"].enqueue()
        t.drain()
    (seen,) = target.seen
    assert ("webhook-signature" in seen.headers) is is_signed
    if is_signed:
        assert verify(seen.body, seen.headers, secrets=[SECRET], now=t.now) == job_id


def test_without_a_secret_letters_are_not_signed_unless_they_must_be(target: Target) -> None:
    app = App("sqlite://", settings=Settings(http_allow=("127.0.0.1",)))
    add_fail(app)
    app.queue("default", dead_letter=DeadLetter.http(target.url))
    app.queue("signed", dead_letter=DeadLetter.http(target.url, sign="partner"))
    with app.testing() as t:
        plain = app.tasks["fail"].enqueue()
        signed = app.tasks["fail"].options(queue="signed").enqueue()
        t.drain()
        assert forward_of(t, plain).state == "forwarded"
        forward = forward_of(t, signed)
        assert forward.state == "failing"
        assert forward.error is not None
        assert "no signing secret named 'partner'" in forward.error
    assert len(target.seen) == 1


# Proves [INV-19].
def test_the_address_guard_holds_for_sinks_too(target: Target) -> None:
    app = App("sqlite://", settings=Settings(dead_letter=target.url))
    add_fail(app)
    with app.testing() as t:
        job_id = app.tasks["fail"].enqueue()
        t.drain()
        forward = forward_of(t, job_id)
        assert (forward.state, t.job(job_id).state) == ("failing", "dead")
        assert forward.error is not None
        assert "127.0.0.1" in forward.error
    assert target.connections == 0


def test_headers_can_be_given_and_bad_ones_are_refused_at_once(app: App, target: Target) -> None:
    from perdure.errors import BadOption

    app.queue("default", dead_letter=DeadLetter.http(target.url, headers={"Authorization": "Bearer 7"}))
    with app.testing() as t:
        app.tasks["fail"].enqueue()
        t.drain()
    assert target.seen[0].headers["authorization"] == "Bearer 7"
    with pytest.raises(BadOption):
        DeadLetter.http(target.url, headers={"Host": "elsewhere"})
    with pytest.raises(BadOption):
        DeadLetter.http(target.url, sign="whsec_abc")


def test_a_job_with_the_largest_arguments_is_posted_whole(app: App, target: Target) -> None:
    app.queue("default", dead_letter=target.url)
    text = "x" * (256 * 1024 - 200)
    with app.testing() as t:
        job_id = app.tasks["fail"].enqueue(text)
        t.drain()
        assert forward_of(t, job_id).state == "forwarded"
    assert json.loads(target.seen[0].body)["args"] == {"args": [text]}
