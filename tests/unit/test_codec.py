"""The strict gate for arguments and results: plain data passes unchanged, all else is refused with its path."""

from __future__ import annotations

import json
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import BadPayload
from perdure.model.payload.codec import PAYLOAD_LIMIT, decode_args, decode_result, encode_args, encode_result
from perdure.model.payload.normaliser import DEEPEST, HIGHEST_INTEGER, LOWEST_INTEGER, MOST_NODES

TEXT = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\x00"), max_size=20)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(LOWEST_INTEGER, HIGHEST_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=20,
)


def nested(depth: int, *, with_dicts: bool = False) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if with_dicts else [value]
    return value


@given(st.lists(PLAIN, max_size=4), st.dictionaries(TEXT, PLAIN, max_size=4))
def test_plain_arguments_come_back_exactly(args: list[Any], kwargs: dict[str, Any]) -> None:
    data = encode_args(tuple(args), kwargs)
    found = decode_args(data)
    assert found == (args, kwargs)
    assert repr(found) == repr((args, kwargs))  # 1 is not 1.0 and not True
    assert json.loads(data) == {key: part for key, part in (("args", args), ("kwargs", kwargs)) if part}


@given(PLAIN)
def test_plain_results_come_back_exactly(value: Any) -> None:
    assert repr(decode_result(encode_result(value))) == repr(value)


@given(PLAIN)
def test_every_encoder_s_text_is_read(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=2), json.dumps(value, ensure_ascii=False)):
        assert decode_result(text.encode()) == value


@given(st.binary(max_size=60) | st.text('{}[]",:\\u0d8 args1e.-nul', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused_as_a_bad_payload(data: bytes) -> None:
    for decode in (decode_args, decode_result):
        try:
            found = decode(data)
        except BadPayload:
            continue
        if decode is decode_result:
            assert decode_result(encode_result(found)) == found


def test_empty_parts_are_left_out() -> None:
    assert encode_args((), {}) == b"{}"
    assert encode_args((1,), {}) == b'{"args":[1]}'
    assert encode_args((), {"to": "a"}) == b'{"kwargs":{"to":"a"}}'
    assert encode_args((1,), {"to": "a"}) == b'{"args":[1],"kwargs":{"to":"a"}}'
    assert decode_args(b"{}") == ([], {})
    assert decode_args(b' { "kwargs" : {} } ') == ([], {})


ACCEPTED = [
    None,
    True,
    0,
    -0.0,
    5e-324,
    1.7976931348623157e308,
    2**53 + 1,
    HIGHEST_INTEGER,
    LOWEST_INTEGER,
    "",
    "é e\u0301 \u2028 \u202e \U0001f468\u200d\U0001f469 \ufeff",
    "\x01\x1f\x7f",
    "'; DROP TABLE jobs; -- ${jndi:} {{7*7}} %s%n ]]> \r\n",
    {"__proto__": {"$where": 1}, "": [], "é": 1, "e\u0301": 2},
    [[], {}, [[]], [{}]],
]


@pytest.mark.parametrize("value", ACCEPTED, ids=ascii)
def test_odd_but_plain_values_come_back_exactly(value: Any) -> None:
    assert repr(decode_result(encode_result(value))) == repr(value)


def test_tuples_come_back_as_lists() -> None:
    assert decode_result(encode_result((1, (2, 3)))) == [1, [2, 3]]


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Plain(Enum):
    ONE = 1


class OwnText(str):
    __slots__ = ()


class OwnInt(int):
    pass


class OwnFloat(float):
    pass


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (OwnText("a"), "a"),
        (OwnInt(5), 5),
        (OwnFloat(2.5), 2.5),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (Point(1, 2), [1, 2]),
        ({Colour.RED: [Colour.RED]}, {"red": ["red"]}),
    ],
    ids=repr,
)
def test_subclasses_of_plain_types_stand_for_them(value: Any, stored: Any) -> None:
    found = decode_result(encode_result(value))
    assert found == stored
    assert type(found) is type(stored)


@dataclass
class Order:
    number: int


class Message(msgspec.Struct):
    number: int


async def never_awaited() -> None: ...


