"""Every error Perdure raises, in one tree, and the four signals that a handler may raise to steer its job.

PerdureError
├── UsageError                 the call is wrong; change the call
│   ├── BadDuration            a duration that cannot be read
│   ├── BadPolicy              a retry policy that cannot be built or read
│   ├── BadPayload             arguments or a result that cannot be stored
│   │   └── BadArguments       arguments that the task's function does not take
│   ├── BadOption              an option with a value that it cannot have
│   │   └── BadCron            a cron expression or an interval that cannot be read
│   ├── BadSetting             a setting with a value that it cannot have
│   └── UnknownTask            no task of that name is registered in the app
├── NotFound                   the named thing does not exist
│   ├── JobNotFound
│   └── ScheduleNotFound
├── Refused                    the state of things forbids it
│   ├── WrongState             the job is in a state that the verb does not accept
│   ├── Unsupported            this engine cannot do that, and says why
│   ├── BadSignature           a signed request that its receiver must not trust
│   ├── KeyReused              an idempotency key that was used for another request
│   ├── InProgress             the same request is still being worked on
│   ├── RecordDamaged          the record cannot be read by this version
│   └── LeaseLost              the store no longer counts this worker among the living
├── WorkerFailed               a worker cannot go on and has ended
└── EngineError                the engine did not do its part
    ├── EngineUnreachable      it cannot be opened or reached
    │   └── EngineUnusable     it never will be as things are: user, password, rights, file or version are wrong
    │       └── EngineLost     the file of the open store was deleted, replaced or truncated
    ├── EngineBusy             others held it for too long
    ├── EngineFull             no room to store anything more
    ├── EngineDamaged          a key or table holds what Perdure did not write
    ├── SchemaTooNew           written by a newer Perdure
    └── SchemaTooOld           needs `perdure db migrate`

Signal                         raised by a handler; not a fault of Perdure
├── GiveUp                     this will never work: straight to the dead letters
├── Snooze                     not now: again after a delay, nothing counted
├── RetryAfter                 failed; not again before this delay
└── Cancel                     no longer wanted: ends cancelled
"""

from __future__ import annotations

from datetime import timedelta


class PerdureError(Exception):
    """The root of Perdure's errors; `hint`, where there is one, says what to do about it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message} {hint}")
        self.message = message
        self.hint = hint


class UsageError(PerdureError, ValueError):
    """The call is wrong; change the call."""


class BadDuration(UsageError):
    """A duration that cannot be read."""


class BadPolicy(UsageError):
    """A retry policy that cannot be built or read."""


class BadPayload(UsageError):
    """Arguments or a result that cannot be stored."""


class BadArguments(BadPayload, TypeError):
    """Arguments that the task's function does not take."""


class BadOption(UsageError):
    """An option with a value that it cannot have."""


class BadCron(BadOption):
    """A cron expression or an interval that cannot be read; the message points at the field."""


class BadSetting(UsageError):
    """A setting with a value that it cannot have."""


class UnknownTask(UsageError):
    """No task of that name is registered in the app."""


class NotFound(PerdureError, LookupError):
    """The named thing does not exist."""


class JobNotFound(NotFound):
    """No job has this id; finished jobs are pruned after the retention time."""


class ScheduleNotFound(NotFound):
    """No schedule has this name; one that fires once is gone when it has."""


class Refused(PerdureError):
    """The state of things forbids it."""


class WrongState(Refused):
    """The job is in a state that the verb does not accept."""


class Unsupported(Refused):
    """This engine cannot do that, and says why."""


class BadSignature(Refused):
    """A request whose signature is missing, wrong or too old; its receiver must not trust it."""


class KeyReused(Refused):
    """An idempotency key that was used for another request."""


class InProgress(Refused):
    """The same request is still being worked on."""


class RecordDamaged(Refused):
    """The record cannot be read: a later version wrote it, or it was damaged. It is left as it is."""


class LeaseLost(Refused):
    """The store no longer counts this worker among the living; it must register anew."""


class WorkerFailed(PerdureError):
    """A worker cannot go on and has ended: its event loop or one of its parts did, or was blocked for too long."""


class EngineError(PerdureError):
    """The engine did not do its part."""


class EngineUnreachable(EngineError):
    """The engine cannot be opened or reached."""


class EngineUnusable(EngineUnreachable):
    """The engine cannot be used as things are, and waiting does not help: user, password, rights, file or version."""


class EngineLost(EngineUnusable):
    """The file of the open store was deleted, replaced or truncated; this store cannot be used any more."""


class EngineBusy(EngineError):
    """Others held the engine for too long."""


class EngineFull(EngineError):
    """The engine has no room to store anything more."""


class EngineDamaged(EngineError):
    """A key or table of the engine holds what Perdure did not write; the call changed nothing."""


class SchemaTooNew(EngineError):
    """The store was written by a newer Perdure."""


class SchemaTooOld(EngineError):
    """The store needs `perdure db migrate`."""


class Signal(Exception):
    """What a handler raises to say how its job goes on."""


class GiveUp(Signal):
    """This will never work: the job goes straight to the dead letters, reason `unrecoverable`."""


class Cancel(Signal):
    """The job is no longer wanted: it ends `cancelled`."""


class Snooze(Signal):
    """Not now: the job waits for `delay` and runs again; nothing is counted."""

    def __init__(self, delay: str | float | timedelta, message: str = "") -> None:
        super().__init__(message or f"snoozed for {delay}")
        self.delay = delay


class RetryAfter(Signal):
    """It failed, and the other side named the earliest moment for another try; counted like any failure."""

    def __init__(self, delay: str | float | timedelta, message: str = "") -> None:
        super().__init__(message or f"asked to come back after {delay}")
        self.delay = delay
