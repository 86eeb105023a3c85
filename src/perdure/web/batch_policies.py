"""The retry policies of the jobs of one request: each text is read once, and there is a limit to them."""

from __future__ import annotations

from perdure.model.policy.retry import Retry
from perdure.web.problems import invalid
from perdure.web.schemas.requests import NewJobBody

_MOST_POLICY_TEXT = 8 * 1024
_MOST_POLICY_TEXT_IN_ALL = 64 * 1024
"""How many characters of retry policies a batch may have: to read one takes a thousand times as long as other text."""


class BatchPolicies:
    """Reads the policies of one request."""

    def __init__(self, asked: list[NewJobBody]) -> None:
        texts = [body.retry for body in asked if body.retry is not None]
        different = sum(map(len, set(texts)))
        if different > _MOST_POLICY_TEXT or sum(map(len, texts)) > _MOST_POLICY_TEXT_IN_ALL:
            raise invalid(
                f"The retry policies of these jobs are too long: at most {_MOST_POLICY_TEXT:,} characters of different "
                f"ones are read, and {_MOST_POLICY_TEXT_IN_ALL:,} in all. Use presets, set the policy on the task, or "
                "make fewer jobs at once.",
                pointer="/jobs",
            )
        self._known: dict[str, Retry] = {}

    def read(self, text: str) -> Retry:
        """The policy of a text; raises BadPolicy."""
        if text not in self._known:
            self._known[text] = Retry.coerce(text)
        return self._known[text]