REFUSED = [
    (float("nan"), "nan is not a number"),
    (float("inf"), "inf is not a number"),
    (float("-inf"), "-inf is not a number"),
    (OwnFloat("nan"), "nan is not a number"),
    (HIGHEST_INTEGER + 1, "64 bits"),
    (LOWEST_INTEGER - 1, "64 bits"),
    (OwnInt(2**64), "64 bits"),
    pytest.param(10**5000, "64 bits", id="10**5000"),
    ("\ud800", "surrogate"),
    ("a\udfff\ud800b", "surrogate"),
    (OwnText("\ud800"), "surrogate"),
    ("\x00", "NUL"),
    ("a\x00b", "NUL"),
    (b"bytes", "base64"),
    (bytearray(b"x"), "base64"),
    ({1, 2}, "sorted"),
    (frozenset(), "sorted"),
    (datetime(2030, 1, 1, tzinfo=UTC), ".isoformat()"),
    (datetime(2030, 1, 1, tzinfo=UTC).date(), ".isoformat()"),
    (timedelta(1), ".total_seconds()"),
    (UUID(int=1), "str("),
    (Decimal("1.5"), "str("),
    (PurePosixPath("a"), "str("),
    (Plain.ONE, ".value"),
    (Order(1), "asdict"),
    (Message(1), "to_builtins"),
    (object(), "load the thing"),
    (int, "load the thing"),
    (range(3), "load the thing"),
    (1 + 2j, "load the thing"),
    ({1: 2}, "not text"),
    ({None: 2}, "not text"),
    ({("a",): 2}, "not text"),
    ({"a\x00": 2}, "NUL"),
    ({"\ud800": 2}, "surrogate"),
]


@pytest.mark.parametrize(("value", "words"), REFUSED, ids=lambda value: ascii(value).partition(" at 0x")[0])
def test_what_is_not_plain_is_refused_with_its_path_and_advice(value: Any, words: str) -> None:
    with pytest.raises(BadPayload) as caught:
        encode_args((0, {"items": [1, 2, 3, value]}), {})
    assert "args[1].items[3]" in str(caught.value)
    assert words in str(caught.value)
    with pytest.raises(BadPayload, match="result"):
        encode_result(value)


def test_a_coroutine_that_was_not_awaited_is_named() -> None:
    coroutine = never_awaited()
    with pytest.raises(BadPayload, match="never awaited"):
        encode_result(coroutine)
    coroutine.close()


def test_keyword_arguments_are_named_in_the_path() -> None:
    with pytest.raises(BadPayload, match=r"^kwargs\.to\['odd key'\]\[0\]: "):
        encode_args((), {"to": {"odd key": [{1}]}})


def test_a_hostile_repr_does_not_hinder_the_refusal() -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError

    with pytest.raises(BadPayload, match="Hostile"):
        encode_result(Hostile())
    with pytest.raises(BadPayload, match="not text"):
        encode_result({Hostile(): 1})


def test_two_keys_that_are_stored_alike_are_refused() -> None:
    class Other(str):
        __slots__ = ()

        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            return self is other

    with pytest.raises(BadPayload, match="twice"):
        encode_result({Other("a"): 1, Other("a") + "": 2})


@pytest.mark.parametrize("with_dicts", [False, True])
def test_sixty_four_levels_pass_and_one_more_is_refused(with_dicts: bool) -> None:
    deepest, deeper = nested(DEEPEST, with_dicts=with_dicts), nested(DEEPEST + 1, with_dicts=with_dicts)
    assert decode_result(encode_result(deepest)) == deepest
    assert decode_args(encode_args((deepest,), {"a": deepest})) == ([deepest], {"a": deepest})
    for value in (deeper, nested(1_000, with_dicts=with_dicts)):
        with pytest.raises(BadPayload, match="64 levels"):
            encode_result(value)
        with pytest.raises(BadPayload, match="64 levels"):
            encode_args((), {"a": value})
    with pytest.raises(BadPayload, match="64 levels"):
        decode_result(json.dumps(deeper).encode())
    with pytest.raises(BadPayload, match="64 levels"):
        decode_args(json.dumps({"args": [deeper]}).encode())


@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_text_nested_without_end_is_refused(depth: int) -> None:
    with pytest.raises(BadPayload, match="64 levels"):
        decode_result(b"[" * depth + b"]" * depth, limit=10**9)


def test_a_list_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(BadPayload, match="contains itself"):
        encode_result(endless)
    circle: dict[str, Any] = {}
    circle["again"] = circle
    with pytest.raises(BadPayload, match="contains itself"):
        encode_args((circle,), {})


def test_too_many_values_are_refused() -> None:
    most = [0] * (MOST_NODES - 1)
    assert decode_result(encode_result(most, limit=10**9), limit=10**9) == most
    for value in ([*most, 0], {str(key): 0 for key in range(MOST_NODES)}):
        with pytest.raises(BadPayload, match="100,000 values"):
            encode_result(value, limit=10**9)
        with pytest.raises(BadPayload, match="100,000 values"):
            decode_result(json.dumps(value).encode(), limit=10**9)


