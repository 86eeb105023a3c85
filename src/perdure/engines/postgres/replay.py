"""Puts ended jobs back, or dismisses them: retry, replay, discard."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from perdure.engines.postgres.filter import parameters
from perdure.engines.postgres.rows import from_duration, from_ids
from perdure.engines.postgres.verb import Script, Step, Verb
from perdure.model.job import JobId
from perdure.model.state import State, states_before
from perdure.store.jobs import ReplayAnswer
from perdure.store.reads import JobFilter

_PAGE = 1000


def retry(ids: Sequence[JobId]) -> Verb[list[ReplayAnswer]]:
    """Make waiting, dead or cancelled jobs ready now."""
    return Verb(lambda: _retry(ids), is_transaction=True, may_collide=True)


def replay(where: JobFilter, limit: int, every: timedelta) -> Verb[int]:
    """Put matching dead jobs back, the first due now and each next one `every` later."""
    return Verb(lambda: _replay(where, limit, every), is_transaction=True, may_collide=True)


def discard(where: JobFilter, limit: int) -> Verb[int]:
    """Dismiss matching dead jobs."""
    return Verb(lambda: _discard(where, limit))


def _retry(ids: Sequence[JobId]) -> Script[list[ReplayAnswer]]:
    rows = yield Step("retry", {"ids": from_ids(ids)})
    states: dict[str, State] = dict(tuple(row) for row in rows)
    waiting = [job_id for job_id, state in states.items() if state == "waiting"]
    ended = [job_id for job_id in dict.fromkeys(ids) if states.get(job_id) in ("dead", "cancelled")]
    back: set[str] = set()
    if waiting:
        back.update(job_id for (job_id,) in (yield Step("retry_waiting", {"ids": waiting})))
    if ended:
        back.update(job_id for (job_id,) in (yield Step("replay", {"ids": ended, "every": 0, "done": 0})))
    answers: list[ReplayAnswer] = []
    for job_id in ids:
        if job_id in back:
            answers.append("replayed")
            # Asked for again, it is ready by now.
            back.discard(job_id)
            states[job_id] = "ready"
        elif job_id not in states:
            answers.append("not found")
        else:
            answers.append("unique key busy" if states[job_id] in states_before("retry") else "wrong state")
    return answers


def _replay(where: JobFilter, limit: int, every: timedelta) -> Script[int]:
    done, above = 0, None
    while done < limit:
        asked = min(_PAGE, limit - done)
        page = yield Step("replay_next", parameters(where, above=above, limit=asked))
        if page:
            ids = [job_id for (job_id,) in page]
            above = ids[-1]
            back = yield Step("replay", {"ids": ids, "every": from_duration(every), "done": done})
            done += len(back)
        if len(page) < asked:
            break
    return done


def _discard(where: JobFilter, limit: int) -> Script[int]:
    ((count,),) = yield Step("discard", parameters(where, limit=max(0, limit)))
    return int(count)
