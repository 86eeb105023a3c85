"""The OpenAPI document: whole, true, and made of the types that the API runs on."""

from __future__ import annotations

import msgspec
import pytest
from jsonschema_rs import Draft202012Validator
from tests.conformance.conftest import Engine
from tests.conformance.scene import Scene, death
from tests.web.conftest import connected
from tests.web.reach import Reach

from perdure import App
from perdure.admin import document, inspect
from perdure.model.schedule.definition import Definition, new_schedule
from perdure.store.reads import JobFilter
from perdure.web.app import OPERATIONS, create_app
from perdure.web.schemas import documents as schemas
from perdure.web.schemas import schedules as schemas_schedule

UNTYPED = {"show_openapi", "show_front_page", "show_metrics", "stream_events"}
NEEDS = {
    "forecast_policy": {"policy": "standard"},
    "explain_policy": {"task": "send"},
}


async def test_every_operation_is_described_with_all_it_takes_and_answers(reach: Reach) -> None:
    described = await reach.get("/openapi.json")
    assert described["openapi"] == "3.1.0"
    found = {each["operationId"]: each for path in described["paths"].values() for each in path.values()}
    assert found.keys() == {operation.name for operation in OPERATIONS}
    for operation in OPERATIONS:
        each = found[operation.name]
        statuses = {str(status) for status in (*operation.answers, *operation.all_problems)}
        assert each["responses"].keys() == statuses, operation.name
        names = {parameter["name"] for parameter in each.get("parameters", [])}
        assert names >= set(operation.parameters)
        assert ("requestBody" in each) == (operation.body is not None)
        assert each["summary"].endswith(".")


async def test_no_reference_leads_nowhere(reach: Reach) -> None:
    text = (await reach.ask("GET", "/openapi.json")).text
    described = msgspec.json.decode(text)
    for name in {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in described["components"]["schemas"], name


async def test_bodies_refuse_what_they_do_not_name(reach: Reach) -> None:
    described = await reach.get("/openapi.json")
    for operation in OPERATIONS:
        for form in operation.body.forms if operation.body else ():
            assert described["components"]["schemas"][form.__name__]["additionalProperties"] is False


async def test_tokens_are_described_where_there_are_any(app: App) -> None:
    async with connected(create_app(app, tokens=["a-secret-of-some-length"])) as client:
        described = (await client.get("/openapi.json")).json()
    assert described["security"] == [{"token": []}]
    assert described["paths"]["/healthz/live"]["get"]["security"] == []


async def test_every_reading_answers_as_it_is_described(engine: Engine, reach: Reach, scene: Scene) -> None:
    dead = scene.dead()
    scene.running(scene.worker("worker-2"))
    await reach.post("queues/mail/pause", {"reason": "x"})
    await reach.post("replays", {"ids": [dead]}, 201)
    await reach.post("queues/mail/resume")
    (job,) = scene.fetch(scene.worker())
    assert scene.end(job, death(job))
    form = {"schedule": "@hourly", "api": "https://example.com/"}
    timed = (await reach.post("jobs", form, 201))["id"]
    await reach.post("schedules", {"name": "mail", "cron": "@hourly", "task": "report.daily"}, 201)
    described = await reach.get("/openapi.json")
    for operation in OPERATIONS:
        if operation.method != "GET" or operation.name in UNTYPED:
            continue
        path = operation.path.format(id=timed if operation.name == "show_job_schedule" else dead, name="mail")
        answer = await reach.get(path, params=NEEDS.get(operation.name, {}))
        schema = described["paths"][operation.path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        Draft202012Validator({**schema, "components": described["components"]}).validate(answer)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        ("job", schemas.JobDocument),
        ("attempt", schemas.AttemptDocument),
        ("queue", schemas.QueueDocument),
        ("worker", schemas.WorkerDocument),
        ("group", schemas.GroupDocument),
        ("stats", schemas.StatsDocument),
        ("schedule", schemas_schedule.ScheduleDocument),
    ],
)
def test_the_types_name_exactly_what_the_documents_hold(scene: Scene, make: str, kind: type) -> None:
    dead = scene.dead()
    store, now = scene.store, scene.clock.now()
    definition = Definition(name="mail", task="send", args=b"{}", cron="@hourly")
    made = {
        "job": lambda: document.job_document(scene.get(dead)),
        "attempt": lambda: document.attempt_document(store.history(dead, 1).wait()[0]),
        "queue": lambda: document.queue_document(store.queues().wait()[0], now),
        "worker": lambda: document.worker_document(store.workers().wait()[0], now),
        "group": lambda: document.group_document(store.groups(JobFilter(), 1).wait()[0]),
        "schedule": lambda: document.schedule_document(new_schedule(definition, "operator", now)),
        "stats": lambda: document.stats_document(inspect.stats(store).wait()),
    }[make]()
    assert set(made) == set(kind.__struct_fields__)
    msgspec.convert(made, kind)
