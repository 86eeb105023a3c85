"""Lets an idle worker stand by: its fetch is made ready ahead, and goes to the server with the hint.

The one who is told of a hint has nothing left to do but to send it, and sends it on the connection that brought the
hint. Where that cannot be lent, and where a fetch is more than one statement, it is played as any other.
"""

from __future__ import annotations

from collections.abc import Generator
from datetime import timedelta
from typing import Any

from perdure.engines.postgres.loop_listener import LoopListener
from perdure.engines.postgres.runner import Runner
from perdure.engines.postgres.verb import Verb
from perdure.errors import PerdureError
from perdure.store.jobs import Fetched
from perdure.system.wake_signal import WakeSignal


class PostgresStandby:
    """One fetch that waits for a hint."""

    def __init__(self, verb: Verb[Fetched], runner: Runner, listener: LoopListener, patience: timedelta) -> None:
        self._verb = verb
        self._runner = runner
        self._listener = listener
        self._patience = patience.total_seconds()
        self._wake_signal = WakeSignal()
        self._is_waiting = True

    def __await__(self) -> Generator[Any, None, Fetched | None]:
        return self._fetch().__await__()

    def hint(self) -> bool:
        was_waiting = self._is_waiting
        self.end()
        return was_waiting

    def end(self) -> None:
        self._is_waiting = False
        self._wake_signal.notify()

    async def _fetch(self) -> Fetched | None:
        script = self._verb.script()
        first = None if self._verb.is_transaction else self._runner.prepared(next(script))
        await self._wake_signal.wait(self._patience)
        self._is_waiting = False
        connection = None if first is None else self._listener.lend()
        if connection is None:
            return await self._runner.run_verb_on_loop(self._verb)
        try:
            return await self._runner.run_on_loop(connection, script, first)
        except PerdureError:
            raise
        except Exception:
            # An idle connection may break without there being trouble; if there is, the next fetch tells it.
            return None
        finally:
            self._listener.give_back(connection)
