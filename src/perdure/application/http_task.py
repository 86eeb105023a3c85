"""The task `http` that every app has: `app.http` makes its jobs, and its handler sends their requests."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

import msgspec
from msgspec import UNSET

from perdure.configuration.settings import Settings
from perdure.errors import UsageError
from perdure.http.errors import BadRequestError
from perdure.http.guard import Guard
from perdure.http.request import Request, RetryOn, SecretRef, body_fields, http_request_from
from perdure.http.secrets import Secrets
from perdure.http.url import read_url
from perdure.model.job import JobId
from perdure.model.payload.codec import encode_args
from perdure.model.policy.limit import Limit
from perdure.model.policy.resolve import TaskPolicy
from perdure.model.state import Delivery
from perdure.runtime.context import CurrentJob, current_job
from perdure.system.clock import Clock
from perdure.task import Bound, Producer, RetryLike, Task, bind_named, make_options
from perdure.text.duration import Duration

if TYPE_CHECKING:
    from perdure.http.pool import Pool
    from perdure.http.send import Attempt, Sender

TASK = "http"
TIMEOUT = timedelta(seconds=30)

_is_over_api: ContextVar[bool] = ContextVar("is_over_api", default=False)


@contextmanager
def over_api() -> Iterator[None]:
    """Everything that is enqueued in here came over the API: its requests use only secrets that are bound to hosts."""
    token = _is_over_api.set(True)
    try:
        yield
    finally:
        _is_over_api.reset(token)


class CallOptions(TypedDict, total=False):
    """How the job of a request is to be enqueued; the same words as `task.options`."""

    queue: str | None
    delay: Duration | None
    run_at: datetime | None
    priority: int | None
    unique: str | None
    max_attempts: Limit | None
    max_retries: Limit | None
    retry: RetryLike | None
    delivery: Delivery | None
    timeout: Duration | None
    connection: object


class RequestOptions(CallOptions, total=False):
    """A request's content and headers, how it is judged and signed, and how its job is to be enqueued."""

    json: Any
    body: str | bytes | None
    headers: Mapping[str, str | SecretRef] | None
    retry_on: RetryOn
    sign: bool | str


class Call(Bound, frozen=True, kw_only=True):
    """A request that is ready to be enqueued: a Bound that knows its app."""

    producer: Producer

    def bind(self) -> Bound:
        """The call as `app.enqueue_many` and schedules take it, as which it serves by itself too."""
        return self

    def enqueue(self) -> JobId:
        """Make a durable job of it; blocks until it is stored, gives its id."""
        return self.producer.enqueue_many([self])[0]

    async def enqueue_async(self) -> JobId:
        """The same, awaited."""
        return (await self.producer.enqueue_many_async([self]))[0]


class HttpJobs:
    """`app.http`: jobs whose handler is an HTTP request."""

    def __init__(
        self, producer: Producer, settings: Settings, *, clock: Callable[[], Clock], version: Callable[[], str]
    ) -> None:
        self._producer = producer
        lines = self._lines = _Lines(settings, clock, version)
        self.release = lines.release
        self.task: Task[..., Any] = Task(
            _make_handler(lines),
            producer=producer,
            name=TASK,
            queue="default",
            priority=0,
            delivery="at_least_once",
            is_process=False,
            policy=TaskPolicy(timeout=TIMEOUT),
        )

    def request(self, method: str, url: str, **given: Unpack[RequestOptions]) -> Call:
        """A request with any method; then `.enqueue()`, `.enqueue_async()`, or hand it on as what `task.bind` gives."""
        request = Request(
            method=method,
            url=url,
            json=given.pop("json", UNSET),
            headers=dict(given.pop("headers", None) or {}),
            retry_on=given.pop("retry_on", "default"),
            sign=given.pop("sign", False),
            **body_fields(given.pop("body", None)),
        )
        return self.call(request, **cast(CallOptions, given))

    def get(self, url: str, **given: Unpack[RequestOptions]) -> Call:
        """A GET request; takes what `request` takes, like the others."""
        return self.request("GET", url, **given)

    def post(self, url: str, **given: Unpack[RequestOptions]) -> Call:
        """A POST request."""
        return self.request("POST", url, **given)

    def put(self, url: str, **given: Unpack[RequestOptions]) -> Call:
        """A PUT request."""
        return self.request("PUT", url, **given)

    def patch(self, url: str, **given: Unpack[RequestOptions]) -> Call:
        """A PATCH request."""
        return self.request("PATCH", url, **given)

    def delete(self, url: str, **given: Unpack[RequestOptions]) -> Call:
        """A DELETE request."""
        return self.request("DELETE", url, **given)

    def call(self, request: Request | Mapping[str, Any], **options: Unpack[CallOptions]) -> Call:
        """A call of a request that is a value already, or a document as `http_request_from` reads it."""
        if not isinstance(request, Request):
            request = http_request_from(request)
        if request.uses_secrets:
            if _is_over_api.get():
                request = msgspec.structs.replace(request, is_remote=True)
            self.check(request)
        if options.get("timeout") is None:
            options["timeout"] = request.timeout
        args = encode_args((), request.document(), self._producer.max_payload)
        bound = bind_named(self.task, args, make_options(**options))
        fields = {name: getattr(bound, name) for name in bound.__struct_fields__}
        return Call(producer=self._producer, **fields)

    def check(self, request: Request) -> None:
        """Raise BadOption where a secret of this app refuses the request; secrets of other workers are not known."""
        self._lines.secrets.check(request)

    def can_sign(self, url: str) -> bool:
        """Whether this worker can sign requests to the URL without naming a secret."""
        return self._lines.secrets.can_sign(read_url(url))

    async def send(self, request: Request, *, key: str, number: int) -> dict[str, Any]:
        """Send one request here and now, on a connection of its own; raises an HttpError where it is no success."""
        from perdure.http.send import Attempt

        return await self._lines.line().send(request, Attempt(job_id=key, number=number, may_reuse=False))


