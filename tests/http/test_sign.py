"""Signatures as Standard Webhooks has them, made by workers and checked by receivers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.http.conftest import SECRET
from tests.http.target import Exchange, Target, answering

from perdure import App, BadOption, BadSetting, BadSignature, Settings
from perdure.http import sign, verify

OTHER = "whsec_a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="
"""Thirty-two times the letter k."""
NOW = datetime(2030, 1, 1, tzinfo=UTC)

GOLDEN = [
    (
        SECRET,
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    ),
    (
        OTHER,
        "01a1e1ae-38b4-7c8b-9ad3-9c4f255c4d67",
        1893456000,
        b'{"order":7}',
        "v1,1jnE/Yxb8Yr47L/+vmVapUZEuoIId6QrvJozVMU/COs=",
    ),
]
"""Computed with `openssl dgst -sha256 -mac HMAC` over id.timestamp.body; the first is also the standard's own."""


@pytest.mark.parametrize(("secret", "message_id", "timestamp", "body", "signature"), GOLDEN)
def test_the_signature_is_the_one_that_others_compute(secret, message_id, timestamp, body, signature):
    at = datetime.fromtimestamp(timestamp, UTC)
    headers = sign(body, message_id=message_id, at=at, secrets=[secret])
    assert headers == {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature,
    }
    assert verify(body, headers, secret, now=at) == message_id


def signed(body: bytes = b"x", *secrets: str) -> dict[str, str]:
    return sign(body, message_id="m", at=NOW, secrets=secrets or (SECRET,))


def test_a_receiver_that_knows_one_of_the_secrets_accepts():
    headers = signed(b"x", SECRET, OTHER)
    assert headers["webhook-signature"].count("v1,") == 2
    for known in (SECRET, OTHER, [OTHER, "whsec_" + "QUJD" * 8]):
        assert verify(b"x", headers, known, now=NOW) == "m"


def test_header_names_of_any_case_are_found():
    headers = {name.title(): value for name, value in signed().items()}
    assert verify(b"x", headers, SECRET, now=NOW) == "m"


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-id": "other"},
        {"webhook-timestamp": "1893456001"},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": "-5"},
        {"webhook-signature": "v1,AAAA"},
        {"webhook-signature": "v2," + "A" * 43 + "="},
        {"webhook-signature": "é"},
        {"webhook-signature": ""},
        {"webhook-id": ""},
        {"webhook-id": "m.1893456000"},
        {"webhook-id": "m\n"},
        {"webhook-id": "m m"},
        {"webhook-id": "é"},
        {"webhook-timestamp": "1893456000.0"},
        {"webhook-timestamp": "1893456000\n"},
        {"webhook-timestamp": "+1893456000"},
        {"webhook-timestamp": "１８９３４５６０００"},
    ],
    ids=str,
)
def test_a_changed_header_is_refused(change):
    with pytest.raises(BadSignature):
        verify(b"x", {**signed(), **change}, SECRET, now=NOW)


def test_no_other_id_time_and_body_have_the_signature_of_a_message():
    """What is signed is id.time.body: where one part ends and the next begins must be certain."""
    time = str(int(NOW.timestamp()))
    body = f"{time}.x".encode()
    headers = sign(body, message_id="m", at=NOW, secrets=[SECRET])
    moved = {**headers, "webhook-id": f"m.{time}"}
    assert f"m.{time}.".encode() + body == f"{moved['webhook-id']}.{time}.".encode() + b"x"
    with pytest.raises(BadSignature, match="point"):
        verify(b"x", moved, SECRET, now=NOW)
    assert verify(body, headers, SECRET, now=NOW) == "m"


@pytest.mark.parametrize("message_id", ["a.b", ".", "", "a b", "a\nb", "a\r\nX: y", "é", "\x7f", "a" * 257, None])
def test_an_id_that_makes_the_signed_content_ambiguous_is_not_signed(message_id):
    with pytest.raises(BadOption, match="message id"):
        sign(b"x", message_id=message_id, at=NOW, secrets=[SECRET])


def test_a_time_that_is_no_timestamp_is_not_signed():
    with pytest.raises(BadOption, match="after 1970"):
        sign(b"x", message_id="m", at=datetime(1969, 12, 31, tzinfo=UTC), secrets=[SECRET])
    with pytest.raises(BadOption, match="time zone"):
        sign(b"x", message_id="m", at=NOW.replace(tzinfo=None), secrets=[SECRET])


