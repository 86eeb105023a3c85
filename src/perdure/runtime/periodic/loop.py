"""The rhythm that promoter, canceller, scheduler, reaper and pruner share: one step, then wait for a hint or a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random

from perdure.runtime.backoff import Backoff
from perdure.system.clock import Clock
from perdure.system.wake_signal import WakeSignal


class NotAsked(float):
    """The pause of a step that made no store call, so that it says nothing about the store."""

    __slots__ = ()


class Loop:
    """Runs a step again and again; the step gives the seconds to wait before the next one."""

    def __init__(
        self,
        step: Callable[[], Awaitable[float]],
        *,
        clock: Clock,
        random: Random,
        backoff: Backoff,
        wake_signal: WakeSignal | None = None,
    ) -> None:
        self._step = step
        self._clock = clock
        self._random = random
        self._backoff = backoff
        self._wake_signal = wake_signal or WakeSignal()

    def wake(self) -> None:
        """Take the next step now."""
        self._wake_signal.notify()

    async def run(self) -> None:
        while True:
            self._wake_signal.clear()
            try:
                pause = await self._step()
            except Exception as error:
                await self._clock.sleep(self._backoff.failed(error))
                continue
            if not isinstance(pause, NotAsked):
                self._backoff.succeeded()
            if pause > 0:
                # A little early rather than late, and never two workers in step.
                await self._wake_signal.wait(pause * self._random.uniform(0.8, 1.0))