class _Lines:
    """One sender, with its pool of connections, for each event loop that a worker runs on."""

    def __init__(self, settings: Settings, clock: Callable[[], Clock], version: Callable[[], str]) -> None:
        self._guard = Guard(settings.http_allow or ())
        self.secrets = Secrets(settings.http_signing_secrets or (), settings.secrets or ())
        self._clock = clock
        self._version = version
        self._lines: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = weakref.WeakKeyDictionary()

    def line(self) -> _Line:
        loop = asyncio.get_running_loop()
        found = self._lines.get(loop)
        if found is None:
            found = self._lines[loop] = _Line(
                self._guard, self.secrets, self._clock(), user_agent=f"perdure/{self._version()}"
            )
        return found

    async def release(self) -> None:
        """Close what is open on this event loop, at once or when the last request here has ended."""
        line = self._lines.pop(asyncio.get_running_loop(), None)
        if line is not None:
            await line.release()


class _Line:
    """A sender and how many requests are under way through it."""

    def __init__(self, guard: Guard, secrets: Secrets, clock: Clock, *, user_agent: str) -> None:
        # Here, so that whoever only enqueues does not load the HTTP client.
        from perdure.http.network import GuardedNetwork
        from perdure.http.pool import Pool
        from perdure.http.resolver import SystemResolver
        from perdure.http.send import Sender

        self._resolver = SystemResolver()
        self._pool: Pool = Pool(GuardedNetwork(guard, self._resolver.resolve))
        self._sender: Sender = Sender(pool=self._pool, secrets=secrets, clock=clock, user_agent=user_agent)
        self._under_way = 0
        self._is_released = False

    async def send(self, request: Request, attempt: Attempt) -> dict[str, Any]:
        self._under_way += 1
        try:
            return await self._sender.send(request, attempt)
        finally:
            self._under_way -= 1
            if self._is_released and not self._under_way:
                await self._close()

    async def release(self) -> None:
        self._is_released = True
        if not self._under_way:
            await self._close()

    async def _close(self) -> None:
        await self._pool.close()
        self._resolver.close()


def _make_handler(lines: _Lines) -> Callable[..., Any]:
    # A function inside a function: no child process can find it, and none should. A request cannot kill its worker, and
    # after a worker with thousands of them died, they must not be tried in children, a few at a time.
    async def http(**document: Any) -> dict[str, Any]:
        try:
            request = http_request_from(document)
        except (UsageError, TypeError) as error:
            raise BadRequestError(f"the stored request cannot be sent: {error}", {}) from None
        return await lines.line().send(request, _attempt(current_job()))

    return http


def _attempt(job: CurrentJob) -> Attempt:
    from perdure.http.send import Attempt

    # A kept connection that the other side has closed unseen costs an attempt. It may cost the first, if others
    # follow; it must not cost the second too, nor the only one.
    may_reuse = job.delivery == "at_least_once" and job.attempt == 1 and not job.is_last
    return Attempt(job_id=job.id, number=job.attempt, may_reuse=may_reuse)
