"""OpenTelemetry: spans of enqueues and attempts, and the metrics once more; loaded only where tracing is on.

A job's id has 128 bits, as a trace's id has; so it is the id of the trace that has the job's whole story, and nothing
has to be stored to tie its spans together. The trace's root is a place that follows from the id and is never exported:
the span of the enqueue and the spans of all attempts stand under it. Enqueue and caller are linked both ways.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextvars import Token
from datetime import datetime
from uuid import UUID

from opentelemetry import context as contexts
from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from perdure.model.event import AttemptEnded, CommitLost, Event, ForwardFailed, JobsEnqueued
from perdure.model.job import Job, JobId, NewJob
from perdure.model.outcome import Outcome
from perdure.observe import catalogue as named
from perdure.observe.catalogue import BUCKETS, COUNTED, Metric
from perdure.observe.metrics import Cell
from perdure.system.clock import EPOCH

_NAME = "perdure"
_MOST_LINKS = 100
_SPAN_BITS = (1 << 64) - 1
_RANDOM_BITS = 56


def job_context(job_id: JobId, ratio: float = 1.0) -> SpanContext:
    """The place under which all spans of a job stand; the same in every process, as it follows from the id alone.

    The last 56 bits of an id are random: they decide whether the job's spans are recorded, all or none.
    """
    number = UUID(job_id).int
    is_sampled = number & ((1 << _RANDOM_BITS) - 1) < ratio * (1 << _RANDOM_BITS)
    return SpanContext(
        trace_id=number,
        span_id=(number ^ number >> 64) & _SPAN_BITS or 1,
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED if is_sampled else TraceFlags.DEFAULT),
    )


class OtelObserver:
    """Spans of enqueues, and metrics, from events."""

    def __init__(self, ratio: float) -> None:
        self._tracer = trace.get_tracer(_NAME)
        self._ratio = ratio
        meter = metrics.get_meter(_NAME)
        self._counters = {
            field: meter.create_counter(_dotted(metric), "1", metric.meaning) for metric, field in COUNTED.items()
        }
        self._attempts = meter.create_counter(_dotted(named.ATTEMPTS), "1", named.ATTEMPTS.meaning)
        self._wait, self._duration, self._latency = (
            meter.create_histogram(
                _dotted(metric), "s", metric.meaning, explicit_bucket_boundaries_advisory=list(BUCKETS)
            )
            for metric in (named.JOB_WAIT, named.ATTEMPT_DURATION, named.RETRY_LATENCY)
        )

    def tell(self, event: Event) -> None:
        match event:
            case JobsEnqueued():
                self._enqueued(event)
            case AttemptEnded():
                self._measure(event)
            case CommitLost(job=job):
                self._counters["commits_lost"].add(1, _labels(job.queue, job.task))
            case ForwardFailed(queue=queue, task=task):
                self._counters["dlq_failed"].add(1, _labels(queue, task))
            case _:
                pass

    def _enqueued(self, event: JobsEnqueued) -> None:
        made = [job for job, one in zip(event.jobs, event.ids, strict=True) if job.id == one]
        for (queue, task), count in Counter((job.queue, job.task) for job in made).items():
            self._counters["enqueued"].add(count, _labels(queue, task))
        if len(made) == 1:
            self._enqueued_one(made[0], event)
        elif made:
            self._enqueued_many(made, event)

    def _enqueued_one(self, job: NewJob, event: JobsEnqueued) -> None:
        """One span in the job's own trace, linked with whoever enqueued it."""
        caller = trace.get_current_span()
        place = caller.get_span_context()
        span = self._tracer.start_span(
            f"send {job.queue}",
            context=_under(job_context(job.id, self._ratio)),
            kind=SpanKind.PRODUCER,
            attributes={**_about(job), "messaging.operation.type": "send", "messaging.operation.name": "enqueue"},
            links=[Link(place)] if place.is_valid else [],
            start_time=_nanoseconds(event.started_at),
        )
        span.end(_nanoseconds(event.ended_at))
        if caller.is_recording() and span.get_span_context().is_valid:
            caller.add_link(span.get_span_context(), {"messaging.message.id": job.id})

    def _enqueued_many(self, jobs: Sequence[NewJob], event: JobsEnqueued) -> None:
        """One span in the caller's trace, linked with the jobs' traces, as many as a span can have."""
        queues = {job.queue for job in jobs}
        span = self._tracer.start_span(
            f"send {queues.pop()}" if len(queues) == 1 else "send",
            kind=SpanKind.PRODUCER,
            attributes={
                "messaging.system": _NAME,
                "messaging.operation.type": "send",
                "messaging.operation.name": "enqueue",
                "messaging.batch.message_count": len(jobs),
            },
            links=[Link(job_context(job.id, self._ratio)) for job in jobs[:_MOST_LINKS]],
            start_time=_nanoseconds(event.started_at),
        )
        span.end(_nanoseconds(event.ended_at))

    def _measure(self, event: AttemptEnded) -> None:
        labels = _labels(event.job.queue, event.job.task)
        # Counted in a cell of its own first: what counts as what is said in one place.
        cell = Cell()
        cell.add(event.outcome.attempt, [event])
        for field, counter in self._counters.items():
            if count := getattr(cell, field):
                counter.add(count, labels)
        self._attempts.add(1, {**labels, "outcome": event.outcome.attempt})
        for histogram, seen in (
            (self._wait, cell.wait),
            (self._duration, cell.duration),
            (self._latency, cell.latency),
        ):
            if any(seen.buckets):
                histogram.record(seen.sum, labels)


