"""`perdure doctor`: looks for what is wrong with the engine, its schema, clock and file, the workers and the queues."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perdure.admin import inspect
from perdure.admin.inspect import Stats
from perdure.application.sources import Configuration
from perdure.cli import faults, output
from perdure.cli.doctor.damage import Damage, damage_findings, look
from perdure.cli.doctor.finding import Finding
from perdure.cli.doctor.policies import load_user_app, policy_findings
from perdure.cli.doctor.tasks import task_findings
from perdure.cli.options import app_options
from perdure.cli.output import Column, plural, rough
from perdure.cli.session import Session, sqlite_path
from perdure.errors import BadOption, EngineDamaged, EngineUnusable, SchemaTooNew, SchemaTooOld
from perdure.store import Store
from perdure.store.workers import WorkerInfo
from perdure.system.clock import SystemClock

if TYPE_CHECKING:
    from perdure.app import App

_COLUMNS = (Column("CHECK"), Column("LEVEL"), Column("FOUND", is_wrapped=True))
_LARGEST_SKEW = timedelta(seconds=2)
_LONG_READY = timedelta(minutes=5)


@click.command()
@click.option("--repair", "repairs", is_flag=True, help="Show what would be repaired; with --yes, repair it.")
@click.option("--yes", "-y", is_flag=True, help="Carry the repair out.")
@app_options
def doctor(session: Session, repairs: bool, yes: bool) -> int:
    """Look for what is wrong with the engine, its schema, clock and file, the workers, queues, tasks and records.

    With an app, its tasks are compared with the queues that workers serve, and those whose retry policy gives up within
    ten seconds are listed. Records that cannot be read are named, and left as they are.

    --repair looks for jobs that are in no queue, run for no worker or are counted wrongly. It only shows them, unless
    --yes is given. Workers may go on meanwhile.

    Exit code 1 when there is a problem, or when one is left after a repair; notes alone do not change it.
    """
    if yes and not repairs:
        raise BadOption("--yes was given without --repair.", "Give both to have the store repaired.")
    own, loading = load_user_app(session)
    damage = Damage(faults=())
    try:
        # Opened without the user's app, which might migrate the store.
        with session.without_app(own).app(auto_migrate=False) as app:
            # With rights missing, the jobs cannot be looked at.
            may_look = not app.store.capabilities.problems
            looked, damage = _damage(app, own, repairs=repairs, is_dry_run=not yes) if may_look else ([], damage)
            findings = [
                *_engine(app.store),
                *_file(app.settings.url),
                _settings((own or app).configuration),
                *_configuration_file(app.configuration.file),
                *loading,
                *policy_findings(own or app),
                *looked,
                *(_readable(lambda: _jobs(app.store)) if may_look else ()),
                *(_readable(lambda: task_findings(own, app.store, _alive(app.store))) if may_look else ()),
            ]
    except (SchemaTooOld, SchemaTooNew) as error:
        findings = [Finding("schema", "problem", str(error))]
    has_problem = any(finding.level == "problem" for finding in findings)
    if session.is_json:
        shown = [finding._asdict() for finding in findings]
        session.emit({"is_healthy": not has_problem, "findings": shown, "records": damage.document})
    else:
        output.table(_COLUMNS, [list(finding) for finding in findings])
    return faults.FAILED if has_problem else faults.OK


def _damage(app: App, own: App | None, *, repairs: bool, is_dry_run: bool) -> tuple[list[Finding], Damage]:
    """What is wrong with the records, and what was done about it."""
    try:
        damage = look(app, own, repairs=repairs, is_dry_run=is_dry_run)
    except (EngineDamaged, EngineUnusable) as error:
        return [Finding("records", "problem", str(error))], Damage(faults=(), is_whole=False)
    return list(damage_findings(damage, is_dry_run=repairs and is_dry_run)), damage


def _readable(find: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """What a check finds; a part of the store that it cannot read is a finding itself."""
    try:
        return list(find())
    except EngineDamaged as error:
        return [Finding("records", "problem", str(error))]


def _engine(store: Store) -> Iterator[Finding]:
    able = store.capabilities
    yield Finding("engine", "ok", f"{able.engine} {able.version}. {able.durability}")
    for problem in able.problems:
        yield Finding("rights", "problem", problem)
    for warning in able.warnings:
        yield Finding("engine", "note", warning)
    schema = store.schema().wait()
    if schema.is_current:
        yield Finding("schema", "ok", f"version {schema.found} is current")
    else:
        text = f"version {schema.found}, wanted {schema.wanted}; run 'perdure db migrate'"
        yield Finding("schema", "problem", text)
    yield _clock(store)


def _clock(store: Store) -> Finding:
    clock = SystemClock()
    before = clock.now()
    theirs = store.now().wait()
    middle = before + (clock.now() - before) / 2
    skew = theirs - middle
    if abs(skew) > _LARGEST_SKEW:
        side = "ahead of" if skew > timedelta(0) else "behind"
        text = f"the store's clock is {rough(abs(skew))} {side} this machine's; the store's decides when jobs are due"
        return Finding("clock", "problem", text)
    return Finding("clock", "ok", f"store and machine agree within {rough(abs(skew))}")


def _file(url: str) -> Iterator[Finding]:
    path = sqlite_path(url)
    if path is None or not path.exists():
        return
    mode = path.stat().st_mode
    if mode & stat.S_IWOTH:
        yield Finding("file", "problem", f"everybody may write {path}; run: chmod o-rw {path}")
    elif mode & stat.S_IROTH:
        yield Finding("file", "note", f"everybody may read {path}, the jobs' arguments included")
    else:
        yield Finding("file", "ok", f"{path} has mode {stat.S_IMODE(mode):o}")


def _settings(configuration: Configuration) -> Finding:
    """Which settings are not at their defaults, and who says so; never their values, which may be secrets."""
    queues = {origin: [f"queue {name}" for name in said] for origin, said in configuration.queues}
    said = []
    for origin in ("environment", "file"):
        names = [name for name, place in configuration.origins.items() if place == origin]
        if names or queues.get(origin):
            place = (
                origin if origin == "environment" or configuration.file is None else Path(configuration.file).absolute()
            )
            said.append(f"from {place}: {', '.join([*names, *queues.get(origin, [])])}")
    return Finding("settings", "ok", "; ".join(said) or "all have their defaults, or come from the command line")


def _configuration_file(path: str | None) -> Iterator[Finding]:
    """One that members of a group may write is read; one that everybody may write was refused before."""
    if path is not None and Path(path).is_file() and Path(path).stat().st_mode & stat.S_IWGRP:
        place = Path(path).absolute()
        yield Finding(
            "settings", "note", f"members of its group may write {place}; if that is not meant: chmod g-w {place}"
        )


def _jobs(store: Store) -> Iterator[Finding]:
    numbers = inspect.stats(store).wait()
    workers = store.workers().wait()
    yield from _workers(workers, numbers)
    paused = [queue for queue in numbers.queues if queue.is_paused]
    for queue in paused:
        why = f" ({queue.pause_reason})" if queue.pause_reason else ""
        yield Finding("queues", "note", f"{queue.name} is paused since {output.when(queue.paused_at, numbers.at)}{why}")
    if not paused:
        yield Finding("queues", "ok", f"{plural(len(numbers.queues), 'queue')}, none paused")
    if numbers.dead:
        yield Finding("dead", "note", f"{plural(numbers.dead, 'dead job')}; see 'perdure dlq groups'")
    else:
        yield Finding("dead", "ok", "no dead jobs")
    yield from _forwards(numbers)


def _alive(store: Store) -> list[WorkerInfo]:
    now = store.now().wait()
    return [worker for worker in store.workers().wait() if worker.lease_until > now]


def _forwards(numbers: Stats) -> Iterator[Finding]:
    refused = {state: numbers.forwards[state] for state in ("failing", "stopped") if numbers.forwards[state]}
    for state, count in refused.items():
        what = "tried again" if state == "failing" else "not tried again by itself"
        text = f"{plural(count, 'dead job')} refused by the sink and {what}; see 'perdure dlq ls --forward {state}'"
        yield Finding("forwards", "problem", text)
    if not refused and any(numbers.forwards.values()):
        forwarded, pending = numbers.forwards["forwarded"], numbers.forwards["pending"]
        yield Finding("forwards", "ok", f"{forwarded:,} forwarded, {pending:,} pending, none refused")


def _workers(workers: list[WorkerInfo], numbers: Stats) -> Iterator[Finding]:
    stale = [worker for worker in workers if worker.lease_until <= numbers.at]
    alive = [worker for worker in workers if worker.lease_until > numbers.at]
    for worker in stale:
        text = f"{worker.id} on {worker.host} is silent since {output.when(worker.beat_at, numbers.at)}"
        held = f", holding {plural(worker.running, 'job')} until a living worker notices" if worker.running else ""
        yield Finding("workers", "problem", text + held)
    yield Finding("workers", "ok" if alive else "note", f"{plural(len(alive), 'worker')} alive")
    served = {queue for worker in alive for queue in worker.queues}
    for queue in numbers.queues:
        if queue.name not in served and not queue.is_paused and _is_late(queue.oldest_ready_at, numbers.at):
            text = f"{plural(queue.ready, 'ready job')} in {queue.name}, and no living worker serves it"
            yield Finding("workers", "problem", text)


def _is_late(moment: datetime | None, now: datetime) -> bool:
    return moment is not None and now - moment > _LONG_READY
