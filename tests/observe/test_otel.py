"""OpenTelemetry: one trace per job, spans of enqueue and attempts in it, links with the caller, metrics beside them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from tests.http.target import Target, answering

from perdure import App, Secret, SecretRef, Settings
from perdure.model.job import JobId
from perdure.observe.otel import job_context

SPANS = InMemorySpanExporter()
READER = InMemoryMetricReader()
PATIENCE = 60


@pytest.fixture(scope="module", autouse=True)
def sdk() -> Iterator[None]:
    """A real SDK; a process can have one only, so all tests of this file share it."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(SPANS))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([READER]))
    yield
    provider.shutdown()


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    SPANS.clear()
    made = App(f"sqlite:///{tmp_path}/jobs.db", tracing=True)
    yield made
    made.close()


def work_off(app: App, *ids: JobId) -> None:
    """Run a worker until these jobs have ended."""

    async def run() -> None:
        worker = app.make_worker()
        running = asyncio.create_task(worker.run())
        async with asyncio.timeout(PATIENCE):
            while not all(job is not None and job.is_final for job in await app.store.get(ids)):
                await asyncio.sleep(0.01)
        worker.stop()
        await running

    asyncio.run(run())


def spans(kind: SpanKind | None = None) -> list[ReadableSpan]:
    found = SPANS.get_finished_spans()
    return [span for span in found if kind is None or span.kind == kind]


def trace_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.trace_id


def test_the_jobs_id_is_the_id_of_the_trace_with_its_whole_story(app: App) -> None:
    @app.task(queue="mail", retry="immediate", max_attempts=2)
    async def send(secret: str) -> None:
        raise ValueError(secret)

    job_id = send.enqueue("kanarienvogel")
    work_off(app, job_id)
    found = spans()
    assert [(span.name, span.kind) for span in found] == [
        ("send mail", SpanKind.PRODUCER),
        ("process mail", SpanKind.CONSUMER),
        ("process mail", SpanKind.CONSUMER),
    ]
    assert {trace_of(span) for span in found} == {UUID(job_id).int}
    root = job_context(job_id)
    assert {span.parent.span_id for span in found if span.parent} == {root.span_id}
    first, last = (dict(span.attributes or {}) for span in spans(SpanKind.CONSUMER))
    assert (first["perdure.attempt"], first["perdure.state"]) == (1, "ready")
    assert (last["perdure.attempt"], last["perdure.state"], last["perdure.reason"]) == (2, "dead", "exhausted")
    assert (last["messaging.system"], last["messaging.message.id"]) == ("perdure", job_id)
    assert (last["messaging.destination.name"], last["error.type"]) == ("mail", "ValueError")
    assert all(span.status.status_code == StatusCode.ERROR for span in spans(SpanKind.CONSUMER))
    assert not [span for span in found if "kanarienvogel" in span.to_json()]


def test_caller_and_job_are_linked_both_ways(app: App) -> None:
    @app.task
    async def work() -> None: ...

    with trace.get_tracer("test").start_as_current_span("request") as caller:
        job_id = work.enqueue()
    sent = spans(SpanKind.PRODUCER)[0]
    assert [link.context.span_id for link in sent.links] == [caller.get_span_context().span_id]
    (request,) = [span for span in spans() if span.name == "request"]
    assert [link.context.trace_id for link in request.links] == [UUID(job_id).int]
    assert trace_of(request) != UUID(job_id).int


def test_a_batch_is_one_span_of_the_caller_with_links_to_the_jobs(app: App) -> None:
    @app.task
    async def work() -> None: ...

    with trace.get_tracer("test").start_as_current_span("request") as caller:
        ids = app.enqueue_many([work.bind() for _ in range(150)])
    (sent,) = spans(SpanKind.PRODUCER)
    assert trace_of(sent) == caller.get_span_context().trace_id
    assert [link.context.trace_id for link in sent.links] == [UUID(one).int for one in ids[:100]]
    assert dict(sent.attributes or {})["messaging.batch.message_count"] == 150


