"""The `Idempotency-Key` header: a request that is repeated with the same key is done once."""

from __future__ import annotations

import hashlib
import re

import msgspec
from starlette.requests import Request

from perdure.admin.idempotency import Key
from perdure.web.access.tokens import caller_of
from perdure.web.problems import invalid

HEADER = "Idempotency-Key"
REPEATED = {"Idempotency-Replayed": "true"}
"""The header of an answer that was given before."""

_KEY = re.compile(r"[!-~]{1,200}")


def read_key(request: Request, body: msgspec.Struct) -> Key | None:
    """The request's key and a fingerprint of what it asks for.

    The key counts for the token that was given only: two who use the same key do not get each other's answers.
    """
    given = request.headers.getlist(HEADER)
    if not given:
        return None
    if len(given) > 1 or not _KEY.fullmatch(given[0]):
        raise invalid("The key must be one, of 1 to 200 visible ASCII characters.", header=HEADER)
    asked = msgspec.json.encode([type(body).__name__, body], order="sorted")
    text = hashlib.sha256(f"{caller_of(request)}\n{given[0]}".encode()).hexdigest()
    return Key(text=text, fingerprint=hashlib.sha256(asked).hexdigest())
