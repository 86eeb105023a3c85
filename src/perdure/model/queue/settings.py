"""What may be said about a queue at several places, and which holds: operator, environment, file, code, default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from perdure.errors import BadOption
from perdure.model.queue.fairness import Fairness, check_limit, check_share
from perdure.text.shown import shown

Cap = int | Literal["none"]
"""A limit on running jobs: a number, or `"none"` for explicitly no limit."""

QueueOrigin = Literal["operator", "environment", "file", "configuration", "code", "default"]
"""`environment` and `file` where the app reads them; `configuration` where it was given its settings as a value."""


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What one place says about a queue; None where it says nothing, so that the next place is heard."""

    retry_share: float | None = None
    is_strict: bool | None = None
    max_retries_running: Cap | None = None
    concurrency: Cap | None = None

    def __post_init__(self) -> None:
        if self.retry_share is not None:
            check_share(self.retry_share)
        if self.is_strict is not None and not isinstance(self.is_strict, bool):
            raise BadOption(f"is_strict is {shown(self.is_strict)}, and it is True or False.")
        for name in LIMITS:
            limit = getattr(self, name)
            if limit is not None and limit != "none":
                check_limit(name, limit)


FIELDS = QueueSettings.__struct_fields__
LIMITS = ("max_retries_running", "concurrency")
NOTHING_SAID = QueueSettings()


class EffectiveQueue(msgspec.Struct, frozen=True, kw_only=True):
    """How a queue is treated, and for each value which place said so."""

    fairness: Fairness
    origins: dict[str, QueueOrigin]


def effective(said: Sequence[tuple[QueueOrigin, QueueSettings]], retry_queue: str | None = None) -> EffectiveQueue:
    """What holds when several places speak, the first of them winning value by value."""
    values: dict[str, Any] = {}
    origins: dict[str, QueueOrigin] = {}
    for name in FIELDS:
        origins[name] = "default"
        for origin, words in said:
            value = getattr(words, name)
            if value is not None:
                origins[name] = origin
                values[name] = None if value == "none" else value
                break
    return EffectiveQueue(fairness=Fairness(retry_queue=retry_queue, **values), origins=origins)
