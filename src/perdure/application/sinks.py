"""An app's sinks at work: which one a dead job goes to, and how a queue, a URL and a function are handed a job."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from perdure.admin.document import Document, attempt_document, job_document
from perdure.application.http_task import HttpJobs
from perdure.application.registry import Registry
from perdure.application.sources import Configuration
from perdure.configuration.settings import Settings
from perdure.dead_letter import TIMEOUT, DeadLetter, DeadLetterLike, ToFunction, ToQueue, ToUrl
from perdure.errors import BadOption, BadPayload
from perdure.http.request import Request
from perdure.model.job import Attempt, Job, NewJob, derive_id
from perdure.model.payload.codec import encode_args
from perdure.model.policy.retry import Retry
from perdure.observe.observing import Observing
from perdure.runtime.periodic.forwarder import Destination
from perdure.runtime.threads import Threads
from perdure.store import Store

_PLAIN_TEXT = 64 * 1024
"""How much of arguments that are not plain data a letter quotes."""


def app_letter(configuration: Configuration, given: DeadLetterLike | None) -> DeadLetter | None:
    """The sink of an app: what its code says, else the setting."""
    if given is not None:
        return DeadLetter.coerce(given)
    said = configuration.settings.dead_letter
    with configuration.naming("dead_letter"):
        return None if said is None else DeadLetter.coerce(said)


class Sinks:
    """The sinks of one app: its own and those of its queues."""

    def __init__(
        self,
        default: DeadLetter | None,
        registry: Registry,
        http: HttpJobs,
        *,
        settings: Settings,
        store: Callable[[], Store],
        observing: Observing,
    ) -> None:
        self._http = http
        self._default = default
        self._check(default)
        self._settings = settings
        self._store = store
        self._registry = registry
        self._observing = observing
        registry.add_release(self._release)
        self._by_queue: dict[str, DeadLetter] = {}
        self._threads = Threads()
        self.retry = Retry.coerce(settings.dead_letter_retry)
        """The policy of sinks that have none of their own."""
        self.max_retry_after = settings.max_retry_after

    def describe(self, queue: str, letter: DeadLetter | None) -> None:
        """Say where the dead jobs of a queue go; None: where those of the app go."""
        if letter is None:
            self._by_queue.pop(queue, None)
        else:
            self._check(letter)
            self._by_queue[queue] = letter

    def is_empty(self) -> bool:
        return not self._all()

    def timeout(self, queue: str) -> timedelta:
        letter = self._by_queue.get(queue, self._default)
        return TIMEOUT if letter is None else letter.timeout

    def of(self, job: Job) -> Destination | None:
        """The sink that a dead job goes to as things are now, not as they were when it died."""
        if self._registry.policy(job).sink is None:
            return None
        letter = self._by_queue.get(job.origin or job.queue, self._default)
        if letter is None or letter.target is None:
            return None
        match letter.target:
            case ToQueue() as target:
                return _Queue(letter, self, target)
            case ToUrl() as target:
                return _Url(letter, self, target)
            case ToFunction() as target:
                return _Function(letter, self, target)

    def refuse_circles(self) -> None:
        """Queues that are each other's sinks would pass a job round for ever."""
        for queue in self._by_queue:
            passed, here = [queue], self._next(queue)
            while here is not None and here != passed[-1]:
                if here in passed:
                    circle = " → ".join([*passed, here])
                    raise BadOption(
                        f"The sinks of these queues form a circle: {circle}.",
                        'Let one of them end: app.queue(name, dead_letter="none").',
                    )
                passed.append(here)
                here = self._next(here)

    def _check(self, letter: DeadLetter | None) -> None:
        """Raises BadOption where a secret that is known here refuses the sink's URL."""
        target = None if letter is None else letter.target
        if isinstance(target, ToUrl):
            self._http.check(_request(target, "", sign=target.sign or False))

    async def _release(self) -> None:
        """Let idle threads go: the worker here has ended."""
        self._threads.close()
        self._threads = Threads()

    def _next(self, queue: str) -> str | None:
        letter = self._by_queue.get(queue, self._default)
        return None if letter is None else letter.sink.queue

    def _all(self) -> list[DeadLetter]:
        known = [*self._by_queue.values(), *([] if self._default is None else [self._default])]
        return [letter for letter in known if letter.target is not None]


class _Sink:
    """What the three kinds have in common."""

    def __init__(self, letter: DeadLetter, sinks: Sinks) -> None:
        self.name = letter.sink.name
        self.retry = letter.retry or sinks.retry
        self.timeout = letter.timeout
        self._sinks = sinks


