"""How a request of an HTTP job can fail: what attempts record, and what per-error rules can name.

HttpError
├── NetworkError               no whole answer came; tried again
├── StatusError                an answer that is no success; tried again
│   ├── LaterStatusError       the same, with a Retry-After
│   └── FinalStatusError       an answer that another try will not change: dead
├── MissingSecretError         the worker has no secret of the name; tried again
│   └── SigningError           the same, for the secret that signs the request
├── SecretRefusedError         the secret is not meant for the host of the request: dead, whatever retry_on says
├── AddressRefusedError        the address guard forbids the address: dead, whatever retry_on says
└── BadRequestError            the stored request is none: dead
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from perdure.errors import GiveUp, RetryAfter
from perdure.model.failure import Detailed


class HttpError(Detailed):
    """A request that failed; `detail` holds what is known of it: status, ms, excerpt."""


class NetworkError(HttpError):
    """No whole answer came: unknown name, refused, reset, TLS, or something that is not HTTP."""


class StatusError(HttpError):
    """An answer that is no success, and that another try may change."""


class FinalStatusError(StatusError, GiveUp):
    """An answer that another try will not change."""


class LaterStatusError(StatusError, RetryAfter):
    """An answer that names the earliest moment for another try."""

    def __init__(self, message: str, detail: dict[str, Any], delay: timedelta) -> None:
        StatusError.__init__(self, message, detail)
        self.delay = delay


class MissingSecretError(HttpError):
    """This worker has no secret of the name that the request is sent with."""


class SigningError(MissingSecretError):
    """This worker has no secret of the name that the request is to be signed with."""


class SecretRefusedError(HttpError, GiveUp):
    """The secret that the request names is not bound to the host of the request, or is not for this use."""


class AddressRefusedError(HttpError, GiveUp):
    """The address guard forbids the address that the request would go to."""


class BadRequestError(HttpError, GiveUp):
    """What is stored is not a request that could be sent."""
