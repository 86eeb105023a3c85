"""Perdure: a durable job queue and scheduler whose heart is what happens when work fails."""

from perdure.app import App
from perdure.client import AsyncClient
from perdure.client_sync import Client
from perdure.errors import (
    BadArguments,
    BadDuration,
    BadOption,
    BadPayload,
    BadPolicy,
    BadSetting,
    Cancel,
    EngineBusy,
    EngineError,
    EngineFull,
    EngineUnreachable,
    GiveUp,
    JobNotFound,
    LeaseLost,
    NotFound,
    PerdureError,
    Refused,
    RetryAfter,
    SchemaTooNew,
    SchemaTooOld,
    Snooze,
    UnknownTask,
    Unsupported,
    UsageError,
    WorkerNotFound,
    WrongState,
)
from perdure.model.job import Attempt, Job
from perdure.model.retry import Retry
from perdure.runtime.context import CurrentJob, current_job
from perdure.settings import Settings
from perdure.task import Bound, Task

__all__ = [
    "App",
    "AsyncClient",
    "Attempt",
    "BadArguments",
    "BadDuration",
    "BadOption",
    "BadPayload",
    "BadPolicy",
    "BadSetting",
    "Bound",
    "Cancel",
    "Client",
    "CurrentJob",
    "EngineBusy",
    "EngineError",
    "EngineFull",
    "EngineUnreachable",
    "GiveUp",
    "Job",
    "JobNotFound",
    "LeaseLost",
    "NotFound",
    "PerdureError",
    "Refused",
    "Retry",
    "RetryAfter",
    "SchemaTooNew",
    "SchemaTooOld",
    "Settings",
    "Snooze",
    "Task",
    "UnknownTask",
    "Unsupported",
    "UsageError",
    "WorkerNotFound",
    "WrongState",
    "current_job",
]
