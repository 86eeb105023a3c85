"""Takes the secrets of a request out of everything that is kept or logged of its answer.

A receiver may repeat what it was sent: in a body, a status line, a header, or inside an error of the HTTP client. The
excerpt of an answer is stored and shown to people who may not know the secret.
"""

from __future__ import annotations

import base64
import contextvars
import json
import logging
import re
from collections.abc import Mapping
from urllib.parse import quote

_CLIENT_LOGGERS = ("httpcore2.connection", "httpcore2.http11")


class Redactor:
    """Replaces secrets, by name, wherever they stand: as they are, escaped, percent-encoded or in base64."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        names: dict[str, str] = {}
        for name, value in secrets.items():
            for form in _forms(value):
                names.setdefault(form.lower(), name)
        self._names = names
        # Longer forms first, so that none is cut by another one that begins like it.
        ordered = sorted(names, key=len, reverse=True)
        self._pattern = re.compile("|".join(re.escape(form) for form in ordered), re.IGNORECASE) if ordered else None

    def __bool__(self) -> bool:
        return self._pattern is not None

    def text(self, text: str) -> str:
        """The text without the secrets."""
        return text if self._pattern is None else self._pattern.sub(self._instead, text)

    def beginning(self, body: bytes, limit: int) -> bytes:
        """The first `limit` bytes of a body without the secrets, those that go on behind the limit included."""
        if self._pattern is None:
            return body[:limit]
        parts: list[str] = []
        text = body.decode("latin-1")  # keeps every byte in its place
        position = 0
        for found in self._pattern.finditer(text):
            if found.start() >= limit:
                break
            parts += (text[position : found.start()], self._instead(found))
            position = found.end()
        parts.append(text[position : max(position, limit)])
        return "".join(parts).encode("latin-1")

    def _instead(self, found: re.Match[str]) -> str:
        return f"[secret {self._names[found[0].lower()]}]"


NOTHING_TO_REDACT = Redactor({})
sending: contextvars.ContextVar[Redactor] = contextvars.ContextVar("sending", default=NOTHING_TO_REDACT)
"""The redactor of the request that is being sent in this context; the HTTP client's log lines go through it."""


def _redact_record(record: logging.LogRecord) -> bool:
    redactor = sending.get()
    if redactor:
        record.msg = redactor.text(record.getMessage())
        record.args = None
    return True


def redact_client_logs() -> None:
    """Have secrets taken out of what the HTTP client logs at the level DEBUG, the headers of answers among it."""
    for name in _CLIENT_LOGGERS:
        logging.getLogger(name).addFilter(_redact_record)  # adding it again changes nothing


def _forms(value: str) -> set[str]:
    raw = value.encode("ascii")
    return {
        value,
        json.dumps(value)[1:-1],
        repr(value)[1:-1],
        quote(value, safe=""),
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
    }
