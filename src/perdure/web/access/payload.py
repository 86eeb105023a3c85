"""How much of payloads a request is shown: with the scope `args` all but secrets, `admin` on request those, too."""

from __future__ import annotations

from perdure.admin.payload_view import PayloadView
from perdure.web.access import tokens as auth
from perdure.web.request_context import Call

MOST_IN_LISTS = 16 * 1024
"""Payloads with more bytes are cut in lists; the job by its id shows them whole."""


def view_of(call: Call, *, is_list: bool = False) -> PayloadView:
    """What this request is shown; ends it with 403 if it asks for secrets and may not see them."""
    reveals = getattr(call.query, "reveal", False)
    if reveals:
        auth.require(call.context.access, call.request, "admin")
    return PayloadView(
        redactor=None if reveals else call.context.redactor,
        shows_payloads=auth.allows(call.context.access, call.request, "args"),
        most_bytes=MOST_IN_LISTS if is_list else None,
    )