def test_a_list_that_multiplies_without_end_is_refused_soon() -> None:
    value: Any = 0
    for _ in range(60):
        value = [value] * 10
    with pytest.raises(BadPayload, match="100,000 values"):
        encode_result(value)


def test_a_text_that_multiplies_is_refused_before_it_is_written() -> None:
    with pytest.raises(BadPayload, match="262,144 bytes"):
        encode_result(["x" * 200_000] * 90_000)
    with pytest.raises(BadPayload, match="262,144 bytes"):
        encode_result([Colour.RED, *["x" * 200_000] * 90_000])


def test_the_limit_is_in_bytes_and_exact() -> None:
    assert PAYLOAD_LIMIT == 256 * 1024
    fits = "é" * 49
    assert len(encode_result(fits, limit=100)) == 100
    with pytest.raises(BadPayload, match="102 bytes, and at most 100"):
        encode_result(fits + "é", limit=100)
    with pytest.raises(BadPayload, match="at most 10 "):
        encode_args(("too much",), {}, limit=10)
    with pytest.raises(BadPayload, match="at most 10 "):
        decode_args(b'{"args":[1,2,3]}', limit=10)
    assert decode_args(b'{"args":[1,2,3]}', limit=16) == ([1, 2, 3], {})


GARBAGE = [
    b"",
    b" ",
    b"nul",
    b"NaN",
    b"[NaN]",
    b"[Infinity]",
    b"[-Infinity]",
    b"[1e999]",
    b"[1,]",
    b"{'a':1}",
    b"[1] x",
    b"[1][2]",
    b'["\\ud800"]',
    b'["\\udc00\\ud800"]',
    b'["\\u0000"]',
    b'{"a\\u0000":1}',
    b'["\x00"]',
    b'["\n"]',
    b'["\xff"]',
    b'["\xc0\x80"]',
    b'["\xed\xa0\x80"]',
    b'["\xe2\x82',
    b"\xef\xbb\xbf[]",
    b"\xff\xfe[\x00]\x00",
    b"[9223372036854775808]",
    b"[-9223372036854775809]",
    b"[" + b"9" * 4301 + b"]",
    b'{"a":1,"a":1}',
    b'[{"a":{"b":1,"c":2,"b":3}}]',
    b'{"a":1,"\\u0061":2}',
]


@pytest.mark.parametrize("data", GARBAGE, ids=lambda data: ascii(data[:30]))
def test_text_that_is_no_strict_json_is_refused(data: bytes) -> None:
    with pytest.raises(BadPayload):
        decode_result(data)
    with pytest.raises(BadPayload):
        decode_args(b'{"args":[0,' + data + b"]}")


@pytest.mark.parametrize(
    "data",
    [
        b"null",
        b"[]",
        b'"args"',
        b"5",
        b'{"args":{}}',
        b'{"kwargs":[]}',
        b'{"args":null}',
        b'{"arg":[]}',
        b'{"args":[],"x":1}',
    ],
)
def test_arguments_of_another_form_are_refused(data: bytes) -> None:
    with pytest.raises(BadPayload, match="not of the form"):
        decode_args(data)


def test_a_key_twice_is_named() -> None:
    with pytest.raises(BadPayload, match="'b' twice"):
        decode_result(b'[{"a":1,"b":2,"b":3}]')
    with pytest.raises(BadPayload, match="'args' twice"):
        decode_args(b'{"args":[1],"args":[2]}')


SIMPLE = (
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.text(st.characters(exclude_categories=()), max_size=70)
)


@given(st.lists(SIMPLE, min_size=1, max_size=25), st.integers(0, 200))
def test_a_few_simple_arguments_are_treated_as_the_same_in_a_list_are(values: list[Any], limit: int) -> None:
    def tried(args: tuple[Any, ...], kwargs: dict[str, Any], most: int) -> bytes | None:
        try:
            return encode_args(args, kwargs, most)
        except BadPayload:
            return None

    alone = tried(tuple(values), {}, limit)
    # The same with a keyword, which takes the general way.
    beside = tried(tuple(values), {"x": 0}, limit + len(b',"kwargs":{"x":0}'))
    assert (alone is None) == (beside is None)
    if alone is not None and beside is not None:
        assert beside.startswith(alone[:-1])
