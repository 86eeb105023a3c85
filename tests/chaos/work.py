"""The app of the crash tests: one task of each kind, whose jobs do what their arguments say and tell the ledger."""

from __future__ import annotations

import asyncio
import resource
import time

from tests.chaos import misbehaviour
from tests.chaos.ledger import Ledger
from tests.chaos.misbehaviour import KILLERS, POISON
from tests.chaos.shared_clock import follow_shared_clock

from perdure import App, Retry, current_job

follow_shared_clock()
RETRY = Retry.exponential("50ms", cap="500ms", max_attempts=5)
app = App(retry=RETRY)
ledger = Ledger.of_environment()

# Handlers that crash on purpose shall leave no core files about.
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class PlannedError(Exception):
    """What a job raises that is meant to fail."""


@app.task
async def on_loop(key: str, behaviour: str = "returns", seconds: float = 0.0) -> str:
    """Runs on the worker's event loop."""
    _note("start")
    await asyncio.sleep(_length(behaviour, seconds))
    return _behave(behaviour, key)


@app.task
def in_thread(key: str, behaviour: str = "returns", seconds: float = 0.0) -> str:
    """Runs in a thread of the worker."""
    _note("start")
    time.sleep(_length(behaviour, seconds))
    return _behave(behaviour, key)


@app.task(process=True)
def in_child(key: str, behaviour: str = "returns", seconds: float = 0.0) -> str:
    """Runs in a child process of the worker."""
    _note("start")
    time.sleep(_length(behaviour, seconds))
    return _behave(behaviour, key)


KINDS = {"on_loop": on_loop, "in_thread": in_thread, "in_child": in_child}


def _length(behaviour: str, seconds: float) -> float:
    attempt = current_job().attempt
    if behaviour == "slow once":
        return seconds if attempt == 1 else 0.0
    return seconds * attempt**2 if behaviour == "slower and slower" else seconds


def _behave(behaviour: str, key: str) -> str:
    if behaviour in KILLERS:
        KILLERS[behaviour]()
    if behaviour in POISON and current_job().attempt == 1:
        POISON[behaviour][1]()
    if behaviour == "fails always" or (behaviour == "fails once" and current_job().attempt == 1):
        _note("end", "raises")
        raise PlannedError(f"{key} {behaviour}")
    _note("effect")
    _note("end", "returns")
    return key


def _note(event: str, note: str = "") -> None:
    if misbehaviour.is_copy:
        return
    job = current_job()
    ledger.write(event, job=job.id, attempt=job.attempt, note=note)
