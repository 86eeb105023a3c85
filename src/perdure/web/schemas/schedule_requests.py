"""What the API takes about schedules and queue settings, as types."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from perdure.http.request import SecretRef
from perdure.model.queue.fairness import MOST_RUNNING
from perdure.model.schedule.definition import Missed, Overlap
from perdure.model.state import Delivery
from perdure.web.schemas.requests import (
    Attempts,
    Cron,
    Duration,
    Intake,
    Limit,
    PolicyText,
    Priority,
    QueueName,
    Retries,
    Reveal,
    ScheduleName,
    TaskName,
    Url,
)

Zone = Annotated[str, Meta(min_length=1, max_length=100, description="A time zone.", examples=["Europe/Berlin"])]

RunningLimit = Annotated[int, Meta(ge=1, le=MOST_RUNNING)] | Literal["none"]


class HttpBody(Intake, frozen=True):
    """A request that workers send; at most one of json, body and body_base64 is its content."""

    url: Url
    method: Annotated[str, Meta(min_length=1, max_length=64, examples=["POST"])] = "POST"
    headers: dict[str, str | SecretRef] = msgspec.field(default_factory=dict)
    """Text, or the name of a secret that workers fill in, for a host that the secret is bound to."""
    json: Any = UNSET
    body: str | UnsetType = UNSET
    body_base64: str | UnsetType = UNSET
    retry_on: Literal["default", "all"] = "default"
    sign: bool | str = False
    timeout: Duration | None = None

    def document(self) -> dict[str, Any]:
        """The request as `http_request_from` reads it."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        return {
            name: value for name, value in given.items() if value is not UNSET and (name, value) != ("timeout", None)
        }


class NewScheduleBody(Intake, frozen=True):
    """A schedule to be kept: of a task with its arguments, or of a request."""

    name: ScheduleName
    cron: Cron
    task: TaskName | None = None
    args: list[Any] = msgspec.field(default_factory=list)
    kwargs: dict[str, Any] = msgspec.field(default_factory=dict)
    http: HttpBody | None = None
    """Instead of task, args and kwargs."""
    tz: Zone = "UTC"
    is_recurring: bool = True
    overlap: Overlap = "skip"
    missed: Missed = "latest"
    queue: QueueName | None = None
    priority: Priority | None = None
    max_attempts: Attempts | None = None
    max_retries: Retries | None = None
    retry: PolicyText | None = None
    delivery: Delivery | None = None
    timeout: Duration | None = None


class ScheduleChange(Intake, frozen=True):
    """What is to be different about a schedule; what is not named stays, null takes back."""

    cron: Cron | UnsetType = UNSET
    tz: Zone | UnsetType = UNSET
    is_recurring: bool | UnsetType = UNSET
    is_paused: bool | UnsetType = UNSET
    overlap: Overlap | UnsetType = UNSET
    missed: Missed | UnsetType = UNSET
    task: TaskName | UnsetType = UNSET
    args: list[Any] | UnsetType = UNSET
    kwargs: dict[str, Any] | UnsetType = UNSET
    http: HttpBody | UnsetType = UNSET
    queue: QueueName | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    max_attempts: Attempts | UnsetType | None = UNSET
    max_retries: Retries | UnsetType | None = UNSET
    retry: PolicyText | UnsetType | None = UNSET
    delivery: Delivery | UnsetType = UNSET
    timeout: Duration | UnsetType | None = UNSET


class QueueChange(Intake, frozen=True):
    """What is to be set about a queue; what is not named stays, null takes back, "none" means no limit."""

    retry_share: Annotated[float, Meta(ge=0, le=1)] | UnsetType | None = UNSET
    strict: bool | UnsetType | None = UNSET
    max_retries_running: RunningLimit | UnsetType | None = UNSET
    concurrency: RunningLimit | UnsetType | None = UNSET


class SchedulesQuery(Intake, frozen=True):
    """A page of schedules."""

    limit: Limit = 50
    cursor: ScheduleName | None = None
    """The `next_cursor` of the page before."""
    reveal: Reveal = False


class RevealQuery(Intake, frozen=True):
    """How one schedule is shown."""

    reveal: Reveal = False


class TicksQuery(Intake, frozen=True):
    """How many ticks."""

    n: Annotated[int, Meta(ge=1, le=1000)] = 5
