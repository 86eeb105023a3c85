"""Live events: one poller for all subscribers looks at the store and tells what changed since its last look.

It looks only while somebody listens, at most once a second, and more slowly the longer a look takes. A look is a few
bounded reads: the numbers, the newest jobs, the running ones, and those it has met before and that have not ended.
What begins and ends between two looks is told as it stands at the second. The newest events are kept, so that a client
that lost its connection goes on where it was; one that is too slow for its queue is let go.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from perdure.admin import inspect
from perdure.admin.document import job_document, queue_document, stats_document
from perdure.admin.inspect import Stats
from perdure.admin.payload_view import EVERYTHING, PayloadView
from perdure.errors import PerdureError
from perdure.model.job import Job, JobId, is_job_id
from perdure.model.payload.redaction import Redactor
from perdure.store import Store
from perdure.store.reads import JobFilter
from perdure.system.log_limit import LogLimit

KINDS = frozenset({"stats", "queue", "job", "trouble"})
INTERVAL = 1.0
MOST_SUBSCRIBERS = 100
MOST_PER_CLIENT = 20
"""How many streams may be open in all, and for one token or, where none is asked for, one address."""
_KEPT = 1_000
_QUEUED = 500
_SEEN_AT_ONCE = 100
_TRACKED = 200
_LONGEST_PAUSE = 15.0
_SHARE = 10.0
"""A look that took t seconds is followed by a pause of at least this many t."""

_log = logging.getLogger("perdure.web")


class LiveEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event as it is sent."""

    number: int
    kind: str
    data: Any


class Subscription:
    """What one client has yet to be sent."""

    def __init__(self, client: str = "") -> None:
        self.client = client
        self._events: asyncio.Queue[LiveEvent | None] = asyncio.Queue(_QUEUED)
        self.is_closed = False

    def put(self, event: LiveEvent) -> None:
        """Hand an event on; a client that has not taken the last few hundred is let go."""
        try:
            self._events.put_nowait(event)
        except asyncio.QueueFull:
            self.close()

    def close(self) -> None:
        """Let the client go, whatever it has not been sent."""
        self.is_closed = True
        while not self._events.empty():
            self._events.get_nowait()
        self._events.put_nowait(None)

    async def next(self, patience: float) -> LiveEvent | None:
        """The next event; None when none came in time or the subscription is closed."""
        try:
            async with asyncio.timeout(patience):
                return await self._events.get()
        except TimeoutError:
            return None


class Live:
    """The poller and its subscribers."""

    def __init__(
        self, store: Callable[[], Awaitable[Store]], *, interval: float = INTERVAL, redactor: Redactor | None = None
    ) -> None:
        self._store = store
        # Events go to all who listen, so they show what any reader may see.
        self._payloads = PayloadView(redactor=redactor, shows_payloads=False)
        self._interval = interval
        self._boot = secrets.token_hex(4)
        self._number = 0
        self._kept: deque[LiveEvent] = deque(maxlen=_KEPT)
        self._subscribers: set[Subscription] = set()
        self._polling: asyncio.Task[None] | None = None
        self._view = View(self._payloads)
        self._is_closed = False
        self._warnings = LogLimit()

    @property
    def count(self) -> int:
        """How many clients listen."""
        return len(self._subscribers)

    def subscribe(self, last_id: str | None, client: str = "") -> Subscription | None:
        """A new subscription, with what was missed since `last_id` where that is known; None when there is no room."""
        own = sum(subscription.client == client for subscription in self._subscribers)
        if self._is_closed or len(self._subscribers) >= MOST_SUBSCRIBERS or own >= MOST_PER_CLIENT:
            return None
        subscription = Subscription(client)
        missed = self._missed(last_id)
        for event in [self._snapshot()] if missed is None else missed:
            if event is not None:
                subscription.put(event)
        self._subscribers.add(subscription)
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll())
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forget a client; with the last one the poller stops."""
        self._subscribers.discard(subscription)
        if not self._subscribers and self._polling is not None:
            self._polling.cancel()
            self._polling = None
            # What happens while nobody listens is not known, so nobody may go on from before it.
            self._kept.clear()
            self._boot = secrets.token_hex(4)
            self._view = View(self._payloads)

    def close(self) -> None:
        """Let every client go and take no new ones."""
        self._is_closed = True
        for subscription in list(self._subscribers):
            subscription.close()

    def name(self, event: LiveEvent) -> str:
        """The event's id for `Last-Event-ID`."""
        return f"{self._boot}-{event.number}"

    def _missed(self, last_id: str | None) -> list[LiveEvent] | None:
        """The events after `last_id`; None when that is not among those that are kept."""
        boot, _, number = (last_id or "").partition("-")
        if boot != self._boot or not (number.isascii() and number.isdigit() and len(number) < 18):
            return None
        if not self._kept or not self._kept[0].number - 1 <= int(number) <= self._number:
            return None
        return [event for event in self._kept if event.number > int(number)]

    def _snapshot(self) -> LiveEvent | None:
        if self._view.stats is None:
            return None
        return LiveEvent(number=self._number, kind="stats", data=stats_document(self._view.stats))

    def _tell(self, kind: str, data: Any) -> None:
        self._number += 1
        event = LiveEvent(number=self._number, kind=kind, data=data)
        self._kept.append(event)
        for subscription in list(self._subscribers):
            subscription.put(event)

    async def _poll(self) -> None:
        loop = asyncio.get_running_loop()
        is_in_trouble = False
        while True:
            began = loop.time()
            try:
                for kind, data in await self._view.look(await self._store()):
                    self._tell(kind, data)
                is_in_trouble = False
            except PerdureError as error:
                if not is_in_trouble:
                    self._tell("trouble", {"detail": error.message})
                is_in_trouble = True
            except (OSError, MemoryError) as error:
                if not is_in_trouble:
                    self._tell("trouble", {"detail": f"The server is short of resources ({type(error).__name__})."})
                is_in_trouble = True
                self._warnings.warn(_log, "The live events cannot be read at present: %s", error)
            except Exception as error:
                is_in_trouble = True
                if self._warnings.count(type(error).__name__):
                    _log.exception("the live events could not be read")
            took = loop.time() - began
            await asyncio.sleep(min(_LONGEST_PAUSE, max(self._interval, took * _SHARE)))


