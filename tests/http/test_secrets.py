"""Secrets are used for the hosts they are bound to, stored by name only, and shown nowhere."""

from __future__ import annotations

import asyncio
import base64
import html
import json
import logging
import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from tests.http.conftest import SECRET
from tests.http.target import Exchange, Target, answering
from tests.http.test_dead_letters import add_fail, forward_of

from perdure import App, BadOption, BadSetting, DeadLetter, Secret, SecretRef, Settings
from perdure.application.http_task import over_api
from perdure.http import Request, http_request_from, verify
from perdure.http.hosts import read_host_pattern
from perdure.http.redact import Redactor
from perdure.http.url import read_url

KEY = 'sk_live_7"\\Zq+/=~x'
"""A credential with every kind of character that some form of it escapes."""
OTHER = "whsec_a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="


@pytest.fixture
def app(target: Target) -> Iterator[App]:
    opened = App(
        "sqlite://",
        settings=Settings(http_allow=("127.0.0.1",), http_signing_secrets=(SECRET, f"legacy={SECRET}")),
        secrets={
            "stripe": Secret(KEY, hosts=["127.0.0.1"]),
            "elsewhere": Secret(KEY, hosts=["api.example.com"]),
            "hook": Secret(SECRET, hosts=[f"127.0.0.1:{target.port}"]),
            "away": Secret(SECRET, hosts=["*.example.com"]),
            "any": Secret(SECRET, hosts=["*"]),
        },
    )
    yield opened
    opened.close()


def without_secrets() -> App:
    """An app that enqueues and does not know the secrets of its workers."""
    return App("sqlite://", settings=Settings(http_allow=("127.0.0.1",)))


BEARER = {"Authorization": SecretRef("stripe", prefix="Bearer ")}

MATCHES = [
    ("api.example.com", "https://api.example.com/x", True),
    ("api.example.com", "http://api.example.com:8080/x", True),
    ("API.Example.com.", "https://api.example.com/", True),
    ("api.example.com", "https://API.EXAMPLE.COM./", True),
    ("api.example.com", "https://xapi.example.com/", False),
    ("api.example.com", "https://api.example.com.evil.test/", False),
    ("api.example.com", "https://evil.test/api.example.com", False),
    ("api.example.com", "https://evil.test/?api.example.com", False),
    ("api.example.com", "https://evil.test/#api.example.com", False),
    ("api.example.com:443", "https://api.example.com/", True),
    ("api.example.com:443", "https://api.example.com:8443/", False),
    ("api.example.com:443", "http://api.example.com/", False),
    ("*.example.com", "https://a.example.com/", True),
    ("*.example.com", "https://a.b.example.com/", True),
    ("*.example.com", "https://example.com/", False),
    ("*.example.com", "https://badexample.com/", False),
    ("*.example.com", "https://example.com.evil.test/", False),
    ("*.example.com:8443", "https://a.example.com:8443/", True),
    ("*.example.com:8443", "https://a.example.com/", False),
    ("127.0.0.1", "http://127.0.0.1:5000/", True),
    ("127.0.0.1", "http://127.0.0.11/", False),
    ("[2001:DB8:0::1]:8443", "https://[2001:db8::1]:8443/", True),
    ("[2001:db8::1]", "https://[2001:db8::2]/", False),
    ("*", "https://anything.test:1/", True),
]


@pytest.mark.parametrize(("pattern", "url", "is_match"), MATCHES)
def test_a_secret_is_for_its_hosts_and_no_others(pattern: str, url: str, is_match: bool):
    assert read_host_pattern(pattern).matches(read_url(url)) is is_match


@pytest.mark.parametrize(
    "host",
    ["", " ", "*.", "**", "*.*.com", "a*.com", "*com", "a/b", "http://a", "a:0", "a:99999", "a:x", "a b", "é.com",
     "u@a", "*.127.0.0.1", "127.1", "[::1", "a?b", "a#b", ":80", 5, None],
    ids=repr,
)  # fmt: skip
def test_a_host_that_cannot_be_meant_is_refused(host):
    with pytest.raises((BadSetting, BadOption)):
        Secret("value", hosts=[host])


def test_a_secret_without_hosts_or_with_a_text_for_hosts_is_refused():
    for hosts in ([], (), "api.example.com"):
        with pytest.raises(BadOption, match="hosts="):
            Secret("value", hosts=hosts)


