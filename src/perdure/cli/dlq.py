"""`perdure dlq`: the dead letters, understood, brought back or dismissed."""

from __future__ import annotations

from typing import Any

import click

from perdure.admin import forwards, inspect, operate, replay
from perdure.admin import groups as error_groups
from perdure.admin.document import group_document
from perdure.admin.reply_generator import Stepped
from perdure.admin.selection import Selection, select_dead
from perdure.cli import output
from perdure.cli.export import export_dead
from perdure.cli.jobs import print_page
from perdure.cli.lazy import SuggestingGroup
from perdure.cli.options import confirm, destructive_options, filter_options, reveal_option, store_options
from perdure.cli.output import Column, plural
from perdure.cli.progress import progress
from perdure.cli.session import Session
from perdure.cli.show import show_job
from perdure.errors import BadOption, WrongState
from perdure.store import Store

_GROUP_COLUMNS = (
    Column("GROUP"),
    Column("COUNT", is_number=True),
    Column("TASK", is_flexible=True),
    Column("ERROR", is_flexible=True),
    Column("FIRST"),
    Column("LAST"),
)


@click.group(cls=SuggestingGroup)
def dlq() -> None:
    """The dead letters: understand them, bring them back, dismiss them."""


@dlq.command()
@filter_options(state=False)
@click.option("--limit", default=50, show_default=True, metavar="N", help="At most so many, up to 1000.")
@click.option("--cursor", metavar="ID", help="Go on after this job: the next_cursor of the page before.")
@reveal_option
@store_options
def ls(session: Session, filters: dict[str, Any], limit: int, cursor: str | None, reveals: bool) -> None:
    """List dead jobs, newest first."""
    with session.store() as store:
        page = inspect.dead_letters(store, filters, limit=limit, cursor=cursor).wait()
        found = store.forwards([job.id for job in page]).wait()
        now = store.now().wait()
    print_page(session, page, now, session.view(reveals=reveals), found)


@dlq.command()
@filter_options(state=False)
@click.option("--limit", default=50, show_default=True, metavar="N", help="At most so many, up to 1000.")
@reveal_option
@store_options
def groups(session: Session, filters: dict[str, Any], limit: int, reveals: bool) -> None:
    """Group dead jobs by how they failed, largest group first."""
    with session.store() as store:
        found = error_groups.groups(store, filters, limit=limit).wait()
        now = store.now().wait()
    view = session.view(reveals=reveals)
    if session.is_json:
        session.emit({"groups": [group_document(group, view) for group in found]})
        return
    if not found:
        output.aside("No dead job matches.")
        return
    rows = [
        [
            group.fingerprint,
            str(group.count),
            group.task,
            view.text(str(group.sample)) if group.sample else "-",
            output.relative(group.first_at, now),
            output.relative(group.last_at, now),
        ]
        for group in found
    ]
    output.table(_GROUP_COLUMNS, rows)
    output.aside(f"See one with: perdure dlq ls --group {found[0].fingerprint}")


@dlq.command()
@click.argument("job_id")
@reveal_option
@store_options
def show(session: Session, job_id: str, reveals: bool) -> None:
    """Show one dead job: why it died, every attempt, its arguments, and what can be done."""
    with session.store() as store:
        job = inspect.get(store, job_id).wait()
        if job.state != "dead":
            raise WrongState(f"The job {job.id} is {job.state}, not dead.", f"perdure jobs show {job.id}")
        show_job(session, store, job_id, session.view(reveals=reveals))


