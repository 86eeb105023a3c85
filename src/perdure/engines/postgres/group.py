"""Group commit on an event loop: one batch is on its way, and what arrives meanwhile is the next.

There is no timer: at idle a request goes at once and alone, under load batches grow by themselves. If a batch fails,
each of its requests is done alone, so that nobody pays for another's fault.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")

LARGEST = 1000
"""So much, and the next request begins another batch."""


class Group(Generic[Q, A]):
    """The requests of one kind on one event loop."""

    def __init__(self, do: Callable[[Sequence[Q]], Awaitable[list[A]]], size: Callable[[Q], int]) -> None:
        self._do = do
        self._size = size
        self._waiting: deque[tuple[Q, asyncio.Future[A]]] = deque()
        self._working: asyncio.Task[None] | None = None
        self.batches = 0
        """How many were sent; shows what grouping saves."""

    def ask(self, request: Q) -> asyncio.Future[A]:
        """The answer to a request, which is sent with the next batch."""
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, answer))
        if self._working is None:
            self._working = asyncio.get_running_loop().create_task(self._work())
        return answer

    async def _work(self) -> None:
        try:
            while batch := self._next():
                await self._answer(batch)
        finally:
            self._working = None

    def _next(self) -> list[tuple[Q, asyncio.Future[A]]]:
        batch: list[tuple[Q, asyncio.Future[A]]] = []
        size = 0
        while self._waiting and size < LARGEST:
            request, answer = self._waiting.popleft()
            if not answer.cancelled():
                batch.append((request, answer))
                size += self._size(request)
        return batch

    async def _answer(self, batch: list[tuple[Q, asyncio.Future[A]]]) -> None:
        self.batches += 1
        try:
            answers = await self._do([request for request, _ in batch])
        except asyncio.CancelledError:
            for _, waiting in batch:
                waiting.cancel()
            raise
        except Exception as error:
            if len(batch) > 1:
                for one in batch:
                    await self._answer([one])
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        for (_, waiting), answer in zip(batch, answers, strict=True):
            if not waiting.done():
                waiting.set_result(answer)
