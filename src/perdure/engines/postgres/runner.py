"""Runs the scripts of verbs on pooled connections: in the calling thread, or on the running event loop.

A script that conflicts with other transactions runs again, with growing jittered pauses. If the connection broke, a
script runs once more on a new one, provided that running it twice changes nothing. All other errors
reach the caller as errors of Perdure.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from time import sleep
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncRawCursor, RawCursor

from perdure.engines.postgres.address import Address
from perdure.engines.postgres.connection import LoopConnection, ThreadConnection
from perdure.engines.postgres.fault import kind_of, to_perdure_error
from perdure.engines.postgres.pool import LoopPool, ThreadPool
from perdure.engines.postgres.sql import Statement, statement
from perdure.engines.postgres.verb import AnyVerb, Row, Script, Step, Verb
from perdure.system.clock import Clock, SystemClock
from perdure.system.fork import lock_of

T = TypeVar("T")

TRIES = 10
_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.5
_SECOND_CHANCES = 2


class Runner:
    """The connections of an open store, and how verbs are done on them."""

    def __init__(self, address: Address, clock: Clock, check_open: Callable[[], None]) -> None:
        self.address = address
        self._clock = None if isinstance(clock, SystemClock) else clock
        self._check_open = check_open
        self._threads = ThreadPool(address, address.connections)
        # A lease must not be lost because other threads have taken all connections.
        self._keeper = ThreadPool(address, 1)
        self._loops: dict[int, LoopPool] = {}
        self._lock = lock_of(self)
        self._random = random.Random()

    def run_verb(self, verb: Verb[T], *, is_beat: bool = False) -> T:
        """Do a verb in this thread."""
        pool = self._keeper if is_beat else self._threads
        tries: _Tries | None = None
        while True:
            self._check_open()
            try:
                connection = pool.lend(self._plan(verb))
                try:
                    if not verb.is_transaction:
                        return self._run(connection, verb.script())
                    with connection.transaction():
                        answer = self._run(connection, verb.script())
                    if verb.when_committed is not None:
                        verb.when_committed()
                    return answer
                finally:
                    pool.give_back(connection)
            except Exception as error:
                tries = tries or _Tries(self, verb)
                pause = tries.after(error)
            sleep(pause)

    async def run_verb_on_loop(self, verb: Verb[T]) -> T:
        """Do a verb on the running event loop."""
        pool = self._pool_of_loop()
        tries: _Tries | None = None
        while True:
            self._check_open()
            try:
                connection = await pool.lend(self._plan(verb))
                try:
                    if not verb.is_transaction:
                        return await self.run_on_loop(connection, verb.script())
                    async with connection.transaction():
                        answer = await self.run_on_loop(connection, verb.script())
                    if verb.when_committed is not None:
                        verb.when_committed()
                    return answer
                finally:
                    pool.give_back(connection)
            except Exception as error:
                tries = tries or _Tries(self, verb)
                pause = tries.after(error)
            await asyncio.sleep(pause)

    def prepared(self, step: Step) -> tuple[Statement, list[Any]]:
        """A step's statement in this store's schema, and its values in order."""
        found = statement(step.statement, self.address.schema)
        return found, found.values({**step.values, "now": self.now()})

    def now(self) -> int | None:
        """The time to be taken for the store's; None in real time: then the server's own clock counts."""
        return None if self._clock is None else self._clock.microseconds()

    def pause(self, turn: int) -> float:
        """How long to wait before the next try."""
        return self._random.uniform(0.0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**turn))

    def drop(self) -> None:
        """Let all idle connections go: the server they lead to is not the one that is wanted."""
        self._threads.drop()
        self._keeper.drop()
        with self._lock:
            pools = list(self._loops.values())
        for pool in pools:
            pool.drop()

    def close(self) -> None:
        """Let all connections go, after the calls of other threads."""
        self._threads.close()
        self._keeper.close()
        with self._lock:
            pools, self._loops = list(self._loops.values()), {}
        for pool in pools:
            pool.close()

    def _plan(self, verb: AnyVerb) -> str | None:
        return verb.plan if self.address.keeps_plans else None

    def _run(self, connection: ThreadConnection, script: Script[T]) -> T:
        plans = connection.plans
        try:
            step = next(script)
            while True:
                found, values = self.prepared(step)
                if plans is not None:
                    rows = connection.ask(plans, found, values)
                else:
                    cursor = RawCursor(connection).execute(found.text, values, binary=True)
                    rows = cursor.fetchall() if _has_rows(cursor) else []
                step = script.send(rows)
        except StopIteration as done:
            result: T = done.value
            return result

    async def run_on_loop(
        self, connection: LoopConnection, script: Script[T], first: tuple[Statement, list[Any]] | None = None
    ) -> T:
        """Do a script on a connection of the running event loop; its first step may have been prepared before."""
        plans = connection.plans
        try:
            found, values = first or self.prepared(next(script))
            while True:
                if plans is not None:
                    rows = await connection.ask(plans, found, values)
                else:
                    cursor = await AsyncRawCursor(connection).execute(found.text, values, binary=True)
                    rows = await cursor.fetchall() if _has_rows(cursor) else []
                found, values = self.prepared(script.send(rows))
        except StopIteration as done:
            result: T = done.value
            return result

    def _pool_of_loop(self) -> LoopPool:
        loop = asyncio.get_running_loop()
        pool = self._loops.get(id(loop))
        if pool is None or pool.loop is not loop:
            with self._lock:
                # Loops that are over left their connections behind.
                for key, other in list(self._loops.items()):
                    if other.loop.is_closed():
                        other.close()
                        del self._loops[key]
                pool = self._loops[id(loop)] = LoopPool(self.address, loop)
        return pool


def _has_rows(cursor: RawCursor[Row] | AsyncRawCursor[Row]) -> bool:
    """Whether a statement gives rows at all; the cursor's description would tell too, and describe every column."""
    return cursor.pgresult is not None and cursor.pgresult.nfields > 0


class _Tries:
    """How often a verb was tried, and whether it is to be tried again."""

    def __init__(self, runner: Runner, verb: AnyVerb) -> None:
        self._runner = runner
        self._verb = verb
        self._turn = 0
        self._lost = 0

    def after(self, error: Exception) -> float:
        """How many seconds to wait before the next try; raises what the caller is to see when there is none."""
        kind = kind_of(error)
        self._turn += 1
        if kind in ("lost", "busy") and self._verb.when_in_doubt is not None:
            self._verb.when_in_doubt()
        if kind == "lost":
            self._lost += 1
            if self._verb.is_repeatable and self._lost < _SECOND_CHANCES:
                return 0.0
        elif kind == "read-only":
            self._runner.drop()
        elif self._turn < TRIES and (kind == "contention" or (kind == "collision" and self._verb.may_collide)):
            return self._runner.pause(self._turn)
        seen = to_perdure_error(error, self._runner.address.name)
        if seen is error:
            raise error
        raise seen from (error if isinstance(error, psycopg.Error) else error.__cause__)
