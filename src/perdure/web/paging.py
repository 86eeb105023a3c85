"""Pages of jobs and schedules: bounded in number and in bytes, with an opaque cursor to the next page.

A page is read in pieces that fit in memory, and ends early where it has become large: then it has a cursor, too.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.requests import Request

from perdure.admin import inspect
from perdure.admin.document import job_document
from perdure.admin.reply_generator import Stepped
from perdure.admin.selection import read_filters, read_id
from perdure.model.job import Job, JobId
from perdure.web.access.payload import view_of
from perdure.web.problems import invalid
from perdure.web.request_context import Answer, Call

T = TypeVar("T")

LARGEST_PAGE = 1024 * 1024
"""A page ends when its documents have this many bytes; one document is given whatever its size."""
_FIRST_PIECE = 25
_MOST_LOADED = 4 * 1024 * 1024
"""About how many bytes of stored payloads are loaded at once for a page."""
_VERSION = b"\x01"


async def job_page(call: Call, filters: Mapping[str, Any]) -> Answer:
    """A page of matching jobs and scheduled jobs, newest first, and how to get the next."""
    store = await call.context.store()
    after = read_cursor(call.query.cursor)
    where = await Stepped(read_filters(store, filters))
    view = view_of(call, is_list=True)
    jobs, last = await pieced(
        lambda after, limit: inspect.newest(store, where, limit=limit, after=None if after is None else JobId(after)),
        limit=call.query.limit,
        after=None if after is None else read_id(after),
        name_of=lambda job: job.id,
        size_of=_size_of,
        document=lambda job: job_document(job, view),
    )
    cursor = None if last is None else _cursor(last)
    return Answer(document={"jobs": jobs, "next_cursor": cursor}, headers=next_link(call.request, cursor))


async def pieced(
    fetch: Callable[[str | None, int], Awaitable[list[T]]],
    *,
    limit: int,
    after: str | None,
    name_of: Callable[[T], str],
    size_of: Callable[[T], int],
    document: Callable[[T], Any],
) -> tuple[list[msgspec.Raw], str | None]:
    """The documents of a page, encoded, and the name of its last item where there is a next page.

    `fetch` gives so many items after a name. The next piece follows from how large the items were so far.
    """
    documents: list[msgspec.Raw] = []
    used, piece = 0, _FIRST_PIECE
    while True:
        wanted = min(piece, limit - len(documents))
        # One more than wanted tells whether there is more without counting.
        items = await fetch(after, wanted + 1)
        # To read large payloads takes a while; other requests must not wait for it.
        for item, data in await asyncio.to_thread(_encoded, items[:wanted], document, LARGEST_PAGE - used):
            if documents and used + len(data) > LARGEST_PAGE:
                return documents, after
            documents.append(msgspec.Raw(data))
            used += len(data)
            after = name_of(item)
        if len(items) <= wanted:
            return documents, None
        if len(documents) >= limit or used >= LARGEST_PAGE:
            return documents, after
        piece = max(1, min(1_000, _MOST_LOADED * wanted // (1 + sum(map(size_of, items)))))


def _encoded(items: list[T], document: Callable[[T], Any], room: int) -> list[tuple[T, bytes]]:
    """The items with their documents, up to the first one for which there is no room any more."""
    found: list[tuple[T, bytes]] = []
    for item in items:
        found.append((item, msgspec.json.encode(document(item))))
        room -= len(found[-1][1])
        if room < 0:
            break
    return found


def _size_of(job: Job) -> int:
    return len(job.args) + len(job.result or b"") + (0 if job.error is None else len(job.error.trace)) + 1_000


def next_link(request: Request, cursor: str | None) -> dict[str, str]:
    """The header that leads to the next page, if there is one."""
    return {} if cursor is None else {"Link": f'<{_next(request, cursor)}>; rel="next"'}


def read_cursor(cursor: str | None) -> str | None:
    """The id of the last job of the page before."""
    if cursor is None:
        return None
    try:
        data = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        data = b""
    if len(data) != 17 or _cursor(str(uuid.UUID(bytes=data[1:]))) != cursor:
        raise invalid("cursor is none that this API gave. Begin without one.", parameter="cursor")
    return str(uuid.UUID(bytes=data[1:]))


def _cursor(job_id: str) -> str:
    return base64.urlsafe_b64encode(_VERSION + uuid.UUID(job_id).bytes).decode().rstrip("=")


def _next(request: Request, cursor: str) -> str:
    pairs = [(name, value) for name, value in parse_qsl(request.url.query) if name != "cursor"]
    return f"{request.scope['path']}?{urlencode([*pairs, ('cursor', cursor)])}"
