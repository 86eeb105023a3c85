"""Perdure: a durable job queue and scheduler whose heart is what happens when work fails.

The public names are loaded when they are first used, so that `perdure --help` does not wait for engines and runtime.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from perdure.errors import (
    BadArguments,
    BadCron,
    BadDuration,
    BadOption,
    BadPayload,
    BadPolicy,
    BadSetting,
    BadSignature,
    Cancel,
    EngineBusy,
    EngineError,
    EngineFull,
    EngineLost,
    EngineUnreachable,
    EngineUnusable,
    GiveUp,
    InProgress,
    JobNotFound,
    KeyReused,
    LeaseLost,
    NotFound,
    PerdureError,
    Refused,
    RetryAfter,
    ScheduleNotFound,
    SchemaTooNew,
    SchemaTooOld,
    Snooze,
    UnknownTask,
    Unsupported,
    UsageError,
    WrongState,
)

if TYPE_CHECKING:
    from perdure.app import App
    from perdure.client import AsyncClient
    from perdure.client_sync import Client
    from perdure.configuration.settings import Settings
    from perdure.dead_letter import DeadLetter
    from perdure.http.request import SecretRef
    from perdure.http.secrets import Secret
    from perdure.model.job import Attempt, Job
    from perdure.model.policy.retry import Retry
    from perdure.model.schedule.definition import Schedule
    from perdure.runtime.context import CurrentJob, current_job
    from perdure.simulator.result import Simulation
    from perdure.simulator.simulate import simulate
    from perdure.task import Bound, Task

__all__ = [
    "App",
    "AsyncClient",
    "Attempt",
    "BadArguments",
    "BadCron",
    "BadDuration",
    "BadOption",
    "BadPayload",
    "BadPolicy",
    "BadSetting",
    "BadSignature",
    "Bound",
    "Cancel",
    "Client",
    "CurrentJob",
    "DeadLetter",
    "EngineBusy",
    "EngineError",
    "EngineFull",
    "EngineLost",
    "EngineUnreachable",
    "EngineUnusable",
    "GiveUp",
    "InProgress",
    "Job",
    "JobNotFound",
    "KeyReused",
    "LeaseLost",
    "NotFound",
    "PerdureError",
    "Refused",
    "Retry",
    "RetryAfter",
    "Schedule",
    "ScheduleNotFound",
    "SchemaTooNew",
    "SchemaTooOld",
    "Secret",
    "SecretRef",
    "Settings",
    "Simulation",
    "Snooze",
    "Task",
    "UnknownTask",
    "Unsupported",
    "UsageError",
    "WrongState",
    "current_job",
    "simulate",
]

_PLACES = {
    "App": "perdure.app",
    "AsyncClient": "perdure.client",
    "Attempt": "perdure.model.job",
    "Bound": "perdure.task",
    "Client": "perdure.client_sync",
    "CurrentJob": "perdure.runtime.context",
    "DeadLetter": "perdure.dead_letter",
    "Job": "perdure.model.job",
    "Retry": "perdure.model.policy.retry",
    "Schedule": "perdure.model.schedule.definition",
    "Secret": "perdure.http.secrets",
    "SecretRef": "perdure.http.request",
    "Settings": "perdure.configuration.settings",
    "Simulation": "perdure.simulator.result",
    "Task": "perdure.task",
    "current_job": "perdure.runtime.context",
    "simulate": "perdure.simulator.simulate",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'perdure' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_PLACES[name]), name)
    return value