@given(st.text(min_size=1, max_size=20), st.integers(0, 4_000_000_000), st.binary(max_size=40))
def test_a_message_that_is_signed_is_the_only_one_with_its_signed_content(message_id: str, time: int, body: bytes):
    at = datetime.fromtimestamp(time, UTC)
    try:
        headers = sign(body, message_id=message_id, at=at, secrets=[SECRET])
    except BadOption:
        return
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    first, second, rest = content.split(b".", 2)
    assert (first.decode(), int(second), rest) == (message_id, time, body)


def test_a_changed_body_another_secret_and_missing_headers_are_refused():
    with pytest.raises(BadSignature, match="None of the signatures"):
        verify(b"y", signed(), SECRET, now=NOW)
    with pytest.raises(BadSignature, match="None of the signatures"):
        verify(b"x", signed(), OTHER, now=NOW)
    with pytest.raises(BadSignature, match="no header webhook-id"):
        verify(b"x", {}, SECRET, now=NOW)


@pytest.mark.parametrize("late", [timedelta(minutes=6), timedelta(minutes=-6)])
def test_a_message_of_another_time_is_refused(late):
    with pytest.raises(BadSignature, match="too long ago"):
        verify(b"x", signed(), SECRET, now=NOW + late)
    assert verify(b"x", signed(), SECRET, now=NOW + late, tolerance="10m") == "m"


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_short", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_%%%%", "x=y"]
)
def test_a_secret_that_cannot_be_read_is_refused_without_being_repeated(secret: str):
    with pytest.raises(BadSetting) as caught:
        App("sqlite://", settings=Settings(http_signing_secrets=(secret,)))
    assert len(secret) < 8 or secret not in str(caught.value)


def test_the_id_stays_and_the_time_moves_over_retries(app: App, target: Target):
    url = target.on("/hook", answering("503 Later"))
    with app.testing() as t:
        job_id = app.http.post(url, json={"order": 7}, sign=True, retry="scheduler", max_attempts=3).enqueue()
        t.advance("1h")
    assert [request.headers["webhook-id"] for request in target.seen] == [job_id] * 3
    assert [request.headers["idempotency-key"] for request in target.seen] == [job_id] * 3
    assert [request.headers["perdure-attempt"] for request in target.seen] == ["1", "2", "3"]
    times = [int(request.headers["webhook-timestamp"]) for request in target.seen]
    assert [time - times[0] for time in times] == [0, 1, 3]
    for request, time in zip(target.seen, times, strict=True):
        at = datetime.fromtimestamp(time, UTC)
        assert verify(request.body, request.headers, SECRET, now=at) == job_id


def test_named_secrets_sign_for_their_receivers(target: Target):
    secrets = (SECRET, f"partner={OTHER}", "partner=whsec_" + "QUJD" * 8)
    app = App("sqlite://", settings=Settings(http_allow=("127.0.0.1",), http_signing_secrets=secrets))
    with app.testing() as t:
        app.http.post(target.url, sign="partner").enqueue()
        app.http.post(target.url, sign=True).enqueue()
        app.http.post(target.url).enqueue()
        t.drain()
        at = t.now
    theirs, ours, plain = (request.headers for request in target.seen)
    assert theirs["webhook-signature"].count("v1,") == 2
    assert verify(b"", theirs, OTHER, now=at)
    with pytest.raises(BadSignature):
        verify(b"", theirs, SECRET, now=at)
    assert verify(b"", ours, SECRET, now=at)
    assert "webhook-signature" not in plain


def test_a_worker_without_the_secret_sends_nothing_and_says_so(target: Target):
    app = App("sqlite://", settings=Settings(http_allow=("127.0.0.1",)))
    with app.testing() as t:
        job_id = app.http.post(target.url, sign=True, max_attempts=2).enqueue()
        t.advance("1d")
        job = t.job(job_id)
    assert (job.state, job.reason, job.attempt) == ("dead", "exhausted", 2)
    assert job.error is not None
    assert "PERDURE_HTTP_SIGNING_SECRETS" in job.error.message
    assert target.connections == 0


def test_a_secret_is_not_taken_as_an_argument():
    app = App("sqlite://")
    with pytest.raises(BadOption, match="secrets are not stored") as caught:
        app.http.post("https://example.com/", sign=SECRET)
    assert SECRET not in str(caught.value)


def test_secrets_show_up_nowhere(app: App, target: Target, caplog: pytest.LogCaptureFixture):
    async def echo(exchange: Exchange) -> None:
        await exchange.answer("500 Oops", exchange.seen.headers["webhook-signature"].encode())

    caplog.set_level("DEBUG")
    with app.testing() as t:
        job_id = app.http.post(target.on("/echo", echo), sign=True, max_attempts=1).enqueue()
        t.drain()
        shown = f"{t.job(job_id)} {t.history(job_id)} {app.settings} {caplog.text}"
    assert SECRET.removeprefix("whsec_") not in shown
