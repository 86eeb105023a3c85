"""How much of arguments, results and failures is shown to a reader: everything, without secrets, cut, or nothing."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from perdure.model.failure import Failure
from perdure.model.payload.redaction import Redactor

HIDDEN = "[hidden]"
"""What is shown instead of a payload that the reader may not see."""


class PayloadView(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader is shown of payloads."""

    redactor: Redactor | None = None
    """Leaves secrets out; None shows them."""
    shows_payloads: bool = True
    """Whether arguments, results, details and traces are shown at all."""
    most_bytes: int | None = None
    """Arguments, results and details with more bytes of JSON, and traces with more characters, are cut; None: never."""

    def payload(self, data: bytes) -> Any:
        """Stored JSON text as the reader is shown it."""
        if not self.shows_payloads:
            return HIDDEN
        if self.most_bytes is not None and len(data) > self.most_bytes:
            return cut_mark(len(data))
        value = payload(data)
        return value if self.redactor is None else self.redactor.value(value)

    def text(self, text: str) -> str:
        """A sentence, such as an error's message."""
        return text if self.redactor is None else self.redactor.text(text)

    def failure(self, failure: Failure) -> dict[str, Any]:
        """A failure; `lineage` is for rules, not for readers."""
        return {
            "type": failure.type,
            "message": self.text(self._short(failure.message)),
            "detail": None if failure.detail is None else self._detail(failure.detail),
            "frame": failure.frame,
            "trace": self._trace(failure.trace),
        }

    def _detail(self, detail: dict[str, Any]) -> Any:
        if not self.shows_payloads:
            # Status and duration of an HTTP answer say how it failed; its headers and content are payload.
            return {name: value if isinstance(value, int | float) else HIDDEN for name, value in detail.items()}
        if self.most_bytes is not None and (size := len(msgspec.json.encode(detail))) > self.most_bytes:
            return cut_mark(size)
        return detail if self.redactor is None else self.redactor.value(detail)

    def _short(self, message: str) -> str:
        return (
            message if self.most_bytes is None or len(message) <= self.most_bytes else f"{message[: self.most_bytes]}…"
        )

    def _trace(self, trace: str) -> str:
        if not self.shows_payloads:
            return HIDDEN if trace else ""
        if self.most_bytes is not None and len(trace) > self.most_bytes:
            # The end of a trace says where it happened.
            trace = f"[cut: {len(trace):,} characters] …{trace[-self.most_bytes :]}"
        return self.text(trace)


EVERYTHING = PayloadView()
"""All that is stored: for programs that get the job itself, such as sinks."""


def cut_mark(size: int) -> str:
    """What is shown instead of a payload that is too large here; the job by its id shows it."""
    return f"[cut: {size:,} bytes]"


def payload(text: bytes) -> Any:
    """Stored JSON text as a value; text that is no JSON is given as text, so that nothing is hidden."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.decode("utf-8", "backslashreplace")