class View:
    """What the poller knows: the numbers, and the jobs that it has met and that have not ended."""

    def __init__(self, payloads: PayloadView = EVERYTHING) -> None:
        self._payloads = payloads
        self.stats: Stats | None = None
        self._queues: Mapping[str, Any] = {}
        self._newest: JobId | None = None
        self._running: set[tuple[JobId, int]] = set()
        self._tracked: dict[JobId, tuple[Any, ...]] = {}

    async def look(self, store: Store) -> list[tuple[str, Any]]:
        """Look at the store and say what changed; the first look tells the numbers only."""
        is_first = self.stats is None
        changes = self._changed_numbers(await inspect.stats(store))
        newest = await inspect.newest(store, JobFilter(), limit=_SEEN_AT_ONCE)
        running = await store.list(JobFilter(state="running"), limit=_SEEN_AT_ONCE)
        changes += self._changed_jobs(newest, running, is_first)
        known = list(self._tracked)
        changes += await self._looked_at(store, known)
        # A scheduled job that is not tracked any more has news when a run of it has.
        runs = [data for kind, data in changes if kind == "job" and is_job_id(data["schedule"] or "")]
        more = [name for name in dict.fromkeys(JobId(run["schedule"]) for run in runs) if name not in self._tracked]
        changes += await self._looked_at(store, more)
        self._forget([*known, *more])
        return changes

    async def _looked_at(self, store: Store, ids: list[JobId]) -> list[tuple[str, Any]]:
        jobs = await inspect.get_many(store, ids) if ids else []
        return [("job", _brief(job, self._payloads)) for job in jobs if self._note(job)]

    def _changed_numbers(self, stats: Stats) -> list[tuple[str, Any]]:
        before, self.stats = self.stats, stats
        queues = {queue.name: _without_age(queue_document(queue, stats.at)) for queue in stats.queues}
        changed = [queue for queue in stats.queues if self._queues.get(queue.name) != queues[queue.name]]
        is_same = before is not None and not changed and before.workers == stats.workers
        is_same = is_same and queues.keys() == self._queues.keys()
        self._queues = queues
        told: list[tuple[str, Any]] = []
        if before is not None:
            told = [("queue", queue_document(queue, stats.at)) for queue in changed]
        return told if is_same else [*told, ("stats", stats_document(stats))]

    def _changed_jobs(self, newest: list[Job], running: list[Job], is_first: bool) -> list[tuple[str, Any]]:
        # What was seen before and is no longer tracked is old news, however often it is met again.
        new = [job for job in reversed(newest) if self._newest is None or job.id > self._newest]
        started = [job for job in running if job.fence not in self._running]
        changed = [job for job in [*new, *started] if self._note(job)]
        self._running = {job.fence for job in running}
        if newest:
            self._newest = newest[0].id
        return [] if is_first else [("job", _brief(job, self._payloads)) for job in changed]

    def _note(self, job: Job) -> bool:
        """Remember how a job stands; whether that is news."""
        stands = (job.state, job.attempt, job.failures, job.run_at, job.is_cancelling, job.queue)
        is_news = self._tracked.get(job.id) != stands
        self._tracked[job.id] = stands
        return is_news

    def _forget(self, asked: list[JobId]) -> None:
        """Drop jobs that have ended, then the oldest, until what is left is few."""
        for job_id in asked:
            if self._tracked.get(job_id, ("waiting",))[0] in ("succeeded", "dead", "cancelled"):
                del self._tracked[job_id]
        while len(self._tracked) > _TRACKED:
            del self._tracked[next(iter(self._tracked))]


def _brief(job: Job, payloads: PayloadView) -> dict[str, Any]:
    """A job without what may be large: events are kept for all who listen."""
    document = job_document(job, payloads)
    error = document["error"]
    if error is not None:
        document["error"] = {name: error[name] for name in ("type", "message")}
    return {name: value for name, value in document.items() if name not in ("args", "result")}


def _without_age(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "oldest_ready_age"}


def sse(event: LiveEvent, name: str) -> bytes:
    """An event in the form of text/event-stream."""
    data = msgspec.json.encode(event.data).decode()
    return f"id: {name}\nevent: {event.kind}\ndata: {data}\n\n".encode()
