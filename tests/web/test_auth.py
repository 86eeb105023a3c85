"""Who may do what: tokens and scopes for every route, this machine only without them, hosts and other sites."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import examples
from tests.web.conftest import connected
from tests.web.reach import check_problem

from perdure import App
from perdure.configuration.settings import Settings
from perdure.errors import BadSetting, Refused
from perdure.web.access.tokens import (
    GRANTS,
    SCOPES,
    Access,
    Token,
    new_token,
    read_access,
    read_tokens,
    require_binding,
)
from perdure.web.app import OPERATIONS, Api, create_app
from perdure.web.operation import API, Operation

OPEN = {"health_live", "health_ready", "show_openapi", "show_front_page"}
"""What anybody may ask; everything else needs a scope."""

PROXY_HEADERS = (
    *(
        "Via",
        "Forwarded",
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Forwarded-Proto",
        "X-FORWARDED-PREFIX",
        "X-Forwarded",
    ),
    *("X-Real-IP", "CF-Connecting-IP", "CF-Ray", "True-Client-IP", "X-Client-IP", "X-Cluster-Client-IP"),
    *("Fly-Client-IP", "Fastly-Client-IP", "X-Original-Forwarded-For", "X-Originating-IP", "X-Envoy-External-Address"),
    *("X-Amzn-Trace-Id", "X-Azure-ClientIP", "X-Appengine-User-IP", "CDN-Loop", "Client-IP", "Proxy-Connection"),
    *("X-ARR-LOG-ID", "X-Varnish", "CloudFront-Viewer-Address", "X-Remote-IP", "X-Scheme"),
)

SECRETS = {scope: f"a-secret-that-may-{scope}" for scope in SCOPES}
NAMES = [operation.name for operation in OPERATIONS]


def path_of(operation: Operation) -> str:
    return operation.path.format(id="00000000-0000-7000-8000-000000000000", name="mail")


def test_only_those_routes_are_open_that_are_meant_to_be() -> None:
    assert {operation.name for operation in OPERATIONS if operation.scope is None} == OPEN


def test_every_route_has_a_name_of_its_own_and_one_handler() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert len({(operation.method, operation.path) for operation in OPERATIONS}) == len(OPERATIONS)


def test_whatever_changes_something_needs_more_than_reading() -> None:
    for operation in OPERATIONS:
        if operation.method != "GET" and operation.name != "simulate_policy":
            assert operation.scope in ("enqueue", "write", "admin"), operation.name


@pytest.fixture
def guarded(app: App) -> object:
    return create_app(app, tokens=[f"{scope}:{secret}" for scope, secret in SECRETS.items()])


@pytest.mark.parametrize("operation", OPERATIONS, ids=NAMES)
async def test_each_route_lets_in_its_scope_and_no_other(guarded, operation: Operation) -> None:
    async with connected(guarded) as client:

        async def status(**headers: str) -> int:
            # HEAD stands for GET where that would be an endless stream.
            method = "HEAD" if operation.name == "stream_events" else operation.method
            response = await client.request(method, path_of(operation), headers=headers)
            if response.status_code == 401:
                assert response.headers["www-authenticate"].startswith("Bearer")
            return response.status_code

        if operation.scope is None:
            assert await status() == 200
            return
        assert await status() == 401
        assert await status(Authorization="Bearer not-a-token-of-this-server") == 401
        assert await status(Authorization=f"Basic {SECRETS['admin']}") == 401
        assert await status(Authorization=f"Bearer {SECRETS['admin']}x") == 401
        for scope, secret in SECRETS.items():
            found = await status(Authorization=f"Bearer {secret}")
            if operation.scope in GRANTS[scope]:
                assert found not in (401, 403), scope
            else:
                assert found == 403, scope


@pytest.mark.parametrize(
    ("client", "headers", "is_let_in"),
    [
        (("127.0.0.1", 1), {}, True),
        (("127.9.9.9", 1), {}, True),
        (("::1", 1), {}, True),
        (("::ffff:127.0.0.1", 1), {}, True),
        (None, {}, False),
        (("", 0), {}, False),
        (("/run/perdure.sock", 0), {}, False),
        (("unknown", 0), {}, False),
        (("10.0.0.7", 1), {}, False),
        (("::ffff:10.0.0.7", 1), {}, False),
        (("2001:db8::1", 1), {}, False),
        (("127.0.0.1", 1), {"X-Forwarded-For": "10.0.0.7"}, False),
        (("127.0.0.1", 1), {"Forwarded": "for=10.0.0.7"}, False),
        *((("127.0.0.1", 1), {name: "1"}, False) for name in PROXY_HEADERS),
        *((("127.0.0.1", 1), {name: "1"}, True) for name in ("X-Request-ID", "Traceparent", "Origin", "Cookie")),
    ],
)
async def test_without_a_token_only_this_machine_is_let_in(app: App, client, headers: dict, is_let_in: bool) -> None:
    async with connected(create_app(app), client=client) as asking:
        response = await asking.get(f"{API}/stats", headers=headers)
        assert response.status_code == (200 if is_let_in else 403)
        page = await asking.get("/", headers=headers)
        assert ("workers alive" in page.text) == is_let_in


@pytest.mark.parametrize(
    ("host", "is_answered"),
    [
        ("localhost", True),
        ("localhost:7373", True),
        ("127.0.0.1:80", True),
        ("[::1]:7373", True),
        ("LOCALHOST.", True),
        ("evil.example", False),
        ("evil.example:7373", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
        ("[::1", False),
        ("a@localhost:1@evil.example", False),
    ],
)
async def test_without_a_token_only_this_machines_names_are_answered(app: App, host: str, is_answered: bool) -> None:
    async with connected(create_app(app)) as client:
        response = await client.get(f"{API}/stats", headers={"Host": host})
        assert response.status_code == (200 if is_answered else 421)
        probe = await client.get("/healthz/live", headers={"Host": host})
        assert probe.status_code == 200


async def raw(api: Api, *, path: str = f"{API}/stats", **changes: object) -> int:
    """The status of a request as an ASGI server passes it on, with parts of it changed."""
    statuses: list[int] = []

    async def receive() -> dict:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"localhost:7373")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 7373),
        **changes,
    }
    await api({name: value for name, value in scope.items() if value is not ...}, receive, send)
    (status,) = statuses
    return status


HOST = (b"host", b"localhost:7373")


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 200),
        ({"http_version": "2"}, 200),
        ({"http_version": "1.0"}, 403),
        ({"http_version": "1.0", "headers": [(b"host", b"127.0.0.1:7373"), (b"connection", b"close")]}, 403),
        ({"http_version": ...}, 403),
        ({"http_version": "0.9"}, 403),
        ({"client": ...}, 403),
        ({"client": None}, 403),
        ({"client": ("", 0)}, 403),
        ({"headers": []}, 421),
        ({"headers": [HOST, HOST]}, 400),
        ({"headers": [HOST, (b"host", b"evil.example")]}, 400),
        ({"headers": [(b"host", b"evil.example")]}, 421),
        ({"headers": [(b"host", b"local\thost")]}, 421),
        ({"headers": [(b"host", b"localhost/..")]}, 421),
        ({"headers": [(b"host", b"localhost:99999")]}, 421),
        ({"headers": [HOST, (b"via", b"")]}, 403),
    ],
)
async def test_without_a_token_a_request_that_may_come_through_a_proxy_is_refused(
    app: App, changes: dict, status: int
) -> None:
    assert await raw(create_app(app), **changes) == status
    token = (b"authorization", f"Bearer {SECRETS['read']}".encode())
    headers = [*changes.get("headers", [HOST]), token]
    expected = 400 if status == 400 else 200
    api = create_app(app, tokens=[SECRETS["read"]])
    assert await raw(api, **{**changes, "headers": headers}) == expected
    assert await raw(create_app(app), path="/healthz/live", **changes) in (200, 400)


async def test_hosts_that_are_named_do_not_open_an_api_without_tokens(app: App) -> None:
    for hosts in (["jobs.example"], ["*"]):
        api = create_app(app, hosts=hosts)
        assert await raw(api, headers=[(b"host", b"jobs.example")]) == 403
        assert await raw(api) == 200


MALFORMED = [
    *("http://[::1", "http://[", "http://]", "//", "http://", "http:///", "://", "null", "", " ", "%", "http://%zz"),
    *("http://a b", "http://localhost:abc", "http://localhost:999999999", "http://[::1]]", "javascript:alert(1)"),
    *(
        "http://localhost@evil.example",
        "http://evil.example#@localhost",
        "http://localhost\x01",
        "\xff\xfe",
        "http://\u2100",
    ),
    *("a" * 9000, "http://" + "[" * 2000, "http://" + "a." * 2000, "http://localhost,http://localhost", "file://"),
]


@pytest.mark.parametrize("value", [text.encode("utf-8") for text in MALFORMED], ids=range(len(MALFORMED)))
async def test_no_origin_and_no_host_makes_the_server_fail(app: App, value: bytes) -> None:
    api = create_app(app)
    path = f"{API}/queues/mail/pause"
    assert await raw(api, method="POST", path=path, headers=[HOST, (b"origin", value)]) == 403
    assert await raw(api, headers=[HOST, (b"origin", value)]) == 200
    assert await raw(api, headers=[(b"host", value)]) == 421
    assert await raw(api, method="POST", path=path, headers=[(b"host", value), (b"origin", value)]) in (403, 421)
    guarded = create_app(app, tokens=[SECRETS["read"]])
    assert await raw(guarded, headers=[(b"host", value), (b"origin", value)]) == 401


@given(origin=st.binary(max_size=40), host=st.binary(max_size=40))
@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
def test_fuzzed_origins_and_hosts_never_make_the_server_fail(api: Api, origin: bytes, host: bytes) -> None:
    for headers in ([HOST, (b"origin", origin)], [HOST, (b"origin", b"http://[" + origin)], [(b"host", host)]):
        status = asyncio.run(raw(api, method="POST", path=f"{API}/nothing", headers=headers))
        assert status in (403, 404, 421), headers


async def test_two_origins_must_both_be_this_host(app: App) -> None:
    own, other = (b"origin", b"http://localhost:7373"), (b"origin", b"http://evil.example")
    post = {"method": "POST", "path": f"{API}/nothing"}
    assert await raw(create_app(app), **post, headers=[HOST, own]) == 404
    assert await raw(create_app(app), **post, headers=[HOST, own, other]) == 403
    sites = [(b"sec-fetch-site", b"none"), (b"sec-fetch-site", b"cross-site")]
    assert await raw(create_app(app), **post, headers=[HOST, own, *sites]) == 403


async def test_the_scheme_of_a_token_is_spelt_as_anybody_likes_and_given_once(app: App) -> None:
    api = create_app(app, tokens=[f"read:{SECRETS['read']}"])
    for scheme in ("Bearer", "bearer", "BEARER", "bEaReR"):
        token = f"{scheme} {SECRETS['read']}".encode()
        assert await raw(api, headers=[HOST, (b"authorization", token)]) == 200
        assert await raw(api, headers=[HOST, (b"authorization", token), (b"authorization", token)]) == 401


async def test_hosts_that_are_named_are_answered_and_no_others(app: App) -> None:
    api = create_app(app, hosts=["Jobs.Example"], tokens=[SECRETS["read"]])
    headers = {"Authorization": f"Bearer {SECRETS['read']}"}
    async with connected(api, headers=headers) as client:
        for host, status in {"jobs.example": 200, "localhost": 200, "other.example": 421}.items():
            assert (await client.get(f"{API}/stats", headers={"Host": host})).status_code == status


async def test_with_a_token_and_no_named_hosts_every_host_is_answered(app: App) -> None:
    api = create_app(app, tokens=[SECRETS["read"]])
    headers = {"Authorization": f"Bearer {SECRETS['read']}", "Host": "jobs.example"}
    async with connected(api, client=("10.0.0.7", 1)) as client:
        assert (await client.get(f"{API}/stats", headers=headers)).status_code == 200


@pytest.mark.parametrize(
    ("headers", "is_let_in"),
    [
        ({}, True),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "anything"}, False),
        ({"Origin": "http://localhost"}, True),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}, True),
    ],
)
async def test_a_page_of_another_site_can_change_nothing(app: App, headers: dict, is_let_in: bool) -> None:
    changes = [operation for operation in OPERATIONS if operation.method != "GET"]
    async with connected(create_app(app)) as client:
        for operation in changes:
            response = await client.request(operation.method, path_of(operation), headers=headers)
            if is_let_in:
                assert response.status_code != 403, operation.name
            else:
                assert check_problem(response)["status"] == 403, operation.name
        assert (await client.get(f"{API}/stats", headers=headers)).status_code == 200


async def test_a_program_that_guards_the_api_itself_lets_in_whom_it_likes(app: App) -> None:
    api = create_app(app, is_guarded_outside=True)
    async with connected(api, client=("10.0.0.7", 1)) as client:
        assert (await client.get(f"{API}/stats", headers={"Host": "jobs.example"})).status_code == 200


def test_a_new_token_is_known_by_its_hash_alone() -> None:
    secret, entry = new_token(["read", "write"])
    assert secret not in entry
    (token,) = read_tokens([entry])
    assert token == Token(digest=hashlib.sha256(secret.encode()).hexdigest(), allows=GRANTS["write"])
    assert new_token(["read"])[0] != secret


def test_a_token_without_scopes_may_do_everything() -> None:
    assert read_tokens(["a-secret-of-some-length"])[0].allows == GRANTS["admin"]


BAD_SCOPE = "nonsense:sha256:" + "0" * 64
BAD_HASH = "sha256:" + "G" * 64


@pytest.mark.parametrize(
    "entry", ["", "short", BAD_SCOPE, BAD_HASH, "read:sha256:123", "read,write:a-secret-of-length"]
)
def test_a_token_that_cannot_be_read_is_refused_without_being_shown(entry: str) -> None:
    with pytest.raises(BadSetting) as refused:
        read_tokens([entry])
    assert not entry or entry not in str(refused.value)


def test_tokens_come_from_the_settings_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("# ours\nread:another-secret-of-length\n\n", encoding="utf-8")
    settings = Settings(tokens=("write:a-secret-of-some-length",), token_file=str(tmp_path / "tokens"))
    found = read_access(settings, ["admin:a-third-secret-of-length"])
    assert [token.allows for token in found.tokens] == [GRANTS["write"], GRANTS["admin"], GRANTS["read"]]


@pytest.mark.parametrize("content", [b"", b"# nobody\n", b"\xff\xfe"])
def test_a_token_file_that_holds_none_does_not_open_the_api(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tokens").write_bytes(content)
    with pytest.raises(BadSetting):
        read_access(Settings(token_file=str(tmp_path / "tokens")))


def test_a_token_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="cannot be read"):
        read_access(Settings(token_file=str(tmp_path / "nothing")))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "jobs.example", "", "192.168.1.1"])
def test_without_a_token_the_api_does_not_listen_where_others_reach_it(host: str) -> None:
    with pytest.raises(Refused, match="perdure token new"):
        require_binding(Access(), host)
    require_binding(Access(tokens=read_tokens(["a-secret-of-some-length"])), host)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.3.2.1"])
def test_without_a_token_the_api_listens_on_this_machine(host: str) -> None:
    require_binding(Access(), host)
