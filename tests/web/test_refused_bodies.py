"""A body is read only after everything that the headers can be refused for, and never to its end for nothing."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.web.conftest import connected, serving

from perdure import App
from perdure.web.app import OPERATIONS, Api, create_app
from perdure.web.operation import API, Operation

SECRETS = {scope: f"a-secret-that-may-{scope}" for scope in ("read", "enqueue", "admin")}
TAKES_BODY = [operation for operation in OPERATIONS if operation.body is not None]
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def guarded(app: App) -> Api:
    return create_app(app, tokens=[f"{scope}:{secret}" for scope, secret in SECRETS.items()])


class Body:
    """A body that says how much of it was taken."""

    def __init__(self, size: int = 100_000) -> None:
        self.taken = 0
        self._size = size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(self._size // 1000):
            self.taken += 1000
            yield b" " * 1000


async def _asked(api: Api, method: str, path: str, headers: dict[str, str]) -> tuple[int, Body, Any]:
    """Ask as an ASGI server does, whose body is taken only when it is asked for."""
    body, found = Body(), {}
    pieces = body.__aiter__()

    async def receive() -> dict[str, Any]:
        piece = await anext(pieces, b"")
        return {"type": "http.request", "body": piece, "more_body": bool(piece)}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            found["status"] = message["status"]
            found["headers"] = {name.decode(): value.decode() for name, value in message["headers"]}

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 7373),
        "headers": [(b"host", b"localhost")]
        + [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    await api(scope, receive, send)
    return found["status"], body, found["headers"]


def _path(operation: Operation) -> str:
    return operation.path.format(id="00000000-0000-7000-8000-000000000000", name="mail")


CHUNKED = {"Transfer-Encoding": "chunked", **JSON}
LONG = {"Content-Length": "100000", **JSON}


@pytest.mark.parametrize("announced", [CHUNKED, LONG], ids=["chunked", "length"])
@pytest.mark.parametrize("operation", TAKES_BODY, ids=[operation.name for operation in TAKES_BODY])
async def test_nothing_of_a_body_is_read_before_the_request_is_let_in(
    guarded: Api, operation: Operation, announced: dict[str, str]
) -> None:
    weaker = SECRETS["read"] if operation.scope != "read" else SECRETS["enqueue"]
    tries = {
        401: announced,
        403: {**announced, "Authorization": f"Bearer {weaker}"},
    }
    for expected, headers in tries.items():
        status, body, answer = await _asked(guarded, operation.method, _path(operation), headers)
        assert (status, body.taken) == (expected, 0)
        assert answer["connection"] == "close"


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", f"{API}/nothing", {}, 404),
        ("PUT", f"{API}/jobs", {}, 405),
        ("POST", f"{API}/jobs", {"Content-Type": "text/plain"}, 415),
        ("POST", f"{API}/queues/mail/pause", {"Content-Type": ""}, 415),
        ("POST", f"{API}/jobs", {"Content-Length": "99999999999"}, 413),
        ("POST", f"{API}/jobs?x=1", {}, 404),
        ("POST", f"{API}/jobs", {"Origin": "http://evil.example"}, 403),
        ("POST", f"{API}/jobs", {"Host": "evil.example"}, 400),
        ("GET", f"{API}/stats", {}, 200),
        ("OPTIONS", f"{API}/stats", {}, 204),
    ],
)
async def test_what_the_headers_are_refused_for_is_known_before_the_body(
    app: App, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    found, body, answer = await _asked(create_app(app), method, path, {**LONG, **headers})
    assert (found, body.taken) == (status, 0)
    assert answer["connection"] == "close"


async def test_a_body_without_a_type_is_refused_unread_where_none_is_needed(app: App) -> None:
    found, body, _ = await _asked(create_app(app), "POST", f"{API}/queues/mail/pause", {"Content-Length": "100000"})
    assert (found, body.taken) == (415, 0)


async def test_a_body_without_a_length_is_read_to_the_limit_only(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_MAX_BODY", "5000")
    small = App("sqlite:///:memory:")
    found, body, answer = await _asked(create_app(small), "POST", f"{API}/jobs", CHUNKED)
    assert (found, answer["connection"]) == (413, "close")
    assert body.taken <= 7000
    small.close()


async def test_a_body_that_was_read_keeps_the_connection(app: App) -> None:
    async with connected(create_app(app)) as client:
        for body, status in ((b'{"task":"send","args":["a"]}', 201), (b"{", 400), (b"{}", 422)):
            response = await client.post(f"{API}/jobs", content=body, headers=JSON)
            assert response.status_code == status
            assert "connection" not in response.headers


def test_a_real_server_answers_and_closes_without_taking_the_body(guarded: Api) -> None:
    with serving(guarded) as url:
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            lines = (f"POST {API}/jobs HTTP/1.1", "Host: localhost", "Content-Type: application/json")
            head = "\r\n".join([*lines, "Content-Length: 1000000", "", '{"task":'])
            connection.sendall(head.encode())
            seen = b""
            while piece := connection.recv(65536):
                seen += piece
        head, _, body = seen.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 401 ")
        assert b"connection: close" in head.lower()
        assert json.loads(body)["code"] == "unauthorized"


async def test_a_token_for_single_jobs_makes_no_schedule(app: App) -> None:
    secrets = {"enqueue": "a-secret-that-may-enqueue", "write": "a-secret-that-may-write"}
    api = create_app(app, tokens=[f"{scope}:{secret}" for scope, secret in secrets.items()])
    body = {"schedule": "* * * * *", "api": "https://example.com/"}
    async with connected(api) as client:
        answers = {
            scope: await client.post(f"{API}/jobs", json=body, headers={"Authorization": f"Bearer {secret}"})
            for scope, secret in secrets.items()
        }
        assert answers["enqueue"].status_code == 403
        assert 'scope="write"' in answers["enqueue"].headers["www-authenticate"]
        assert answers["write"].status_code == 201
        kept = await client.get(f"{API}/schedules", headers={"Authorization": f"Bearer {secrets['write']}"})
        assert len(kept.json()["schedules"]) == 1
        single = {"task": "send", "args": ["a"]}
        made = await client.post(f"{API}/jobs", json=single, headers={"Authorization": f"Bearer {secrets['enqueue']}"})
        assert made.status_code == 201


async def test_one_token_has_one_set_of_idempotency_keys_however_its_header_is_spelt(app: App) -> None:
    first, second = "a-secret-that-may-enqueue", "another-secret-for-enqueue"
    api = create_app(app, tokens=[f"enqueue:{first}", f"enqueue:{second}"])
    body = {"task": "send", "args": ["a"]}

    async with connected(api) as client:

        async def make(authorization: str) -> tuple[str, bool]:
            headers = {"Authorization": authorization, "Idempotency-Key": "k"}
            response = await client.post(f"{API}/jobs", json=body, headers=headers)
            assert response.status_code == 201, response.text
            return response.json()["id"], "idempotency-replayed" in response.headers

        made = await make(f"Bearer {first}")
        for spelling in (f"bearer {first}", f"BEARER {first}", f"Bearer   {first}", f"Bearer {first}  "):
            assert await make(spelling) == (made[0], True)
        other = await make(f"Bearer {second}")
        assert other[0] != made[0]
        assert not other[1]
        results = await asyncio.gather(*(make(f"{scheme} {second}") for scheme in ("Bearer", "bearer")))
        assert {job_id for job_id, _ in results} == {other[0]}
