"""What a token is shown of arguments, results, details and traces, on every route, and what nobody is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.conformance.conftest import Engine
from tests.conformance.scene import Scene, an_error, success
from tests.web.conftest import connected

from perdure import App
from perdure.admin.payload_view import HIDDEN
from perdure.model.failure import Failure
from perdure.model.payload.redaction import REDACTED
from perdure.web.access.tokens import SCOPES
from perdure.web.app import OPERATIONS, create_app
from perdure.web.live import View
from perdure.web.operation import API
from perdure.web.request_context import RequestContext

SECRETS = {scope: f"a-secret-that-may-{scope}" for scope in SCOPES}
PAYLOAD, SECRET = "payload-of-somebody", "hunter2-the-secret"
KWARGS = {
    "url": f"https://example.com/{PAYLOAD}?api_key={SECRET}",
    "headers": {"Authorization": f"Bearer {SECRET}", "X-Api-Key": SECRET, "Accept": PAYLOAD},
    "json": {"user": PAYLOAD, "password": SECRET, "deep": [{"cardNumber": SECRET}]},
}
ERROR = Failure(
    type="HttpError",
    message=f"500 of https://u:{SECRET}@example.com/?token={SECRET}",
    lineage=("HttpError",),
    detail={
        "status": 500,
        "ms": 1.5,
        "excerpt": f'{{"note": "{PAYLOAD}", "secret": "{SECRET}"}}',
        "headers": {"Set-Cookie": SECRET},
    },
    trace=f"  at {PAYLOAD}\ncaused by X: password={SECRET}\n",
    frame="m:f",
)

Ask = Callable[..., Any]


@pytest.fixture
def guarded(app: App) -> Any:
    return create_app(app, tokens=[f"{scope}:{secret}" for scope, secret in SECRETS.items()])


@pytest.fixture
async def ask(guarded: Any, scene: Scene) -> Any:
    """A dead job, a job with a result, a schedule and a job with a schedule, all with secrets; asks with a scope."""
    async with connected(guarded) as client:

        async def asked(scope: str, path: str, method: str = "GET", **options: Any) -> Any:
            headers = {"Authorization": f"Bearer {SECRETS[scope]}"}
            return await client.request(
                method, path if path.startswith("/") else f"{API}/{path}", headers=headers, **options
            )

        made = await asked("admin", "jobs", "POST", json={"task": "http", "kwargs": KWARGS, "queue": "default"})
        assert made.status_code == 201, made.text
        asked.job = made.json()["id"]
        asked.dead = scene.dead(error=ERROR, args=json.dumps({"kwargs": KWARGS}).encode())
        schedule = {"name": "nightly", "cron": "0 3 * * *", "http": {**KWARGS}}
        assert (await asked("admin", "schedules", "POST", json=schedule)).status_code == 201
        yield asked


def _paths(ask: Any) -> list[str]:
    return [
        "jobs",
        f"jobs/{ask.job}",
        f"jobs/{ask.job}?why=true",
        f"jobs/{ask.dead}",
        f"jobs/{ask.dead}/history",
        "dead-letters",
        "dead-letters/groups",
        "schedules",
        "schedules/nightly",
        f"policies/explain?job={ask.dead}",
        "replays",
        "stats",
        "/metrics",
    ]


async def test_a_reader_sees_no_payload_and_no_secret_on_any_route(engine: Engine, ask: Any) -> None:
    for path in _paths(ask):
        for scope in ("read", "write"):
            response = await ask(scope, path)
            assert response.status_code == 200, (path, response.text)
            assert PAYLOAD not in response.text, (scope, path)
            assert SECRET not in response.text, (scope, path)


async def test_who_may_see_payloads_sees_them_without_secrets(engine: Engine, ask: Any) -> None:
    for path in _paths(ask):
        for scope in ("args", "admin"):
            response = await ask(scope, path)
            assert response.status_code == 200, (path, response.text)
            assert SECRET not in response.text, (scope, path)
    shown = (await ask("args", f"jobs/{ask.job}")).json()["args"]["kwargs"]
    assert shown["headers"] == {"Authorization": REDACTED, "X-Api-Key": REDACTED, "Accept": PAYLOAD}
    assert shown["json"] == {"user": PAYLOAD, "password": REDACTED, "deep": [{"cardNumber": REDACTED}]}
    assert shown["url"] == f"https://example.com/{PAYLOAD}?api_key={REDACTED}"
    error = (await ask("args", f"jobs/{ask.dead}")).json()["error"]
    assert error["message"] == f"500 of https://…@example.com/?token={REDACTED}"
    assert error["detail"]["status"] == 500
    assert json.loads(error["detail"]["excerpt"]) == {"note": PAYLOAD, "secret": REDACTED}
    assert error["detail"]["headers"] == {"Set-Cookie": REDACTED}
    assert error["trace"] == f"  at {PAYLOAD}\ncaused by X: password={REDACTED}\n"


async def test_what_is_hidden_is_marked_and_the_rest_is_shown(ask: Any) -> None:
    job = (await ask("read", f"jobs/{ask.dead}")).json()
    assert job["args"] == HIDDEN
    assert job["result"] is None
    assert job["error"]["detail"] == {"status": 500, "ms": 1.5, "excerpt": HIDDEN, "headers": HIDDEN}
    assert job["error"]["trace"] == HIDDEN
    assert (job["error"]["type"], job["error"]["frame"], job["state"]) == ("HttpError", "m:f", "dead")
    assert (await ask("read", "schedules/nightly")).json()["args"] == HIDDEN
    both = (await ask("read", "jobs")).json()["jobs"]
    assert [each["args"] for each in both] == [HIDDEN, HIDDEN]


async def test_only_an_admin_may_have_secrets_revealed_and_must_ask_for_it(ask: Any) -> None:
    paths = [path for path in _paths(ask) if path.split("?")[0].split("/")[0] in ("jobs", "dead-letters", "schedules")]
    for path in paths:
        wanted = f"{path}{'&' if '?' in path else '?'}reveal=true"
        for scope in ("read", "args", "write"):
            assert (await ask(scope, wanted)).status_code == 403, (scope, path)
        revealed = await ask("admin", wanted)
        assert revealed.status_code == 200, revealed.text
        assert SECRET in revealed.text, path
    job = (await ask("admin", f"jobs/{ask.job}?reveal=true")).json()
    assert job["args"]["kwargs"]["headers"] == KWARGS["headers"]


async def test_changes_answer_with_no_more_than_a_reader_sees(ask: Any) -> None:
    answers = [
        await ask("write", f"jobs/{ask.job}", "PATCH", json={"priority": 3}),
        await ask("write", "schedules/nightly", "PATCH", json={"cron": "0 4 * * *"}),
        await ask("write", "schedules", "POST", json={"name": "two", "cron": "@hourly", "http": KWARGS}),
        await ask("write", "jobs", "POST", json={"schedule": "@hourly", "api": f"https://example.com/?token={SECRET}"}),
    ]
    for answer in answers:
        assert answer.status_code in (200, 201), answer.text
        assert SECRET not in answer.text
        assert PAYLOAD not in answer.text


async def test_a_repeated_request_is_answered_without_secrets(ask: Any) -> None:
    body = {"schedule": "@hourly", "api": f"https://example.com/?token={SECRET}"}
    for _ in range(2):
        made = await ask("write", "jobs", "POST", json=body)
        assert SECRET not in made.text
        for path in (
            f"jobs/{made.json()['id']}",
            f"jobs/{made.json()['id']}/history",
            f"jobs/{made.json()['id']}/schedule",
        ):
            found = await ask("read", path)
            assert found.status_code == 200, found.text
            assert SECRET not in found.text


async def test_the_result_of_a_job_is_a_payload(app: App, guarded: Any, scene: Scene) -> None:
    job = scene.running()
    assert scene.end(job, success(job, result=json.dumps({"token": SECRET, "note": PAYLOAD}).encode()))
    async with connected(guarded) as client:
        shown = {}
        for scope in ("read", "args"):
            headers = {"Authorization": f"Bearer {SECRETS[scope]}"}
            shown[scope] = (await client.get(f"{API}/jobs/{job.id}", headers=headers)).json()["result"]
    assert shown == {"read": HIDDEN, "args": {"token": REDACTED, "note": PAYLOAD}}


async def test_events_show_errors_without_secrets(app: App, scene: Scene) -> None:
    context = RequestContext(app, access=create_app(app).context.access, accepts_any_task=False)
    view = View(context.live._payloads)
    await view.look(app.store)
    scene.dead(error=ERROR, args=json.dumps({"kwargs": KWARGS}).encode())
    told = json.dumps(await view.look(app.store))
    assert "HttpError" in told
    assert SECRET not in told
    assert PAYLOAD not in told


async def test_without_tokens_this_machine_sees_payloads_without_secrets(app: App, scene: Scene) -> None:
    dead = scene.dead(error=an_error(), args=json.dumps({"kwargs": KWARGS}).encode())
    async with connected(create_app(app)) as client:
        plain = (await client.get(f"{API}/jobs/{dead}")).text
        assert PAYLOAD in plain
        assert SECRET not in plain
        assert SECRET in (await client.get(f"{API}/jobs/{dead}?reveal=true")).text


async def test_the_rules_are_a_setting(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_REDACT", "iban, *salary*")
    app = App(f"sqlite:///{tmp_path}/jobs.db")
    async with connected(create_app(app)) as client:
        body = {"task": "pay", "kwargs": {"IBAN": "1", "baseSalary": 2, "password": "shown"}}
        job_id = (await client.post(f"{API}/jobs", json=body)).json()["id"]
        shown = (await client.get(f"{API}/jobs/{job_id}")).json()["args"]["kwargs"]
    app.close()
    assert shown == {"IBAN": REDACTED, "baseSalary": REDACTED, "password": "shown"}


def test_every_route_that_reveals_says_so() -> None:
    reveals = {
        operation.name for operation in OPERATIONS if "reveal" in getattr(operation.query, "__struct_fields__", ())
    }
    assert reveals == {
        "list_jobs",
        "show_job",
        "show_history",
        "list_dead_letters",
        "list_groups",
        "list_schedules",
        "show_schedule",
    }
