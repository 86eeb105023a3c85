"""What the API takes, as types: bodies and parameters with their bounds, for the checks and for OpenAPI alike."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from perdure.model.policy.limit import HIGHEST_LIMIT
from perdure.model.state import Delivery, State

LARGEST_PAGE = 1_000
MOST_AT_ONCE = 1_000

TaskName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:<>-]{1,200}$", examples=["send"])]
QueueName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,128}$", examples=["default"])]
ScheduleName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:-]{1,200}$", examples=["nightly"])]
JobIdText = Annotated[
    str,
    Meta(
        pattern=r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
        examples=["01890a5d-ac96-774b-bcce-b302099a8057"],
    ),
]
Priority = Annotated[int, Meta(ge=-100, le=100, description="Higher first.")]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Text = Annotated[str, Meta(min_length=1, max_length=500)]
When = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=100,
        description="An ISO time, UTC if it has no offset, or how long ago: 1h, 7d.",
        examples=["1h", "2026-05-01T12:00:00Z"],
    ),
]
Duration = (
    Annotated[str, Meta(min_length=1, max_length=100, description="Such as 500ms, 30s, 1h30m.", examples=["5m"])]
    | Annotated[float, Meta(ge=0, le=36500 * 86400, description="Seconds.")]
)
Attempts = Annotated[int, Meta(ge=1, le=HIGHEST_LIMIT)] | Literal["unlimited"]
Retries = Annotated[int, Meta(ge=0, lt=HIGHEST_LIMIT)] | Literal["unlimited"]
PolicyText = Annotated[
    str, Meta(min_length=1, max_length=1000, description="A preset's name or a policy's text.", examples=["standard"])
]
RetryCount = Annotated[int, Meta(ge=0, lt=HIGHEST_LIMIT)]
Cron = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=500,
        description="A cron expression with 5 or 6 fields (seconds first), @hourly, or @every 10s.",
        examples=["*/10 * * * * *"],
    ),
]
Url = Annotated[
    str, Meta(min_length=1, max_length=8192, description="Absolute, http or https.", examples=["https://example.com/"])
]
Limit = Annotated[int, Meta(ge=1, le=LARGEST_PAGE)]
Cursor = Annotated[str, Meta(min_length=1, max_length=100, description="The `next_cursor` of the page before.")]


class Intake(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that is sent to the API: what it does not name is refused."""


class NewJobBody(Intake, frozen=True):
    """A job to be made."""

    task: TaskName
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    queue: QueueName | None = None
    """Else the task's own."""
    delay: Duration | None = None
    run_at: Annotated[datetime, Meta(tz=True)] | None = None
    priority: Priority | None = None
    unique: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    """No second live job of this task with the same key; the live one stands for it."""
    max_attempts: Attempts | None = None
    max_retries: Retries | None = None
    """The same limit, counted as retries."""
    retry: PolicyText | None = None
    delivery: Delivery | None = None
    timeout: Duration | None = None


class ClassicBody(Intake, frozen=True):
    """A request to be sent at each tick of a rule."""

    schedule: Cron
    api: Url
    """Where the POST request goes."""
    type: Literal["AT_LEAST_ONCE", "AT_MOST_ONCE"] = "AT_LEAST_ONCE"
    """AT_MOST_ONCE is never tried again, whatever max_retry_count says."""
    is_recurring: bool = True
    max_retry_count: RetryCount | None = None
    """3 if it is not given; 0 means none."""


class ClassicChange(Intake, frozen=True):
    """What is to be different about a job that was made with a schedule; what is not named stays."""

    schedule: Cron | UnsetType = UNSET
    api: Url | UnsetType = UNSET
    type: Literal["AT_LEAST_ONCE", "AT_MOST_ONCE"] | UnsetType = UNSET
    is_recurring: bool | UnsetType = UNSET
    max_retry_count: RetryCount | UnsetType = UNSET
    is_paused: bool | UnsetType = UNSET


class JobChange(Intake, frozen=True):
    """What is to be different about a job that has not started; what is not named stays, null takes back."""

    delay: Duration | UnsetType = UNSET
    """Not before so long from now; instead of run_at."""
    run_at: Annotated[datetime, Meta(tz=True)] | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    queue: QueueName | UnsetType = UNSET
    max_attempts: Attempts | UnsetType | None = UNSET
    max_retries: Retries | UnsetType | None = UNSET
    """The same limit, counted as retries."""


