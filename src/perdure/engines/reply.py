"""The replies of engines with a server: awaited on the running loop's connections, waited for on the thread's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any, Generic, TypeVar

from perdure.engines.group import Group

T = TypeVar("T")
A = TypeVar("A")


class Asked(Generic[T]):
    """The reply to a verb that goes its own way."""

    __slots__ = ("_answered", "_play", "_play_on_loop")

    def __init__(
        self,
        run_verb: Callable[[], T],
        run_verb_on_loop: Callable[[], Coroutine[Any, Any, T]],
        answered: Callable[[T], None],
    ) -> None:
        self._play = run_verb
        self._play_on_loop = run_verb_on_loop
        self._answered = answered

    def wait(self) -> T:
        answer = self._play()
        self._answered(answer)
        return answer

    def __await__(self) -> Generator[Any, None, T]:
        return _carried_through(self._carry()).__await__()

    async def _carry(self) -> T:
        answer = await self._play_on_loop()
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
