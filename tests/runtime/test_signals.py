"""What a worker process makes of its signals."""

from __future__ import annotations

import asyncio

from perdure.runtime.process import _once_a_second


class Loop(asyncio.SelectorEventLoop):
    """A loop whose time the test sets."""

    moment = 100.0

    def time(self) -> float:
        return self.moment


def test_a_stop_that_a_supervised_worker_hears_twice_is_one_stop():
    loop, stops = Loop(), []
    heard = _once_a_second(lambda: stops.append(loop.moment), loop)
    heard()
    loop.moment += 0.5
    heard()
    assert stops == [100.0]
    loop.moment += 1.0
    heard()
    assert stops == [100.0, 101.5]
    loop.close()
