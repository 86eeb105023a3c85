"""A notification ends one wait: the current one, or the next one if nobody waits."""

from __future__ import annotations

import asyncio

from perdure.system.wake_signal import WakeSignal

LONG = 60.0


async def test_an_earlier_notification_ends_the_next_wait_at_once_and_only_that() -> None:
    signal = WakeSignal()
    signal.notify()
    signal.notify()
    assert await signal.wait(LONG)
    assert not await signal.wait(0.001)


async def test_a_notification_ends_the_current_wait() -> None:
    signal = WakeSignal()
    waiting = asyncio.create_task(signal.wait(LONG))
    await asyncio.sleep(0)
    signal.notify()
    signal.notify()
    assert await asyncio.wait_for(waiting, 60)
    assert not await signal.wait(0.001)


async def test_a_cleared_notification_ends_no_wait() -> None:
    signal = WakeSignal()
    signal.notify()
    signal.clear()
    assert not await signal.wait(0.001)


async def test_a_notification_after_a_timeout_ends_the_next_wait() -> None:
    signal = WakeSignal()
    assert not await signal.wait(0.0)
    signal.notify()
    assert await signal.wait(LONG)


async def test_a_wait_that_is_cancelled_leaves_nothing_behind() -> None:
    signal = WakeSignal()
    waiting = asyncio.create_task(signal.wait(LONG))
    await asyncio.sleep(0)
    waiting.cancel()
    assert isinstance((await asyncio.gather(waiting, return_exceptions=True))[0], asyncio.CancelledError)
    signal.notify()
    assert await signal.wait(LONG)
