"""Reads requests strictly: bounded bodies, plain JSON, known names only, each fault with the place it is at.

Names are snake_case; camelCase is accepted for the same names. Inside `args` and `kwargs` nothing is renamed.
"""

from __future__ import annotations

import asyncio
import functools
import operator
import re
from collections.abc import Mapping
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin
from urllib.parse import parse_qsl

import msgspec
from msgspec import structs
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import Scope

from perdure.errors import BadPayload
from perdure.model.payload.codec import decode_body
from perdure.text.suggestion import suggestion
from perdure.web.operation import Body
from perdure.web.problems import Failed, FieldError, invalid

T = TypeVar("T", bound=msgspec.Struct)

SLOWEST_BODY = 30.0
LONGEST_TARGET = 24 * 1024
_MOST_PARAMETERS = 100

_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json\s*(?:;\s*charset=\"?utf-?8\"?\s*)?", re.IGNORECASE)
_AT = " - at `"
_LONGEST_DETAIL = 300
"""How many characters of a message of msgspec are passed on: it may quote what was sent."""
_FIELD = re.compile(r"Object missing required field `(\w+)`", re.ASCII)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


async def read_body(request: Request, body: Body, limit: int) -> Any:
    """The body as one of its forms; None where none is needed and none was sent.

    What the headers say is checked first: a body that is refused for its type or its length is not read.
    """
    if not body.is_required and not announces_body(request.scope):
        # Many clients send a Content-Type with every POST, also with one that has no body.
        return None
    content_type = request.headers.get("content-type")
    data = None
    if not body.is_required and "content-length" not in request.headers:
        # Sent in chunks: whether there are any is known only after reading.
        data = await _read_bytes(request, limit)
        if not data:
            return None
    if content_type is None or not _JSON.fullmatch(content_type.strip()):
        given = "There is no Content-Type" if content_type is None else f"The Content-Type is {content_type[:60]!r}"
        raise Failed(
            "unsupported-media-type", f"{given}; send application/json.", headers={"Accept-Post": "application/json"}
        )
    if data is None:
        data = await _read_bytes(request, limit)
    try:
        value = decode_body(data, limit)
    except BadPayload as error:
        raise Failed("malformed", f"The body is not JSON that can be read. {error}", error="BadPayload") from None
    del data
    if not isinstance(value, dict):
        raise invalid("The body must be a JSON object.", pointer="")
    kind = body.forms[0] if body.choose is None else body.choose(value)
    return convert(value, kind)


