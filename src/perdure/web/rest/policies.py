"""`/api/v1/policies`: what retry policies do, before they do it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from perdure.admin import inspect
from perdure.admin.document import seconds
from perdure.admin.forecast import forecast
from perdure.admin.policies import explanation_document, preset_documents, waits_document
from perdure.model.forward import Forward
from perdure.model.policy.limit import read_limit
from perdure.model.policy.retry import Retry
from perdure.simulator.document import jitter_document
from perdure.simulator.ready import failing_together
from perdure.simulator.result import Simulation
from perdure.simulator.run import run
from perdure.text.duration import parse_duration
from perdure.web.access.payload import view_of
from perdure.web.operation import API, Body, Operation
from perdure.web.problems import Failed, invalid
from perdure.web.request_context import Answer, Call
from perdure.web.schemas.policies import ExplanationDocument, Policies, PolicyDocument, SimulationDocument
from perdure.web.schemas.requests import ExplainQuery, ForecastQuery, NoQuery, SimulateBody

MOST_ATTEMPTS = 200_000
"""More of them would keep the server busy for too long."""


_MOST_WAITS = 1_000
"""How many waits of a policy are worked out for a request: a short text may mean very many."""


async def list_policies(call: Call) -> Answer:
    """The presets and the tasks' policies."""
    app = call.context.app
    now = app.surroundings.clock.now()
    resolved = [(task, app.registry.task_policy(name, now)) for name, task in sorted(app.tasks.items())]
    tasks = [
        {"task": task.name, "queue": task.queue, "max_attempts": policy.limit, "text": str(policy.retry)}
        for task, policy in resolved
    ]
    return Answer(document={"presets": preset_documents(), "tasks": tasks})


async def show_forecast(call: Call) -> Answer:
    """The waits of a policy."""
    query: ForecastQuery = call.query
    return Answer(document=await asyncio.to_thread(_forecast, query.policy, query.limit))


async def explain(call: Call) -> Answer:
    """The policy that holds for a task or a job."""
    query: ExplainQuery = call.query
    app = call.context.app
    if (query.task is None) == (query.job is None):
        raise invalid("Give either a task or a job.", parameter="task")
    forward: Forward | None = None
    if query.job is not None:
        store = await call.context.store()
        job = await inspect.get(store, query.job)
        found = app.explain_job(job, await store.settings())
        forward = (await store.forwards([job.id])).get(job.id)
    else:
        found = app.explain(str(query.task))
    return Answer(document=await asyncio.to_thread(explanation_document, found, 1_000, forward, view_of(call)))


async def simulate(call: Call) -> Answer:
    """Many jobs that fail together."""
    if call.context.simulating.locked():
        raise Failed(
            "too-many-requests", "Another simulation is running; try again in a moment.", headers={"Retry-After": "1"}
        )
    async with call.context.simulating:
        return Answer(document=await asyncio.to_thread(_simulate, call.body))


def _forecast(text: str, limit: int) -> dict[str, Any]:
    retry = Retry.parse(text)
    return {
        "text": str(retry),
        "max_attempts": retry.max_attempts,
        **waits_document(forecast(retry, _MOST_WAITS), limit),
    }


def _simulate(body: SimulateBody) -> dict[str, Any]:
    retry = Retry.parse(body.policy)
    fail_for = parse_duration(body.fail_for, what="fail_for")
    runs = [_run(policy, body, fail_for) for policy in (retry, retry.replace(jitter="none"))]
    return {
        "text": retry.text,
        "jobs": body.jobs,
        "fail_for": seconds(fail_for),
        "seed": body.seed,
        **jitter_document(runs[0], runs[1]),
    }


def _run(policy: Retry, body: SimulateBody, fail_for: timedelta) -> Simulation:
    return run(
        failing_together(
            policy,
            jobs=body.jobs,
            fail_for=fail_for,
            seed=body.seed,
            most_attempts=MOST_ATTEMPTS,
            max_attempts=read_limit(body.max_attempts, None),
        )
    )


OPERATIONS = (
    Operation(
        method="GET",
        path=f"{API}/policies",
        name="list_policies",
        summary="List the presets, and the policies of the app's tasks.",
        scope="read",
        handler=list_policies,
        query=NoQuery,
        answers={200: Policies},
    ),
    Operation(
        method="GET",
        path=f"{API}/policies/forecast",
        name="forecast_policy",
        summary="Every wait of a policy: ceiling, jitter band and the time in all.",
        scope="read",
        handler=show_forecast,
        query=ForecastQuery,
        answers={200: PolicyDocument},
    ),
    Operation(
        method="GET",
        path=f"{API}/policies/explain",
        name="explain_policy",
        summary="Which policy holds for a task or a job, each value with its origin.",
        scope="read",
        handler=explain,
        query=ExplainQuery,
        answers={200: ExplanationDocument},
        problems=(404,),
    ),
    Operation(
        method="POST",
        path=f"{API}/policies/simulate",
        name="simulate_policy",
        summary="Let many jobs fail together until the other side is back, in virtual time.",
        scope="read",
        handler=simulate,
        query=NoQuery,
        body=Body(forms=(SimulateBody,)),
        answers={200: SimulationDocument},
        problems=(429,),
    ),
)
