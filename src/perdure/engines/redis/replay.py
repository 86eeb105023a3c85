"""Puts ended jobs back, or dismisses them: retry, replay, discard.

Many jobs are done in several scripts, each atomic and soon over.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from perdure.engines.redis.filter import LOOK_AT, Search, dead_among
from perdure.engines.redis.rows import from_duration
from perdure.engines.redis.verb import Argument, Call, Verb
from perdure.model.job import JobId
from perdure.store.jobs import ReplayAnswer
from perdure.store.reads import JobFilter


def retry(ids: Sequence[JobId]) -> Verb[list[ReplayAnswer]]:
    """Make waiting, dead or cancelled jobs ready now."""
    answers: list[ReplayAnswer] = []
    for first in range(0, len(ids), LOOK_AT):
        page = [job_id.encode() for job_id in ids[first : first + LOOK_AT]]
        found = yield Call("retry", page, is_write=True, is_repeatable=False)
        answers += [answer.decode() for answer in found]
    return answers


def replay(where: JobFilter, limit: int, every: timedelta) -> Verb[int]:
    """Put matching dead jobs back, the first due now and each next one `every` later."""
    dead = dead_among(where)
    if dead is None:
        return 0
    search = Search(dead, "brief", "up", "")
    done, since = 0, b""
    while done < limit and not search.is_over:
        page = yield from search.page(min(limit - done, LOOK_AT))
        if page:
            ids: list[Argument] = [match[0] for match in page]
            arguments = (since, done, from_duration(every), *ids)
            since, number = yield Call("replay", arguments, is_write=True, is_repeatable=False)
            done += number
    return done


def discard(where: JobFilter, limit: int) -> Verb[int]:
    """Dismiss matching dead jobs."""
    dead = dead_among(where)
    if dead is None:
        return 0
    search = Search(dead, "brief", "up", "")
    done = 0
    while done < limit and not search.is_over:
        page = yield from search.page(min(limit - done, LOOK_AT))
        if page:
            done += yield Call("discard", [match[0] for match in page], is_write=True, is_repeatable=False)
    return done
