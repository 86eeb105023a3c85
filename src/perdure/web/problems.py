"""Every failure as an RFC 9457 problem: a status, a code that stays, and a sentence that says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

import msgspec
from starlette.responses import Response

from perdure.errors import (
    EngineBusy,
    EngineError,
    EngineFull,
    EngineUnreachable,
    InProgress,
    KeyReused,
    NotFound,
    PerdureError,
    Refused,
    UsageError,
)

MEDIA_TYPE = "application/problem+json"

TITLES: Mapping[str, tuple[int, str]] = MappingProxyType(
    {
        "malformed": (400, "The request cannot be read"),
        "unauthorized": (401, "No valid token"),
        "forbidden": (403, "Not allowed"),
        "not-found": (404, "There is no such thing"),
        "method-not-allowed": (405, "This path does not take this method"),
        "timeout": (408, "The body did not arrive in time"),
        "refused": (409, "The state of things forbids it"),
        "in-progress": (409, "The same request is still being worked on"),
        "too-large": (413, "The body is too large"),
        "uri-too-long": (414, "The address is too long"),
        "unsupported-media-type": (415, "The body is not JSON"),
        "misdirected": (421, "This server does not answer for that host"),
        "invalid": (422, "The request has a value that it cannot have"),
        "key-reused": (422, "The idempotency key was used for another request"),
        "too-many-requests": (429, "Too many at once"),
        "internal": (500, "Perdure itself failed"),
        "engine-unavailable": (503, "The engine is not available"),
        "not-ready": (503, "Not ready"),
    }
)
"""Every code with its status and title."""


class FieldError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is wrong with one field of the body, one parameter or one header."""

    detail: str
    pointer: str | None = None
    """Where in the body, as a JSON pointer: `/jobs/0/priority`."""
    parameter: str | None = None
    header: str | None = None


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong, why, and what to do (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    """Stays the same over releases; `type` is made of it."""
    error: str | None = None
    """The name of the error as the Python API raises it, where it is one of those."""
    instance: str | None = None
    request_id: str | None = None
    """Under which a log line of this server tells more."""
    errors: tuple[FieldError, ...] = ()


class Failed(Exception):  # noqa: N818 - carries a problem to the edge, where it becomes an answer
    """Ends a request with a problem."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
        error: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        self.error = error


def invalid(detail: str, **where: str) -> Failed:
    """A value that cannot be; `pointer`, `parameter` or `header` says where."""
    return Failed("invalid", detail, errors=[FieldError(detail=detail, **where)])


@contextmanager
def pointing(pointer: str) -> Iterator[None]:
    """Whatever is refused inside is the fault of this place of the body."""
    try:
        yield
    except PerdureError as error:
        failed = from_perdure(error)
        where = FieldError(detail=failed.detail, pointer=pointer)
        raise Failed(failed.code, failed.detail, errors=[where], error=failed.error) from None


def from_perdure(error: PerdureError) -> Failed:
    """The problem that an error of Perdure is to whoever asked."""
    match error:
        case UsageError():
            code = "invalid"
        case NotFound():
            code = "not-found"
        case KeyReused():
            code = "key-reused"
        case InProgress():
            code = "in-progress"
        case Refused():
            code = "refused"
        case _:
            code = "engine-unavailable"
    headers = {"Retry-After": _pause(error)} if isinstance(error, EngineError | InProgress) else {}
    return Failed(code, _without_secrets(str(error)), headers=headers, error=type(error).__name__)


def answer(failed: Failed, *, instance: str | None, request_id: str | None = None) -> Response:
    """The response for a problem."""
    status, title = TITLES[failed.code]
    errors = tuple(msgspec.structs.replace(each, detail=_short(each.detail)) for each in failed.errors[:_MOST_ERRORS])
    problem = Problem(
        type=f"urn:perdure:problem:{failed.code}",
        title=title,
        status=status,
        detail=_short(failed.detail),
        code=failed.code,
        error=failed.error,
        instance=instance,
        request_id=request_id,
        errors=errors,
    )
    return Response(msgspec.json.encode(problem), status, failed.headers, MEDIA_TYPE)


_PAUSES: Mapping[type[PerdureError], int] = {InProgress: 1, EngineBusy: 1, EngineUnreachable: 2, EngineFull: 30}
_SECRET = re.compile(r"://[^\s/@]+@")
_LONGEST_DETAIL = 2_000
"""How many characters of a sentence are answered: it may quote what was sent."""
_MOST_ERRORS = 20


def _pause(error: PerdureError) -> str:
    return str(_PAUSES.get(type(error), 10))


def _without_secrets(text: str) -> str:
    """Whoever asks over HTTP need not know the user and password of the store's URL."""
    return _SECRET.sub("://…@", text)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_DETAIL else f"{text[:_LONGEST_DETAIL]}…"
