"""Retry policies as plain data: presets, forecasts and explanations, for command line and API alike."""

from __future__ import annotations

from typing import Any

from perdure.admin.document import Document, forward_document, seconds
from perdure.admin.forecast import Forecast, Span, forecast
from perdure.admin.payload_view import EVERYTHING, PayloadView
from perdure.model.forward import Forward
from perdure.model.policy.explain import Explanation
from perdure.model.policy.presets import PRESETS


def preset_documents() -> list[Document]:
    """Every preset."""
    return [
        {
            "name": preset.name,
            "aliases": list(preset.aliases),
            "origin": preset.origin,
            "description": preset.description,
            "max_attempts": preset.policy.max_attempts,
            "caps_jobs": preset.policy.caps_jobs,
            "text": preset.policy.text,
            "total": _span_document(forecast(preset.policy).total),
        }
        for preset in PRESETS.values()
    ]


def waits_document(found: Forecast, limit: int) -> Document:
    """The first waits of a forecast, and its sums."""
    retry = found.policy
    return {
        "max_retries": retry.max_retries,
        "caps_jobs": retry.caps_jobs,
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


def explanation_document(
    explanation: Explanation, limit: int, forward: Forward | None = None, view: PayloadView = EVERYTHING
) -> Document:
    """The policy that holds for a task or a job, each value with its origin, its waits, and how far its forward is."""
    policy = explanation.retry.with_limit(explanation.limit)
    return {
        "subject": explanation.subject,
        "values": [{"name": line.name, "value": line.value, "origin": line.origin} for line in explanation.lines],
        "limit": explanation.limit,
        "limits": [
            {
                "name": limit.name,
                "max_attempts": limit.max_attempts,
                "origin": limit.origin,
                "is_effective": limit.is_effective,
                "reason": limit.reason,
            }
            for limit in explanation.limits
        ],
        "retry": str(explanation.retry),
        "forward": forward_document(forward, view),
        **waits_document(forecast(policy, limit), limit),
    }


def _span_document(span: Span) -> dict[str, Any]:
    return {"least": seconds(span.least), "expected": seconds(span.expected), "greatest": seconds(span.greatest)}