@pytest.mark.parametrize("is_async", [True, False])
def test_what_a_handler_does_stands_under_its_attempt(app: App, is_async: bool) -> None:
    tracer = trace.get_tracer("test")

    async def on_loop() -> None:
        with tracer.start_as_current_span("inside"):
            await asyncio.sleep(0)

    def in_thread() -> None:
        with tracer.start_as_current_span("inside"):
            pass

    task = app.task(name="work")(on_loop if is_async else in_thread)
    job_id = task.enqueue()
    work_off(app, job_id)
    (inside,) = [span for span in spans() if span.name == "inside"]
    (attempt,) = spans(SpanKind.CONSUMER)
    assert attempt.context is not None
    assert inside.parent is not None
    assert inside.parent.span_id == attempt.context.span_id
    assert attempt.status.status_code == StatusCode.UNSET


def test_attempts_in_one_slot_do_not_stand_under_each_other(app: App) -> None:
    @app.task
    async def work() -> None: ...

    ids = app.enqueue_many([work.bind() for _ in range(20)])
    work_off(app, *ids)
    assert sorted(trace_of(span) for span in spans(SpanKind.CONSUMER)) == sorted(UUID(one).int for one in ids)


def test_a_job_is_traced_as_a_whole_or_not_at_all() -> None:
    ids = [JobId(str(UUID(int=(0x0189 << 112) | (number << 46)))) for number in range(1024)]
    half = [one for one in ids if job_context(one, 0.5).trace_flags.sampled]
    assert len(half) == 512
    assert not any(job_context(one, 0.0).trace_flags.sampled for one in ids)
    assert all(job_context(one, 1.0).trace_flags.sampled for one in ids)
    tenth = {one for one in ids if job_context(one, 0.1).trace_flags.sampled}
    assert tenth < set(half), "who traces less traces a part of what others trace"
    assert len({job_context(one).span_id for one in ids}) == len(ids)


def test_nothing_is_recorded_of_a_job_that_is_not_traced(app: App, tmp_path: Path) -> None:
    from perdure import Settings

    other = App(settings=Settings(url=f"sqlite:///{tmp_path}/other.db", otel=True, otel_ratio=0.0))

    @other.task
    async def work() -> None: ...

    try:
        work_off(other, work.enqueue())
    finally:
        other.close()
    assert spans() == []


def test_the_numbers_are_told_to_the_meter_too(app: App) -> None:
    @app.task(queue="measured", retry="immediate", max_attempts=2)
    async def send() -> None:
        raise ValueError

    work_off(app, send.enqueue())
    data = READER.get_metrics_data()
    assert data is not None
    found = {
        metric.name: [point for point in metric.data.data_points if point.attributes["queue"] == "measured"]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert [point.value for point in found["perdure.jobs_enqueued"]] == [1]
    assert [(point.attributes["outcome"], point.value) for point in found["perdure.attempts"]] == [("failed", 2)]
    assert [point.value for point in found["perdure.retry_exhausted"]] == [1]
    assert [point.count for point in found["perdure.attempt_duration"]] == [2]


def test_without_tracing_nothing_of_opentelemetry_is_loaded() -> None:
    program = """
import sys
from perdure import App
app = App("sqlite://")
work = app.task(name="work")(lambda: None)
work.enqueue()
assert not [name for name in sys.modules if name.startswith(("opentelemetry", "prometheus_client"))]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


def test_a_secret_of_a_request_is_in_no_span(tmp_path: Path) -> None:
    target, key = Target(), "sk_live_51H8x"
    url = target.on("/echo", answering(f"404 {key}", key.encode(), X_Echo=key))
    app = App(
        f"sqlite:///{tmp_path}/jobs.db",
        settings=Settings(http_allow=("127.0.0.1",), otel=True),
        secrets={"stripe": Secret(key, hosts=["127.0.0.1"])},
    )
    SPANS.clear()
    try:
        job_id = app.http.post(url, headers={"X-Key": SecretRef("stripe")}).enqueue()
        work_off(app, job_id)
    finally:
        app.close()
        target.close()
    assert target.seen[0].headers["x-key"] == key
    found = spans()
    assert {span.kind for span in found} >= {SpanKind.PRODUCER, SpanKind.CONSUMER}
    assert all(key not in span.to_json() for span in found)
