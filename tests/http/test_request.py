"""A request is checked when it is made, stored as plain data, and sent as it was written."""

from __future__ import annotations

import json
from datetime import timedelta

import msgspec
import pytest
from tests.http.target import Target

from perdure import App, BadOption, BadPayload, Settings, UsageError
from perdure.http import Request, http_request_from
from perdure.http.url import read_url


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("http://Example.COM", "example.com", 80, "/"),
        ("HTTPS://example.com./a/b?c=d#e", "example.com", 443, "/a/b?c=d"),
        ("http://example.com:8080?q=1", "example.com", 8080, "/?q=1"),
        ("https://[2606:4700:0::1]:8443/x", "2606:4700::1", 8443, "/x"),
        ("http://93.184.216.34/", "93.184.216.34", 80, "/"),
        ("http://xn--bcher-kva.example/", "xn--bcher-kva.example", 80, "/"),
        ("http://my_service.internal/über?ß=ü", "my_service.internal", 80, "/%C3%BCber?%C3%9F=%C3%BC"),
        ("http://example.com/a%20b/%2F", "example.com", 80, "/a%20b/%2F"),
        ("http://example.com/../x/./y//z", "example.com", 80, "/../x/./y//z"),
    ],
)
def test_a_url_is_read_into_what_is_connected_to_and_sent(url: str, host: str, port: int, path: str):
    target = read_url(url)
    assert (target.host, target.port, target.path) == (host, port, path)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"url": "ftp://x/"}, "scheme"),
        ({"url": "/relative"}, "absolute"),
        ({"url": "http://user:hunter2@x/"}, "password"),
        ({"url": "http://x/" + "y" * 9000}, "characters"),
        ({"url": 7}, "int"),
        ({}, "no url"),
        ({"url": "http://x/", "method": "GE T"}, "method"),
        ({"url": "http://x/", "method": ""}, "method"),
        ({"url": "http://x/", "method": "CONNECT"}, "CONNECT"),
        ({"url": "http://x/", "headers": {"A\r\nB": "c"}}, "header name"),
        ({"url": "http://x/", "headers": {"A": "b\r\nEvil: c"}}, "header A"),
        ({"url": "http://x/", "headers": {"A": "b\x00"}}, "header A"),
        ({"url": "http://x/", "headers": {"A": "é"}}, "header A"),
        ({"url": "http://x/", "headers": {"A": 7}}, "header A"),
        ({"url": "http://x/", "headers": {"A": "b" * 9000}}, "header A"),
        ({"url": "http://x/", "headers": {"": "b"}}, "header name"),
        ({"url": "http://x/", "headers": {"Host": "evil"}}, "Host"),
        ({"url": "http://x/", "headers": {"Content-Length": "5"}}, "Content-Length"),
        ({"url": "http://x/", "headers": {"transfer-encoding": "chunked"}}, "transfer-encoding"),
        ({"url": "http://x/", "headers": {"Connection": "close"}}, "Connection"),
        ({"url": "http://x/", "headers": {"Upgrade": "h2c"}}, "Upgrade"),
        ({"url": "http://x/", "headers": {"a": "1", "A": "2"}}, "twice"),
        ({"url": "http://x/", "headers": {f"h{n}": "1" for n in range(101)}}, "101 headers"),
        ({"url": "http://x/", "headers": [["a", "b"]]}, "headers is a list"),
        ({"url": "http://x/", "headers": {"webhook-id": "1"}, "sign": True}, "webhook-id"),
        ({"url": "http://x/", "json": 1, "body": "x"}, "both given"),
        ({"url": "http://x/", "body": b"x"}, "body is a bytes"),
        ({"url": "http://x/", "body_base64": "%"}, "base64"),
        ({"url": "http://x/", "retry_on": "never"}, "retry_on"),
        ({"url": "http://x/", "sign": 5}, "sign"),
        ({"url": "http://x/", "sign": "bad name"}, "sign"),
        ({"url": "http://x/", "timeout": "soon"}, "timeout"),
        ({"url": "http://x/", "follow": True}, "follow"),
        ("http://x/", "object"),
    ],
    ids=str,
)
def test_a_document_that_is_no_request_is_refused_with_what_is_wrong(fields, words: str):
    with pytest.raises(UsageError, match=words) as caught:
        http_request_from(fields)
    assert "hunter2" not in str(caught.value)


def test_a_document_becomes_a_request_and_a_bound_job():
    document = {
        "url": "https://example.com/hook",
        "method": "put",
        "headers": {"X-Shop": " 3 "},
        "json": {"order": 7, "notes": [None, 1.5]},
        "retry_on": "all",
        "timeout": "10s",
    }
    request = http_request_from(document)
    assert request == Request(
        url="https://example.com/hook",
        method="PUT",
        headers={"X-Shop": "3"},
        json={"order": 7, "notes": [None, 1.5]},
        retry_on="all",
        timeout=10.0,
    )
    assert http_request_from(request.document()) == Request(
        **{**{name: getattr(request, name) for name in request.__struct_fields__}, "timeout": None}
    )
    bound = App("sqlite://").http.call(document, queue="hooks", priority=5)
    assert (bound.task, bound.queue, bound.priority) == ("http", "hooks", 5)
    assert bound.options.timeout == timedelta(seconds=10)
    assert json.loads(bound.args)["kwargs"]["json"] == {"order": 7, "notes": [None, 1.5]}


