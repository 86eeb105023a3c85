"""Alert rules for Prometheus, generated: every expression is made of the catalogue's own names.

`rules()` are the rules as data, `rules_text()` the file that Prometheus loads.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Literal

import msgspec

from perdure.model.thresholds import Thresholds
from perdure.observe import catalogue as named
from perdure.observe.catalogue import Metric

Severity = Literal["critical", "warning", "info"]

_NOT_RUN = '{outcome!~"parked|released|snoozed"}'


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One alert: what must hold for how long, and what to do then."""

    name: str
    expression: str
    lasting: str
    severity: Severity
    summary: str
    action: str


def rules(thresholds: Thresholds | None = None) -> tuple[Rule, ...]:
    """All rules, with these thresholds."""
    limits = thresholds or Thresholds()
    span = f"{max(1, round(limits.window.total_seconds() / 60))}m"
    return (*_store_rules(), *_retry_rules(limits, span), *_latency_rules(limits, span), *_worker_rules(span))


def rules_text(thresholds: Thresholds | None = None) -> str:
    """The rules as a file for `rule_files` of Prometheus."""
    lines = ["groups:", "  - name: perdure", "    rules:"]
    for rule in rules(thresholds):
        lines += [
            f"      - alert: {rule.name}",
            f"        expr: {_quoted(rule.expression)}",
            f"        for: {rule.lasting}",
            "        labels:",
            f"          severity: {rule.severity}",
            "        annotations:",
            f"          summary: {_quoted(rule.summary)}",
            f"          description: {_quoted(rule.action)}",
        ]
    return "\n".join(lines) + "\n"


def retry_rate(span: str) -> str:
    """Which part of the attempts of a queue were retries."""
    retries = f"sum by (queue) (rate({named.RETRIES.name}[{span}]))"
    return f"{retries} / sum by (queue) (rate({named.ATTEMPTS.name}{_NOT_RUN}[{span}]))"


