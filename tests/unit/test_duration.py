"""Durations: what is read, what is refused, and the shortest text that is read back exactly."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import BadDuration
from perdure.text.duration import LONGEST, format_duration, parse_duration

READ = [
    ("500ms", timedelta(milliseconds=500)),
    ("30s", timedelta(seconds=30)),
    ("5m", timedelta(minutes=5)),
    ("1h30m", timedelta(minutes=90)),
    ("1h 30m", timedelta(minutes=90)),
    ("7d", timedelta(days=7)),
    ("2w", timedelta(weeks=2)),
    ("250us", timedelta(microseconds=250)),
    ("250µs", timedelta(microseconds=250)),
    ("250μs", timedelta(microseconds=250)),
    ("1.5h", timedelta(minutes=90)),
    ("0.1s", timedelta(milliseconds=100)),
    ("  5 m  ", timedelta(minutes=5)),
    ("90", timedelta(seconds=90)),
    ("0.25", timedelta(milliseconds=250)),
    ("0s", timedelta(0)),
    ("1.9999999s", timedelta(seconds=2)),
    (0, timedelta(0)),
    (-0.0, timedelta(0)),
    (2.5, timedelta(milliseconds=2500)),
    (90, timedelta(seconds=90)),
    (timedelta(days=3), timedelta(days=3)),
    (LONGEST, LONGEST),
    ("36500d", LONGEST),
    ("3153599999.999999s", LONGEST - timedelta(microseconds=1)),
    ("3153599999999999us", LONGEST - timedelta(microseconds=1)),
]


@pytest.mark.parametrize(("value", "meaning"), READ)
def test_durations_are_read_exactly(value: str | float | timedelta, meaning: timedelta) -> None:
    assert parse_duration(value) == meaning


REFUSED = [
    "",
    "   ",
    "m",
    "5 parsecs",
    "5m!",
    "m5",
    "1.s",
    ".5s",
    "1e3s",
    "-5s",
    "5M",
    "٣s",
    "5s\x00",
    "1s" * 10_000,
    "36501d",
    "999999999999999999w",
    "9" * 18 + "d" + "9" * 18 + "d",
    -1,
    -0.001,
    1e300,
    float("nan"),
    float("inf"),
    float("-inf"),
    pytest.param(10**400, id="10**400"),
    pytest.param(10**5000, id="10**5000"),
    pytest.param(-(10**5000), id="-10**5000"),
    True,
    False,
    None,
    b"5s",
    [5],
    timedelta(seconds=-1),
    timedelta.max,
    timedelta.min,
]


@pytest.mark.parametrize("value", REFUSED)
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(BadDuration, match="Write it like") as caught:
        parse_duration(value, what="cap")  # type: ignore[arg-type]
    assert "cap is " in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(milliseconds=500), "500ms"),
        (timedelta(days=8, hours=1), "8d1h"),
        (timedelta(microseconds=1_000_001), "1s1us"),
        (timedelta(seconds=-90), "-1m30s"),
    ],
)
def test_durations_are_written_briefly(value: timedelta, text: str) -> None:
    assert format_duration(value) == text


@given(st.timedeltas(min_value=timedelta(0), max_value=LONGEST))
def test_every_duration_is_read_back_from_its_text(value: timedelta) -> None:
    assert parse_duration(format_duration(value)) == value


@given(st.integers(0, 10**9), st.integers(0, 999_999))
def test_decimals_are_exact_to_the_microsecond(seconds: int, microseconds: int) -> None:
    text = f"{seconds}.{microseconds:06}s"
    assert parse_duration(text) == timedelta(seconds=seconds, microseconds=microseconds)


@given(st.text(max_size=30) | st.text("0123456789.smhdw u", max_size=30))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        found = parse_duration(text)
    except BadDuration:
        return
    assert timedelta(0) <= found <= LONGEST
