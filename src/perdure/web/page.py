"""The page at `/`: says where the API is, and shows the numbers to whoever needs no token."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from starlette.responses import Response

from perdure.admin import inspect
from perdure.admin.inspect import Stats
from perdure.errors import PerdureError
from perdure.model.state import STATES
from perdure.text.plural import plural
from perdure.web.access import tokens as auth
from perdure.web.operation import API
from perdure.web.problems import Failed
from perdure.web.request_context import Call

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color-scheme:light dark}"
    "table{border-collapse:collapse}td,th{padding:.2rem .8rem;text-align:right;border-bottom:1px solid #8886}"
    "td:first-child,th:first-child{text-align:left}"
)
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


async def front_page(call: Call) -> Response:
    """The page."""
    root = escape(call.request.scope.get("root_path", ""), quote=True)
    try:
        auth.require(call.context.access, call.request, "read")
        numbers = _numbers(await inspect.stats(await call.context.store()))
    except Failed:
        numbers = "<p>The numbers are shown to those who may read them.</p>"
    except PerdureError:
        numbers = "<p>The engine is not available right now.</p>"
    html = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Perdure</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>Perdure</h1>"
        f'<p>The API is at <code>{root}{API}</code>, its description at <a href="{root}/openapi.json">'
        f'{root}/openapi.json</a>, its health at <a href="{root}/healthz/ready">{root}/healthz/ready</a>.</p>'
        f"{numbers}</body></html>"
    )
    return Response(html, headers={"Content-Security-Policy": _POLICY}, media_type="text/html")


def _numbers(stats: Stats) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("queue", *STATES, "switch"))
    rows = [("all", stats, "")] + [(queue.name, queue, _switch(queue.is_paused)) for queue in stats.queues]
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{getattr(counted, state):,}</td>" for state in STATES)
        + f"<td>{switch}</td></tr>"
        for name, counted, switch in rows
    )
    workers = plural(stats.workers, "worker")
    return f"<p>{workers} alive.</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _switch(is_paused: bool) -> str:
    return "paused" if is_paused else "open"