@pytest.mark.parametrize(
    "entries",
    [("stripe=hush",), ("@a.test=hush",), ("hush",), ("=hush",), ("a@=hush",), ("a@b.test=",), ("a b@c.test=hush",),
     ("a@c.test=hush\nX: y",), ("a@c.test=hüsh",), ("a@*=hush",), ("a@c.test=whsec_hush",), ("a@c.test= hush",),
     ("a@c.test=" + "hush" * 3000,), ("whsec_hush@c.test=hush",)],
    ids=repr,
)  # fmt: skip
def test_a_secret_that_cannot_be_read_is_refused_without_being_repeated(entries):
    with pytest.raises(BadSetting) as caught:
        App("sqlite://", settings=Settings(secrets=entries))
    assert "hush" not in str(caught.value).replace("whsec_hush@", "")
    assert "hüsh" not in str(caught.value)


def test_the_same_secrets_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, target: Target):
    monkeypatch.setenv("PERDURE_SECRETS", f"stripe@api.stripe.com+127.0.0.1:{target.port}=sk=1, hook@127.0.0.1={OTHER}")
    monkeypatch.setenv("PERDURE_HTTP_ALLOW", "127.0.0.1")
    app = App("sqlite://")
    with app.testing() as t:
        app.http.post(target.url, headers={"X-Key": SecretRef("stripe")}, sign="hook").enqueue()
        t.drain()
        assert verify(b"", target.seen[0].headers, OTHER, now=t.now)
    assert target.seen[0].headers["x-key"] == "sk=1"
    assert "sk=1" not in repr(app.settings)


def test_a_header_is_filled_in_by_the_worker_and_stored_by_name(app: App, target: Target):
    with app.testing() as t:
        job_id = app.http.post(target.url, headers={**BEARER, "X-Plain": "1"}).enqueue()
        stored = t.job(job_id).args
        t.drain()
        job = t.job(job_id)
    assert job.state == "succeeded"
    assert target.seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert target.seen[0].headers["x-plain"] == "1"
    headers = json.loads(stored)["kwargs"]["headers"]
    assert headers == {"Authorization": {"secret": "stripe", "prefix": "Bearer "}, "X-Plain": "1"}
    assert KEY.encode() not in stored + job.args


@pytest.mark.parametrize(
    ("prefix", "sent"), [("", KEY), ("  ", KEY), (" Basic  ", f"Basic  {KEY}"), ("a=", f"a={KEY}")]
)
def test_a_prefix_stands_before_the_secret(app: App, target: Target, prefix: str, sent: str):
    with app.testing() as t:
        job_id = app.http.post(target.url, headers={"X-Key": SecretRef("stripe", prefix=prefix)}).enqueue()
        t.drain()
        assert t.job(job_id).state == "succeeded"
    assert target.seen[0].headers["x-key"] == sent


def test_documents_name_secrets_in_the_same_way(app: App, target: Target):
    with app.testing() as t:
        reference = {"secret": "stripe"}
        app.http.call({"url": target.url, "headers": {"X-Key": reference}}).enqueue()
        app.enqueue_named("http", [], {"url": target.url, "headers": {"X-Key": reference}})
        t.drain()
    assert [seen.headers["x-key"] for seen in target.seen] == [KEY, KEY]
    request = http_request_from({"url": "http://x/", "headers": {"A": {"secret": "s", "prefix": "p "}}})
    assert request == Request(url="http://x/", headers={"A": SecretRef("s", "p ")})
    assert http_request_from(request.document()).headers == request.headers


@pytest.mark.parametrize(
    "value",
    [{}, {"secret": ""}, {"secret": "a b"}, {"secret": 5}, {"secret": None}, {"secret": ["a"]}, {"prefix": "x"},
     {"secret": "a", "prefix": "b\r\nEvil: c"}, {"secret": "a", "prefix": 5}, {"secret": "a", "value": "x"},
     {"secret": "whsec_abcdefgh"}, {"secret": "a", "prefix": "x" * 300}],
    ids=repr,
)  # fmt: skip
def test_a_reference_that_cannot_be_meant_is_refused(value):
    with pytest.raises(BadOption):
        http_request_from({"url": "http://x/", "headers": {"A": value}})


REFUSED = {
    "header": {"headers": {"X-Key": {"secret": "elsewhere"}}},
    "signature": {"sign": "away"},
    "a signing secret in a header": {"headers": {"X-Key": {"secret": "hook"}}},
    "a header's secret as signature": {"sign": "stripe"},
}


