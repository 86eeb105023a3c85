"""`perdure workers`: see who runs the jobs."""

from __future__ import annotations

import click

from perdure.admin import inspect
from perdure.admin.document import worker_document
from perdure.cli import output
from perdure.cli.lazy import SuggestingGroup
from perdure.cli.options import store_options
from perdure.cli.output import Column
from perdure.cli.session import Session

_COLUMNS = (
    Column("WORKER"),
    Column("HOST", is_flexible=True),
    Column("PID", is_number=True),
    Column("STATE"),
    Column("RUNNING", is_number=True),
    Column("SLOTS", is_number=True),
    Column("QUEUES", is_flexible=True),
    Column("STARTED"),
    Column("BEAT"),
    Column("VERSION"),
)


@click.group(cls=SuggestingGroup)
def workers() -> None:
    """See who runs the jobs."""


@workers.command()
@store_options
def ls(session: Session) -> None:
    """List the registered workers; a stale one's lease has run out."""
    with session.store() as store:
        found = inspect.workers(store).wait()
        now = store.now().wait()
    if session.is_json:
        session.emit({"workers": [worker_document(worker, now) for worker in found]})
        return
    if not found:
        output.aside("No worker is registered. Start one with: perdure worker MODULE:APP")
        return
    rows = [
        [
            worker.id,
            worker.host,
            str(worker.pid),
            "alive" if worker.lease_until > now else "stale",
            str(worker.running),
            str(worker.concurrency),
            ",".join(worker.queues),
            output.absolute(worker.started_at),
            output.relative(worker.beat_at, now),
            worker.version,
        ]
        for worker in found
    ]
    output.table(_COLUMNS, rows)
