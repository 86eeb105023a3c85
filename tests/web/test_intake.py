"""Bodies, parameters and headers that are wrong: each is refused in a sentence, with the place it is at."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import examples
from tests.web.conftest import connected
from tests.web.reach import Reach, check_problem

from perdure import App, Settings
from perdure.errors import BadOption
from perdure.web.app import OPERATIONS, Api, create_app
from perdure.web.operation import API, Operation
from perdure.web.schemas.requests import NewJobBody

JSON = {"Content-Type": "application/json"}
TAKES_BODY = [operation for operation in OPERATIONS if operation.body is not None]

MALFORMED = {
    "nothing": b"",
    "half": b'{"task": "send"',
    "trailing": b'{"task": "send"} x',
    "two": b'{"task": "send"}{"task": "send"}',
    "not a number": b'{"task": "send", "args": [NaN]}',
    "infinity": b'{"task": "send", "args": [Infinity]}',
    "too large a number": b'{"task": "send", "args": [1e999]}',
    "too many digits": b'{"task": "send", "args": [' + b"1" * 5000 + b"]}",
    "more than 64 bits": b'{"task": "send", "args": [9223372036854775808]}',
    "bad utf-8": b'{"task": "send", "args": ["\xff\xfe"]}',
    "lone surrogate": b'{"task": "send", "args": ["\\ud800"]}',
    "a NUL": b'{"task": "send", "args": ["a\\u0000b"]}',
    "utf-16": '{"task": "send"}'.encode("utf-16"),
    "a mark": b'\xef\xbb\xbf{"task": "send"}',
    "a key twice": b'{"task": "send", "task": "send", "args": ["a"]}',
    "too deep": b'{"task": "send", "args": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "comment": b'{"task": "send" /* x */}',
    "single quotes": b"{'task': 'send'}",
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
async def test_what_is_not_plain_json_is_refused(reach: Reach, data: bytes) -> None:
    response = await reach.ask("POST", "jobs", content=data, headers=JSON)
    assert response.status_code == 400
    assert check_problem(response)["code"] == "malformed"
    assert (await reach.get("jobs"))["jobs"] == []


NEEDS_NO_BODY = [
    operation
    for operation in OPERATIONS
    if operation.method in ("POST", "DELETE") and (operation.body is None or not operation.body.is_required)
]


@pytest.mark.parametrize("operation", NEEDS_NO_BODY, ids=lambda operation: operation.name)
async def test_an_empty_body_is_taken_where_none_is_needed(reach: Reach, operation: Operation) -> None:
    async def nothing() -> AsyncIterator[bytes]:
        yield b""

    path = operation.path.format(id="01890a5d-ac96-774b-bcce-b302099a8057", name="nobody")
    for content_type in (None, "application/json", "application/json; charset=utf-8", "text/plain"):
        headers = {} if content_type is None else {"Content-Type": content_type}
        for content in (b"", nothing()):
            response = await reach.ask(operation.method, path, content=content, headers=headers)
            assert response.status_code in (200, 404), response.text


async def test_a_real_server_takes_an_empty_body_in_every_form(app: App, served: Callable) -> None:
    with served(create_app(app)) as address:
        host, port = address.removeprefix("http://").split(":")
        for more in ("", "Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n"):
            for kind in ("", "Content-Type: application/json\r\n"):
                with socket.create_connection((host, int(port)), 30) as connection:
                    head = "POST /api/v1/queues/mail/resume HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                    end = "0\r\n\r\n" if "chunked" in more else ""
                    connection.sendall(f"{head}{kind}{more}\r\n{end}".encode())
                    answer = connection.makefile("rb").read()
                assert answer.startswith(b"HTTP/1.1 200 "), (more, kind, answer)


@pytest.mark.parametrize("data", [b"[]", b"null", b"1", b'"send"', b"true"])
async def test_a_body_that_is_no_object_is_refused(reach: Reach, data: bytes) -> None:
    response = await reach.ask("POST", "jobs", content=data, headers=JSON)
    assert response.status_code == 422


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/task"),
        ({"task": None}, "/task"),
        ({"task": 1}, "/task"),
        ({"task": "a b"}, "/task"),
        ({"task": ""}, "/task"),
        ({"task": "x" * 201}, "/task"),
        ({"args": {}}, "/args"),
        ({"args": "a"}, "/args"),
        ({"kwargs": []}, "/kwargs"),
        ({"queue": "a b"}, "/queue"),
        ({"queue": 5}, "/queue"),
        ({"delay": []}, "/delay"),
        ({"delay": True}, "/delay"),
        ({"delay": -1}, "/delay"),
        ({"delay": "yesterday"}, ""),
        ({"delay": 1e18}, "/delay"),
        ({"delay": "5m", "run_at": "2040-01-01T00:00:00Z"}, ""),
        ({"run_at": "tomorrow"}, "/run_at"),
        ({"run_at": "2040-01-01T00:00:00"}, "/run_at"),
        ({"run_at": 5}, "/run_at"),
        ({"run_at": "9999-12-31T23:59:59.999999Z"}, ""),
        ({"run_at": "0001-01-01T00:00:00+23:59"}, ""),
        ({"priority": 101}, "/priority"),
        ({"priority": 1.5}, "/priority"),
        ({"priority": "1"}, "/priority"),
        ({"priority": 10**18}, "/priority"),
        ({"unique": ""}, "/unique"),
        ({"unique": "x" * 201}, "/unique"),
        ({"unique": "a\nb"}, ""),
        ({"max_attempts": 0}, "/max_attempts"),
        ({"max_attempts": "many"}, "/max_attempts"),
        ({"max_attempts": 2, "max_retries": 1}, ""),
        ({"max_attempts": 2, "maxAttempts": 2}, "/maxAttempts"),
        ({"max_retries": -1}, "/max_retries"),
        ({"retry": "no-such-preset"}, ""),
        ({"retry": {"preset": "standard"}}, "/retry"),
        ({"delivery": "twice"}, "/delivery"),
        ({"timeout": 0}, ""),
        ({"timeout": "0s"}, ""),
        ({"priorty": 1}, "/priorty"),
        ({"a/b~c": 1}, "/a~1b~0c"),
        ({"connection": "x"}, "/connection"),
        ({"id": "01890a5d-ac96-774b-bcce-b302099a8057"}, "/id"),
    ],
)
async def test_a_wrong_field_is_refused_and_pointed_at(reach: Reach, body: dict, pointer: str) -> None:
    whole = {"task": "send", "args": ["a"], **body} if body else body
    problem = await reach.post("jobs", whole, 422)
    assert problem["errors"][0]["pointer"] == pointer
    assert (await reach.get("jobs"))["jobs"] == []


async def test_a_misspelt_field_gets_a_suggestion(reach: Reach) -> None:
    problem = await reach.post("jobs", {"task": "send", "priorty": 1}, 422)
    assert "Did you mean 'priority'?" in problem["detail"]


@pytest.mark.parametrize("jobs", [[], [{"task": "send", "args": ["a"]}] * 1001, {}, [1], None])
async def test_a_batch_has_one_to_a_thousand_jobs(reach: Reach, jobs: object) -> None:
    await reach.post("jobs", {"jobs": jobs}, 422)


OTHER_TYPES = ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "x" * 500]
SPELLINGS = ["application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.x+json"]


@pytest.mark.parametrize("content_type", OTHER_TYPES)
@pytest.mark.parametrize("operation", TAKES_BODY, ids=lambda operation: operation.name)
async def test_a_body_of_another_type_is_refused_everywhere(reach: Reach, operation, content_type: str) -> None:
    path = operation.path.format(id="01890a5d-ac96-774b-bcce-b302099a8057", name="mail")
    response = await reach.ask(operation.method, path, content=b"{}", headers={"Content-Type": content_type})
    assert response.status_code == 415


@pytest.mark.parametrize("content_type", SPELLINGS)
async def test_every_spelling_of_json_is_taken(reach: Reach, content_type: str) -> None:
    data = b'{"task": "send", "args": ["a"]}'
    response = await reach.ask("POST", "jobs", content=data, headers={"Content-Type": content_type})
    assert response.status_code == 201


@pytest.mark.parametrize("operation", TAKES_BODY, ids=lambda operation: operation.name)
async def test_an_unknown_field_is_refused_everywhere(reach: Reach, operation) -> None:
    path = operation.path.format(id="01890a5d-ac96-774b-bcce-b302099a8057", name="mail")
    response = await reach.ask(operation.method, path, json={"nonsense": 1})
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "/nonsense"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
async def test_an_unknown_parameter_is_refused_everywhere(reach: Reach, operation) -> None:
    path = operation.path.format(id="01890a5d-ac96-774b-bcce-b302099a8057", name="mail")
    response = await reach.ask(operation.method, f"{path}?nonsense=1")
    assert response.status_code == 422
    assert response.json()["errors"][0]["parameter"] == "nonsense"


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("limit=0", 422),
        ("limit=1001", 422),
        ("limit=x", 422),
        ("limit=", 422),
        ("limit=1&limit=2", 422),
        ("limit=99999999999999999999999", 422),
        ("state=asleep", 422),
        ("state=null", 422),
        ("state=NULL", 422),
        ("limit=null", 422),
        ("before=null", 422),
        ("state=", 422),
        ("task=", 422),
        ("task=%00", 422),
        ("task=%FF", 400),
        ("error=" + "x" * 1001, 422),
        ("before=whenever", 422),
        ("before=0001-01-01T00:00:00%2B23:59", 422),
        ("before=9999-12-31T23:59:59-23:59", 422),
        ("after=0001-01-01", 200),
        ("before=9999-12-31", 200),
        ("&".join(f"a{number}=1" for number in range(200)), 400),
        ("a=" + "x" * 25_000, 414),
    ],
)
async def test_a_wrong_parameter_is_refused(reach: Reach, query: str, status: int) -> None:
    await reach.get(f"jobs?{query}", status)


@pytest.mark.parametrize("name", ["task", "queue", "error", "group", "reason", "schedule"])
async def test_null_is_a_text_like_others_and_not_nothing(reach: Reach, name: str) -> None:
    await reach.enqueue()
    assert (await reach.get(f"jobs?{name}=null"))["jobs"] == []


@pytest.fixture
def small(tmp_path) -> App:
    app = App(f"sqlite:///{tmp_path}/jobs.db", settings=Settings(max_body=1000))
    yield app
    app.close()


async def test_a_body_that_is_too_large_is_refused_by_its_length(small: App) -> None:
    async with connected(create_app(small)) as client:
        for length in ("1001", "9" * 4000):
            response = await client.post(f"{API}/jobs", content=b"", headers={**JSON, "Content-Length": length})
            assert check_problem(response)["status"] == 413


async def test_a_body_without_a_length_is_read_only_up_to_the_limit(small: App) -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        for _ in range(1000):
            taken += 1
            yield b'{"task":' + b" " * 200

    async with connected(create_app(small)) as client:
        response = await client.post(f"{API}/jobs", content=endless(), headers=JSON)
    assert check_problem(response)["status"] == 413
    assert taken < 20


async def test_a_chunked_body_that_never_ends_is_refused_by_a_real_server(small: App, served: Callable) -> None:
    import socket

    api = create_app(small)
    with served(api) as url:
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
            head = "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
            for _ in range(20):
                connection.sendall(b"64\r\n" + b" " * 100 + b"\r\n")
            assert b" 413 " in connection.recv(4000).splitlines()[0]


async def test_arguments_larger_than_the_limit_are_refused(reach: Reach) -> None:
    problem = await reach.post("jobs", {"task": "send", "args": ["x" * 300_000]}, 422)
    assert problem["error"] == "BadPayload"


async def test_arguments_as_deep_as_they_may_be_are_taken_and_deeper_ones_refused(reach: Reach) -> None:
    def nested(depth: int) -> list:
        value: list = []
        for _ in range(depth - 1):
            value = [value]
        return value

    body = {"jobs": [{"task": "send", "args": [nested(63)]}]}
    await reach.post("jobs", body, 201)
    body["jobs"][0]["args"] = [nested(70)]
    assert (await reach.ask("POST", "jobs", json=body)).status_code in (400, 422)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
FIELDS = st.sampled_from([*NewJobBody.__struct_fields__, "maxAttempts", "jobs", "nonsense"])


@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(body=st.dictionaries(FIELDS, JSON_VALUES, max_size=6) | JSON_VALUES)
async def test_no_json_whatever_it_holds_makes_the_api_fail(api: Api, body: object) -> None:
    async with connected(api) as client:
        data = json.dumps(body).encode("utf-8", "surrogatepass")
        response = await client.post(f"{API}/jobs", content=data, headers=JSON)
        assert response.status_code in (200, 201, 400, 422)


@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=60))
async def test_no_bytes_whatever_they_are_make_the_api_fail(api: Api, data: bytes) -> None:
    async with connected(api) as client:
        response = await client.post(f"{API}/replays", content=data, headers=JSON)
        assert check_problem(response)["status"] in (400, 422)


def test_moments_that_no_engine_can_keep_are_refused_in_python_too(app: App) -> None:
    from datetime import UTC, datetime

    for year in (1, 1970, 9999):
        with pytest.raises(BadOption, match="cannot be kept"):
            app.tasks["send"].options(run_at=datetime(year, 6, 1, tzinfo=UTC))
