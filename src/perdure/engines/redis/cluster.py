"""The connections to a Cluster: redis-py knows which node has the store's slot, and follows it when it moves.

Its errors become those of the wire, so that nobody else needs to know them. It is loaded only for a Cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
import redis.asyncio
from redis import exceptions
from redis.asyncio.retry import Retry as LoopRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from perdure.engines.redis.address import Address
from perdure.engines.redis.wire import Command, DeniedError, NoScriptError, ServerError

_DENIED = (exceptions.AuthenticationError, exceptions.AuthorizationError, exceptions.NoPermissionError)
_GONE = (
    exceptions.ConnectionError,
    exceptions.ClusterError,
    exceptions.ClusterDownError,
    exceptions.MasterDownError,
    exceptions.TryAgainError,
    exceptions.RedisClusterException,
)
_SAID: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.BusyLoadingError, "LOADING "),
    (exceptions.ReadOnlyError, "READONLY "),
    (exceptions.OutOfMemoryError, "OOM "),
)


class ThreadCluster:
    """The connections of all threads."""

    def __init__(self, address: Address) -> None:
        self._driver: Any = redis.RedisCluster(**address.driver, retry=Retry(NoBackoff(), 0))

    def ask(self, command: Command) -> Any:
        with _own_errors():
            return self._driver.execute_command(*command)

    def close(self) -> None:
        self._driver.close()


class LoopCluster:
    """The connections of one event loop."""

    def __init__(self, address: Address) -> None:
        self._driver: Any = redis.asyncio.RedisCluster(**address.driver, retry=LoopRetry(NoBackoff(), 0))

    async def ask(self, command: Command) -> Any:
        with _own_errors():
            return await self._driver.execute_command(*command)

    async def close(self) -> None:
        await self._driver.aclose()


@contextmanager
def _own_errors() -> Iterator[None]:
    try:
        yield
    except exceptions.RedisError as error:
        raise _to_own(error) from error


def _to_own(error: exceptions.RedisError) -> Exception:
    said = str(error)
    if isinstance(error, exceptions.TimeoutError):
        return TimeoutError(said)
    if isinstance(error, exceptions.NoScriptError):
        return NoScriptError(said)
    if isinstance(error, _DENIED):
        return DeniedError(said)
    # The driver takes the code away from some of what servers say.
    code = next((code for kind, code in _SAID if isinstance(error, kind)), "")
    if code:
        return ServerError(said if said.startswith(code) else code + said)
    return ConnectionError(said) if isinstance(error, _GONE) else ServerError(said)