def test_a_request_has_a_schema_and_is_read_by_it():
    schema = msgspec.json.schema(Request)
    assert set(schema["$defs"]["Request"]["properties"]) == set(Request.__struct_fields__)
    text = b'{"url": "https://example.com/", "json": null, "timeout": "1m"}'
    request = msgspec.json.decode(text, type=Request)
    assert (request.json, request.timeout, request.content()) == (None, 60.0, b"null")
    with pytest.raises(msgspec.ValidationError, match="scheme"):
        msgspec.json.decode(b'{"url": "ftp://x/"}', type=Request)
    with pytest.raises(msgspec.ValidationError, match="unknown"):
        msgspec.json.decode(b'{"url": "https://x/", "follow": true}', type=Request)


def test_null_is_a_content_and_no_content_is_none():
    assert http_request_from({"url": "http://x/", "json": None}).content() == b"null"
    assert http_request_from({"url": "http://x/"}).content() == b""


def test_content_that_cannot_be_stored_or_is_too_large_is_refused():
    app = App("sqlite://")
    for content in (object(), float("nan"), {1: 2}):
        with pytest.raises(BadPayload):
            app.http.post("http://x/", json=content)
    with pytest.raises(BadPayload, match="bytes"):
        app.http.post("http://x/", body="x" * 300_000)


def test_content_may_be_as_large_as_the_settings_allow(target: Target):
    app = App("sqlite://", settings=Settings(max_payload=1_000_000, http_allow=("127.0.0.1",)))
    with app.testing() as t:
        calls = [app.http.post(target.url, json="x" * 900_000), app.http.post(target.url, body="x" * 900_000)]
        ids = app.enqueue_many(calls)
        t.drain()
        assert [t.job(job_id).state for job_id in ids] == ["succeeded"] * 2
    assert [len(request.body) for request in target.seen] == [900_002, 900_000]


def test_each_kind_of_content_arrives_byte_by_byte_with_its_type(app: App, target: Target):
    with app.testing() as t:
        app.http.post(target.url, json={"a": [1, "ü"]}).enqueue()
        app.http.post(target.url, body="grüße").enqueue()
        app.http.post(target.url, body=b"\x00\xff\xfe").enqueue()
        app.http.post(target.url, body=b"text").enqueue()
        app.http.post(target.url).enqueue()
        app.http.get(target.url).enqueue()
        app.http.put(target.url, body="<a/>", headers={"content-type": "application/xml"}).enqueue()
        t.drain()
    assert [(request.method, request.headers.get("content-type"), request.body) for request in target.seen] == [
        ("POST", "application/json", '{"a":[1,"ü"]}'.encode()),
        ("POST", "text/plain; charset=utf-8", "grüße".encode()),
        ("POST", "application/octet-stream", b"\x00\xff\xfe"),
        ("POST", "text/plain; charset=utf-8", b"text"),
        ("POST", None, b""),
        ("GET", None, b""),
        ("PUT", "application/xml", b"<a/>"),
    ]
    assert "content-length" not in target.seen[5].headers


def test_every_method_has_its_verb(app: App, target: Target):
    with app.testing() as t:
        for verb in ("get", "post", "put", "patch", "delete"):
            getattr(app.http, verb)(target.url).enqueue()
        app.http.request("options", target.url).enqueue()
        t.drain()
    assert [request.method for request in target.seen] == ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


def test_own_headers_are_sent_and_may_replace_the_usual_ones(app: App, target: Target):
    given = {"Authorization": "Bearer x", "Idempotency-Key": "order-7", "User-Agent": "shop/1"}
    with app.testing() as t:
        app.http.post(f"{target.url}/a?b=c", headers=given).enqueue()
        app.http.post(target.url).enqueue()
        t.drain()
    own, usual = (request.headers for request in target.seen)
    assert {name: own[name.lower()] for name in given} == given
    assert own["host"] == f"127.0.0.1:{target.port}"
    assert usual["user-agent"].startswith("perdure/")
    assert "cookie" not in usual


def test_calls_are_bound_jobs_for_batches_and_transactions(app: App, target: Target):
    calls = [app.http.post(f"{target.url}/{n}", unique=f"n-{n}", delay="1s") for n in range(3)]
    with app.testing() as t:
        ids = app.enqueue_many([*calls[:2], calls[2].bind()])
        assert {t.job(job_id).state for job_id in ids} == {"waiting"}
        t.advance("2s")
        assert {t.job(job_id).state for job_id in ids} == {"succeeded"}
    assert [request.path for request in target.seen] == ["/0", "/1", "/2"]


async def test_a_call_can_be_enqueued_on_an_event_loop(app: App):
    job_id = await app.http.post("https://example.com/").enqueue_async()
    assert app.client().get(job_id).task == "http"


def test_the_name_of_the_task_is_taken_and_explained(app: App):
    with pytest.raises(BadOption, match="every app has"):
        app.task(name="http")(lambda: None)
    assert "http" not in app.tasks
    assert "30s" in str([line.value for line in app.explain("http").lines])


def test_a_request_can_be_enqueued_by_the_name_of_its_task(app: App, target: Target):
    with app.testing() as t:
        job_id = app.enqueue_named("http", [], {"url": f"{target.url}/named"}, queue="hooks")
        t.drain()
        assert t.job(job_id).queue == "hooks"
    assert target.seen[0].path == "/named"
    with pytest.raises(BadOption, match="scheme"):
        app.enqueue_named("http", [], {"url": "ftp://x/"})
