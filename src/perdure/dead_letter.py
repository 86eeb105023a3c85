"""`dead_letter=`: where the dead jobs of a queue, or of all, are forwarded to: a queue, a URL or a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from perdure.errors import BadOption
from perdure.http.request import Request, SecretRef
from perdure.http.sign import PREFIX, is_key_name
from perdure.http.url import read_url
from perdure.model.forward import NOWHERE, Sink
from perdure.model.option import checked_name, checked_queue
from perdure.model.policy.retry import Retry
from perdure.task import RetryLike, Task
from perdure.text.credentials import Discreet, hide_credentials
from perdure.text.duration import Duration, parse_duration
from perdure.text.shown import shown

TIMEOUT = timedelta(seconds=30)
_SHORTEST = timedelta(milliseconds=10)
_LONGEST = timedelta(hours=1)
_HINT = 'Give "queue:name", "https://…", a function, or what DeadLetter.queue, .http or .function makes.'


class ToQueue(msgspec.Struct, frozen=True):
    """A copy of the job in another queue, or a job of another task that is told of it."""

    queue: str
    task: str | None


class ToUrl(Discreet, msgspec.Struct, frozen=True):
    """A POST of the job's document."""

    _secrets = frozenset(("url", "headers"))

    url: str
    headers: dict[str, str | SecretRef]
    sign: bool | str | None
    """None signs wherever the worker has a secret without a name."""


class ToFunction(msgspec.Struct, frozen=True):
    """A call in the worker."""

    function: Callable[..., Any]
    takes_history: bool
    is_async: bool


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """Where dead jobs are forwarded to, and how often it is tried."""

    sink: Sink
    target: ToQueue | ToUrl | ToFunction | None
    retry: Retry | None = None
    """How tries are spaced and how many there are; None: the setting `dead_letter_retry`."""
    timeout: timedelta = TIMEOUT
    """How long one try may take."""

    @staticmethod
    def queue(
        name: str,
        *,
        task: Task[..., Any] | str | None = None,
        timeout: Duration = TIMEOUT,
        retry: RetryLike | None = None,
    ) -> DeadLetter:
        """Another queue of the same store: a copy of the job, or with `task` a job of that task, told of the dead one.

        Workers that are not told which queues to serve leave the queue alone, unless a task lives there.
        """
        queue = checked_queue(name)
        told = task.name if isinstance(task, Task) else None if task is None else checked_name(task)
        text = f"queue:{queue}" if told is None else f"queue:{queue}:{told}"
        return DeadLetter(
            sink=Sink(text, queue), target=ToQueue(queue, told), retry=_retry(retry), timeout=_timeout(timeout)
        )

    @staticmethod
    def http(
        url: str,
        *,
        headers: Mapping[str, str | SecretRef] | None = None,
        sign: bool | str | None = None,
        timeout: Duration = TIMEOUT,
        retry: RetryLike | None = None,
    ) -> DeadLetter:
        """A POST of the job as a JSON document, with the job's id as idempotency key; 2xx accepts it.

        `sign` as for HTTP jobs; left out, it is signed wherever the worker has a signing secret without a name for
        the host.
        """
        # Made once to be checked here, where the mistake is, and not when the first job has died.
        checked = Request(url=url, headers=dict(headers or {}), sign=sign or False, body="{}")
        if isinstance(sign, str) and (sign.startswith(PREFIX) or not is_key_name(sign)):
            raise BadOption("sign is not the name of a signing secret.", "Name it as in PERDURE_SECRETS.")
        return DeadLetter(
            # Paths and queries may hold secrets: the origin is what is stored and shown.
            sink=Sink(read_url(url).origin),
            target=ToUrl(url, checked.headers, sign),
            retry=_retry(retry),
            timeout=_timeout(timeout),
        )

    @staticmethod
    def function(
        function: Callable[..., Any], *, timeout: Duration = TIMEOUT, retry: RetryLike | None = None
    ) -> DeadLetter:
        """A function, `def` or `async def`, of the job, or of the job and its history; it refuses by raising."""
        name = f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', type(function).__name__)}"
        return DeadLetter(
            sink=Sink(f"function:{name}"),
            target=ToFunction(function, _takes_history(function, name), inspect.iscoroutinefunction(function)),
            retry=_retry(retry),
            timeout=_timeout(timeout),
        )

    @staticmethod
    def nowhere() -> DeadLetter:
        """Explicitly no sink, for a queue whose dead jobs the app's sink is not to get; the text is `"none"`."""
        return DeadLetter(sink=NOWHERE, target=None)

    @staticmethod
    def coerce(value: DeadLetterLike) -> DeadLetter:
        """What `dead_letter=` and PERDURE_DEAD_LETTER take."""
        if isinstance(value, DeadLetter):
            return value
        if isinstance(value, Task):
            return DeadLetter.queue(value.queue, task=value)
        if callable(value):
            return DeadLetter.function(value)
        if not isinstance(value, str):
            raise BadOption(f"dead_letter is {shown(value)}, which is no sink.", _HINT)
        if value == NOWHERE.name:
            return DeadLetter.nowhere()
        kind, _, rest = value.partition(":")
        if kind.lower() in ("http", "https"):
            return DeadLetter.http(value)
        if kind == "queue":
            queue, _, task = rest.partition(":")
            return DeadLetter.queue(queue, task=task or None)
        raise BadOption(f"dead_letter is {shown(hide_credentials(value))}, which is no sink.", _HINT)


DeadLetterLike = DeadLetter | str | Callable[..., Any]


def _takes_history(function: Callable[..., Any], name: str) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise BadOption(f"Nobody can tell what {name} takes.", "Wrap it in a function of the job.") from None
    for takes_history, given in ((True, ("job", "history")), (False, ("job",))):
        try:
            signature.bind(*given)
        except TypeError:
            continue
        return takes_history
    raise BadOption(f"{name} cannot be called with a job.", "A sink is a function of the job, or of job and history.")


def _retry(retry: RetryLike | None) -> Retry | None:
    return None if retry is None else Retry.coerce(retry)


def _timeout(timeout: Duration) -> timedelta:
    read = parse_duration(timeout, what="timeout")
    if not _SHORTEST <= read <= _LONGEST:
        raise BadOption(f"The timeout of a sink is {shown(timeout)}; it must lie between 10ms and 1h.")
    return read
