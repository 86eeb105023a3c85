"""HTTP jobs: requests that workers send, guarded, signed and tried again.

Everything that other programs may use is named here; nothing of it loads the HTTP client.
"""

from perdure.http.errors import (
    AddressRefusedError,
    BadRequestError,
    FinalStatusError,
    HttpError,
    LaterStatusError,
    MissingSecretError,
    NetworkError,
    SecretRefusedError,
    SigningError,
    StatusError,
)
from perdure.http.request import Request, SecretRef, http_request_from
from perdure.http.secrets import Secret
from perdure.http.sign import sign, verify

__all__ = [
    "AddressRefusedError",
    "BadRequestError",
    "FinalStatusError",
    "HttpError",
    "LaterStatusError",
    "MissingSecretError",
    "NetworkError",
    "Request",
    "Secret",
    "SecretRef",
    "SecretRefusedError",
    "SigningError",
    "StatusError",
    "http_request_from",
    "sign",
    "verify",
]
