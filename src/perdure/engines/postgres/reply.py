"""The replies of the engine: awaited they use the running loop's connections, waited for the calling thread's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from typing import Any, Generic, TypeVar

from perdure.engines.postgres.group import Group
from perdure.engines.postgres.player import Player
from perdure.engines.postgres.verb import Verb

T = TypeVar("T")
Q = TypeVar("Q")
A = TypeVar("A")


class Asked(Generic[T]):
    """The reply to a verb that goes its own way."""

    __slots__ = ("_answered", "_is_beat", "_player", "_verb")

    def __init__(self, player: Player, verb: Verb[T], answered: Callable[[T], None] | None, *, is_beat: bool) -> None:
        self._player = player
        self._verb = verb
        self._answered = answered
        self._is_beat = is_beat

    def wait(self) -> T:
        answer = self._player.play(self._verb, is_beat=self._is_beat)
        if self._answered is not None:
            self._answered(answer)
        return answer

    def __await__(self) -> Generator[Any, None, T]:
        return _carried_through(self._play()).__await__()

    async def _play(self) -> T:
        answer = await self._player.play_on_loop(self._verb)
        if self._answered is not None:
            self._answered(answer)
        return answer


class Grouped(Generic[Q, A]):
    """The reply to a verb that travels with others of its kind when it is awaited."""

    __slots__ = ("_group", "_request", "_wait")

    def __init__(self, request: Q, wait: Callable[[Q], A], group: Callable[[], Group[Q, A]]) -> None:
        self._request = request
        self._wait = wait
        self._group = group

    def wait(self) -> A:
        return self._wait(self._request)

    def __await__(self) -> Generator[Any, None, A]:
        return self._group().ask(self._request).__await__()


def together(
    do: Callable[[Sequence[T]], Awaitable[list[A]]],
) -> Callable[[Sequence[Sequence[T]]], Awaitable[list[list[A]]]]:
    """Do the work of several requests as that of one, and give each its part of the answers."""

    async def do_all(requests: Sequence[Sequence[T]]) -> list[list[A]]:
        answers = iter(await do([one for request in requests for one in request]))
        return [[next(answers) for _ in request] for request in requests]

    return do_all


def _carried_through(work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
    """The work as a task that goes on when its waiter is cancelled: half a verb would leave others to clear up."""
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(_look_at)
    return asyncio.shield(task)


def _look_at(task: asyncio.Task[Any]) -> None:
    """Nobody may be left to be told about an error; then it is nobody's."""
    if not task.cancelled():
        task.exception()
