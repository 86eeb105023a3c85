"""What an operation of the API is, as data: route, scope, types in and out; router, checks and OpenAPI read it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import msgspec
from starlette.responses import Response

from perdure.web.access.tokens import Scope
from perdure.web.request_context import Answer, Call

Method = Literal["GET", "POST", "PATCH", "DELETE"]
Handler = Callable[[Call], Awaitable[Answer | Response]]

API = "/api/v1"


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """The body that an operation takes: one of several forms."""

    forms: tuple[type, ...]
    choose: Callable[[Mapping[str, Any]], type] | None = None
    """Which form an object has; not needed for a single one."""
    is_required: bool = True


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one path."""

    method: Method
    path: str
    name: str
    summary: str
    handler: Handler
    answers: Mapping[int, Any]
    """The type of the document by status; several types in a tuple."""
    scope: Scope | None
    """None: anybody may ask."""
    query: type | None = None
    body: Body | None = None
    problems: tuple[int, ...] = ()
    """Statuses of problems beside those that follow from the rest."""
    media_type: str = "application/json"
    is_repeatable: bool = False
    """Takes the Idempotency-Key header."""
    details: str = ""

    @property
    def parameters(self) -> list[str]:
        """The names of what stands in braces in the path."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]

    @property
    def all_problems(self) -> list[int]:
        """Every status that a problem of this operation may have."""
        found = {400, 414, 421, 500, 503, *self.problems}
        if self.scope is not None:
            found |= {401, 403}
        if self.method != "GET":
            found.add(403)
        if self.parameters:
            found.add(404)
        if self.parameters or self.query is not None or self.body is not None or self.is_repeatable:
            found.add(422)
        if self.body is not None:
            found |= {408, 413, 415, 422}
        return sorted(found)
