"""Group commit on an event loop: one batch is on its way, and what arrives meanwhile is the next.

There is no timer: at idle a request goes at once and alone, under load batches grow by themselves. If a batch fails for
a reason of its own, each of its requests is done alone, so that nobody pays for another's fault.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from perdure.errors import EngineBusy, EngineFull, EngineUnreachable
from perdure.model.job import JobId, NewJob
from perdure.store.jobs import Ended

T = TypeVar("T")
A = TypeVar("A")

LARGEST = 1000
"""So many things in a batch, and the next request begins another."""


class Group(Generic[T, A]):
    """The requests of one kind on one event loop; each asks for some things to be done, and gets an answer to each."""

    def __init__(self, do: Callable[[Sequence[T]], Awaitable[list[A]]]) -> None:
        self._do = do
        self._waiting: deque[tuple[Sequence[T], asyncio.Future[list[A]]]] = deque()
        self._working: asyncio.Task[None] | None = None
        self.batches = 0
        """How many were sent; shows what grouping saves."""

    def ask(self, things: Sequence[T]) -> asyncio.Future[list[A]]:
        """The answers to a request, which is sent with the next batch."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[A]] = loop.create_future()
        self._waiting.append((things, answer))
        if self._working is None:
            self._working = loop.create_task(self._work())
        return answer

    async def _work(self) -> None:
        try:
            while batch := self._next():
                await self._answer(batch)
        except asyncio.CancelledError:
            while self._waiting:
                self._waiting.popleft()[1].cancel()
            raise
        finally:
            self._working = None

    def _next(self) -> list[tuple[Sequence[T], asyncio.Future[list[A]]]]:
        batch: list[tuple[Sequence[T], asyncio.Future[list[A]]]] = []
        size = 0
        while self._waiting and size < LARGEST:
            things, answer = self._waiting.popleft()
            if not answer.cancelled():
                batch.append((things, answer))
                size += len(things)
        return batch

    async def _answer(self, batch: list[tuple[Sequence[T], asyncio.Future[list[A]]]]) -> None:
        self.batches += 1
        try:
            answers = iter(await self._do([thing for things, _ in batch for thing in things]))
        except asyncio.CancelledError:
            for _, waiting in batch:
                waiting.cancel()
            raise
        except (EngineUnreachable, EngineBusy, EngineFull) as error:
            # The engine could not do its part: asking again for each would only take longer.
            for _, waiting in batch:
                _fail(waiting, type(error)(error.message, error.hint), error.__cause__)
        except Exception as error:
            if len(batch) > 1:
                for one in batch:
                    await self._answer([one])
            else:
                _fail(batch[0][1], error, error.__cause__)
        else:
            for things, waiting in batch:
                mine = [next(answers) for _ in things]
                if not waiting.done():
                    waiting.set_result(mine)


class Groups:
    """What travels in groups on each event loop: enqueues and commits."""

    def __init__(
        self,
        enqueue: Callable[[Sequence[NewJob]], Awaitable[list[JobId]]],
        commit: Callable[[Sequence[Ended]], Awaitable[list[bool]]],
    ) -> None:
        self._enqueue = enqueue
        self._commit = commit
        self._loops: dict[asyncio.AbstractEventLoop, tuple[Group[NewJob, JobId], Group[Ended, bool]]] = {}

    def enqueues(self) -> Group[NewJob, JobId]:
        """The enqueues on the running event loop."""
        return self._of_loop()[0]

    def commits(self) -> Group[Ended, bool]:
        """The commits on the running event loop."""
        return self._of_loop()[1]

    def _of_loop(self) -> tuple[Group[NewJob, JobId], Group[Ended, bool]]:
        loop = asyncio.get_running_loop()
        found = self._loops.get(loop)
        if found is None:
            for other in [other for other in self._loops if other.is_closed()]:
                self._loops.pop(other, None)
            found = self._loops[loop] = Group(self._enqueue), Group(self._commit)
        return found


def _fail(waiting: asyncio.Future[list[A]], error: Exception, cause: BaseException | None) -> None:
    if not waiting.done():
        error.__cause__ = cause
        waiting.set_exception(error)