@pytest.mark.parametrize("fields", REFUSED.values(), ids=REFUSED)
def test_a_request_to_another_host_is_refused_when_it_is_enqueued(app: App, target: Target, fields):
    with pytest.raises(BadOption, match="secret"):
        app.http.call({"url": target.url, **fields})
    with pytest.raises(BadOption, match="secret"):
        app.enqueue_named("http", [], {"url": target.url, **fields})


@pytest.mark.parametrize("retry_on", ["default", "all"])
@pytest.mark.parametrize("fields", REFUSED.values(), ids=REFUSED)
def test_a_request_to_another_host_ends_dead_in_the_worker(app: App, target: Target, fields, retry_on: str):
    with app.testing() as t:
        # Bound by hand, as a program without the secrets, an older version, or a person at the store would.
        bound = app.http.task.bind(url=target.url, retry_on=retry_on, **fields)
        job_id = app.enqueue_many([bound])[0]
        t.advance("1d")
        job = t.job(job_id)
    assert (job.state, job.reason, job.attempt) == ("dead", "unrecoverable", 1)
    assert job.error is not None
    assert job.error.type == "perdure.http.errors.SecretRefusedError"
    assert "secret" in job.error.message
    assert target.connections == 0


def test_the_refusal_says_which_secret_and_which_host_and_no_other_host(app: App):
    with pytest.raises(BadOption) as caught:
        app.http.post("https://evil.test:8443/x?y=z", sign="away")
    assert "'away' is not bound to the host evil.test:8443" in str(caught.value)
    assert "example.com" not in str(caught.value)


def test_a_dead_job_that_is_replayed_is_checked_again(app: App, target: Target):
    with app.testing() as t:
        job_id = app.enqueue_many([app.http.task.bind(url=target.url, sign="away")])[0]
        t.drain()
        app.client().replay(job_id)
        t.drain()
        assert (t.job(job_id).state, t.job(job_id).reason) == ("dead", "unrecoverable")
    assert target.connections == 0


def test_a_schedule_is_checked_when_it_is_made_and_at_each_tick(app: App, target: Target):
    with pytest.raises(BadOption, match="away"):
        app.schedule("ping", app.http.post(target.url, sign="away"), cron="* * * * *")
    app.schedule("ping", app.http.task.bind(url=target.url, sign="away"), cron="* * * * *")
    with app.testing() as t:
        t.advance("2m")
        assert {(job.state, job.reason) for job in t.jobs(schedule="ping")} == {("dead", "unrecoverable")}
    assert target.connections == 0


def test_a_bound_secret_signs_for_its_host(app: App, target: Target):
    with app.testing() as t:
        for name in ("hook", "any", "legacy", True):
            app.http.post(target.url, sign=name).enqueue()
        t.drain()
        assert all(verify(b"", seen.headers, SECRET, now=t.now) for seen in target.seen)
    assert len(target.seen) == 4


def test_while_a_secret_is_replaced_each_value_serves_its_hosts(target: Target):
    host = f"127.0.0.1:{target.port}"
    app = App(
        "sqlite://",
        settings=Settings(http_allow=("127.0.0.1",)),
        secrets={"hook": [Secret(SECRET, hosts=[host]), Secret(OTHER, hosts=[host, "other.test"])]},
    )
    with app.testing() as t:
        app.http.post(target.url, sign="hook").enqueue()
        t.drain()
        (seen,) = target.seen
        assert seen.headers["webhook-signature"].count("v1,") == 2
        assert verify(b"", seen.headers, SECRET, now=t.now)
        assert verify(b"", seen.headers, OTHER, now=t.now)


def test_over_the_api_an_unbound_secret_is_refused_where_it_is_known(app: App, target: Target):
    with over_api():
        for sign in (True, "legacy"):
            with pytest.raises(BadOption, match="bound to no host"):
                app.http.post(target.url, sign=sign)
        app.http.post(target.url, sign="hook", headers=BEARER)
    app.http.post(target.url, sign="legacy")