class _Queue(_Sink):
    """Makes one job in the other queue, however often it is asked to: its id follows from the dead job's."""

    def __init__(self, letter: DeadLetter, sinks: Sinks, target: ToQueue) -> None:
        super().__init__(letter, sinks)
        self._target = target

    async def accept(self, job: Job, history: Sequence[Attempt], number: int) -> None:
        copy = self._copy(job) if self._target.task is None else self._letter(self._target.task, job, history)
        store = self._sinks._store()
        # A try before this one may have made the copy without knowing it, or a person asks for it again.
        is_made = number > 1 and (await store.get([copy.id]))[0] is not None
        ids = await store.enqueue([copy])
        if not is_made:
            self._sinks._observing.enqueued([copy], ids)

    def _copy(self, job: Job) -> NewJob:
        return NewJob(
            id=derive_id(job, self.name),
            task=job.task,
            queue=self._target.queue,
            args=job.args,
            priority=job.priority,
            unique=_origin_of(job),
            max_attempts=job.max_attempts,
            retry=job.retry,
            delivery=job.delivery,
            timeout=job.timeout,
        )

    def _letter(self, task: str, job: Job, history: Sequence[Attempt]) -> NewJob:
        known = self._sinks._registry.tasks.get(task)
        return NewJob(
            id=derive_id(job, self.name),
            task=task,
            queue=self._target.queue,
            args=letter_args(job, history, self._sinks._settings.max_payload),
            priority=job.priority if known is None else known.priority,
            unique=_origin_of(job),
            delivery="at_least_once" if known is None else known.delivery,
        )


class _Url(_Sink):
    """Posts the job's document."""

    def __init__(self, letter: DeadLetter, sinks: Sinks, target: ToUrl) -> None:
        super().__init__(letter, sinks)
        self._target = target

    async def accept(self, job: Job, history: Sequence[Attempt], number: int) -> None:
        target = self._target
        sign = self._sinks._http.can_sign(target.url) if target.sign is None else target.sign
        request = _request(target, letter_text(job, history).decode(), sign=sign)
        await self._sinks._http.send(request, key=job.id, number=number)


def _request(target: ToUrl, body: str, *, sign: bool | str) -> Request:
    return Request(url=target.url, headers={"Content-Type": "application/json", **target.headers}, body=body, sign=sign)


class _Function(_Sink):
    """Calls the function: on the loop, or in a thread that is given up when the try is over for others."""

    def __init__(self, letter: DeadLetter, sinks: Sinks, target: ToFunction) -> None:
        super().__init__(letter, sinks)
        self._target = target

    async def accept(self, job: Job, history: Sequence[Attempt], number: int) -> None:
        function = self._target.function
        given: tuple[Any, ...] = (job, list(history)) if self._target.takes_history else (job,)
        if self._target.is_async:
            await function(*given)
            return
        threads = self._sinks._threads
        call = threads.start(lambda: function(*given), contextvars.copy_context())
        try:
            _, error = await call.future
        except BaseException:
            threads.abandon(call)
            raise
        if error is not None:
            raise error


def letter_document(job: Job, history: Sequence[Attempt]) -> Document:
    """A dead job as sinks are told of it: what `perdure dlq export --history` writes."""
    return {**job_document(job), "attempts": [attempt_document(attempt) for attempt in history]}


def letter_text(job: Job, history: Sequence[Attempt]) -> bytes:
    """The document as JSON text, whatever the arguments are."""
    document = letter_document(job, history)
    try:
        return msgspec.json.encode(document)
    except (ValueError, RecursionError, OverflowError):
        # A job may have died of the very arguments; then they are quoted as they are.
        return msgspec.json.encode({**document, **_quoted(job)})


def letter_args(job: Job, history: Sequence[Attempt], limit: int) -> bytes:
    """The document as the one argument of a task, with less in it where it would be too large to be stored."""
    document = letter_document(job, history)
    brief = [{**attempt, "error": None} for attempt in document["attempts"]]
    no_trace = None if document["error"] is None else {**document["error"], "trace": "", "detail": None}
    less: tuple[Document, ...] = (
        {},
        {"attempts": brief},
        {"attempts": brief, **_quoted(job)},
        {"attempts": [], "args": None, "result": None, "error": no_trace, "is_cut": True},
    )
    for changes in less:
        try:
            return encode_args(({**document, **changes},), {}, limit)
        except BadPayload:
            continue
    return encode_args(({"id": job.id, "task": job.task, "queue": job.queue, "is_cut": True},), {}, limit)


def _quoted(job: Job) -> Document:
    text = job.args[:_PLAIN_TEXT].decode("utf-8", "backslashreplace")
    return {"args": text, "result": None, **({"is_cut": True} if len(job.args) > _PLAIN_TEXT else {})}


def _origin_of(job: Job) -> str:
    """The unique key of what is made of a dead job: it leads back to it, and to its error and history."""
    return f"dead-letter:{job.id}:{job.attempt}"
