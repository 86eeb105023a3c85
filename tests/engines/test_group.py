"""Group commit on an event loop: one batch on its way, the rest in the next, and nobody pays for another's fault."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from perdure.engines.group import LARGEST, Group


class Far:
    """The other end: notes each batch, answers when it is let, and cannot bear a 13."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def do(self, requests: Sequence[int]) -> list[str]:
        self.batches.append(list(requests))
        await self.may_answer.wait()
        if 13 in requests:
            raise ValueError(13)
        return [f"answer {request}" for request in requests]


async def test_what_arrives_while_a_batch_is_on_its_way_is_the_next_batch() -> None:
    far = Far()
    group = Group(far.do)
    far.may_answer.clear()
    first = group.ask([0])
    while not far.batches:
        await asyncio.sleep(0)
    others = [group.ask([number]) for number in range(20, 70)]
    far.may_answer.set()
    assert await first == ["answer 0"]
    assert await asyncio.gather(*others) == [[f"answer {number}"] for number in range(20, 70)]
    assert far.batches == [[0], list(range(20, 70))]


async def test_a_request_at_idle_goes_at_once_and_alone() -> None:
    far = Far()
    group = Group(far.do)
    for number in range(3):
        assert await group.ask([number]) == [f"answer {number}"]
    assert far.batches == [[0], [1], [2]]


async def test_a_batch_has_a_bound() -> None:
    far = Far()
    group = Group(far.do)
    await asyncio.gather(*(group.ask([number]) for number in range(14, LARGEST + 50)))
    assert max(map(len, far.batches)) <= LARGEST
    assert len(far.batches) == 2


async def test_when_a_batch_fails_each_is_done_alone() -> None:
    far = Far()
    group = Group(far.do)
    answers = await asyncio.gather(*(group.ask([number]) for number in (12, 13, 14)), return_exceptions=True)
    assert answers[0] == ["answer 12"]
    assert isinstance(answers[1], ValueError)
    assert answers[2] == ["answer 14"]
    assert await group.ask([15]) == ["answer 15"]


async def test_who_does_not_wait_any_more_is_not_sent() -> None:
    far = Far()
    group = Group(far.do)
    far.may_answer.clear()
    first = group.ask([0])
    while not far.batches:
        await asyncio.sleep(0)
    left, gone = group.ask([1]), group.ask([2])
    gone.cancel()
    far.may_answer.set()
    assert (await first, await left) == (["answer 0"], ["answer 1"])
    assert far.batches == [[0], [1]]
    with pytest.raises(asyncio.CancelledError):
        await gone
