"""Takes the secrets of a request out of everything that is kept or logged of its answer.

A receiver may repeat what it was sent: in a body, a status line, a header, or inside an error of the HTTP client. The
excerpt of an answer is stored and shown to people who may not know the secret.
"""

from __future__ import annotations

import base64
import contextvars
import functools
import html
import logging
import re
from collections.abc import Mapping
from urllib.parse import quote, quote_plus

_COMPARED = 200
"""How many characters of a secret are compared. A longer one ends where such a text usually ends."""
_REST = r"[^\s\"'<>,;]*"
_LONGEST_FORM = 16
"""How many characters one character of a secret becomes at most, in the forms that are looked for."""
_CLIENT_LOGGERS = ("httpcore2.connection", "httpcore2.http11")


class Redactor:
    """Replaces secrets by their names, wherever they stand: as they are, escaped in some way, or in base64."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        # Longer values first, so that none is cut by another one that begins like it.
        self._names = sorted(secrets, key=lambda name: len(secrets[name]), reverse=True)
        groups = [f"(?P<n{place}>{_any_form(secrets[name])})" for place, name in enumerate(self._names)]
        self._pattern = re.compile("|".join(groups), re.IGNORECASE) if groups else None
        self._longest = _LONGEST_FORM * max(map(len, secrets.values()), default=0)

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
        text = body[: limit + self._longest].decode("latin-1")  # keeps every byte in its place
        position = 0
        for found in self._pattern.finditer(text):
            if found.start() >= limit:
                break
            parts += (text[position : found.start()], self._instead(found))
            position = found.end()
        parts.append(text[position : max(position, limit)])
        return "".join(parts).encode("latin-1")

    def _instead(self, found: re.Match[str]) -> str:
        return f"[secret {self._names[int((found.lastgroup or 'n0')[1:])]}]"


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


@functools.lru_cache(maxsize=256)
def _any_form(value: str) -> str:
    """A pattern of the forms in which receivers, parsers and log lines repeat a value.

    Literal texts only: a pattern with choices inside the value could take for ever on a text that was made for that.
    """
    raw = value.encode("ascii")
    forms = {
        *_escaped(value),
        quote(value),
        quote(value, safe=""),
        quote_plus(value),
        quote(quote(value, safe=""), safe=""),
        html.escape(value),
        "".join(f"\\u{ord(sign):04x}" for sign in value),
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
    }
    # Longer forms first, so that none is cut by another one that begins like it.
    return "|".join(_literal(form) for form in sorted(forms, key=len, reverse=True))


def _escaped(value: str) -> set[str]:
    """The value with what stands in quotes escaped, up to three times: errors quote errors that quote the answer."""
    found = {value}
    for _ in range(3):
        for text in list(found):
            plain = text.replace("\\", "\\\\")
            found |= {plain, plain.replace('"', '\\"'), plain.replace("'", "\\'"), plain.replace("/", "\\/")}
    return found


def _literal(form: str) -> str:
    return re.escape(form) if len(form) <= _COMPARED else re.escape(form[:_COMPARED]) + _REST
