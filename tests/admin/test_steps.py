"""Verbs of several steps behave alike for blocking and awaiting callers."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from perdure.admin.reply_generator import Mapped, Steps, ask, stepped
from perdure.store.reply import Reply


class Answer:
    """A reply that is there already, or raises."""

    def __init__(self, value: int | Exception) -> None:
        self.value = value
        self.uses = 0

    def wait(self) -> int:
        self.uses += 1
        if isinstance(self.value, Exception):
            raise self.value
        return self.value

    def __await__(self) -> Generator[Any, None, int]:
        return self.wait()
        yield


@stepped
def total(*replies: Reply[int]) -> Steps[int]:
    result = 0
    for reply in replies:
        result += yield from ask(reply)
    return result


@stepped
def forgiving(reply: Reply[int]) -> Steps[str]:
    try:
        yield from ask(reply)
    except KeyError:
        return "forgiven"
    return "fine"


def test_steps_are_run_in_order_when_waited_for() -> None:
    assert total(Answer(1), Answer(2), Answer(3)).wait() == 6


async def test_steps_are_run_in_order_when_awaited() -> None:
    assert await total(Answer(1), Answer(2), Answer(3)) == 6


def test_nothing_happens_before_the_reply_is_used() -> None:
    answer = Answer(1)
    reply = total(answer)
    assert answer.uses == 0
    reply.wait()
    assert answer.uses == 1


def test_an_error_is_raised_inside_the_verb_when_waited_for() -> None:
    assert forgiving(Answer(KeyError("x"))).wait() == "forgiven"
    with pytest.raises(ValueError, match="y"):
        forgiving(Answer(ValueError("y"))).wait()


async def test_an_error_is_raised_inside_the_verb_when_awaited() -> None:
    assert await forgiving(Answer(KeyError("x"))) == "forgiven"
    with pytest.raises(ValueError, match="y"):
        await forgiving(Answer(ValueError("y")))


def test_a_mapped_reply_changes_the_answer_when_waited_for() -> None:
    assert Mapped(Answer(2), str).wait() == "2"


async def test_a_mapped_reply_changes_the_answer_when_awaited() -> None:
    assert await Mapped(Answer(2), str) == "2"
