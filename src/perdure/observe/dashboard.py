"""A dashboard for Grafana, generated: every panel is made of the catalogue's own names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from perdure.observe import catalogue as named
from perdure.observe.rules import quantile, retry_rate

_SPAN = "$__rate_interval"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT = 12, 8


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """One panel: a title, a unit, and pairs of an expression and its legend."""

    title: str
    unit: str
    about: str
    lines: Sequence[tuple[str, str]]


def panels() -> tuple[Panel, ...]:
    """The panels, from what is looked at first to what is looked at last."""
    return (
        Panel(
            title="Attempts by outcome",
            unit="ops",
            about="What the workers do.",
            lines=[(f"sum by (outcome) (rate({named.ATTEMPTS.name}[{_SPAN}]))", "{{outcome}}")],
        ),
        Panel(
            title="Retry rate",
            unit="percentunit",
            about="Which part of the attempts are retries; above a tenth something fails.",
            lines=[(retry_rate(_SPAN), "{{queue}}")],
        ),
        Panel(
            title="Enqueued and ended",
            unit="ops",
            about="When more is enqueued than ends, queues grow.",
            lines=[
                (f"sum(rate({named.JOBS_ENQUEUED.name}[{_SPAN}]))", "enqueued"),
                (f'sum(rate({named.ATTEMPTS.name}{{outcome="succeeded"}}[{_SPAN}]))', "succeeded"),
                (f"sum(rate({named.JOBS_BURIED.name}[{_SPAN}]))", "dead"),
            ],
        ),
        Panel(
            title="Failures and what followed",
            unit="ops",
            about="Every failure is followed by a retry or by death.",
            lines=[
                (f"sum(rate({named.JOBS_FAILED.name}[{_SPAN}]))", "failed"),
                (f"sum(rate({named.JOBS_REQUEUED.name}[{_SPAN}]))", "will be retried"),
                (f"sum(rate({named.RETRY_EXHAUSTED.name}[{_SPAN}]))", "reached the limit"),
                (f"sum(rate({named.JOBS_DLQ_FAILED.name}[{_SPAN}]))", "could not be forwarded"),
            ],
        ),
        Panel(
            title="Jobs in the store",
            unit="short",
            about="What waits, is ready, runs, or is dead.",
            lines=[
                (
                    f'sum by (state) (max by (queue, state) ({named.QUEUE_JOBS.name}{{queue=~"$queue"}}))',
                    "{{state}}",
                )
            ],
        ),
        Panel(
            title="Oldest ready job",
            unit="s",
            about="How long the oldest job that could run has not run.",
            lines=[(f'max by (queue) ({named.QUEUE_OLDEST.name}{{queue=~"$queue"}})', "{{queue}}")],
        ),
        *_latencies(),
        *_workers(),
    )


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    return {
        "title": "Perdure",
        "uid": "perdure",
        "tags": ["perdure"],
        "timezone": "utc",
        "schemaVersion": 39,
        "version": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
                {
                    "name": "queue",
                    "type": "query",
                    "label": "Queue",
                    "datasource": _SOURCE,
                    "query": f"label_values({named.QUEUE_JOBS.name}, queue)",
                    "refresh": 2,
                    "multi": True,
                    "includeAll": True,
                    "allValue": ".*",
                    "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "panels": [_drawn(place, panel) for place, panel in enumerate(panels())],
    }


def _latencies() -> tuple[Panel, ...]:
    shown = (
        ("Waiting for a slot", "From when a job was due to its start.", named.JOB_WAIT),
        ("Attempt duration", "How long attempts run.", named.ATTEMPT_DURATION),
        ("Retry delay", "The back-off chosen before retries.", named.RETRY_LATENCY),
    )
    return (
        *(
            Panel(
                title=title,
                unit="s",
                about=about,
                lines=[
                    (quantile(metric, _SPAN, part=0.5), "median {{queue}}"),
                    (quantile(metric, _SPAN), "95 % {{queue}}"),
                ],
            )
            for title, about, metric in shown
        ),
        Panel(
            title="Schedule lag",
            unit="s",
            about="How late ticks are fired.",
            lines=[(quantile(named.SCHEDULE_LAG, _SPAN, by=""), "95 %")],
        ),
    )


def _workers() -> tuple[Panel, ...]:
    return (
        Panel(
            title="Slots",
            unit="short",
            about="Room for attempts, over all workers.",
            lines=[(f"sum by (state) ({named.WORKER_SLOTS.name})", "{{state}}")],
        ),
        Panel(
            title="Workers and leases",
            unit="short",
            about="Living workers, lost leases and outcomes that came too late.",
            lines=[
                (f"max({named.WORKERS.name})", "alive"),
                (f"sum(increase({named.LEASE_LOST.name}[{_SPAN}]))", "leases lost"),
                (f"sum(increase({named.COMMITS_LOST.name}[{_SPAN}]))", "outcomes too late"),
            ],
        ),
        Panel(
            title="Store and queues",
            unit="short",
            about="Whether the store answers, paused queues, and what runs here.",
            lines=[
                (f"min({named.UP.name})", "store answers"),
                (f"sum(max by (queue) ({named.QUEUE_PAUSED.name}))", "paused queues"),
                (f"count by (version, engine) ({named.BUILD_INFO.name})", "{{version}} on {{engine}}"),
            ],
        ),
        Panel(
            title="Retries",
            unit="ops",
            about="Attempts that followed a failure.",
            lines=[(f"sum by (task) (rate({named.RETRIES.name}[{_SPAN}]))", "{{task}}")],
        ),
    )


def _drawn(place: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(place, 2)
    return {
        "id": place + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + number), "expr": expression, "legendFormat": legend, "datasource": _SOURCE}
            for number, (expression, legend) in enumerate(panel.lines)
        ],
    }
