"""`/api/v1/jobs`: list, make, look at, change, cancel and retry jobs."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import UNSET
from msgspec.structs import fields

from perdure.admin import inspect, operate
from perdure.admin.document import job_document
from perdure.admin.idempotency import EnqueuedOnce, enqueue_once
from perdure.admin.scheduled import ScheduledJob
from perdure.model.change import make_change
from perdure.model.event import JobsEnqueued
from perdure.model.job import Job, NewJob
from perdure.task import Bound
from perdure.text.suggestion import suggestion
from perdure.web.access import tokens as auth
from perdure.web.access.payload import view_of
from perdure.web.batch_policies import BatchPolicies
from perdure.web.history import attempt_documents
from perdure.web.idempotency import REPEATED, read_key
from perdure.web.intake import camel
from perdure.web.operation import API, Body, Operation
from perdure.web.paging import job_page
from perdure.web.problems import invalid, pointing
from perdure.web.request_context import Answer, Call
from perdure.web.rest import classic
from perdure.web.rest.filters import filters_of
from perdure.web.schemas.documents import Cancelled, Enqueued, EnqueuedMany, History, JobPage, JobShown, Retried
from perdure.web.schemas.requests import (
    ClassicBody,
    ClassicChange,
    HistoryQuery,
    JobChange,
    JobsQuery,
    NewJobBody,
    NewJobsBody,
    NoBody,
    NoQuery,
    ShowQuery,
)
from perdure.web.schemas.schedules import ClassicJob, Executions

_OPTIONS = (
    "queue",
    "delay",
    "run_at",
    "priority",
    "unique",
    "max_attempts",
    "max_retries",
    "retry",
    "delivery",
    "timeout",
)


async def list_jobs(call: Call) -> Answer:
    """A page of jobs."""
    return await job_page(call, filters_of(call.query))


async def make_jobs(call: Call) -> Answer:
    """A job, a batch of them, or a job with a schedule."""
    body: NewJobBody | NewJobsBody | ClassicBody = call.body
    if isinstance(body, ClassicBody):
        # A schedule makes jobs for ever, which is more than a token for single jobs is meant for.
        auth.require(call.context.access, call.request, "write")
        return await classic.make(call, body)
    is_batch = isinstance(body, NewJobsBody)
    asked = body.jobs if isinstance(body, NewJobsBody) else [body]
    policies = BatchPolicies(asked)
    bounds = [_bound(call, each, f"/jobs/{place}" if is_batch else "", policies) for place, each in enumerate(asked)]
    new = call.context.app.new_jobs(bounds)
    done = await _enqueue(call, new)
    made = [{"id": found, "is_new": found == planned} for found, planned in zip(done.ids, done.planned, strict=True)]
    status = 201 if any(each["is_new"] for each in made) else 200
    headers = dict(REPEATED) if done.is_repeated else {}
    if is_batch:
        return Answer(document={"jobs": made}, status=status, headers=headers)
    headers["Location"] = f"{call.request.scope.get('root_path', '')}{API}/jobs/{made[0]['id']}"
    return Answer(document=made[0], status=status, headers=headers)


async def show_job(call: Call) -> Answer:
    """One job."""
    view = view_of(call)
    store = await call.context.store()
    found = await inspect.look_up(store, call.path["id"])
    if classic.is_classic(found):
        document = await classic.show(store, found, view)
        if call.query.why:
            document["why"] = view.text(await inspect.why(store, found.as_job(await store.now())))
        return Answer(document=document)
    job = found if isinstance(found, Job) else found.as_job(await store.now())
    # To read large arguments takes a while; other requests must not wait for it.
    document = await asyncio.to_thread(job_document, job, view)
    if call.query.why:
        document["why"] = view.text(await inspect.why(store, job))
    return Answer(document=document)


async def show_history(call: Call) -> Answer:
    """The attempts of one job."""
    view = view_of(call)
    store = await call.context.store()
    found = await inspect.look_up(store, call.path["id"])
    if classic.is_classic(found):
        return Answer(document=await classic.history(store, found, call.query.limit, view))
    attempts = await inspect.history(store, found.id, call.query.limit)
    documents = await asyncio.to_thread(attempt_documents, attempts[::-1], view)
    return Answer(document={"attempts": documents[::-1]})


async def change_job(call: Call) -> Answer:
    """Change a job that has not started, or one that was made with a schedule."""
    body: JobChange | ClassicChange = call.body
    if isinstance(body, ClassicChange):
        return await classic.change(call, body)
    given = {name: value for name in _CHANGES if (value := getattr(body, name)) is not UNSET}
    unset = [name for name, value in given.items() if value is None]
    with pointing(""):
        change = make_change(**given, unset=unset)
    store = await call.context.store()
    view = view_of(call)
    job = await operate.change(store, call.path["id"], change)
    found = await inspect.look_up(store, job.id)
    if classic.is_classic(found):
        return Answer(document=await classic.show(store, found, view))
    return Answer(document=job_document(job, view))


async def cancel_job(call: Call) -> Answer:
    """Cancel one job."""
    store = await call.context.store()
    job_id = call.path["id"].lower()
    return Answer(document={"id": job_id, "answer": await operate.cancel(store, job_id)})


async def delete_job(call: Call) -> Answer:
    """Cancel one job; one that was made with a schedule together with its schedule."""
    store = await call.context.store()
    found = await inspect.look_up(store, call.path["id"])
    if isinstance(found, ScheduledJob):
        return Answer(document=await classic.delete(store, found))
    return await cancel_job(call)


async def retry_job(call: Call) -> Answer:
    """Make one job ready."""
    store = await call.context.store()
    job_id = call.path["id"].lower()
    state = await operate.retry(store, job_id, call.context.app.observer)
    return Answer(document={"id": job_id, "state": state})


async def _enqueue(call: Call, new: list[NewJob]) -> EnqueuedOnce:
    key = read_key(call.request, call.body)
    store = await call.context.store()
    app = call.context.app
    began = app.surroundings.clock.now()
    if key is not None:
        done = await enqueue_once(store, new, key, retention=app.settings.retention)
    else:
        done = EnqueuedOnce(planned=tuple(job.id for job in new), ids=tuple(await store.enqueue(new)))
    if not done.is_repeated:
        ended_at = app.surroundings.clock.now()
        app.observer.tell(JobsEnqueued(jobs=new, ids=done.ids, started_at=began, ended_at=ended_at))
    return done


def _bound(call: Call, body: NewJobBody, pointer: str, policies: BatchPolicies) -> Bound:
    app = call.context.app
    if body.task not in (*app.tasks, app.http.task.name) and not call.context.accepts_any_task:
        near = suggestion(body.task, app.tasks)
        hint = f"Did you mean {near!r}?" if near else "Start the server with the app that has it."
        raise invalid(f"The app has no task {body.task!r}. {hint}", pointer=f"{pointer}/task")
    given = {name: value for name in _OPTIONS if (value := getattr(body, name)) is not None}
    with pointing(pointer):
        if body.retry is not None:
            given["retry"] = policies.read(body.retry)
        return app.bind_named(body.task, body.args, body.kwargs, **given)


def _form(value: Any) -> type:
    if "jobs" in value:
        return NewJobsBody
    return ClassicBody if "schedule" in value or "api" in value else NewJobBody


def _change_form(value: Any) -> type:
    return ClassicChange if _CLASSIC_NAMES & value.keys() else JobChange


_CHANGES = tuple(field.name for field in fields(JobChange))
_CLASSIC_NAMES = {name for field in fields(ClassicChange) for name in (field.name, camel(field.name))}
_OPTIONAL = Body(forms=(NoBody,), is_required=False)

OPERATIONS = (
    Operation(
        method="GET",
        path=f"{API}/jobs",
        name="list_jobs",
        summary="List jobs, newest first.",
        scope="read",
        handler=list_jobs,
        query=JobsQuery,
        answers={200: JobPage},
    ),
    Operation(
        method="POST",
        path=f"{API}/jobs",
        name="make_jobs",
        summary="Make a job, a batch of jobs, all or none, or a job with a schedule.",
        details="201: at least one job is new. 200: live jobs with the same unique keys stand for all of them. "
        "A job with a schedule needs a token with the scope `write`.",
        scope="enqueue",
        handler=make_jobs,
        query=NoQuery,
        body=Body(forms=(NewJobBody, NewJobsBody, ClassicBody), choose=_form),
        answers={200: (Enqueued, EnqueuedMany), 201: (Enqueued, EnqueuedMany, ClassicJob)},
        is_repeatable=True,
    ),
    Operation(
        method="GET",
        path=f"{API}/jobs/{{id}}",
        name="show_job",
        summary="Show a job.",
        scope="read",
        handler=show_job,
        query=ShowQuery,
        answers={200: (JobShown, ClassicJob)},
    ),
    Operation(
        method="PATCH",
        path=f"{API}/jobs/{{id}}",
        name="change_job",
        summary="Change a job that has not started, or one that was made with a schedule; what is not named stays.",
        details="409: the job runs or has ended, or has none of these fields.",
        scope="write",
        handler=change_job,
        query=NoQuery,
        body=Body(forms=(JobChange, ClassicChange), choose=_change_form),
        answers={200: (JobShown, ClassicJob)},
        problems=(409,),
    ),
    Operation(
        method="DELETE",
        path=f"{API}/jobs/{{id}}",
        name="delete_job",
        summary="Cancel a job; one that was made with a schedule together with its schedule.",
        scope="write",
        handler=delete_job,
        query=NoQuery,
        answers={200: Cancelled},
        problems=(409,),
    ),
    Operation(
        method="GET",
        path=f"{API}/jobs/{{id}}/history",
        name="show_history",
        summary="List the attempts of a job, oldest first, at most so many of the newest.",
        details="Of a job that was made with a schedule: the attempts over all of its runs, newest first.",
        scope="read",
        handler=show_history,
        query=HistoryQuery,
        answers={200: (History, Executions)},
    ),
    Operation(
        method="POST",
        path=f"{API}/jobs/{{id}}/cancel",
        name="cancel_job",
        summary="Cancel a job; a running job's worker is asked to stop it.",
        scope="write",
        handler=cancel_job,
        query=NoQuery,
        body=_OPTIONAL,
        answers={200: Cancelled},
        problems=(409,),
    ),
    Operation(
        method="POST",
        path=f"{API}/jobs/{{id}}/retry",
        name="retry_job",
        summary="Make a waiting, dead or cancelled job ready now.",
        scope="write",
        handler=retry_job,
        query=NoQuery,
        body=_OPTIONAL,
        answers={200: Retried},
        problems=(409,),
    ),
)
