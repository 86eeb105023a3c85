"""Job ids: UUIDs of version 7 that sort by the time they were made, whatever the clock does."""

from __future__ import annotations

import os
import uuid
from datetime import UTC, datetime, timedelta
from random import Random, SystemRandom

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perdure.application.identity import Ids
from perdure.model.job import NO_ID, format_chance, format_id, id_moment, join_id, make_id
from perdure.system.clock import VirtualClock

NOW = datetime(2030, 1, 1, 12, 0, 0, 123_456, tzinfo=UTC)
NOISE = st.integers(0, 2**62 - 1)
MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - drawn in UTC


@given(MOMENTS, NOISE)
def test_an_id_is_a_uuid_of_version_7(moment: datetime, noise: int) -> None:
    text = format_id(make_id(moment, noise, NO_ID))
    value = uuid.UUID(text)
    assert str(value) == text
    assert value.version == 7
    assert value.variant == uuid.RFC_4122


@given(MOMENTS, NOISE)
def test_an_id_carries_its_time(moment: datetime, noise: int) -> None:
    value = uuid.UUID(format_id(make_id(moment, noise, NO_ID))).int
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    assert value >> 80 == since // timedelta(milliseconds=1)


@given(MOMENTS, MOMENTS, NOISE, NOISE)
def test_ids_sort_by_time(one: datetime, other: datetime, first: int, second: int) -> None:
    if abs(one - other) < timedelta(microseconds=1):
        return
    made = format_id(make_id(one, first, NO_ID)), format_id(make_id(other, second, NO_ID))
    assert (made[0] < made[1]) == (one < other)


@given(MOMENTS, st.lists(st.tuples(st.integers(-(10**9), 10**9), NOISE), max_size=50))
def test_ids_only_grow_whatever_the_clock_does(start: datetime, steps: list[tuple[int, int]]) -> None:
    last, texts = NO_ID, []
    for step, noise in steps:
        last = make_id(start + timedelta(microseconds=step), noise, last)
        texts.append(format_id(last))
    assert texts == sorted(set(texts))


def test_ids_of_one_moment_differ_and_keep_their_order() -> None:
    last, texts = NO_ID, []
    random = Random(1)
    for _ in range(10_000):
        last = make_id(NOW, random.getrandbits(62), last)
        texts.append(format_id(last))
    assert texts == sorted(set(texts))
    assert all(uuid.UUID(text).version == 7 for text in texts[::100])


def test_counting_up_carries_from_noise_into_time() -> None:
    last = make_id(NOW, 2**62 - 1, NO_ID)
    following = make_id(NOW, 0, last)
    assert following == last + 1
    assert format_id(last) < format_id(following)
    assert uuid.UUID(format_id(following)).version == 7


def test_a_clock_before_1970_still_gives_valid_ids() -> None:
    body = make_id(datetime(1960, 1, 1, tzinfo=UTC), 5, NO_ID)
    assert body >= 0
    assert uuid.UUID(format_id(body)).version == 7


def test_the_lowest_id_can_be_made_and_is_followed_by_the_next() -> None:
    start = datetime(1970, 1, 1, tzinfo=UTC)
    lowest = make_id(start, 0, NO_ID)
    assert format_id(lowest) == "00000000-0000-7000-8000-000000000000"
    assert format_id(make_id(start, 0, lowest)) == "00000000-0000-7000-8000-000000000001"


class AllZero(Random):
    """A source of chance that only gives zeros."""

    def getrandbits(self, k: int) -> int:
        return 0


def test_the_first_id_is_made_of_its_moment_and_chance_even_if_both_are_zero() -> None:
    ids = Ids(VirtualClock(datetime(1970, 1, 1, tzinfo=UTC)), AllZero())
    assert [ids.job(), ids.job()] == ["00000000-0000-7000-8000-000000000000", "00000000-0000-7000-8000-000000000001"]


def test_a_clock_before_1970_counts_up_from_the_lowest_id() -> None:
    ids = Ids(VirtualClock(datetime(1960, 1, 1, tzinfo=UTC)), Random(1))
    assert [ids.job(), *ids.jobs(2)] == [f"00000000-0000-7000-8000-00000000000{number}" for number in range(3)]


def test_ids_made_apart_do_not_meet() -> None:
    random = Random(2)
    ids = {make_id(NOW, random.getrandbits(62), NO_ID) for _ in range(10_000)}
    assert len(ids) == 10_000


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(TypeError):
        make_id(datetime(2030, 1, 1), 0, 0)  # noqa: DTZ001 - the point of the test


def test_a_forked_process_does_not_use_the_chance_of_its_parent() -> None:
    clock = VirtualClock()
    ids = Ids(clock, SystemRandom(), stock=64)
    ids.job()
    clock.advance(timedelta(seconds=1))  # or both would only count up from it
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, ids.job().encode())
        os._exit(0)
    os.wait()
    theirs = os.read(reading, 100).decode()
    os.close(reading)
    os.close(writing)
    assert theirs[19:] != ids.job()[19:]


def test_of_a_stock_of_chance_nothing_is_used_twice() -> None:
    clock = VirtualClock()
    ids = Ids(clock, SystemRandom(), stock=8)
    values = []
    for _ in range(100):
        clock.advance(timedelta(milliseconds=1))  # or ids that come too fast would count up instead
        values.append(ids.job()[19:])
    assert len(set(values)) == 100


class Jumping(VirtualClock):
    """A clock that goes back as well."""

    def jump(self, microseconds: int) -> None:
        self._now += timedelta(microseconds=microseconds)


@given(st.lists(st.tuples(st.integers(-3000, 3000), st.integers(1, 4)), max_size=50), st.integers(0, 2**32))
def test_ids_made_one_by_one_and_together_only_grow_whatever_the_clock_does(
    steps: list[tuple[int, int]], seed: int
) -> None:
    clock = Jumping(NOW)
    ids = Ids(clock, Random(seed), stock=3)
    texts = []
    for step, count in steps:
        clock.jump(step)
        texts += ids.jobs(count)
    assert texts == sorted(set(texts))
    assert all(str(uuid.UUID(text)) == text and uuid.UUID(text).version == 7 for text in texts)


@given(MOMENTS, NOISE)
@example(datetime(1970, 1, 1, tzinfo=UTC), 0)  # the lowest id of all
def test_an_id_in_parts_is_the_same_id(moment: datetime, noise: int) -> None:
    made = join_id(id_moment(VirtualClock(moment).microseconds()), format_chance(noise))
    assert made == format_id(make_id(moment, noise, NO_ID))


@given(MOMENTS, st.integers(0, 2**32))
def test_an_id_is_made_of_the_moment_and_of_chance_alone(moment: datetime, seed: int) -> None:
    made = Ids(VirtualClock(moment), Random(seed)).job()
    assert made == format_id(make_id(moment, Random(seed).getrandbits(62), NO_ID))
