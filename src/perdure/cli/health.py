"""`perdure health`: whether all is well, for people, probes and scripts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from perdure.admin import health as judging
from perdure.admin.health import Finding, finding_document, health_document
from perdure.cli import faults, output
from perdure.cli.options import read_duration, store_options
from perdure.cli.output import Column
from perdure.cli.session import Session
from perdure.errors import SchemaTooNew, SchemaTooOld
from perdure.model.thresholds import Thresholds

_COLUMNS = (Column("CHECK"), Column("LEVEL"), Column("FOUND", is_wrapped=True), Column("DO", is_wrapped=True))


@click.command()
@click.option("--queue", metavar="NAME", help="Look at this queue only.")
@click.option("--window", callback=read_duration, metavar="DURATION", help="How far back counts; 15m if not given.")
@click.option(
    "--retry-rate", type=float, metavar="PART", help="The most of all attempts that may be retries; 0.1 if not given."
)
@click.option(
    "--least-attempts", type=int, metavar="N", help="From how many attempts on the rate counts; 10 if not given."
)
@click.option("--exhausted", type=int, metavar="N", help="How many jobs may reach their limit; 0 if not given.")
@click.option(
    "--oldest-ready", callback=read_duration, metavar="DURATION", help="How long a due job may wait; 5m if not given."
)
@click.option(
    "--wait", callback=read_duration, metavar="DURATION", help="How long 95 % may wait to start; 1m if not given."
)
@click.option(
    "--retry-delay", callback=read_duration, metavar="DURATION", help="How long 95 % may back off; 5m if not given."
)
@store_options
def health(session: Session, queue: str | None, **given: float | timedelta | None) -> int:
    """Say whether all is well: retries, limits, waits, workers, leases, queues, schema.

    Exit code 0 when it is, 1 when something is degraded or failed, 5 when the store cannot be reached. Rates come from
    the newest jobs in the store, at most 500 of each kind, so that looking is cheap at any size.
    """
    limits: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    thresholds = Thresholds(**limits)
    try:
        with session.store(auto_migrate=False) as store:
            found = judging.health(store, thresholds, queue=queue).wait()
    except (SchemaTooOld, SchemaTooNew) as error:
        _show(session, "failed", [Finding(check="schema", level="failed", text=str(error))])
        return faults.FAILED
    if session.is_json:
        session.emit(health_document(found))
    else:
        _show(session, found.status, found.findings)
    return faults.OK if found.status == "ok" else faults.FAILED


def _show(session: Session, status: str, findings: list[Finding] | tuple[Finding, ...]) -> None:
    if session.is_json:
        session.emit({"status": status, "findings": [finding_document(finding) for finding in findings]})
        return
    rows = [[finding.check, finding.level, finding.text, finding.hint] for finding in findings]
    output.table(_COLUMNS, rows)
    output.say(f"status: {status}")
