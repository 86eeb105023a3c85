"""Pages of jobs: an opaque cursor to the next, in the body and as a Link header."""

from __future__ import annotations

import asyncio
import base64
import binascii
import uuid
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request

from perdure.admin.document import job_document
from perdure.admin.inspect import Page
from perdure.model.job import Job
from perdure.web.desk import Answer
from perdure.web.problems import invalid

_VERSION = b"\x01"


async def page_answer(request: Request, page: Page[Job]) -> Answer:
    """A page of jobs, and how to get the next."""
    # A thousand jobs with large arguments take a while to read; others must not wait for it.
    documents = await asyncio.to_thread(lambda: [job_document(job) for job in page])
    cursor = None if page.next_cursor is None else _cursor(page.next_cursor)
    return Answer(document={"jobs": documents, "next_cursor": cursor}, headers=next_link(request, cursor))


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
