"""What operators do to single jobs and queues: cancel, change, retry, discard, pause, resume."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import msgspec

from perdure.admin.inspect import get
from perdure.admin.reply_generator import Steps, ask, stepped
from perdure.admin.scheduled import ScheduledJob, find, find_scheduled
from perdure.admin.scheduled_verbs import cancel_scheduled, go_on, run_to_retry
from perdure.admin.selection import Selection, not_found, read_filters, read_id, select_dead
from perdure.errors import BadOption, Refused, WrongState
from perdure.model.change import Change
from perdure.model.event import Observer
from perdure.model.job import Job, JobId
from perdure.model.state import LIVE, State, Verb, states_before
from perdure.store import Store
from perdure.store.jobs import CancelAnswer
from perdure.store.reads import JobFilter
from perdure.text.duration import Duration, parse_duration

CHUNK = 1_000

Tell = Callable[[int], None]
"""Told after each chunk how many jobs it changed."""

CancelResult = Literal["cancelled", "asked", "already cancelled"]


@stepped
def cancel(store: Store, job_id: str) -> Steps[CancelResult]:
    """Cancel a job, or ask its worker to while it runs; raises JobNotFound, WrongState when it has ended.

    A scheduled job is cancelled as a whole: its schedule stops, and its unfinished runs are cancelled.
    """
    found = yield from find(store, job_id)
    answer = yield from _cancel_found(store, found)
    match answer:
        case "not found":
            raise not_found(found.id)
        case "already ended":
            raise (yield from _wrong_state(store, found, "cancel"))
        case _:
            return answer


@stepped
def cancel_many(store: Store, ids: Sequence[str], tell: Tell | None = None) -> Steps[list[tuple[JobId, CancelAnswer]]]:
    """Cancel many jobs; each id with its answer, nothing raised for single jobs."""
    wanted = list(dict.fromkeys(read_id(text) for text in ids))
    answers: list[tuple[JobId, CancelAnswer]] = []
    for start in range(0, len(wanted), CHUNK):
        chunk = wanted[start : start + CHUNK]
        for wanted_id, answer in zip(chunk, (yield from ask(store.cancel(chunk, "cancelled"))), strict=True):
            # A recurring job, and a one-shot job before its time, are scheduled jobs and no jobs.
            found = (yield from find_scheduled(store, wanted_id)) if answer == "not found" else None
            answers.append((wanted_id, answer if found is None else (yield from _cancel_found(store, found))))
        if tell is not None:
            tell(len(chunk))
    return answers


@stepped
def select_live(store: Store, filters: Mapping[str, Any]) -> Steps[list[JobId]]:
    """The ids of matching jobs that have not ended, so that their number can be shown first."""
    where = yield from read_filters(store, filters)
    if where.state is not None and where.state not in LIVE:
        raise WrongState(f"Jobs that are {where.state} have ended.", f"Only {_names(LIVE)} jobs can be cancelled.")
    found: list[JobId] = []
    for state in [where.state] if where.state is not None else sorted(LIVE):
        found += yield from _all_ids(store, msgspec.structs.replace(where, state=state))
    # A job may change its state between two looks and be met in both.
    return list(dict.fromkeys(found))


@stepped
def change(store: Store, job_id: str, change: Change) -> Steps[Job]:
    """Make a waiting or ready job as the change says, and show it; a change that names nothing only shows it.

    Raises JobNotFound, WrongState when the job runs or has ended, and Refused for a scheduled job that is no job yet.
    """
    found = yield from find(store, job_id)
    if not change.is_empty:
        [answer] = yield from ask(store.change([found.id], change))
        if answer == "wrong state":
            raise (yield from _wrong_state(store, found, "change"))
        if answer == "not found" and isinstance(found, ScheduledJob):
            raise Refused(
                f"The job {found.id} was made with a schedule, and has none of these fields.",
                "Its schedule, api, type, is_recurring, max_retry_count and is_paused can be changed.",
            )
    return (yield from ask(get(store, found.id)))


@stepped
def retry(store: Store, job_id: str, observer: Observer | None = None) -> Steps[State]:
    """Make a waiting, dead or cancelled job ready now, and give its state then.

    Of a scheduled job the unfinished or last run; before its first run that one is made, and the observer, if any, is
    told of it. A recurring job that was cancelled goes on.

    Raises JobNotFound, WrongState, or Refused when a live job has its unique key.
    """
    found = yield from find(store, job_id)
    if isinstance(found, Job):
        yield from _retry_run(store, found, found.id)
        return "ready"
    run_id = yield from run_to_retry(store, found, observer)
    is_made = found.run is None
    if run_id is not None:
        yield from _retry_run(store, found, run_id)
    yield from go_on(store, found)
    return "ready" if is_made or run_id is not None else "waiting"


def _cancel_found(store: Store, found: Job | ScheduledJob) -> Steps[CancelAnswer]:
    if isinstance(found, ScheduledJob):
        return (yield from cancel_scheduled(store, found))
    [answer] = yield from ask(store.cancel([found.id], "cancelled"))
    return answer


def _retry_run(store: Store, found: Job | ScheduledJob, run_id: JobId) -> Steps[None]:
    [answer] = yield from ask(store.retry([run_id]))
    match answer:
        case "not found":
            raise not_found(found.id)
        case "wrong state":
            raise (yield from _wrong_state(store, found, "retry"))
        case "unique key busy":
            raise Refused(
                f"The job {found.id} cannot come back: a live job of the same task has its unique key.",
                "Wait for that job to end, or cancel it first.",
            )


@stepped
def discard(store: Store, ids: Sequence[str], filters: Mapping[str, Any], *, dry_run: bool = False) -> Steps[int]:
    """Dismiss dead jobs by id or filters, or only count them; gives how many."""
    selection = yield from select_dead(store, ids, filters)
    if dry_run:
        return selection.count
    return (yield from ask(discard_selected(store, selection)))


@stepped
def discard_selected(store: Store, selection: Selection, tell: Tell | None = None) -> Steps[int]:
    """Dismiss the dead jobs of a selection in chunks; gives how many."""
    done = 0
    while done < selection.count:
        count = yield from ask(store.discard(selection.where, min(CHUNK, selection.count - done)))
        if count == 0:
            break
        done += count
        if tell is not None:
            tell(count)
    return done


@stepped
def pause(
    store: Store,
    queue: str,
    reason: str | None = None,
    *,
    until: datetime | str | None = None,
    duration: Duration | None = None,
) -> Steps[bool]:
    """Stop fetching from a queue, until a moment or for a time if one is given; whether that changed anything."""
    check_queue(queue)
    if until is not None and duration is not None:
        raise BadOption("Both an end and a duration of the pause were given.", "Give one of them.")
    end: datetime | None = None
    if until is not None or duration is not None:
        now = yield from ask(store.now())
        end = _read_end(until) if until is not None else now + parse_duration(duration or 0, what="the pause")
        if end <= now:
            raise BadOption(
                f"The pause would end at {end.isoformat()}, which has passed: it is {now.isoformat()}.",
                "Give a later time, in UTC unless it says otherwise; or none, and resume the queue yourself.",
            )
    return (yield from ask(store.pause(queue, reason, end)))


@stepped
def resume(store: Store, queue: str) -> Steps[bool]:
    """Fetch from a queue again; whether that changed anything."""
    check_queue(queue)
    return (yield from ask(store.resume(queue)))


def check_queue(queue: str) -> None:
    """Refuse a queue without a name."""
    if not queue.strip():
        raise BadOption("The queue's name is empty.", "Name the queue.")


_WHAT_TO_DO: Mapping[State, str] = {
    "waiting": "It runs by itself when it is due.",
    "ready": "It runs as soon as a worker is free.",
    "running": "Wait until this attempt ends, or cancel the job.",
    "succeeded": "Enqueue a new job to run it again.",
    "dead": "Discard it, or replay it.",
    "cancelled": "It has ended already; retry puts it back.",
}


def _wrong_state(store: Store, found: Job | ScheduledJob, verb: Verb) -> Steps[WrongState]:
    job_id = found.id
    run_id = found.run.id if isinstance(found, ScheduledJob) and found.run is not None else job_id
    [job] = yield from ask(store.get([run_id]))
    state: State | None = None if job is None else job.state
    now = "no longer there" if state is None else state
    hint = "" if state is None else f" {_WHAT_TO_DO[state]}"
    return WrongState(
        f"The job {job_id} is {now}.", f"{verb.capitalize()} takes {_names(states_before(verb))} jobs.{hint}"
    )


def _names(states: frozenset[State]) -> str:
    names = [state for state in get_args(State) if state in states]
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _all_ids(store: Store, where: JobFilter) -> Steps[list[JobId]]:
    ids: list[JobId] = []
    while True:
        page = yield from ask(store.list(where, limit=CHUNK, after=ids[-1] if ids else None))
        ids += [job.id for job in page]
        if len(page) < CHUNK:
            return ids


def _read_end(until: datetime | str) -> datetime:
    end = _parsed(until) if isinstance(until, str) else until
    return end.replace(tzinfo=UTC) if end.tzinfo is None else end.astimezone(UTC)


def _parsed(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadOption(
            f"{text[:60]!r} is no moment.", "Write it like 2030-01-31T18:00, in UTC unless it says otherwise."
        ) from None
