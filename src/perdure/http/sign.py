"""Signs requests and checks signatures as Standard Webhooks has it: HMAC-SHA256 over id, time and body.

A secret is `whsec_` and base64. Several secrets give several signatures: a receiver accepts any that it knows, so that
a secret can be replaced without a request being refused.

What is signed is `id.timestamp.body`. A point in the id would make that ambiguous: the id `a.5` with the timestamp `7`
and the id `a` with the timestamp `5` and a body that begins with `7.` have the same signature. So ids have no points,
neither when they are signed nor when they are checked, and timestamps have digits only.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from perdure.errors import BadOption, BadSetting, BadSignature
from perdure.system.clock import EPOCH, SystemClock
from perdure.text.duration import Duration, parse_duration

PREFIX = "whsec_"
ID_HEADER = "webhook-id"
TIMESTAMP_HEADER = "webhook-timestamp"
SIGNATURE_HEADER = "webhook-signature"

_SECOND = timedelta(seconds=1)
_SHORTEST_KEY = 16
_LONGEST_KEY = 128
_MESSAGE_ID = re.compile(r"[!-\-/-~]{1,256}", re.ASCII)
"""Visible ASCII without the point."""
_TIMESTAMP = re.compile(r"[0-9]{1,12}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


def sign(body: bytes, *, message_id: str, at: datetime, secrets: Sequence[str]) -> dict[str, str]:
    """The three headers that make the request verifiable, one signature per secret."""
    if not _is_message_id(message_id):
        raise BadOption(
            f"The message id {str(message_id)[:60]!r} cannot be signed.",
            "Use 1 to 256 visible ASCII characters without a point: the point separates the id from the timestamp.",
        )
    if at.tzinfo is None:
        raise BadOption("The time to sign with has no time zone.", "Pass an aware datetime such as datetime.now(UTC).")
    timestamp = str((at - EPOCH) // _SECOND)
    if not _TIMESTAMP.fullmatch(timestamp):
        raise BadOption(f"The time {at.isoformat()} cannot be signed.", "Use a time after 1970.")
    signatures = [_signature(read_secret(secret), message_id, timestamp, body) for secret in secrets]
    return {ID_HEADER: message_id, TIMESTAMP_HEADER: timestamp, SIGNATURE_HEADER: " ".join(signatures)}


def verify(
    body: bytes,
    headers: Mapping[str, str],
    secrets: str | Sequence[str],
    *,
    tolerance: Duration = "5m",
    now: datetime | None = None,
) -> str:
    """For receivers: the id of the message, if one of the secrets signed it lately; else raises BadSignature."""
    given = {name.lower(): value for name, value in headers.items()}
    missing = [name for name in (ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER) if not given.get(name)]
    if missing:
        raise BadSignature(f"The request has no header {missing[0]}.", "It was not signed; refuse it.")
    message_id, timestamp = given[ID_HEADER], given[TIMESTAMP_HEADER]
    if not _is_message_id(message_id):
        raise BadSignature(
            "The header webhook-id has a point or another character that ids do not have.", "Refuse the request."
        )
    if not _TIMESTAMP.fullmatch(timestamp):
        raise BadSignature("The header webhook-timestamp is no time.", "Refuse the request.")
    age = (now or SystemClock().now()) - EPOCH - int(timestamp) * _SECOND
    if abs(age) > parse_duration(tolerance, what="tolerance"):
        raise BadSignature(
            "The request was signed too long ago or in the future.",
            "It may be an old one sent again: refuse it, and check this machine's clock.",
        )
    wanted = [
        _signature(read_secret(secret), message_id, timestamp, body).encode()
        for secret in ([secrets] if isinstance(secrets, str) else secrets)
    ]
    found = [part.encode("utf-8", "replace") for part in given[SIGNATURE_HEADER].split(" ")]
    if not any(hmac.compare_digest(one, other) for one in wanted for other in found):
        raise BadSignature("None of the signatures is right.", "Refuse the request; or the secret is another one.")
    return message_id


def read_secret(secret: str) -> bytes:
    """The key of a `whsec_…` text; the message of the error does not repeat it."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(PREFIX) or not _SHORTEST_KEY <= len(key) <= _LONGEST_KEY:
        raise BadSetting(
            "A signing secret cannot be read.",
            f"It is {PREFIX} and base64 of {_SHORTEST_KEY} to {_LONGEST_KEY} random bytes.",
        )
    return key


def is_key_name(name: str) -> bool:
    """Whether a request can name a secret so."""
    return _NAME.fullmatch(name) is not None and not name.startswith(PREFIX)


def _is_message_id(value: object) -> bool:
    return isinstance(value, str) and _MESSAGE_ID.fullmatch(value) is not None


def _signature(key: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    signed = f"{message_id}.{timestamp}.".encode() + body
    return f"v1,{base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()}"
