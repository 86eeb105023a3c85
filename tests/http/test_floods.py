"""An answer that never ends costs an attempt and a bounded number of bytes, whichever part of it is endless."""

from __future__ import annotations

import asyncio
import json
import ssl

import httpcore2
import pytest
import trustme
from tests.http.target import Behaviour, Exchange, Target

from perdure import App, DeadLetter, Retry
from perdure.http.meter import MOST_HEAD, MOST_INFORMATIONAL, Meter

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"


def endless(begin: bytes, again: bytes) -> Behaviour:
    """Sends `begin`, then `again` for as long as it is taken, up to a hundred megabytes."""

    async def behave(exchange: Exchange) -> None:
        block = again * max(1, 16384 // len(again))
        exchange.is_open = False
        await exchange.send(begin)
        while exchange.target.sent < 100_000_000:
            await exchange.send(block)

    return behave


FLOODS = {
    "100": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", "more than 100 informational responses"),
    "103": (b"", HINT, "more than 100 informational responses"),
    "103 with bare line feeds": (b"", b"HTTP/1.1 103 \n\n", "more than 100 informational responses"),
    "103 with large headers": (
        b"",
        b"HTTP/1.1 103 Hints\r\nLink: " + b"x" * 8000 + b"\r\n\r\n",
        "headers are larger than 64 KiB",
    ),
    "status line": (b"HTTP/1.1 200 ", b"O", "status line and headers are larger than 64 KiB"),
    "one header": (b"HTTP/1.1 200 OK\r\nX: ", b"x", "headers are larger than 64 KiB"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", "headers are larger than 64 KiB"),
    "headers after 103": (HINT + b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", "headers are larger than 64 KiB"),
    "folded header": (b"HTTP/1.1 200 OK\r\nX: y\r\n", b" z\r\n", "headers are larger than 64 KiB"),
    "nothing but spaces": (b"", b" ", ""),
    "nothing but line ends": (b"", b"\r\n", ""),
    "one chunk extension": (CHUNKED + b"1;a=", b"b", "larger than 100 KiB"),
    "chunk extensions": (CHUNKED, b"1;a=" + b"b" * 8000 + b"\r\nz\r\n", "larger than 256 KiB"),
    "chunk size": (CHUNKED, b"0" * 20, "no whole answer"),
    "trailers": (CHUNKED + b"0\r\n", b"X: y\r\n", "larger than 100 KiB"),
    "one trailer": (CHUNKED + b"0\r\nX: ", b"y", "larger than 100 KiB"),
}


@pytest.mark.parametrize("name", FLOODS)
def test_an_endless_part_of_an_answer_fails_the_attempt_and_says_which(app: App, target: Target, name: str):
    begin, again, words = FLOODS[name]
    url = target.on("/flood", endless(begin, again))
    with app.testing() as t:
        job_id = app.http.post(url, timeout="60s", max_attempts=2, retry="immediate").enqueue()
        t.drain()
        job = t.job(job_id)
    assert (job.state, job.reason, job.attempt) == ("dead", "exhausted", 2)
    assert job.error is not None
    assert job.error.type == "perdure.http.errors.NetworkError"
    assert job.error.message.startswith(f"no whole answer from {target.url}: ")
    assert words in job.error.message
    # Two attempts; sockets hold a few megabytes that nobody has read.
    assert target.sent < 60_000_000


def test_a_finite_flood_of_informational_responses_fails_too(app: App, target: Target):
    async def behave(exchange: Exchange) -> None:
        await exchange.send(HINT * (MOST_INFORMATIONAL + 1))
        await exchange.answer("200 OK")

    with app.testing() as t:
        job_id = app.http.post(target.on("/flood", behave), max_attempts=1).enqueue()
        t.drain()
        assert t.job(job_id).state == "dead"


@pytest.mark.parametrize("pieces", [1, 7, 100_000])
def test_as_many_informational_responses_as_are_allowed_do_no_harm(app: App, target: Target, pieces: int):
    async def behave(exchange: Exchange) -> None:
        text = b"HTTP/1.1 100 Continue\r\n\r\n" * MOST_INFORMATIONAL
        text += b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"
        for start in range(0, len(text), pieces):
            exchange.writer.write(text[start : start + pieces])
            await asyncio.sleep(0)
        await exchange.writer.drain()

    with app.testing() as t:
        ids = [app.http.post(target.on("/patient", behave)).enqueue() for _ in range(2)]
        t.drain()
        assert [t.job(job_id).state for job_id in ids] == ["succeeded"] * 2
    # The second request begins to count anew, on the same connection.
    assert target.connections == 1


def test_a_body_that_looks_like_informational_responses_is_a_body(app: App, target: Target):
    body = b"x\n\nHTTP/1.1 103 Early Hints\r\n\r\n" * 500

    async def behave(exchange: Exchange) -> None:
        await exchange.answer("200 OK", body)

    with app.testing() as t:
        job_id = app.http.post(target.on("/log", behave)).enqueue()
        t.drain()
        assert t.job(job_id).state == "succeeded"


def test_a_body_in_very_many_parts_is_read_in_part_only(app: App, target: Target):
    with app.testing() as t:
        job_id = app.http.post(target.on("/crumbs", endless(CHUNKED, b"1\r\nz\r\n"))).enqueue()
        t.drain()
        job = t.job(job_id)
    assert job.state == "succeeded"
    assert job.result is not None
    assert json.loads(job.result)["is_cut"] is True


def test_a_change_of_protocol_that_nobody_asked_for_fails_the_attempt(app: App, target: Target):
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
        await exchange.send(b"x" * 1000)

    with app.testing() as t:
        job_id = app.http.post(target.on("/switch", behave), timeout="60s", max_attempts=1).enqueue()
        t.drain()
        job = t.job(job_id)
    assert (job.state, job.reason) == ("dead", "exhausted")
    assert "no whole answer" in str(job.error)


def test_a_sink_that_floods_is_a_sink_that_refuses(app: App, target: Target):
    url = target.on("/flood", endless(b"", HINT))
    app.queue("default", dead_letter=DeadLetter.http(url, timeout="60s"))

    @app.task(retry=Retry.never_retry())
    def fail() -> None:
        raise ValueError("it broke")

    with app.testing() as t:
        job_id = fail.enqueue()
        t.drain()
        forward = t.store.forwards([t.job(job_id).id]).wait()[t.job(job_id).id]
    assert forward.error is not None
    assert "informational responses" in forward.error


async def test_what_comes_through_tls_is_counted_as_it_is_read(monkeypatch: pytest.MonkeyPatch):
    authority = trustme.CA()
    server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server_tls)
    client_tls = ssl.create_default_context()
    authority.configure_trust(client_tls)
    monkeypatch.setattr(httpcore2, "default_ssl_context", lambda: client_tls)

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for _ in range(10_000):
                writer.write(HINT * 10)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(flood, "127.0.0.1", 0, ssl=server_tls)
    port = server.sockets[0].getsockname()[1]
    from perdure.http import NetworkError, http_request_from
    from perdure.http.guard import Guard
    from perdure.http.network import GuardedNetwork
    from perdure.http.pool import Pool
    from perdure.http.resolver import SystemResolver
    from perdure.http.secrets import Secrets
    from perdure.http.send import Attempt, Sender
    from perdure.system.clock import SystemClock

    pool = Pool(GuardedNetwork(Guard(["localhost"]), SystemResolver().resolve))
    sender = Sender(pool=pool, secrets=Secrets(), clock=SystemClock(), user_agent="test")
    request = http_request_from({"url": f"https://localhost:{port}/"})
    async with server:
        with pytest.raises(NetworkError, match="informational responses"):
            await asyncio.wait_for(sender.send(request, Attempt(job_id="job", number=1, may_reuse=False)), 60)
        await pool.close()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_the_meter_sees_the_end_of_the_headers_wherever_it_is_cut(size: int):
    text = HINT * 3 + b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n" + b"body" * 100
    meter = Meter()
    for _ in range(3):
        meter.begin()
        for start in range(0, len(text), size):
            meter.count(text[start : start + size])
        assert (meter._informational, meter._body_bytes) == (3, 400)


def test_the_meter_keeps_no_more_than_it_allows():
    meter = Meter()
    for _ in range(MOST_HEAD // 1024):
        meter.count(b"x" * 1024)
    with pytest.raises(httpcore2.RemoteProtocolError):
        meter.count(b"x")
    assert len(meter._head) == MOST_HEAD + 1