def quantile(metric: Metric, span: str, by: str = "queue", part: float = 0.95) -> str:
    """A quantile of a histogram."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({part}, sum by ({labels}) (rate({metric.name}_bucket[{span}])))"


def _store_rules() -> tuple[Rule, ...]:
    return (
        Rule(
            name="PerdureStoreDown",
            expression=f"{named.UP.name} == 0",
            lasting="2m",
            severity="critical",
            summary="{{ $labels.instance }} cannot reach the store of the jobs",
            action="No job is lost, but none starts. Look at the engine and the network; see perdure doctor.",
        ),
        Rule(
            name="PerdureAbsent",
            expression=f"absent({named.UP.name})",
            lasting="5m",
            severity="critical",
            summary="Nothing tells how Perdure is doing",
            action="No process is scraped. See whether workers run (perdure workers ls) and which port they serve.",
        ),
    )


def _retry_rules(limits: Thresholds, span: str) -> tuple[Rule, ...]:
    enough = f"sum by (queue) (increase({named.ATTEMPTS.name}{_NOT_RUN}[{span}])) >= {limits.least_attempts}"
    return (
        Rule(
            name="PerdureRetryRateHigh",
            expression=f"({retry_rate(span)}) > {limits.retry_rate:g} and {enough}",
            lasting="5m",
            severity="warning",
            summary=f"More than {limits.retry_rate:.0%} of the attempts in {{{{ $labels.queue }}}} are retries",
            action="Something that the jobs depend on fails. See perdure dlq groups and perdure jobs ls.",
        ),
        Rule(
            name="PerdureJobsExhausted",
            expression=f"{_increase(named.RETRY_EXHAUSTED, span)} > {limits.exhausted}",
            lasting="0m",
            severity="warning",
            summary="Jobs of {{ $labels.task }} in {{ $labels.queue }} reached their limit of attempts",
            action="They are dead and kept. See perdure dlq groups; when the cause is gone, perdure dlq replay.",
        ),
        Rule(
            name="PerdureDeadLetterForwardFailed",
            expression=f"{_increase(named.JOBS_DLQ_FAILED, span)} > 0",
            lasting="0m",
            severity="critical",
            summary="Dead jobs of {{ $labels.task }} in {{ $labels.queue }} could not be handed to their sink",
            action="They stay dead here and are not lost. Look at the sink; see perdure dlq ls.",
        ),
    )


def _latency_rules(limits: Thresholds, span: str) -> tuple[Rule, ...]:
    oldest = f"max by (queue) ({named.QUEUE_OLDEST.name}) > {_seconds(limits.oldest_ready)}"
    return (
        Rule(
            name="PerdureRetryDelayLong",
            expression=f"{quantile(named.RETRY_LATENCY, span)} > {_seconds(limits.retry_delay)}",
            lasting="10m",
            severity="warning",
            summary="Jobs in {{ $labels.queue }} wait long for their retries",
            action="Failures last, and back-off hurts latency. Mend what fails, or see perdure explain.",
        ),
        Rule(
            name="PerdureJobsWaitLong",
            expression=f"{quantile(named.JOB_WAIT, span)} > {_seconds(limits.wait)}",
            lasting="10m",
            severity="warning",
            summary="Jobs in {{ $labels.queue }} start late",
            action="There are too few slots. Start more workers or raise --concurrency; see perdure queues ls.",
        ),
        Rule(
            name="PerdureOldestReadyOld",
            expression=f"{oldest} unless on (queue) max by (queue) ({named.QUEUE_PAUSED.name}) == 1",
            lasting="5m",
            severity="warning",
            summary="A job in {{ $labels.queue }} has been due for long and does not start",
            action="No worker serves the queue, or too few slots, or a limit holds it back. See perdure health.",
        ),
        Rule(
            name="PerdureScheduleLate",
            expression=f"{quantile(named.SCHEDULE_LAG, span, by='')} > {_seconds(limits.schedule_lag)}",
            lasting="5m",
            severity="warning",
            summary="Schedules fire late",
            action="Ticks wait for a worker that is alive and not overloaded. See perdure workers ls.",
        ),
    )


def _worker_rules(span: str) -> tuple[Rule, ...]:
    return (
        Rule(
            name="PerdureNoWorkers",
            expression=f"max({named.WORKERS.name}) == 0",
            lasting="2m",
            severity="critical",
            summary="No worker is alive",
            action="Jobs are accepted and kept, but nobody runs them. Start one: perdure worker MODULE:APP.",
        ),
        Rule(
            name="PerdureLeaseLost",
            expression=f"sum by (instance) (increase({named.LEASE_LOST.name}[{span}])) > 1",
            lasting="0m",
            severity="warning",
            summary="The worker at {{ $labels.instance }} loses its lease again and again",
            action="Its machine stalls or the store is slow; its jobs run again elsewhere. A longer lease helps.",
        ),
        Rule(
            name="PerdureSlotsFull",
            expression=f'sum({named.WORKER_SLOTS.name}{{state="free"}}) == 0',
            lasting="15m",
            severity="info",
            summary="Every slot of every worker has been busy for a while",
            action="More work is due than can run. Start more workers, or raise --concurrency if handlers mostly wait.",
        ),
        Rule(
            name="PerdureQueuePaused",
            expression=f"max by (queue) ({named.QUEUE_PAUSED.name}) == 1",
            lasting="1h",
            severity="info",
            summary="The queue {{ $labels.queue }} is paused",
            action="Somebody paused it; perdure queues ls says why. Resume it with perdure queues resume.",
        ),
    )


def _increase(metric: Metric, span: str) -> str:
    """How much a counter grew; one that appears with a value has grown too, which `increase` alone does not see."""
    labels = ", ".join(metric.labels)
    new = f"sum by ({labels}) ({metric.name} unless {metric.name} offset {span})"
    return f"(sum by ({labels}) (increase({metric.name}[{span}])) > 0 or {new})"


def _seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():g}"


def _quoted(text: str) -> str:
    """A text as YAML takes it: JSON's strings are YAML's too."""
    return json.dumps(text, ensure_ascii=False)
