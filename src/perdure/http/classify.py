"""What an answer means: success, a failure that may pass or will not, and how long the other side wants to rest."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import msgspec

from perdure.http.errors import FinalStatusError, LaterStatusError, StatusError
from perdure.http.redact import NOTHING_TO_REDACT, Redactor
from perdure.http.request import RetryOn
from perdure.model.failure import clean
from perdure.text.duration import LONGEST

EXCERPT = 1024
"""How many bytes of an answer's body are kept."""

_MAY_PASS = frozenset({408, 425, 429})
_SECONDS = re.compile(r"[0-9]{1,15}", re.ASCII)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back, as much of it as was read."""

    status: int
    reason: str
    headers: dict[str, str]
    """By lower-case name; the last one of a name counts."""
    body: bytes
    is_cut: bool
    """Whether there was more of the body than is read."""
    ms: float
    """Milliseconds from the start of the attempt to the end of the answer."""
    redactor: Redactor = NOTHING_TO_REDACT
    """Takes the secrets of the request out of what is kept of the answer."""

    def document(self) -> dict[str, Any]:
        """What is kept of it: a success's result, a failure's detail."""
        kept: dict[str, Any] = {"status": self.status, "reason": self._phrase(), "ms": self.ms}
        excerpt = self._excerpt()
        if excerpt:
            kept["excerpt"] = excerpt
        if self.is_cut or len(self.body) > EXCERPT:
            kept["is_cut"] = True
        return kept

    def said(self) -> str:
        """Status and reason, as people write them."""
        return f"{self.status} {self._phrase()}".rstrip()

    def _phrase(self) -> str:
        return clean(self.redactor.text(self.reason), 60) or _usual_phrase(self.status)

    def _excerpt(self) -> str:
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if self.body and encoding not in ("", "identity"):
            return f"({clean(self.redactor.text(encoding), 40)} content, not decoded)"
        return clean(self.redactor.beginning(self.body, EXCERPT).decode("utf-8", "replace"), 2 * EXCERPT)


def judge(answer: Answer, *, retry_on: RetryOn, origin: str, now: datetime) -> dict[str, Any]:
    """The job's result if the answer is a success; else raises what says how the job goes on."""
    kept = answer.document()
    if 200 <= answer.status < 300:
        return kept
    message = f"{answer.said()} from {origin}"
    is_final = not (answer.status in _MAY_PASS or answer.status >= 500)
    if 300 <= answer.status < 400:
        message += " (redirects are not followed)"
    if is_final and retry_on != "all":
        raise FinalStatusError(message, kept)
    delay = retry_after(answer.headers.get("retry-after"), now)
    if delay is not None:
        kept["retry_after"] = delay.total_seconds()
        raise LaterStatusError(message, kept, delay)
    raise StatusError(message, kept)


def retry_after(value: str | None, now: datetime) -> timedelta | None:
    """The wait that a Retry-After header asks for, in either of its forms; None if it asks for none."""
    if value is None:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        return min(timedelta(seconds=min(int(text), int(LONGEST.total_seconds()))), LONGEST)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    try:
        wait = moment - now
    except OverflowError:
        return None
    return min(wait, LONGEST) if wait > timedelta(0) else None


def _usual_phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
