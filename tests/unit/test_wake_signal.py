"""A bell is heard once: at once if it rang before, when it rings, or not at all."""

from __future__ import annotations

import asyncio

from perdure.system.wake_signal import WakeSignal

LONG = 60.0


async def test_a_bell_that_rang_before_is_heard_at_once_and_once() -> None:
    signal = WakeSignal()
    signal.notify()
    signal.notify()
    assert await signal.wait(LONG)
    assert not await signal.wait(0.001)


async def test_who_waits_hears_it_ring() -> None:
    signal = WakeSignal()
    waiting = asyncio.create_task(signal.wait(LONG))
    await asyncio.sleep(0)
    signal.notify()
    signal.notify()
    assert await asyncio.wait_for(waiting, 60)
    assert not await signal.wait(0.001)


async def test_what_was_silenced_is_not_heard() -> None:
    signal = WakeSignal()
    signal.notify()
    signal.clear()
    assert not await signal.wait(0.001)


async def test_a_ring_after_the_time_was_up_is_kept_for_the_next_wait() -> None:
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
