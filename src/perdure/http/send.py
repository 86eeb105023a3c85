"""Sends the request of one attempt and gives its result, or raises what says how the job goes on.

Exactly one request is sent per attempt: nothing in here tries again. A kept connection may turn out to have been closed
by the other side, so it is used only where a retry can make up for that; otherwise a fresh one is opened.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import Any

import httpcore2
import msgspec

from perdure.http.classify import Answer, judge
from perdure.http.errors import HttpError, NetworkError
from perdure.http.pool import Pool
from perdure.http.redact import NOTHING_TO_REDACT, Redactor, redact_client_logs, sending
from perdure.http.request import Request, SecretRef
from perdure.http.secrets import Secrets, signing_name
from perdure.http.sign import sign
from perdure.http.url import Target
from perdure.model.failure import clean
from perdure.system.clock import Clock

MOST_READ = 64 * 1024
"""How many bytes of a body are read; the rest is left to the other side."""
_MOST_PARTS = 4096
"""How many parts of a body are read: each costs the event loop time, however small it is."""
_TOO_LONG = "Receive buffer too long"
"""What the parser says of a header section, chunk head or trailer section that is larger than 100 KiB."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What the sender must know of the attempt."""

    job_id: str
    number: int
    may_reuse: bool
    """Whether a connection of an earlier request may be used, which the other side may have closed unseen."""


class Sender:
    """Sends requests through one pool."""

    def __init__(self, *, pool: Pool, secrets: Secrets, clock: Clock, user_agent: str) -> None:
        self._pool = pool
        self._secrets = secrets
        self._clock = clock
        self._user_agent = user_agent
        redact_client_logs()

    async def send(self, request: Request, attempt: Attempt) -> dict[str, Any]:
        """One request; the answer's status, timing and excerpt if it is a success."""
        began = self._clock.monotonic()
        target, content = request.target, request.content()
        secrets = self._header_secrets(request, target)
        headers = self._headers(request, attempt, target, content, secrets)
        redactor = Redactor(secrets) if secrets else NOTHING_TO_REDACT
        token = sending.set(redactor)
        try:
            answer = await self._exchange(request, attempt, target, headers, content, began)
        except asyncio.CancelledError as broken_off:
            broken_off.add_note(f"while it waited for {target.origin}")
            raise
        except HttpError as error:
            error.detail.setdefault("ms", self._since(began))
            raise
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException, OSError) as error:
            reason = clean(redactor.text(_reason(error)), 300)
            message = f"no whole answer from {target.origin}: {reason}"
            raise NetworkError(message, {"ms": self._since(began)}) from None
        finally:
            sending.reset(token)
        answer = msgspec.structs.replace(answer, redactor=redactor)
        return judge(answer, retry_on=request.retry_on, origin=target.origin, now=self._clock.now())

    def _header_secrets(self, request: Request, target: Target) -> dict[str, str]:
        """The secrets that headers of the request name, each by its name."""
        names = {value.secret for value in request.headers.values() if isinstance(value, SecretRef)}
        return {name: self._secrets.header(name, target, is_remote=request.is_remote) for name in sorted(names)}

    def _headers(
        self, request: Request, attempt: Attempt, target: Target, content: bytes, secrets: dict[str, str]
    ) -> list[tuple[bytes, bytes]]:
        headers = {"Host": target.authority, "User-Agent": self._user_agent, "Accept": "*/*"}
        if request.content_type is not None:
            headers["Content-Type"] = request.content_type
        headers["Idempotency-Key"] = attempt.job_id
        given = {name.lower() for name in request.headers}
        headers = {name: value for name, value in headers.items() if name.lower() not in given}
        for name, value in request.headers.items():
            headers[name] = value if isinstance(value, str) else (value.prefix + secrets[value.secret]).strip()
        # Nothing is decompressed here, so a small answer cannot become a large one.
        headers |= {"Accept-Encoding": "identity", "Perdure-Attempt": str(attempt.number)}
        if content or request.method in ("POST", "PUT", "PATCH"):
            headers["Content-Length"] = str(len(content))
        if request.sign is not False:
            headers |= self._signature(request, attempt, target, content)
        return [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]

    def _signature(self, request: Request, attempt: Attempt, target: Target, content: bytes) -> dict[str, str]:
        secrets = self._secrets.signing(signing_name(request), target, is_remote=request.is_remote)
        return sign(content, message_id=attempt.job_id, at=self._clock.now(), secrets=secrets)

    async def _exchange(
        self,
        request: Request,
        attempt: Attempt,
        target: Target,
        headers: list[tuple[bytes, bytes]],
        content: bytes,
        began: float,
    ) -> Answer:
        outgoing = httpcore2.Request(
            method=request.method.encode(),
            url=httpcore2.URL(
                scheme=target.scheme.encode(),
                host=target.host.encode(),
                port=target.port,
                target=target.path.encode(),
            ),
            headers=headers,
            content=content,
        )
        connection = await self._pool.take(target, is_fresh=not attempt.may_reuse)
        try:
            response = await connection.send(outgoing)
            try:
                body, is_cut = await _read(response)
            finally:
                await response.aclose()
        except BaseException:
            await connection.aclose()
            raise
        await self._pool.give_back(target, connection)
        return Answer(
            status=response.status,
            reason=response.extensions.get("reason_phrase", b"").decode("ascii", "replace"),
            headers={name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers},
            body=body,
            is_cut=is_cut,
            ms=self._since(began),
        )

    def _since(self, began: float) -> float:
        return round((self._clock.monotonic() - began) * 1000, 1)


async def _read(response: httpcore2.Response) -> tuple[bytes, bool]:
    """The body, at most so much of it as is read, and whether there was more."""
    body = bytearray()
    parts = 0
    async for part in response.aiter_stream():
        body += part
        parts += 1
        if len(body) > MOST_READ or parts >= _MOST_PARTS:
            return bytes(body[:MOST_READ]), True
    return bytes(body), False


def _reason(error: BaseException) -> str:
    """What the innermost of the errors behind this one says; the outer ones only repeat it."""
    found = [error]
    while len(found) < 10:
        behind = found[-1].__cause__ or found[-1].__context__
        if behind is None:
            break
        found.append(behind)
    for each in reversed(found):
        if isinstance(each, ssl.SSLCertVerificationError):
            return f"the certificate is not trusted: {each.verify_message}"
        if isinstance(each, ssl.SSLError):
            return f"TLS failed: {each.reason or each}"
        if isinstance(each, OSError) and each.errno:
            return os.strerror(each.errno)
        if str(each) == _TOO_LONG:
            return "a chunk extension or the trailers after its body are larger than 100 KiB"
    return next((str(each) for each in found if str(each)), type(error).__name__)
