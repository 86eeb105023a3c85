"""The request of an HTTP job as a value: checked when it is made, stored as plain data, the same for every attempt."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from perdure.errors import BadOption
from perdure.http.sign import PREFIX, is_key_name
from perdure.http.url import LONGEST_URL, Target, read_url
from perdure.text.duration import parse_duration

RetryOn = Literal["default", "all"]
"""Which failures are tried again: those that may pass (network, 408, 425, 429, 5xx), or all."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}", re.ASCII)
_TOKENS = re.compile(rf"{_TOKEN.pattern}(?:\n{_TOKEN.pattern})*", re.ASCII)
_VALUE = re.compile(r"[\x20-\x7e\t]*", re.ASCII)
_VALUES = re.compile(r"[\x20-\x7e\t\n]*", re.ASCII)
"""All names, or all values, with a line break between each two."""
_MOST_HEADERS = 100
_LONGEST_VALUE = 8192
_PREFIX = re.compile(r"[\x20-\x7e]{0,256}", re.ASCII)
_METHODS_NOT_SENT = frozenset({"CONNECT", "TRACE"})
_OWN_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "perdure-attempt",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_SIGNED_HEADERS = frozenset({"webhook-id", "webhook-timestamp", "webhook-signature"})


class SecretRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The value of a header that the worker fills in: a secret by its name, behind a prefix such as `Bearer `."""

    secret: Annotated[str, Meta(description="the name of a secret in the settings of the workers")]
    prefix: Annotated[str, Meta(description="what stands before it")] = ""

    def __post_init__(self) -> None:
        if not _is_text(self.secret) or not is_key_name(self.secret):
            # Not repeated in the message: somebody may have put the secret itself here.
            raise BadOption("A header names a secret that cannot be a name.", "Names have letters, digits, _ . and -.")
        if not _is_text(self.prefix) or not _PREFIX.fullmatch(self.prefix):
            raise BadOption(
                f"The prefix of the secret {self.secret!r} cannot be sent.",
                "It is printable ASCII on one line, at most 256 characters.",
            )

    def document(self) -> dict[str, str]:
        """The reference as it is stored."""
        return {"secret": self.secret, "prefix": self.prefix} if self.prefix else {"secret": self.secret}


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An HTTP request; at most one of json, body and body_base64 is its content."""

    url: Annotated[str, Meta(description="absolute, http or https", max_length=LONGEST_URL)]
    method: Annotated[str, Meta(description="the method, such as POST")] = "POST"
    headers: dict[str, str | SecretRef] = {}
    json: Annotated[Any, Meta(description="content that is sent as JSON")] | UnsetType = UNSET
    body: Annotated[str, Meta(description="content that is sent as text")] | UnsetType = UNSET
    body_base64: Annotated[str, Meta(description="content that is sent as bytes")] | UnsetType = UNSET
    retry_on: RetryOn = "default"
    sign: Annotated[bool | str, Meta(description="sign with the worker's secret, or with the one of this name")] = False
    timeout: Annotated[float | str, Meta(description="seconds, or a text like 30s")] | None = None
    """How long one attempt may take, in seconds once it is read; kept as the job's own timeout, not as an argument."""
    is_remote: Annotated[bool, Meta(description="came over the API: uses only secrets that are bound to hosts")] = False

    def __post_init__(self) -> None:
        read_url(self.url)
        msgspec.structs.force_setattr(self, "method", _checked_method(self.method))
        msgspec.structs.force_setattr(self, "headers", _checked_headers(self.headers, is_signed=bool(self.sign)))
        _check_sign(self.sign)
        if self.timeout is not None:
            seconds = parse_duration(self.timeout, what="timeout").total_seconds()
            msgspec.structs.force_setattr(self, "timeout", seconds)
        if self.retry_on not in ("default", "all"):
            raise BadOption(f"retry_on is {str(self.retry_on)[:40]!r}; it must be default or all.")
        if not isinstance(self.is_remote, bool):
            raise BadOption("is_remote is neither true nor false.", "Leave it out.")
        given = [name for name in ("json", "body", "body_base64") if getattr(self, name) is not UNSET]
        if len(given) > 1:
            raise BadOption(f"{given[0]} and {given[1]} are both given.", "A request has one content.")
        if self.body is not UNSET and not isinstance(self.body, str):
            raise BadOption(f"body is a {type(self.body).__name__}.", "Pass text here, and data as json.")
        if self.body_base64 is not UNSET:
            self.content()

    @property
    def uses_secrets(self) -> bool:
        """Whether the worker needs a secret to send it."""
        return self.sign is not False or any(isinstance(value, SecretRef) for value in self.headers.values())

    @property
    def target(self) -> Target:
        """Where it goes."""
        return read_url(self.url)

    def content(self) -> bytes:
        """The bytes of the body, the same for every attempt."""
        if self.json is not UNSET:
            return msgspec.json.encode(self.json)  # what is plain data was decided when the job was made
        if isinstance(self.body, str):
            return self.body.encode("utf-8", "surrogatepass")
        if isinstance(self.body_base64, str):
            try:
                return base64.b64decode(self.body_base64, validate=True)
            except (binascii.Error, ValueError):
                raise BadOption("body_base64 is not base64.") from None
        return b""

    @property
    def content_type(self) -> str | None:
        """The type of the content, where the headers do not say it."""
        if self.json is not UNSET:
            return "application/json"
        if self.body is not UNSET:
            return "text/plain; charset=utf-8"
        return None if self.body_base64 is UNSET else "application/octet-stream"

    def document(self) -> dict[str, Any]:
        """The request as plain data, as it is stored; `http_request_from` reads it back."""
        kept: dict[str, Any] = {"method": self.method, "url": self.url}
        if self.headers:
            kept["headers"] = {
                name: value if isinstance(value, str) else value.document() for name, value in self.headers.items()
            }
        for name in ("json", "body", "body_base64"):
            if getattr(self, name) is not UNSET:
                kept[name] = getattr(self, name)
        if self.retry_on != "default":
            kept["retry_on"] = self.retry_on
        if self.sign is not False:
            kept["sign"] = self.sign
        if self.is_remote and self.uses_secrets:
            kept["is_remote"] = True
        return kept


