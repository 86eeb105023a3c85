"""`perdure stats`: the numbers over all queues."""

from __future__ import annotations

import click

from perdure.admin import inspect
from perdure.admin.document import stats_document
from perdure.cli import output
from perdure.cli.options import store_options
from perdure.cli.queues import print_queues
from perdure.cli.session import Session
from perdure.model.state import STATES


@click.command()
@store_options
def stats(session: Session) -> None:
    """The numbers over all queues: jobs by state, the oldest ready job, workers alive."""
    with session.store() as store:
        found = inspect.stats(store).wait()
    if session.is_json:
        session.emit(stats_document(found))
        return
    output.fields(
        [
            ("at", output.absolute(found.at)),
            *((state, f"{getattr(found, state):,}") for state in STATES),
            ("retrying", f"{found.retrying:,} of the waiting and ready"),
            ("oldest ready", output.rough(found.oldest_ready_age)),
            ("forwards", ", ".join(f"{count:,} {state}" for state, count in found.forwards.items() if count) or "none"),
            ("workers", f"{found.workers} alive"),
        ]
    )
    if found.queues:
        output.heading("by queue")
        print_queues(found)
