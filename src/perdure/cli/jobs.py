"""`perdure jobs`: list, show, change, cancel and retry jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from perdure.admin import inspect, operate
from perdure.admin.document import forward_document, job_document
from perdure.admin.payload_view import PayloadView
from perdure.cli import faults, output
from perdure.cli.enqueue import read_at, read_limit
from perdure.cli.lazy import SuggestingGroup
from perdure.cli.options import (
    confirm,
    destructive_options,
    filter_options,
    read_duration,
    reveal_option,
    store_options,
)
from perdure.cli.output import Column, plural
from perdure.cli.progress import progress
from perdure.cli.session import Session
from perdure.cli.show import forward_brief, show_job
from perdure.errors import BadOption, PerdureError
from perdure.model.change import make_change
from perdure.model.forward import Forward
from perdure.model.job import Job, JobId

COLUMNS = (
    Column("ID"),
    Column("TASK", is_flexible=True),
    Column("QUEUE", is_flexible=True),
    Column("STATE"),
    Column("ATTEMPT", is_number=True),
    Column("CREATED"),
    Column("WHEN"),
    Column("WHY", is_flexible=True),
)


@click.group(cls=SuggestingGroup)
def jobs() -> None:
    """List, show, change, cancel and retry jobs."""


@jobs.command()
@filter_options(state=True)
@click.option("--limit", default=50, show_default=True, metavar="N", help="At most so many, up to 1000.")
@click.option("--cursor", metavar="ID", help="Go on after this job: the next_cursor of the page before.")
@reveal_option
@store_options
def ls(session: Session, filters: dict[str, Any], limit: int, cursor: str | None, reveals: bool) -> None:
    """List jobs, newest first."""
    with session.store() as store:
        page = inspect.list(store, filters, limit=limit, cursor=cursor).wait()
        now = store.now().wait()
    print_page(session, page, now, session.view(reveals=reveals))


@jobs.command()
@click.argument("job_id")
@reveal_option
@store_options
def show(session: Session, job_id: str, reveals: bool) -> None:
    """Show one job: its state and why, every attempt, its arguments, and what can be done."""
    with session.store() as store:
        show_job(session, store, job_id, session.view(reveals=reveals))


@jobs.command()
@click.argument("job_ids", nargs=-1, metavar="[JOB_ID]...")
@filter_options(state=True)
@destructive_options
@store_options
def cancel(session: Session, job_ids: tuple[str, ...], filters: dict[str, Any], dry_run: bool, yes: bool) -> int:
    """Cancel jobs by id, or all live jobs that match the filters.

    A running job's worker is asked to stop it. A job that was made with a schedule stops for good, whether it has a
    run or not. Several jobs at once are confirmed first.
    """
    if bool(job_ids) == bool(filters):
        raise BadOption("Which jobs?", "Give job ids, or filters such as --task or --queue, but not both.")
    with session.store() as store:
        if len(job_ids) == 1 and not dry_run:
            answer = operate.cancel(store, job_ids[0]).wait()
            return _print_answers(session, [(job_ids[0], answer)])
        found: Sequence[str] = job_ids or operate.select_live(store, filters).wait()
        if dry_run:
            _print_count(session, len(found), "would be cancelled")
            return faults.OK
        if found:
            confirm(f"Cancel {plural(len(found), 'job')}?", yes=yes)
        with progress("cancelling", len(found), is_wanted=not session.is_json) as tell:
            answers = operate.cancel_many(store, found, tell).wait()
    return _print_answers(session, [(str(job_id), answer) for job_id, answer in answers])


@jobs.command()
@click.argument("job_ids", nargs=-1, required=True, metavar="JOB_ID...")
@store_options
def retry(session: Session, job_ids: tuple[str, ...]) -> int:
    """Make waiting, dead or cancelled jobs ready now.

    Of a job that was made with a schedule the unfinished or last run; before its first run that one is made now.
    """
    with session.store() as store:

        def make_ready(job_id: str) -> str:
            return operate.retry(store, job_id).wait()

        return _do_each(session, job_ids, make_ready)


@jobs.command("set")
@click.argument("job_ids", nargs=-1, required=True, metavar="JOB_ID...")
@click.option("--delay", callback=read_duration, metavar="DURATION", help="Not before so long from now.")
@click.option(
    "--at", "run_at", callback=read_at, metavar="WHEN", help="Not before this ISO time, UTC if it has no offset."
)
@click.option("--priority", type=click.IntRange(-100, 100), metavar="N", help="-100 to 100, higher first.")
@click.option("--queue", metavar="NAME", help="The queue that it is to stand in.")
@click.option("--max-attempts", callback=read_limit, metavar="N", help="The most failures it may have, or unlimited.")
@click.option("--max-retries", callback=read_limit, metavar="N", help="The same limit, counted as retries.")
@click.option("--unset", multiple=True, metavar="NAME", help="Take max-attempts back: the policy's limit holds.")
@store_options
def set_(session: Session, job_ids: tuple[str, ...], unset: tuple[str, ...], **options: Any) -> int:
    """Change jobs that have not started; what is not named stays."""
    wanted = make_change(**options, unset=[name.replace("-", "_") for name in unset])
    if wanted.is_empty:
        raise BadOption("What is to be different?", "Give --delay or --at, --priority, --queue, or a limit.")
    with session.store() as store:
        return _do_each(session, job_ids, lambda job_id: operate.change(store, job_id, wanted).wait().state)


def print_page(
    session: Session,
    page: inspect.Page[Job],
    now: datetime,
    view: PayloadView,
    forwards: Mapping[JobId, Forward] | None = None,
) -> None:
    """Print a page of jobs and how to get the next; of dead letters with how far their forwarding is."""
    if session.is_json:
        jobs = [job_document(job, view) for job in page]
        if forwards is not None:
            jobs = [{**job, "forward": forward_document(forwards.get(job["id"]), view)} for job in jobs]
        session.emit({"jobs": jobs, "next_cursor": page.next_cursor})
        return
    if not page:
        output.aside("No job matches.")
        return
    rows = [_row(job, now, view) for job in page]
    if forwards:
        for job, row in zip(page, rows, strict=True):
            row.insert(-1, forward_brief(forwards.get(job.id), now))
        output.table((*COLUMNS[:-1], Column("FORWARD"), COLUMNS[-1]), rows)
    else:
        output.table(COLUMNS, rows)
    if page.next_cursor is not None:
        output.aside(f"There are more: add --cursor {page.next_cursor}")


def _row(job: Job, now: datetime, view: PayloadView) -> list[str]:
    moment = job.ended_at or (job.state == "running" and job.started_at) or job.run_at
    why = ": ".join(part for part in (job.reason, view.text(str(job.error)) if job.error else None) if part)
    return [
        job.id,
        job.task,
        job.queue,
        job.state,
        str(job.attempt),
        output.absolute(job.created_at),
        output.relative(moment, now),
        why,
    ]


def _print_count(session: Session, count: int, what: str) -> None:
    if session.is_json:
        session.emit({"count": count, "is_dry_run": True})
    else:
        output.say(f"{plural(count, 'job')} {what}.")


def _do_each(session: Session, job_ids: Sequence[str], act: Callable[[str], str]) -> int:
    """Do something to jobs and print what became of each; a single one that cannot be done is an error."""
    if len(job_ids) == 1:
        return _print_answers(session, [(job_ids[0], act(job_ids[0]))])
    answers: list[tuple[str, str]] = []
    code = faults.OK
    for job_id in job_ids:
        try:
            answers.append((job_id, act(job_id)))
        except PerdureError as error:
            answers.append((job_id, error.message))
            code = faults.exit_code(error)
    _print_answers(session, answers)
    return code


def _print_answers(session: Session, answers: list[tuple[str, str]]) -> int:
    if session.is_json:
        session.emit({"answers": [{"id": job_id, "answer": answer} for job_id, answer in answers]})
    else:
        for job_id, answer in answers:
            output.say(f"{job_id}  {_ANSWERS.get(answer, answer)}")
        if not answers:
            output.aside("No job matches.")
    given = {answer for _, answer in answers}
    if "not found" in given:
        return faults.NOT_FOUND
    return faults.REFUSED if "already ended" in given else faults.OK


_ANSWERS = {"asked": "running; its worker was asked to cancel it"}
