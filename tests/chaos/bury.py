"""The app of the forwarding tests: jobs that die, and sinks of every kind that refuse, and kill, before they accept."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from tests.chaos.ledger import LEDGER, Ledger

from perdure import App, DeadLetter, Job, Retry

TARGET = "PERDURE_TEST_TARGET"
"""The environment variable with the URL that dead jobs of the queue `web` go to."""
REFUSALS = 50

ledger = Ledger.of_environment()
app = App(retry=Retry.never_retry())


def bury(job: Job) -> None:
    """Refuses the first so many times, whoever asks; kills its worker when it has accepted a job that says so."""
    ledger.write("offer", job=job.id)
    if _number("offers") <= REFUSALS:
        time.sleep(0.01)
        ledger.write("refuse", job=job.id)
        raise ConnectionError("the graveyard is closed")
    ledger.write("accept", job=job.id)
    if job.queue == "killers" and _number(f"killed-{job.id}") == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def _number(name: str) -> int:
    """The how-manieth this is over all processes, written so that a kill cannot unsay it."""
    with (Path(os.environ[LEDGER]) / name).open("ab") as counter:
        counter.write(b".")
        counter.flush()
        return counter.tell()


app.queue("functions", dead_letter=DeadLetter.function(bury, timeout="500ms"))
app.queue("killers", dead_letter=DeadLetter.function(bury, timeout="500ms"))
app.queue("copies", dead_letter=DeadLetter.queue("graveyard", timeout="500ms"))
if TARGET in os.environ:
    app.queue("web", dead_letter=DeadLetter.http(os.environ[TARGET], timeout="500ms"))


@app.task
def fail(number: int) -> None:
    raise ValueError(f"number {number} broke")
