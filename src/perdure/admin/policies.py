"""Retry policies as plain data: presets, forecasts, explanations and simulations, for command line and API alike."""

from __future__ import annotations

from typing import Any

from perdure.admin.document import Document, seconds
from perdure.admin.forecast import Forecast, Span, forecast
from perdure.admin.simulate import Simulation
from perdure.model.explain import Explanation
from perdure.model.presets import PRESETS

_MOST_SPANS = 24
_WIDTHS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400)


def preset_documents() -> list[Document]:
    """Every preset."""
    return [
        {
            "name": preset.name,
            "origin": preset.origin,
            "description": preset.description,
            "max_attempts": preset.policy.max_attempts,
            "text": preset.policy.text,
        }
        for preset in PRESETS.values()
    ]


def waits_document(found: Forecast, limit: int) -> Document:
    """The first waits of a forecast, and its sums."""
    retry = found.policy
    return {
        "max_retries": retry.max_retries,
        "within": seconds(retry.within),
        "max_recoveries": retry.max_recoveries,
        "waits": [
            {
                "failure": wait.failure,
                "ceiling": seconds(wait.ceiling),
                **_span_document(wait.delay),
                "total": _span_document(wait.total),
            }
            for wait in found.waits[:limit]
        ],
        "total": _span_document(found.total),
        "is_complete": found.is_complete,
    }


def explanation_document(explanation: Explanation, limit: int) -> Document:
    """The policy that holds for a task or a job, each value with its origin, and its waits."""
    policy = explanation.retry.with_limit(explanation.limit)
    return {
        "subject": explanation.subject,
        "values": [{"name": line.name, "value": line.value, "origin": line.origin} for line in explanation.lines],
        "limit": explanation.limit,
        "retry": str(explanation.retry),
        **waits_document(forecast(policy), limit),
    }


def simulations_document(jittered: Simulation, bare: Simulation) -> Document:
    """Two runs of a simulation side by side."""
    width, count = spans(jittered, bare)
    both = zip(jittered.bucketed(width, count), bare.bucketed(width, count), strict=True)
    return {
        "with_jitter": _run_document(jittered),
        "without_jitter": _run_document(bare),
        "span": width,
        "attempts": [
            {"at": place * width, "with_jitter": one, "without_jitter": other}
            for place, (one, other) in enumerate(both)
        ],
    }


def spans(*runs: Simulation) -> tuple[int, int]:
    """A width in seconds, and how many spans of it cover all runs: few enough to look at."""
    last = max(max(run.per_second) for run in runs)
    width = next((width for width in _WIDTHS if last // width < _MOST_SPANS), last // _MOST_SPANS + 1)
    return width, last // width + 1


def _span_document(span: Span) -> dict[str, Any]:
    return {"least": seconds(span.least), "expected": seconds(span.expected), "greatest": seconds(span.greatest)}


def _run_document(run: Simulation) -> Document:
    return {
        "succeeded": run.succeeded,
        "dead": run.dead,
        "attempts": run.attempts,
        "peak_per_second": run.peak,
        "last_ended": seconds(run.last_ended),
    }
