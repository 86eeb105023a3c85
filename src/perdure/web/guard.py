"""The outermost layer of the API: lets no failure out but as a problem, and no answer without its headers.

It checks what holds for every request before anything else is looked at: the length of the address, the host that is
meant, and that a page of another site does not make the browser change things here.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perdure.errors import PerdureError
from perdure.system.exhaustion import is_exhaustion
from perdure.system.log_limit import LogLimit
from perdure.text.printable import one_line
from perdure.web import problems
from perdure.web.access.this_machine import is_loopback, name_of
from perdure.web.access.tokens import Access
from perdure.web.intake import LONGEST_TARGET, announces_body
from perdure.web.problems import Failed

HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
"""What every answer has, unless it says otherwise itself."""

_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://([A-Za-z0-9.:_\[\]-]{1,300})")
_SAFE = ("GET", "HEAD", "OPTIONS")
_log = logging.getLogger("perdure.web")
_shortages = LogLimit()


class Guard:
    """Wraps the router."""

    def __init__(self, inner: ASGIApp, access: Access) -> None:
        self._inner = inner
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        request_id = secrets.token_hex(8)
        has_begun = False
        has_unread_body = announces_body(scope)

        async def receive_body() -> Message:
            nonlocal has_unread_body
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body", False):
                has_unread_body = False
            return message

        async def send_with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers["X-Request-ID"] = request_id
                if has_unread_body and scope.get("http_version", "1.1").startswith("1"):
                    # Else the server would read the rest of a refused body, of any length, to get at the next request.
                    headers["Connection"] = "close"
            await send(message)

        try:
            self._check(scope)
            await self._inner(scope, receive_body, send_with_headers)
        except Exception as error:
            if has_begun:
                # Half an answer cannot be taken back; the server breaks the connection, which tells the client.
                _log.exception("request %s failed after its answer had begun", request_id)
                raise
            failed = _failed(error, scope, request_id)
            response = problems.answer(failed, instance=one_line(scope["path"], 200), request_id=request_id)
            if scope["method"] == "HEAD":
                response.body = b""
            await response(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if len(scope["path"]) + len(scope["query_string"]) > LONGEST_TARGET:
            raise Failed("uri-too-long", f"The address has more than {LONGEST_TARGET} characters.")
        hosts = headers.getlist("host")
        if len(hosts) > 1:
            raise Failed("malformed", "The request has more than one Host header.")
        host = hosts[0] if hosts else ""
        if not scope["path"].startswith(_probes(scope)) and not self._answers_to(host):
            raise Failed(
                "misdirected",
                f"This server does not answer for the host {host[:100]!r}. Name it in PERDURE_HOSTS if it should.",
            )
        if scope["method"] not in _SAFE and _is_from_another_site(headers, host):
            raise Failed("forbidden", "A page of another site may not change anything here.")

    def _answers_to(self, host: str) -> bool:
        """Against DNS rebinding: without a token a name that an attacker made point here must not be answered."""
        if "*" in self._access.hosts or (not self._access.hosts and not self._access.is_open):
            return True
        name = name_of(host)
        return is_loopback(name) or name in self._access.hosts


def _failed(error: Exception, scope: Scope, request_id: str) -> Failed:
    match error:
        case Failed():
            return error
        case PerdureError():
            return problems.from_perdure(error)
        case _ if is_exhaustion(error):
            # The descriptors or the memory that this request wanted are in use by others, and come back by themselves.
            _shortages.warn(
                _log, "Requests are refused, as this server ran out of resources: %s", one_line(repr(error), 200)
            )
            detail = "This server has no file descriptors, memory or threads left for the moment. Ask again soon."
            return Failed("not-ready", detail, headers={"Retry-After": "1"})
        case _:
            method, path = one_line(scope["method"], 20), one_line(scope["path"], 200)
            _log.error("request %s failed: %s %s", request_id, method, path, exc_info=error)
            return Failed("internal", f"Perdure itself failed; its log tells more under {request_id}.")


def _probes(scope: Scope) -> str:
    """Health probes name pods and addresses; they tell nobody anything and change nothing."""
    return f"{scope.get('root_path', '')}/healthz/"


def _is_from_another_site(headers: Headers, host: str) -> bool:
    sites = headers.getlist("sec-fetch-site")
    if sites:
        return any(site not in ("same-origin", "none") for site in sites)
    # Browsers that do not say which site they are on still say which origin; other programs say neither.
    return any(_authority(origin) != host.lower() for origin in headers.getlist("origin"))


def _authority(origin: str) -> str | None:
    """Host and port of an Origin header; None for one of another form, which no page of this host sends."""
    found = _ORIGIN.fullmatch(origin)
    return None if found is None else found[1].lower()
