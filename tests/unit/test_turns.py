"""Turns: the queues of a worker get their weights' parts, at every batch size, and nothing is saved up."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import BadOption
from perdure.model.queue.turns import HEAVIEST, Turns, read_weights


def serve(turns: Turns, room: int, ready: dict[str, int]) -> Counter[str]:
    """One fetch as an engine does it: what is due first, then what others could not use."""
    got: Counter[str] = Counter()
    allotted = turns.allot(room)
    assert sum(allotted.values()) == room
    rounds = [*allotted.items(), *((queue, room) for queue in turns.order())]
    for queue, count in rounds:
        taken = min(count, room - got.total(), ready[queue] - got[queue])
        got[queue] += taken
    short = {queue for queue, count in allotted.items() if got[queue] < count}
    turns.started(got, set(ready) if got.total() < room else short)
    return got


BUSY = 10**9


# Proves [INV-18].
@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=5),
    st.lists(st.integers(1, 40), min_size=1, max_size=60),
)
def test_busy_queues_are_never_far_from_their_part(weights: list[int], rooms: list[int]) -> None:
    named = {f"queue-{number}": weight for number, weight in enumerate(weights)}
    turns = Turns(named)
    total: Counter[str] = Counter()
    so_far = [Counter(total)]
    for room in rooms:
        total += serve(turns, room, dict.fromkeys(named, BUSY))
        so_far.append(Counter(total))
    for before in so_far[:-1]:
        window = {queue: so_far[-1][queue] - before[queue] for queue in named}
        for one, two in combinations(named, 2):
            # At any moment neither is more than one turn of its own ahead of the other.
            ahead = Fraction(window[one], named[one]) - Fraction(window[two], named[two])
            assert abs(ahead) <= Fraction(1, named[one]) + Fraction(1, named[two])


def test_rooms_of_one_are_smooth() -> None:
    turns = Turns({"mail": 3, "default": 1})
    order = "".join(next(iter(serve(turns, 1, {"mail": BUSY, "default": BUSY})))[0] for _ in range(12))
    assert Counter(order) == {"m": 9, "d": 3}
    assert "dd" not in order
    assert "mmmm" not in order


def test_the_part_of_an_empty_queue_goes_to_the_others_by_their_weights() -> None:
    turns = Turns({"a": 2, "b": 1, "empty": 5})
    total: Counter[str] = Counter()
    for _ in range(300):
        total += serve(turns, 1, {"a": BUSY, "b": BUSY, "empty": 0})
    assert total.total() == 300
    assert abs(total["a"] - 200) <= 2


def test_large_rooms_lose_next_to_nothing_on_an_empty_queue() -> None:
    turns = Turns({"a": 1, "b": 1, "empty": 1})
    ready = {"a": BUSY, "b": BUSY, "empty": 0}
    serve(turns, 90, ready)
    total: Counter[str] = Counter()
    for _ in range(10):
        got = serve(turns, 90, ready)
        total += got
    assert abs(total["a"] - total["b"]) <= 32


def test_a_queue_that_was_empty_for_long_gets_its_part_and_no_burst() -> None:
    turns = Turns({"a": 1, "b": 1})
    for _ in range(1000):
        serve(turns, 1, {"a": BUSY, "b": 0})
    total: Counter[str] = Counter()
    for _ in range(10):
        total += serve(turns, 1, {"a": BUSY, "b": BUSY})
    assert abs(total["a"] - total["b"]) <= 1


def test_after_a_rest_of_all_queues_they_begin_anew_together() -> None:
    turns = Turns({"a": 1, "b": 1})
    serve(turns, 10, {"a": 5, "b": 0})
    serve(turns, 10, {"a": 0, "b": 0})
    got = serve(turns, 10, {"a": BUSY, "b": BUSY})
    assert got == {"a": 5, "b": 5}


def test_no_queue_starves_beside_a_heavy_one() -> None:
    turns = Turns({"heavy": HEAVIEST, "light": 1})
    total: Counter[str] = Counter()
    for _ in range(2 * (HEAVIEST + 1)):
        total += serve(turns, 1, {"heavy": BUSY, "light": BUSY})
    assert total["light"] == 2


def test_weights_are_read_from_names_and_from_mappings() -> None:
    assert read_weights(["mail:3", "default", " slow : 2 "]) == {"mail": 3, "default": 1, "slow": 2}
    assert read_weights({"mail": 3}) == {"mail": 3}


@pytest.mark.parametrize("queues", [["mail:0"], ["mail:x"], ["mail:"], ["mail:1.5"], {"mail": True}, {"mail": 1001}])
def test_what_is_no_weight_is_refused_with_the_queues_name(queues: object) -> None:
    with pytest.raises(BadOption, match="mail"):
        read_weights(queues)  # type: ignore[arg-type]


def test_a_queue_with_two_weights_is_refused() -> None:
    with pytest.raises(BadOption, match="two weights"):
        read_weights(["mail:3", "mail:2"])


@pytest.mark.parametrize("name", ["", "a b:2", "x" * 129])
def test_what_is_no_queue_is_refused(name: str) -> None:
    with pytest.raises(BadOption, match="cannot be used"):
        read_weights([name])
