"""Lets an idle worker stand by: its fetch is sent ahead, behind a wait for the bells of its queues.

The server pops a bell for one of those who wait, and then does what they sent after it: the claim is made under the
lease, the limits and the pauses of that moment, and its answer is the first that the worker hears of the job. A bell
that is lost with a worker costs the others no more than a poll. A Cluster's driver cannot send ahead; there, and where
the server refuses to wait, hints and polls do.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Sequence
from datetime import timedelta
from typing import Any

from perdure.engines.redis.address import Address
from perdure.engines.redis.fetch import fetch
from perdure.engines.redis.verb import Verb, Waiting
from perdure.errors import EngineUnreachable
from perdure.model.job import WorkerId
from perdure.store.jobs import Fetched, Want

_REFUSALS = ("NOPERM", "WRONGTYPE", "ERR")
"""What a server begins with that will not wait the next time either."""


class Standbys:
    """The standbys of an open store."""

    def __init__(self, address: Address, run_verb: Callable[[Verb[Fetched]], Coroutine[Any, Any, Fetched]]) -> None:
        self._tag = address.tag
        self._play = run_verb
        self.are_possible = address.has_hints and not address.is_cluster

    def make(self, worker: WorkerId, wants: Sequence[Want], limit: int, patience: timedelta) -> RedisStandby:
        bells = [f"{self._tag}:bell:{queue}" for queue in dict.fromkeys(want.queue for want in wants)]
        waiting = Waiting(bells, patience.total_seconds())
        return RedisStandby(lambda: self._play(fetch(worker, wants, limit, waiting=waiting)), waiting, self._refused)

    def _refused(self, refusal: Exception) -> None:
        if str(refusal).startswith(_REFUSALS):
            self.are_possible = False


class RedisStandby:
    """One fetch that waits."""

    def __init__(
        self,
        run_verb: Callable[[], Coroutine[Any, Any, Fetched]],
        waiting: Waiting,
        refused: Callable[[Exception], None],
    ) -> None:
        self._play = run_verb
        self._waiting = waiting
        self._refused = refused

    def __await__(self) -> Generator[Any, None, Fetched | None]:
        return self._fetch().__await__()

    def hint(self) -> bool:
        return False  # the server calls it by a bell; what a hint tells of may have been ready before

    def end(self) -> None:
        self._waiting.end()

    async def _fetch(self) -> Fetched | None:
        try:
            # Awaited as it is: a task of its own would cost the job that comes two turns of the loop.
            return await self._play()
        except EngineUnreachable:
            # An idle connection may break without there being trouble; if there is, the next fetch tells it.
            return None
        finally:
            if self._waiting.refusal is not None:
                self._refused(self._waiting.refusal)