def http_request_from(document: Mapping[str, Any]) -> Request:
    """The request that a document describes, as the REST form, the command line and stored jobs give it."""
    if not isinstance(document, Mapping):
        raise BadOption(
            f"A request is an object, and this is a {type(document).__name__}.", 'Give {"url": "https://…"}.'
        )
    unknown = sorted(str(name) for name in document if name not in Request.__struct_fields__)
    if unknown:
        known = ", ".join(Request.__struct_fields__)
        raise BadOption(f"A request has no {unknown[0][:40]!r}.", f"It has: {known}.")
    if "url" not in document:
        raise BadOption("The request has no url.", 'Give {"url": "https://…"}.')
    return Request(**document)


def body_fields(body: str | bytes | None) -> dict[str, Any]:
    """The field that holds a body: text as text, other bytes in base64."""
    if body is None:
        return {}
    if isinstance(body, bytes):
        try:
            text = body.decode()
        except UnicodeDecodeError:
            text = "\x00"
        if "\x00" in text:
            return {"body_base64": base64.b64encode(body).decode()}
        return {"body": text}
    return {"body": body}


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _checked_method(method: object) -> str:
    if not isinstance(method, str) or not _TOKEN.fullmatch(method):
        raise BadOption(f"The method {str(method)[:40]!r} cannot be sent.", "Use one such as POST, GET or PUT.")
    name = method.upper()
    if name in _METHODS_NOT_SENT:
        raise BadOption(f"The method {name} is not for jobs.", "Use one such as POST, GET or PUT.")
    return name


def _checked_headers(headers: object, *, is_signed: bool) -> dict[str, str | SecretRef]:
    if not isinstance(headers, Mapping):
        raise BadOption(f"headers is a {type(headers).__name__}.", 'Give {"name": "value"}.')
    if len(headers) > _MOST_HEADERS:
        raise BadOption(f"There are {len(headers)} headers, and at most {_MOST_HEADERS} are sent.")
    if _are_plain(headers, is_signed=is_signed):
        return {name: value.strip(" \t") for name, value in headers.items()}
    checked: dict[str, str | SecretRef] = {}
    seen: set[str] = set()
    for name, value in headers.items():
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise BadOption(f"The header name {str(name)[:60]!r} cannot be sent.", "Names have letters, digits and -.")
        if isinstance(value, str) and len(value) <= _LONGEST_VALUE and _VALUE.fullmatch(value):  # as nearly all are
            checked[name] = value.strip(" \t")
        elif isinstance(value, SecretRef):
            checked[name] = value
        elif isinstance(value, Mapping):
            checked[name] = _read_reference(name, value)
        else:
            raise BadOption(
                f"The value of the header {name} cannot be sent.",
                f"Values are printable ASCII on one line, at most {_LONGEST_VALUE:,} characters.",
            )
        lower = name.lower()
        if lower in _OWN_HEADERS or (is_signed and lower in _SIGNED_HEADERS):
            raise BadOption(f"The header {name} belongs to the connection or to Perdure.", "Leave it out.")
        if lower in seen:
            raise BadOption(f"The header {name} is given twice.", "Join the values with a comma.")
        seen.add(lower)
    return checked


def _are_plain(headers: Mapping[Any, Any], *, is_signed: bool) -> bool:
    """Whether all names and values are texts without a fault: checked together, which takes a third of the time."""
    try:
        names, values = "\n".join(headers), "\n".join(headers.values())
    except TypeError:
        return False
    lower = set(names.lower().split("\n"))
    return (
        _TOKENS.fullmatch(names) is not None
        and _VALUES.fullmatch(values) is not None
        and values.count("\n") == len(headers) - 1
        and max(map(len, headers.values())) <= _LONGEST_VALUE
        and len(lower) == len(headers)
        and lower.isdisjoint(_OWN_HEADERS)
        and not (is_signed and not lower.isdisjoint(_SIGNED_HEADERS))
    )


def _read_reference(name: str, value: Mapping[str, Any]) -> SecretRef:
    if "secret" not in value or not value.keys() <= {"secret", "prefix"}:
        raise BadOption(
            f"The value of the header {name} cannot be read.",
            'Give text, or {"secret": "NAME", "prefix": "Bearer "} to have workers fill in a secret.',
        )
    return SecretRef(**value)


def _check_sign(sign: object) -> None:
    if isinstance(sign, bool):
        return
    if isinstance(sign, str) and sign.startswith(PREFIX):
        # Not repeated in the message: errors end up in logs.
        raise BadOption(
            "sign is a secret, and secrets are not stored in jobs.",
            "Put it into PERDURE_SECRETS of the workers and give the secret's name.",
        )
    if not isinstance(sign, str) or not is_key_name(sign):
        raise BadOption(f"sign is {str(sign)[:40]!r}.", "Give True, or the name of a secret.")
