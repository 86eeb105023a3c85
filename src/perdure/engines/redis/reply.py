"""The replies of the engine: awaited they use the running loop's connections, waited for the calling thread's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any, Generic, TypeVar

from perdure.engines.redis.group import Group
from perdure.engines.redis.player import Player
from perdure.engines.redis.verb import Verb

T = TypeVar("T")
A = TypeVar("A")


class Asked(Generic[T]):
    """The reply to a verb that goes its own way."""

    __slots__ = ("_answered", "_make", "_player")

    def __init__(self, player: Player, make: Callable[[], Verb[T]], answered: Callable[[T], None] | None) -> None:
        self._player = player
        self._make = make
        self._answered = answered

    def wait(self) -> T:
        answer = self._player.play(self._make())
        if self._answered is not None:
            self._answered(answer)
        return answer

    def __await__(self) -> Generator[Any, None, T]:
        return _carried_through(self._play()).__await__()

    async def _play(self) -> T:
        answer = await self._player.play_on_loop(self._make())
        if self._answered is not None:
            self._answered(answer)
        return answer


class Grouped(Generic[T, A]):
    """The reply to a verb that travels with others of its kind when it is awaited."""

    __slots__ = ("_group", "_things", "_wait")

    def __init__(
        self, things: Sequence[T], wait: Callable[[Sequence[T]], list[A]], group: Callable[[], Group[T, A]]
    ) -> None:
        self._things = things
        self._wait = wait
        self._group = group

    def wait(self) -> list[A]:
        return self._wait(self._things)

    def __await__(self) -> Generator[Any, None, list[A]]:
        return self._group().ask(self._things).__await__()


def _carried_through(work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
    """The work as a task that goes on when its waiter is cancelled: half a verb would leave others to clear up."""
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(_look_at)
    return asyncio.shield(task)


def _look_at(task: asyncio.Task[Any]) -> None:
    """Nobody may be left to be told about an error; then it is nobody's."""
    if not task.cancelled():
        task.exception()
