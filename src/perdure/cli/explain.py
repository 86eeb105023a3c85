"""`perdure explain`: which limit, delays and sink hold for a task or job, who said so, and how far a forwarding is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from perdure.admin import inspect
from perdure.admin.forecast import forecast
from perdure.admin.policies import explanation_document
from perdure.cli import faults, output
from perdure.cli.options import app_options
from perdure.cli.output import Column
from perdure.cli.policy import print_waits
from perdure.cli.session import APP_VARIABLE, Session, sqlite_path
from perdure.cli.show import forward_facts
from perdure.errors import BadOption, EngineError
from perdure.model.policy.limit import HIGHEST_LIMIT

if TYPE_CHECKING:
    from datetime import datetime

    from perdure.admin.payload_view import PayloadView
    from perdure.app import App
    from perdure.model.forward import Forward
    from perdure.model.job import Job
    from perdure.model.policy.explain import Explanation
    from perdure.model.queue.settings import QueueSettings

_ID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_LIMIT_COLUMNS = (
    Column("LIMIT"),
    Column("MAX_ATTEMPTS", is_number=True),
    Column("FROM"),
    Column("HOLDS"),
    Column("WHY", is_wrapped=True),
)
_COLUMNS = (Column("VALUE"), Column("IS", is_wrapped=True), Column("FROM"))


@click.command()
@click.argument("name", metavar="TASK|JOB_ID")
@app_options
def explain(session: Session, name: str) -> None:
    """Say which limit, delays and sink hold for a task or a job, with the origin of each value.

    The nearest one wins: job, task, queue, app default. No limit is above the operator's cap, nor above that of a
    policy that caps jobs or has no retries. How the queue is treated is said by the operator (queues set), else by
    the environment, else by perdure.toml, else by the code.
    """
    is_job = _ID.fullmatch(name.strip()) is not None
    if not is_job and not session.has_app:
        raise BadOption(
            f"Without an app nobody knows what the task {name!r} says.", f"Give --app MODULE:APP or set {APP_VARIABLE}."
        )
    # What a task says needs no store, so none has to be there.
    with session.app(may_create=not is_job) as app:
        job: Job | None = None
        if is_job:
            job = inspect.get(app.store, name).wait()
            explanation = app.explain_job(job, app.store.settings().wait())
            forward, now = app.store.forwards([job.id]).wait().get(job.id), app.store.now().wait()
        else:
            explanation = app.explain(name, _operators_settings(app))
            forward, now = None, app.surroundings.clock.now()
    if is_job and not session.has_app:
        faults.warn("no app is given (--app), so what the task and queue say is not known.")
    if session.is_json:
        session.emit(explanation_document(explanation, 1_000, forward, session.view()))
        return
    output.say(explanation.subject)
    output.say("")
    output.table(_COLUMNS, [[line.name, line.value, line.origin] for line in explanation.lines])
    _print_limits(explanation)
    if job is not None and job.state == "dead" and (forward or explanation.sink):
        _print_forward(job, forward, now, session.view())
    output.heading("when it fails every time")
    if any(line.name == "delivery" and line.value == "at most once" for line in explanation.lines):
        output.say("  It is delivered at most once, so it runs once, whatever the policy says.")
        return
    print_waits(forecast(explanation.retry.with_limit(explanation.limit)), 25)


def _print_limits(explanation: Explanation) -> None:
    output.heading("which limit holds, and why")
    rows = [
        [
            limit.name,
            "unlimited" if limit.max_attempts == HIGHEST_LIMIT else str(limit.max_attempts),
            limit.origin,
            "yes" if limit.is_effective else "no",
            limit.reason,
        ]
        for limit in explanation.limits
    ]
    output.table(_LIMIT_COLUMNS, rows)


def _print_forward(job: Job, forward: Forward | None, now: datetime, view: PayloadView) -> None:
    output.heading("how far its forwarding is")
    if forward is None:
        output.say("  It died when it had no sink, and stays here unless you ask for it:")
    else:
        output.fields(forward_facts(forward, now, view))
    if forward is None or forward.state in ("failing", "stopped"):
        output.say(f"  perdure dlq forward {job.id}")


def _operators_settings(app: App) -> Mapping[str, QueueSettings]:
    """What operators have set, where there is a store that can be asked."""
    path = sqlite_path(app.settings.url)
    if path is not None and not path.exists():
        return {}
    try:
        return app.store.settings().wait()
    except EngineError as error:
        faults.warn(f"what operators have set is not known, since the store does not answer: {error}")
        return {}
