"""What the API answers about retry policies, as types."""

from __future__ import annotations

from datetime import datetime

from perdure.model.forward import ForwardState
from perdure.web.schemas.documents import Document


class SpanDocument(Document):
    """A duration that jitter leaves open, in seconds."""

    least: float
    expected: float
    greatest: float


class PresetDocument(Document):
    """A policy that has a name."""

    name: str
    aliases: list[str]
    """Other names that mean the same preset."""
    origin: str
    """The document whose behaviour it keeps."""
    description: str
    max_attempts: int
    caps_jobs: bool
    """Whether no job under it may ask for more than its max_attempts."""
    text: str
    total: SpanDocument
    """How long it keeps trying, without the time that attempts take."""


class TaskPolicyDocument(Document):
    """The policy that plain jobs of a task of this app get."""

    task: str
    queue: str
    max_attempts: int
    text: str


class Policies(Document):
    """The presets, and the policies of the app's tasks."""

    presets: list[PresetDocument]
    tasks: list[TaskPolicyDocument]


class WaitDocument(SpanDocument):
    """The wait after the n-th failure."""

    failure: int
    ceiling: float
    total: SpanDocument


class ForecastDocument(Document):
    """Every wait of a job that fails every time."""

    max_retries: int
    caps_jobs: bool
    """Whether no job under the policy may ask for more than its max_attempts."""
    within: float | None
    max_recoveries: int | None
    waits: list[WaitDocument]
    total: SpanDocument
    """How long the policy keeps trying, without the time that attempts take."""
    is_complete: bool
    """Whether the waits were worked out up to the limit."""


class PolicyDocument(ForecastDocument):
    """A policy and its waits."""

    text: str
    max_attempts: int


class ValueDocument(Document):
    """One value of a policy and who said it."""

    name: str
    value: str
    origin: str


class LimitDocument(Document):
    """One place that names a limit for a job."""

    name: str
    max_attempts: int
    origin: str
    is_effective: bool
    """Whether this limit holds."""
    reason: str
    """Why it holds, or why it does not."""


class ForwardDocument(Document):
    """How far the forwarding of a dead job is."""

    state: ForwardState
    sink: str | None
    """What the sink is called; null before the first try of a job that died without one."""
    tries: int
    error: str | None
    """Why the newest try was refused."""
    next_at: datetime | None
    """When the next try is due; null when none follows by itself."""
    tried_at: datetime | None
    forwarded_at: datetime | None


class ExplanationDocument(ForecastDocument):
    """The policy that holds for a task or a job."""

    subject: str
    values: list[ValueDocument]
    limit: int
    limits: list[LimitDocument]
    """Every place that names a limit, the nearest to the job first."""
    retry: str
    forward: ForwardDocument | None
    """Of a dead job that is to be forwarded, or was; null else."""


class RunDocument(Document):
    """How the simulated jobs ended, and what the other side saw."""

    succeeded: int
    dead: int
    attempts: int
    peak_per_second: int
    last_ended: float


class BucketDocument(Document):
    """The attempts in one span of time."""

    at: int
    with_jitter: int
    without_jitter: int


class SimulationDocument(Document):
    """Many jobs that fail together until the other side is back, with the policy's jitter and without."""

    text: str
    jobs: int
    fail_for: float
    seed: int
    with_jitter: RunDocument
    without_jitter: RunDocument
    span: float
    """The width of the spans in `attempts`, in seconds."""
    attempts: list[BucketDocument]