@pytest.mark.parametrize("given", [{}, {"is_remote": False}], ids=str)
def test_over_the_api_an_unbound_secret_is_refused_by_the_worker_that_knows_it(app: App, target: Target, given):
    server = without_secrets()
    with over_api():
        unbound = server.http.call({"url": target.url, "sign": "legacy", **given})
        nameless = server.http.call({"url": target.url, "sign": True, **given})
        bound = server.http.call({"url": target.url, "sign": "hook", **given})
    by_code = server.http.call({"url": target.url, "sign": "legacy"})
    with app.testing() as t:
        ids = app.enqueue_many([unbound, nameless, bound, by_code])
        t.drain()
        states = [(t.job(job_id).state, t.job(job_id).reason) for job_id in ids]
        error = t.job(ids[0]).error
    assert states == [("dead", "unrecoverable")] * 2 + [("succeeded", None)] * 2
    assert "bound to no host" in str(error)
    assert "legacy@127.0.0.1=whsec_" in str(error)


def test_a_request_without_secrets_is_stored_as_before():
    app = without_secrets()
    with over_api():
        bound = app.http.post("https://example.com/", json=1)
    assert json.loads(bound.args)["kwargs"] == {"method": "POST", "url": "https://example.com/", "json": 1}


def test_a_worker_without_the_secret_sends_nothing_and_tries_again(target: Target):
    app = without_secrets()
    with app.testing() as t:
        job_id = app.http.post(target.url, headers=BEARER, max_attempts=2).enqueue()
        t.advance("1d")
        job = t.job(job_id)
    assert (job.state, job.reason, job.attempt) == ("dead", "exhausted", 2)
    assert "no secret named 'stripe'; set PERDURE_SECRETS" in str(job.error)
    assert target.connections == 0


def test_a_sink_names_secrets_and_is_checked_when_it_is_configured(app: App, target: Target):
    add_fail(app)
    for wrong in (
        DeadLetter.http(target.url, sign="away"),
        DeadLetter.http("https://evil.test/", headers={"X-Key": SecretRef("stripe")}),
    ):
        with pytest.raises(BadOption, match="not bound"):
            app.queue("default", dead_letter=wrong)
        with pytest.raises(BadOption, match="not bound"):
            App(
                "sqlite://",
                dead_letter=wrong,
                secrets={
                    "away": Secret(SECRET, hosts=["*.example.com"]),
                    "stripe": Secret(KEY, hosts=["api.stripe.com"]),
                },
            )
    app.queue("default", dead_letter=DeadLetter.http(target.url, headers=BEARER, sign="hook"))
    with app.testing() as t:
        job_id = app.tasks["fail"].enqueue()
        t.drain()
        assert forward_of(t, job_id).state == "forwarded"
    assert target.seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert verify(target.seen[0].body, target.seen[0].headers, SECRET, now=t.now)


def test_a_sink_is_signed_by_default_where_the_secret_is_for_its_host(target: Target):
    for entry, is_signed in ((f"@127.0.0.1={SECRET}", True), (f"@other.test={SECRET}", False)):
        app = App("sqlite://", settings=Settings(http_allow=("127.0.0.1",), http_signing_secrets=(entry,)))
        add_fail(app)
        app.queue("default", dead_letter=target.url)
        with app.testing() as t:
            job_id = app.tasks["fail"].enqueue()
            t.drain()
            assert forward_of(t, job_id).state == "forwarded"
        assert ("webhook-signature" in target.seen[-1].headers) is is_signed


def test_a_redirect_takes_no_secret_along(app: App, target: Target):
    other = Target()
    try:
        url = target.on("/moved", answering("307 Temporary Redirect", Location=f"{other.url}/"))
        with app.testing() as t:
            job_id = app.http.post(url, headers=BEARER, sign="hook").enqueue()
            t.drain()
            assert t.job(job_id).state == "dead"
        assert other.connections == 0
    finally:
        other.close()


FORMS = {
    "raw": KEY,
    "upper case": KEY.upper(),
    "JSON": json.dumps(KEY),
    "percent": quote(KEY, safe=""),
    "base64": base64.b64encode(KEY.encode()).decode(),
    "repr": repr(KEY.encode()),
    "repr of repr": repr(repr(KEY)),
    "JSON of JSON": json.dumps(json.dumps(KEY)),
    "JSON with escapes": "".join(f"\\u{ord(sign):04X}" for sign in KEY),
    "HTML": html.escape(KEY),
}