def announces_body(scope: Scope) -> bool:
    """Whether a body may follow the headers of a request."""
    if not scope.get("http_version", "1.1").startswith("1"):
        return scope["method"] not in ("GET", "HEAD", "OPTIONS")  # HTTP/2 need not say so in a header
    headers = Headers(scope=scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0").strip() != "0"


def convert(value: Mapping[str, Any], kind: type[T]) -> T:
    """A JSON object as a value of a struct's type."""
    shaped = _shaped(value, kind, "")
    try:
        return msgspec.convert(shaped, kind)
    except msgspec.ValidationError as error:
        detail, pointer = _told(str(error))
        raise Failed("invalid", detail, errors=[FieldError(detail=detail, pointer=pointer)]) from None


def read_query(request: Request, kind: type[T]) -> T:
    """The parameters after the question mark as a value of a struct's type; each at most once."""
    try:
        pairs = parse_qsl(
            request.scope["query_string"].decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_PARAMETERS,
        )
    except (UnicodeDecodeError, ValueError):
        raise Failed("malformed", "The parameters of the address are not UTF-8, or too many.") from None
    names = {camel(field.name): field.name for field in structs.fields(kind)}
    found: dict[str, str] = {}
    for given, text in pairs:
        name = names.get(given, given)
        if name not in names.values():
            raise invalid(_unknown(given, list(names.values())), parameter=given[:60])
        if name in found:
            raise invalid(f"{name} is given twice.", parameter=name)
        if "\x00" in text:
            raise invalid(f"{name} has a NUL character in it.", parameter=name)
        found[name] = text
    try:
        return msgspec.convert({name: _read_parameter(kind, name, text) for name, text in found.items()}, kind)
    except msgspec.ValidationError as error:
        detail, pointer = _told(str(error))
        name = pointer.strip("/").split("/")[0]
        raise invalid(f"{name}: {detail}", parameter=name) from None


def _read_parameter(kind: type[msgspec.Struct], name: str, text: str) -> Any:
    try:
        return msgspec.convert(text, _parameter_types(kind)[name], strict=False)
    except msgspec.ValidationError as error:
        raise invalid(f"{name}: {_told(str(error))[0]}", parameter=name) from None


@functools.cache
def _parameter_types(kind: type[msgspec.Struct]) -> Mapping[str, Any]:
    """What each parameter may be. A text is never nothing: `null` would be read as that, and is a text like others."""
    found: dict[str, Any] = {}
    for field in structs.fields(kind):
        parts = [part for part in get_args(field.type) if part is not NoneType]
        is_optional = NoneType in get_args(field.type)
        found[field.name] = functools.reduce(operator.or_, parts) if is_optional else field.type
    return found


async def _read_bytes(request: Request, limit: int) -> bytes:
    too_large = Failed("too-large", f"The body takes more than {limit:,} bytes, the most that is read.")
    declared = request.headers.get("content-length", "")
    # A longer number is not looked at: it would only take time to read.
    if declared.isdigit() and (len(declared) > 18 or int(declared) > limit):
        raise too_large
    data = bytearray()
    try:
        async with asyncio.timeout(SLOWEST_BODY):
            async for piece in request.stream():
                if len(data) + len(piece) > limit:
                    raise too_large
                data += piece
    except TimeoutError:
        raise Failed("timeout", f"The body did not arrive within {SLOWEST_BODY:g} seconds.") from None
    except ClientDisconnect:
        raise Failed("malformed", "The body ended before it was complete.") from None
    return bytes(data)


class _Field(msgspec.Struct, frozen=True):
    """What the shape of a field depends on."""

    inner: type | None
    """The struct that it holds, alone, in a list or beside None."""
    most: int | None
    """How many items its list may have."""


class _Form(msgspec.Struct, frozen=True):
    """A struct's fields by name, and its names in camelCase."""

    fields: Mapping[str, _Field]
    names: Mapping[str, str]


@functools.cache
def _form_of(kind: type) -> _Form:
    """Worked out once for each type: to ask msgspec takes longer than to read an object."""
    fields = {field.name: _Field(_struct_inside(field.type), _most(field.type)) for field in structs.fields(kind)}
    return _Form(fields, {camel(name): name for name in fields})


def _shaped(value: Mapping[str, Any], kind: type, pointer: str) -> dict[str, Any]:
    """The object with names as the struct has them, and whole numbers written as 3.0 as whole numbers."""
    form = _form_of(kind)
    shaped: dict[str, Any] = {}
    for given, item in value.items():
        name = form.names.get(given, given)
        field = form.fields.get(name)
        if field is None:
            raise invalid(_unknown(given, list(form.fields)), pointer=f"{pointer}/{_escaped(given)}")
        if name in shaped:
            raise invalid(f"{name} is given twice, once in camelCase.", pointer=f"{pointer}/{_escaped(given)}")
        shaped[name] = _shaped_item(item, field, pointer, given)
    return shaped


def _shaped_item(item: Any, field: _Field, pointer: str, name: str) -> Any:
    if isinstance(item, list):
        at = f"{pointer}/{name}"
        if field.most is not None and len(item) > field.most:
            raise invalid(f"{name} has {len(item):,} items, and at most {field.most:,} are taken.", pointer=at)
        if field.inner is None:
            return item
        return [
            _shaped(each, field.inner, f"{at}/{place}") if isinstance(each, dict) else each
            for place, each in enumerate(item)
        ]
    if field.inner is not None and isinstance(item, dict):
        return _shaped(item, field.inner, f"{pointer}/{name}")
    # JSON does not tell 3.0 from 3.
    return int(item) if isinstance(item, float) and item.is_integer() and abs(item) < 2**63 else item


def _struct_inside(kind: Any) -> type | None:
    if get_origin(kind) is dict:
        return None  # its keys are data, such as the names of headers
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    return next((found for part in getattr(kind, "__args__", ()) if (found := _struct_inside(part))), None)


def _most(kind: Any) -> int | None:
    """The most items that a list of this type may have, where the type or a part of it says so."""
    for each in getattr(kind, "__metadata__", ()):
        if isinstance(each, msgspec.Meta) and each.max_length is not None and get_origin(kind.__origin__) is list:
            return each.max_length
    return next((found for part in getattr(kind, "__args__", ()) if (found := _most(part))), None)


def camel(name: str) -> str:
    """A name of ours as others spell it."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _unknown(name: str, known: list[str]) -> str:
    near = suggestion(name, known)
    hint = f"Did you mean {near!r}?" if near else f"There are: {', '.join(known) or 'none'}."
    return f"{name[:60]!r} is not known here. {hint}"


def _told(message: str) -> tuple[str, str]:
    """What msgspec says, as a sentence and the JSON pointer to the place.

    The message may quote a value of any length, so it is taken apart from its end, and cut.
    """
    what, found, path = message.rpartition(_AT)
    if not found or not path.endswith("`") or not path.removeprefix("key in ").startswith("$"):
        what, path = message, "`"
    path = path[:-1]
    pointer = "".join(f"/{_escaped(step[1] or step[2])}" for step in _STEP.finditer(path[:_LONGEST_DETAIL]))
    field = _FIELD.fullmatch(what)
    if field:
        return f"{field[1]!r} is missing.", f"{pointer}/{_escaped(field[1])}"
    short = what if len(what) <= _LONGEST_DETAIL else f"{what[:_LONGEST_DETAIL]}…"
    return f"{short.replace('`', '')}.", pointer


def _escaped(name: str) -> str:
    return name[:60].replace("~", "~0").replace("/", "~1")