class NewJobsBody(Intake, frozen=True):
    """Jobs to be made in one batch, all or none."""

    jobs: Annotated[list[NewJobBody], Meta(min_length=1, max_length=MOST_AT_ONCE)]


class NoBody(Intake, frozen=True):
    """Nothing needs to be said."""


class PauseBody(Intake, frozen=True):
    """Why a queue is paused, and until when or for how long; without either until it is resumed."""

    reason: Text | None = None
    until: Annotated[datetime, Meta(tz=True)] | None = None
    duration: Duration | None = None


class Filters(Intake, frozen=True):
    """Which jobs are meant; all that is given must hold."""

    task: Name | None = None
    queue: Name | None = None
    """The queue that a job is in, or was enqueued to."""
    error: Text | None = None
    """A part of the last error's type or message, letter case ignored."""
    group: Name | None = None
    """The fingerprint of an error group."""
    reason: Name | None = None
    schedule: ScheduleName | None = None
    """The schedule that made them."""
    before: When | None = None
    """Ended (or, if not ended, created) before this moment."""
    after: When | None = None


class DeadSelection(Filters, frozen=True):
    """Which dead jobs are meant: by ids, by filters, or all."""

    ids: Annotated[list[JobIdText], Meta(min_length=1, max_length=MOST_AT_ONCE)] | None = None
    all: bool = False
    """All dead jobs; must be said in so many words."""
    dry_run: bool = False
    """Only count."""


class ReplayBody(DeadSelection, frozen=True):
    """Which dead jobs to put back, and how fast."""

    rate: (
        Annotated[str, Meta(min_length=1, max_length=40, description="Such as 50/s, 100/m, 10/h.", examples=["50/s"])]
        | Annotated[float, Meta(gt=0, le=1_000_000, description="Jobs a second.")]
        | None
    ) = None
    canary: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    """Put back the oldest so many only, to see first."""


class SimulateBody(Intake, frozen=True):
    """Many jobs that fail together."""

    policy: PolicyText
    max_attempts: Attempts | None = None
    """The limit that every job asks for itself; null: the policy's holds."""
    jobs: Annotated[int, Meta(ge=1, le=10_000)] = 1000
    fail_for: Duration = "60s"
    """How long every attempt fails."""
    seed: Annotated[int, Meta(ge=0, le=2**53)] = 1


Reveal = Annotated[bool, Meta(description="Show secrets, too; needs a token with the scope admin.")]


class JobsQuery(Filters, frozen=True):
    """A page of jobs."""

    state: State | None = None
    limit: Limit = 50
    cursor: Cursor | None = None
    reveal: Reveal = False


class DeadQuery(Filters, frozen=True):
    """A page of dead jobs."""

    limit: Limit = 50
    cursor: Cursor | None = None
    reveal: Reveal = False


class GroupsQuery(Filters, frozen=True):
    """The largest error groups."""

    limit: Limit = 50
    reveal: Reveal = False


class LimitQuery(Intake, frozen=True):
    """How many, at most."""

    limit: Limit = 100


class HistoryQuery(LimitQuery, frozen=True):
    """How many attempts, at most, and how they are shown."""

    reveal: Reveal = False


class ShowQuery(Intake, frozen=True):
    """How one job is shown."""

    why: bool = False
    """Also say why the job is where it is; takes a look at queues and workers."""
    reveal: Reveal = False


class ForecastQuery(Intake, frozen=True):
    """Which policy."""

    policy: PolicyText
    limit: Limit = 100


class ExplainQuery(Intake, frozen=True):
    """A task of the app, or a job."""

    task: TaskName | None = None
    job: JobIdText | None = None


class EventsQuery(Intake, frozen=True):
    """Which events."""

    kinds: (
        Annotated[str, Meta(max_length=100, description="Of: stats, queue, job, trouble.", examples=["stats,job"])]
        | None
    ) = None


class NoQuery(Intake, frozen=True):
    """No parameters."""
