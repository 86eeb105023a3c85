"""The REST API as an ASGI application that can be served by itself or mounted anywhere."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from perdure.app import App
from perdure.application.http_task import over_api
from perdure.application.identity import version
from perdure.web.access import tokens as auth
from perdure.web.access.tokens import Access
from perdure.web.guard import Guard
from perdure.web.intake import read_body, read_query
from perdure.web.openapi import openapi
from perdure.web.operation import Operation
from perdure.web.page import front_page
from perdure.web.problems import Failed
from perdure.web.request_context import Answer, Call, RequestContext
from perdure.web.rest import (
    classic,
    dead_letters,
    events,
    health,
    jobs,
    metrics,
    policies,
    queues,
    replays,
    schedules,
    stats,
)
from perdure.web.schemas.requests import NoQuery

ASGI = ASGIApp


async def show_document(call: Call) -> Response:
    """The OpenAPI document."""
    root = call.request.scope.get("root_path", "")
    return Response(_document(bool(call.context.access.tokens), root), media_type="application/json")


OPERATIONS: tuple[Operation, ...] = (
    *jobs.OPERATIONS,
    *classic.OPERATIONS,
    *dead_letters.OPERATIONS,
    *replays.OPERATIONS,
    *queues.OPERATIONS,
    *schedules.OPERATIONS,
    *stats.OPERATIONS,
    *policies.OPERATIONS,
    *events.OPERATIONS,
    *health.OPERATIONS,
    *metrics.OPERATIONS,
    Operation(
        method="GET",
        path="/openapi.json",
        name="show_openapi",
        summary="This document.",
        scope=None,
        handler=show_document,
        query=NoQuery,
        answers={200: dict[str, Any]},
    ),
    Operation(
        method="GET",
        path="/",
        name="show_front_page",
        summary="A page for people: where the API is, and on this machine the numbers.",
        scope=None,
        handler=front_page,
        query=NoQuery,
        answers={200: str},
        media_type="text/html",
    ),
)
"""Every operation; router, authorization and OpenAPI are made of this table."""


def create_app(
    app: App,
    *,
    tokens: Sequence[str] | None = None,
    hosts: Sequence[str] | None = None,
    is_guarded_outside: bool = False,
    accepts_any_task: bool | None = None,
) -> Api:
    """The API of an app.

    `tokens` and `hosts` are added to those of the settings. `is_guarded_outside` leaves the question who may use it to
    the program that it is mounted in. `accepts_any_task`: whether jobs may name tasks that the app does not have;
    unset, only an app without tasks takes any.
    """
    access = auth.read_access(app.settings, tokens or ())
    access = msgspec.structs.replace(
        access,
        hosts=(*access.hosts, *(name.lower() for name in hosts or ())),
        is_guarded_outside=is_guarded_outside,
    )
    return Api(app, access, accepts_any_task=not app.tasks if accepts_any_task is None else accepts_any_task)


class Api:
    """The application: the guard around the router around the operations."""

    def __init__(self, app: App, access: Access, *, accepts_any_task: bool) -> None:
        self.context = RequestContext(app, access=access, accepts_any_task=accepts_any_task)
        by_path: dict[str, dict[str, Operation]] = {}
        for operation in OPERATIONS:
            by_path.setdefault(operation.path, {})[operation.method] = operation
        # Paths without parameters first, so that /dead-letters/groups is never taken for an id.
        ordered = sorted(by_path.items(), key=lambda item: "{" in item[0])
        routes = [Route(path, endpoint=Resource(self.context, methods)) for path, methods in ordered]
        router = Router(routes, redirect_slashes=False, default=_not_found, lifespan=self._lifespan)
        self._guard = Guard(router, access)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guard(scope, receive, send)

    @asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[None]:
        yield
        self.context.drain()


class Resource:
    """One path: picks the operation, lets in who may, reads the request and writes the answer."""

    def __init__(self, context: RequestContext, methods: Mapping[str, Operation]) -> None:
        self._context = context
        self._methods = methods
        self._allow = ", ".join(sorted({*methods, "OPTIONS", *(["HEAD"] if "GET" in methods else [])}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = await self._respond(request)
        if request.method == "HEAD":
            # The length that the body would have stays in the headers.
            response.body = b""
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={"Allow": self._allow})
        operation = self._methods.get("GET" if request.method == "HEAD" else request.method)
        if operation is None:
            raise Failed(
                "method-not-allowed",
                f"{request.method[:20]} is not for this path; it takes {self._allow}.",
                headers={"Allow": self._allow},
            )
        if operation.scope is not None:
            auth.require(self._context.access, request, operation.scope)
        call = await self._read(operation, request)
        with over_api():
            answer = await operation.handler(call)
        if isinstance(answer, Answer):
            data = msgspec.json.encode(answer.document)
            return Response(data, answer.status, dict(answer.headers), operation.media_type)
        return answer

    async def _read(self, operation: Operation, request: Request) -> Call:
        limit = self._context.app.settings.max_body
        return Call(
            context=self._context,
            request=request,
            path=request.path_params,
            query=None if operation.query is None else read_query(request, operation.query),
            body=None if operation.body is None else await read_body(request, operation.body, limit),
        )


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    raise Failed("not-found", f"There is nothing at {scope['path'][:200]!r}; the API is described at /openapi.json.")


@functools.lru_cache(maxsize=8)
def _document(has_tokens: bool, root: str) -> bytes:
    document = openapi(OPERATIONS, version=version(), has_tokens=has_tokens)
    if root:
        document["servers"] = [{"url": root}]
    return msgspec.json.encode(document)
