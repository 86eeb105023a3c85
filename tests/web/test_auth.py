"""Who may do what: tokens and scopes for every route, this machine only without them, hosts and other sites."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.web.conftest import connected
from tests.web.reach import check_problem

from perdure import App
from perdure.errors import BadSetting, Refused
from perdure.settings import Settings
from perdure.web.app import OPERATIONS, create_app
from perdure.web.auth import GRANTS, SCOPES, Access, Token, new_token, read_access, read_tokens, require_binding
from perdure.web.operation import API, Operation

OPEN = {"health_live", "health_ready", "show_openapi", "show_front_page"}
"""What anybody may ask; everything else needs a scope."""

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
        (None, {}, True),
        (("10.0.0.7", 1), {}, False),
        (("::ffff:10.0.0.7", 1), {}, False),
        (("2001:db8::1", 1), {}, False),
        (("127.0.0.1", 1), {"X-Forwarded-For": "10.0.0.7"}, False),
        (("127.0.0.1", 1), {"Forwarded": "for=10.0.0.7"}, False),
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
