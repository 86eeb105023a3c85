"""HTTP jobs: requests that workers send, guarded, signed and tried again.

Everything that other programs may use is named here; nothing of it loads the HTTP client.
"""

from perdure.http.errors import (
    AddressRefusedError,
    BadRequestError,
    FinalStatusError,
    HttpError,
    LaterStatusError,
    NetworkError,
    SigningError,
    StatusError,
)
from perdure.http.request import Request, http_request_from
from perdure.http.sign import sign, verify

__all__ = [
    "AddressRefusedError",
    "BadRequestError",
    "FinalStatusError",
    "HttpError",
    "LaterStatusError",
    "NetworkError",
    "Request",
    "SigningError",
    "StatusError",
    "http_request_from",
    "sign",
    "verify",
]