@dlq.command(name="replay")
@click.argument("job_ids", nargs=-1, metavar="[JOB_ID]...")
@filter_options(state=False)
@click.option("--all", "is_all", is_flag=True, help="All dead jobs.")
@click.option("--rate", metavar="RATE", help="Spread them out: 50/s, 100/m, 10/h.")
@click.option("--canary", type=click.IntRange(min=1), metavar="N", help="Put back the oldest N only, to see first.")
@destructive_options
@store_options
def replay_command(
    session: Session,
    job_ids: tuple[str, ...],
    filters: dict[str, Any],
    is_all: bool,
    rate: str | None,
    canary: int | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Put dead jobs back by id, by filters, or all of them; oldest first, failures counted from 0 again."""
    every = replay.read_rate(rate)
    with session.store() as store:
        selection = _select(store, job_ids, filters, is_all)
        count = selection.count if canary is None else min(canary, selection.count)
        if dry_run or count == 0:
            _print_done(session, count, "would be put back", {"matching": selection.count}, is_dry_run=dry_run)
            return
        confirm(_replay_question(count, selection.count, rate), yes=yes)
        with progress("replaying", count, is_wanted=not session.is_json) as tell:
            done = replay.replay_selected(store, selection, every=every, canary=canary, tell=tell).wait()
    _print_done(session, done.count, "put back", {"matching": done.matching, "left": done.left})
    if canary is None and done.left and not session.is_json:
        output.aside(f"{plural(done.left, 'job')} stayed dead: a live job has the same unique key.")


@dlq.command(name="forward")
@click.argument("job_ids", nargs=-1, metavar="[JOB_ID]...")
@filter_options(state=False)
@click.option("--all", "is_all", is_flag=True, help="All dead jobs.")
@store_options
def forward_command(session: Session, job_ids: tuple[str, ...], filters: dict[str, Any], is_all: bool) -> None:
    """Have workers hand dead jobs to their sink now, by id, by filters, or all that are not forwarded yet."""
    with session.store() as store:
        count = forwards.forward_selected(store, _select(store, job_ids, filters, is_all)).wait()
    if session.is_json:
        session.emit({"count": count})
    else:
        output.say(f"{plural(count, 'dead job')} due to be forwarded now.")


@dlq.command()
@click.argument("job_ids", nargs=-1, metavar="[JOB_ID]...")
@filter_options(state=False)
@click.option("--all", "is_all", is_flag=True, help="All dead jobs.")
@destructive_options
@store_options
def discard(
    session: Session,
    job_ids: tuple[str, ...],
    filters: dict[str, Any],
    is_all: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Dismiss dead jobs by id, by filters, or all of them: they end cancelled and are pruned in time."""
    with session.store() as store:
        selection = _select(store, job_ids, filters, is_all)
        if dry_run or selection.count == 0:
            _print_done(session, selection.count, "would be discarded", {}, is_dry_run=dry_run)
            return
        confirm(f"Discard {plural(selection.count, 'dead job')}?", yes=yes)
        with progress("discarding", selection.count, is_wanted=not session.is_json) as tell:
            count = operate.discard_selected(store, selection, tell).wait()
    _print_done(session, count, "discarded", {})


@dlq.command()
@filter_options(state=False)
@click.option("--output", "-o", "path", default="-", metavar="FILE", help="Where to write; - is stdout.")
@click.option("--history", "has_history", is_flag=True, help="Add every attempt to each job.")
@click.option("--yes", "-y", is_flag=True, help="Overwrite a file that exists.")
@reveal_option
@store_options
def export(session: Session, filters: dict[str, Any], path: str, has_history: bool, yes: bool, reveals: bool) -> None:
    """Write dead jobs as JSON lines, one job a line, newest first."""
    with session.store() as store:
        view = session.view(reveals=reveals)
        export_dead(session, store, filters, path=path, has_history=has_history, view=view, may_overwrite=yes)


def _select(store: Store, job_ids: tuple[str, ...], filters: dict[str, Any], is_all: bool) -> Selection:
    if not job_ids and not filters and not is_all:
        raise BadOption("Which dead jobs?", "Give job ids, filters such as --task or --group, or --all.")
    if is_all and (job_ids or filters):
        raise BadOption("--all was given together with ids or filters.", "Give only one of them.")
    wanted = {"state": "dead"} if is_all else filters
    return Stepped(select_dead(store, job_ids, wanted)).wait()


def _replay_question(count: int, matching: int, rate: str | None) -> str:
    part = f" (of {matching:,} that match)" if count != matching else ""
    pace = f" at {rate}" if rate else ""
    return f"Put {plural(count, 'dead job')}{part} back{pace}?"


def _print_done(session: Session, count: int, what: str, more: dict[str, int], *, is_dry_run: bool = False) -> None:
    if session.is_json:
        session.emit({"count": count, **more, "is_dry_run": is_dry_run})
    else:
        output.say(f"{plural(count, 'dead job')} {what}.")
