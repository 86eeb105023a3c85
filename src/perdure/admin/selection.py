"""Which jobs an operator means: filters as people write them, and frozen selections of many jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

import msgspec

from perdure.admin.damage import check_readable
from perdure.admin.reply_generator import Steps, ask
from perdure.errors import BadDuration, BadOption, JobNotFound, WrongState
from perdure.model.forward import FORWARD_STATES
from perdure.model.job import JobId, is_job_id
from perdure.model.state import STATES, State
from perdure.store import Store
from perdure.store.reads import JobFilter
from perdure.text.duration import parse_duration
from perdure.text.suggestion import suggestion

Moment = datetime | timedelta | str
"""A moment: a datetime, ISO text, or so long ago (`"1h"`, a timedelta) by the store's clock."""

_TICK = timedelta(microseconds=1)


class Filters(TypedDict, total=False):
    """What can be asked for; all that is given must hold."""

    state: str | None
    task: str | None
    queue: str | None
    error: str | None
    """A part of the last error's type or message, letter case ignored."""
    group: str | None
    """The fingerprint of an error group."""
    reason: str | None
    schedule: str | None
    """The name of the schedule that made them."""
    forward: str | None
    """How far the forwarding of a dead job is: pending, failing, stopped or forwarded."""
    before: Moment | None
    """Ended (or, if not ended, created) before this moment."""
    after: Moment | None


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Dead jobs as they were at one moment: those that die later do not join, so the count holds."""

    where: JobFilter
    count: int
    at: datetime


def read_filters(store: Store, filters: Mapping[str, Any]) -> Steps[JobFilter]:
    """The store's filter for what a person gave; asks the store's clock only for moments like `1h` ago."""
    given = {name: value for name, value in filters.items() if value is not None}
    _refuse_unknown(given)
    values: dict[str, Any] = {name: _text(name, value) for name, value in given.items() if name not in _MOMENTS}
    if "state" in values:
        values["state"] = read_state(values["state"])
    if values.get("forward", "pending") not in FORWARD_STATES:
        raise BadOption(
            f"forward is {values['forward'][:60]!r}, which is no state of a forward.",
            f"There are: {', '.join(FORWARD_STATES)}.",
        )
    for name in _MOMENTS & given.keys():
        values[name] = yield from _read_moment(store, given[name], name)
    return JobFilter(**values)


def select_dead(store: Store, ids: Sequence[str], filters: Mapping[str, Any]) -> Steps[Selection]:
    """The dead jobs that are meant, by id or by filters, and exactly how many they are now.

    All dead jobs must be asked for in so many words, `state="dead"`: an empty filter is more often a slip.
    """
    given = {name: value for name, value in filters.items() if value is not None}
    if ids and given:
        raise BadOption("Job ids and filters were given together.", "Give either the ids or the filters.")
    if not ids and not given:
        raise BadOption(
            "Nothing says which dead jobs are meant.",
            'Give job ids or filters; state="dead" alone means all of them.',
        )
    require_dead(given)
    now = yield from ask(store.now())
    if ids:
        wanted = yield from _dead_ids(store, ids)
        where = JobFilter(ids=wanted, state="dead")
    else:
        found = yield from read_filters(store, given)
        # A job that is put back and dies again must not be met a second time.
        cutoff = now + _TICK if found.before is None else min(found.before, now + _TICK)
        where = msgspec.structs.replace(found, state="dead", before=cutoff)
    count = yield from ask(store.count(where))
    return Selection(where=where, count=count, at=now)


def read_id(text: str) -> JobId:
    """A job id as people type it; what cannot be one is no job of ours."""
    cleaned = str(text).strip().lower()
    if not is_job_id(cleaned):
        raise JobNotFound(
            f"{str(text)[:60]!r} is not a job id.",
            "A job id looks like 01890a5d-ac96-774b-bcce-b302099a8057.",
        )
    return JobId(cleaned)


def read_state(text: str) -> State:
    """A state by its name."""
    if text not in STATES:
        raise BadOption(f"state is {text[:60]!r}, which is no state.", f"A job is one of: {', '.join(STATES)}.")
    return text


def require_dead(filters: Mapping[str, Any]) -> None:
    """Refuse filters that ask for another state where only dead jobs can be meant."""
    state = filters.get("state")
    if state not in (None, "dead"):
        raise BadOption(f"state is {state!r}, but only dead jobs are meant here.", 'Leave it out or give "dead".')


def not_found(job_id: str) -> JobNotFound:
    """The error for an id that no job has."""
    return JobNotFound(
        f"No job has the id {job_id}.",
        "Finished jobs are pruned after the retention time; check the id and the store's URL.",
    )


_MOMENTS = {"before", "after"}


def _refuse_unknown(given: Mapping[str, Any]) -> None:
    names = list(Filters.__annotations__)
    for name in given:
        if name not in names:
            near = suggestion(name, names)
            hint = f"Did you mean {near!r}?" if near else f"There are: {', '.join(names)}."
            raise BadOption(f"There is no filter {name[:60]!r}.", hint)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadOption(f"{name} is a {type(value).__name__}; it must be text.")
    if "\x00" in value:
        raise BadOption(f"{name} has a NUL character in it, which no job has.")
    return value


def _read_moment(store: Store, value: Moment, name: str) -> Steps[datetime]:
    try:
        if isinstance(value, datetime):
            return _aware(value)
        if isinstance(value, str):
            return _aware(datetime.fromisoformat(value.strip()))
    except (ValueError, OverflowError):
        pass
    try:
        if isinstance(value, datetime):
            raise BadDuration(f"{name} is a moment that cannot be told in UTC.")
        ago = parse_duration(value, what=name)
    except BadDuration as error:
        raise BadOption(
            f"{name} is {str(value)[:60]!r}, which is no moment.",
            'Write it like "2026-05-01T12:00", or how long ago: "1h", "7d".',
        ) from error
    now = yield from ask(store.now())
    return now - ago


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _last_runs(store: Store, ids: Sequence[JobId]) -> Steps[list[JobId]]:
    """The ids, with that of its last run in the place of a recurring scheduled job's."""
    jobs = yield from ask(store.get(ids))
    missing = [job_id for job_id, job in zip(ids, jobs, strict=True) if job is None]
    known = (yield from ask(store.get_schedules(missing))) if missing else []
    runs = {each.name: each.last_job_id for each in known if each is not None and each.last_job_id is not None}
    return [runs.get(job_id, job_id) for job_id in ids]


def _dead_ids(store: Store, ids: Sequence[str]) -> Steps[tuple[JobId, ...]]:
    asked = list(dict.fromkeys(read_id(text) for text in ids))
    wanted = tuple(dict.fromkeys((yield from _last_runs(store, asked))))
    jobs = yield from ask(store.get(wanted))
    for job_id, job in zip(wanted, jobs, strict=True):
        if job is None:
            yield from check_readable(store, "job", job_id)
            raise not_found(job_id)
        if job.state != "dead":
            hint = (
                "A cancelled job can be retried." if job.state == "cancelled" else "Only dead jobs can be meant here."
            )
            raise WrongState(f"The job {job_id} is {job.state}, not dead.", hint)
    return wanted