class OtelTracing:
    """One consumer span per attempt, current while its handler runs."""

    def __init__(self, ratio: float) -> None:
        self._tracer = trace.get_tracer(_NAME)
        self._ratio = ratio

    def begin(self, job: Job) -> _Attempt:
        place = job_context(job.id, self._ratio)
        span = self._tracer.start_span(
            f"process {job.queue}",
            context=_under(place),
            kind=SpanKind.CONSUMER,
            attributes={
                **_about(job),
                "messaging.operation.type": "process",
                "messaging.operation.name": "attempt",
                "perdure.attempt": job.attempt,
                "perdure.failures": job.failures,
            },
            links=[Link(place)],
        )
        return _Attempt(span)


class _Attempt:
    def __init__(self, span: Span) -> None:
        self._span = span
        self._token: Token[Context] | None = contexts.attach(trace.set_span_in_context(span))

    def end(self, outcome: Outcome | None) -> None:
        try:
            if self._token is not None:
                contexts.detach(self._token)
        finally:
            if outcome is not None:
                self._tell(outcome)
            self._span.end()

    def _tell(self, outcome: Outcome) -> None:
        self._span.set_attribute("perdure.outcome", outcome.attempt)
        self._span.set_attribute("perdure.state", outcome.state)
        if outcome.reason is not None:
            self._span.set_attribute("perdure.reason", outcome.reason)
        if outcome.delay is not None:
            self._span.set_attribute("perdure.delay", outcome.delay.total_seconds())
        if outcome.attempt in ("failed", "timeout", "lost") or outcome.state == "dead":
            # The message is the handler's own text and is shown elsewhere; what an index needs is the type.
            kind = outcome.error.type if outcome.error is not None else outcome.attempt
            self._span.set_attribute("error.type", kind)
            self._span.set_status(Status(StatusCode.ERROR, kind))


def _labels(queue: str, task: str) -> dict[str, str]:
    return {"queue": queue, "task": task}


def _dotted(metric: Metric) -> str:
    """The name as OpenTelemetry writes names; its exporters put units and totals back."""
    return metric.name.removesuffix("_total").removesuffix("_seconds").replace("perdure_", "perdure.", 1)


def _about(job: NewJob | Job) -> dict[str, str]:
    return {
        "messaging.system": _NAME,
        "messaging.destination.name": job.queue,
        "messaging.message.id": job.id,
        "perdure.task": job.task,
    }


def _under(place: SpanContext) -> Context:
    return trace.set_span_in_context(NonRecordingSpan(place), Context())


def _nanoseconds(moment: datetime) -> int:
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000