@pytest.mark.parametrize("status", ["200 OK", "500 Oops", "404 Gone"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_what_the_receiver_repeats_is_kept_without_the_secret(
    app: App, target: Target, form: str, status: str, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    body = f"you sent {form}; again {form}".encode()
    url = target.on("/echo", answering(f"{status} {KEY}", body, X_Echo=KEY, Content_Encoding="identity"))
    with app.testing() as t:
        job_id = app.http.post(url, headers=BEARER, max_attempts=1).enqueue()
        t.drain()
        shown = f"{t.job(job_id)!r} {t.history(job_id)!r} {app.settings!r} {caplog.text}"
        shown += repr(list(app.client().groups()))
    assert shown.count("[secret stripe]") >= 3
    for each in FORMS.values():
        assert each.strip("\"'b").rstrip("=").lower() not in shown.lower()
    for part in ("sk_live", "Zq", quote(KEY, safe="")[-6:], base64.b64encode(KEY.encode()).decode()[:8]):
        assert part.lower() not in shown.lower()


@pytest.mark.parametrize("position", [0, 1000, 1010, 1020, 1023, 1024])
def test_a_secret_that_is_cut_by_the_end_of_the_excerpt_does_not_show_in_part(app: App, target: Target, position: int):
    url = target.on("/echo", answering("200 OK", b"." * position + KEY.encode() * 200))
    with app.testing() as t:
        job_id = app.http.post(url, headers=BEARER).enqueue()
        t.drain()
        result = t.job(job_id).result
    assert result is not None
    assert b"sk_l" not in result
    assert b"Zq" not in result


@pytest.mark.parametrize(
    "text",
    [f"HTTP/1.1 {KEY}\r\n\r\n", f"{KEY}\r\n\r\n", f"HTTP/1.1 200 OK\r\n{KEY}\r\n\r\n",
     f"HTTP/1.1 200 OK\r\nContent-Encoding: {KEY}\r\nContent-Length: 1\r\n\r\nx"],
    ids=["status", "nonsense", "header", "encoding"],
)  # fmt: skip
def test_an_answer_that_cannot_be_read_does_not_bring_the_secret_into_errors_or_logs(
    app: App, target: Target, text: str, caplog: pytest.LogCaptureFixture
):
    async def behave(exchange: Exchange) -> None:
        await exchange.send(text.encode())
        exchange.is_open = False

    caplog.set_level(logging.DEBUG)
    with app.testing() as t:
        job_id = app.http.post(target.on("/bad", behave), headers=BEARER, max_attempts=1).enqueue()
        t.drain()
        shown = f"{t.job(job_id)!r} {t.history(job_id)!r} {caplog.text}"
    assert "sk_live" not in shown


async def test_requests_at_the_same_time_keep_their_secrets_apart(app: App, target: Target):
    from tests.http.test_connections import ended, working

    async def echo(exchange: Exchange) -> None:
        await asyncio.sleep(0)
        await exchange.answer("200 OK", f"{KEY} {exchange.seen.path}".encode())

    urls = [target.on(f"/{n}", echo) for n in range(10)]
    async with working(app, concurrency=10):
        ids = await app.enqueue_many_async(
            [app.http.post(url, headers=BEARER if n % 2 else {}) for n, url in enumerate(urls)]
        )
        await ended(app, *ids)
    for n, job_id in enumerate(ids):
        result = app.client().get(job_id).result
        assert result is not None
        assert (b"sk_live" in result) is (n % 2 == 0)


def test_values_show_in_no_representation(app: App):
    secret = Secret(KEY, hosts=["a.test"])
    for shown in (repr(secret), str(secret), repr(app.settings), repr([secret]), f"{app.http!r}", repr(BEARER)):
        assert "sk_live" not in shown
        assert SECRET not in shown


@pytest.mark.parametrize("value", ["x", "ab" * 4000, "\\" * 50, '\\"' * 100, "%25" * 60, "a-b.c" * 100], ids=len)
def test_secrets_of_any_kind_and_length_are_taken_out_in_little_time(value: str):
    redactor = Redactor({"name": value})
    assert value not in redactor.text(f"before {value} after").replace("[secret name]", "")
    for hostile in ("\\" * 60_000, value[:-1] * 100, "%" * 60_000, "a" * 60_000, "&#0" * 20_000):
        began = time.process_time()
        redactor.text(hostile)
        redactor.beginning(hostile.encode(), 1024)
        assert time.process_time() - began < 20


def test_a_redactor_names_each_secret_and_leaves_the_rest():
    redactor = Redactor({"short": "abc", "long": "abcdef"})
    assert redactor.text("abcdef abc abd") == "[secret long] [secret short] abd"
    assert not Redactor({})
    assert Redactor({}).beginning(b"abc", 2) == b"ab"
