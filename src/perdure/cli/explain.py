"""`perdure explain`: which limit and delays hold for a task or job, and who said so."""

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
from perdure.errors import BadOption, EngineError

if TYPE_CHECKING:
    from perdure.app import App
    from perdure.model.queue_settings import QueueSettings

_ID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_COLUMNS = (Column("VALUE"), Column("IS", is_wrapped=True), Column("FROM"))


@click.command()
@click.argument("name", metavar="TASK|JOB_ID")
@app_options
def explain(session: Session, name: str) -> None:
    """Say which limit and delays hold for a task or a job, with the origin of each value.

    The nearest one wins: job, task, queue, app default; no limit is above the operator's cap. How the queue is treated
    is said by the operator (queues set), else by the environment, else by perdure.toml, else by the code.
    """
    is_job = _ID.fullmatch(name.strip()) is not None
    if not is_job and not session.has_app:
        raise BadOption(
            f"Without an app nobody knows what the task {name!r} says.", f"Give --app MODULE:APP or set {APP_VARIABLE}."
        )
    # What a task says needs no store, so none has to be there.
    with session.app(may_create=not is_job) as app:
        if is_job:
            explanation = app.explain_job(inspect.get(app.store, name).wait(), app.store.settings().wait())
        else:
            explanation = app.explain(name, _operators_settings(app))
    if is_job and not session.has_app:
        faults.warn("no app is given (--app), so what the task and queue say is not known.")
    if session.is_json:
        session.emit(explanation_document(explanation, 1_000))
        return
    output.say(explanation.subject)
    output.say("")
    output.table(_COLUMNS, [[line.name, line.value, line.origin] for line in explanation.lines])
    output.heading("when it fails every time")
    print_waits(forecast(explanation.retry.with_limit(explanation.limit)), 25)


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
