"""Verbs of several steps, written once: generators that yield replies, driven by `wait()` or by `await`.

A verb is a generator with `value = yield from ask(store.verb(...))` where it needs an answer. `stepped`
turns it into a function that gives a Reply; an answer that raises does so inside the generator, at that line.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial, wraps
from typing import Any, Generic, ParamSpec, TypeVar

from perdure.store.reply import Reply

T = TypeVar("T")
U = TypeVar("U")
P = ParamSpec("P")

Steps = Generator[Reply[Any], Any, T]


class Mapped(Generic[T, U]):
    """Another reply's answer, changed by a function; its errors are the answer's errors."""

    def __init__(self, reply: Reply[T], change: Callable[[T], U]) -> None:
        self._reply = reply
        self._change = change

    def wait(self) -> U:
        return self._change(self._reply.wait())

    def __await__(self) -> Generator[Any, None, U]:
        value = yield from self._reply.__await__()
        return self._change(value)


class Stepped(Generic[T]):
    """The answer of a verb of several steps."""

    def __init__(self, steps: Steps[T]) -> None:
        self._steps = steps

    def wait(self) -> T:
        step: Callable[[], Reply[Any]] = partial(next, self._steps)
        while True:
            try:
                reply = step()
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            try:
                step = partial(self._steps.send, reply.wait())
            except BaseException as error:
                step = partial(self._steps.throw, error)

    def __await__(self) -> Generator[Any, None, T]:
        step: Callable[[], Reply[Any]] = partial(next, self._steps)
        while True:
            try:
                reply = step()
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            try:
                step = partial(self._steps.send, (yield from reply.__await__()))
            except BaseException as error:
                step = partial(self._steps.throw, error)


def stepped(verb: Callable[P, Steps[T]]) -> Callable[P, Stepped[T]]:
    """The verb as a function that gives a Reply; nothing happens before that is awaited or waited for."""

    @wraps(verb)
    def reply(*args: P.args, **kwargs: P.kwargs) -> Stepped[T]:
        return Stepped(verb(*args, **kwargs))

    return reply


def ask(reply: Reply[T]) -> Steps[T]:
    """One step: the answer of a reply, with its type."""
    answer: T = yield reply
    return answer
