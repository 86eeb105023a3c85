"""Everything that watches one app, put together: log, numbers, tracing, and where they are served."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

from perdure.configuration.settings import Settings
from perdure.errors import BadSetting
from perdure.model.event import JobsEnqueued, Observer, Tracing
from perdure.model.job import JobId, NewJob
from perdure.model.payload.redaction import Redactor
from perdure.observe.fanout import Fanout
from perdure.observe.log import LogObserver
from perdure.observe.look import Look
from perdure.observe.metrics import MetricsObserver
from perdure.store import Store
from perdure.system.clock import Clock
from perdure.system.fork import lock_of

if TYPE_CHECKING:
    from perdure.observe.endpoint import Endpoint
    from perdure.observe.exposition import Exposition

_TURN = 3.0
"""How many seconds an event loop has to show that it turns."""

logger = logging.getLogger("perdure")


class Watched(Protocol):
    """A worker, as those who watch it see it."""

    @property
    def slots(self) -> tuple[int, int]: ...

    def problems(self) -> list[str]: ...


W = TypeVar("W", bound=Watched)


class Observing:
    """The observers of an app and what is made of what they saw."""

    def __init__(
        self,
        settings: Settings,
        observer: Observer | None,
        *,
        store: Callable[[], Store],
        clock: Callable[[], Clock],
        version: Callable[[], str],
    ) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._version = version
        self._lock = lock_of(self)
        self._exposition: Exposition | None = None
        self._endpoint: Endpoint | None = None
        self.metrics = MetricsObserver()
        self.tracing: Tracing | None = None
        observers: list[Observer] = [self.metrics, observer or LogObserver(Redactor(settings.redact))]
        if settings.otel:
            observers.append(self._trace())
        self.observer = Fanout(observers)

    def enqueued(self, jobs: Sequence[NewJob], ids: Sequence[JobId], started_at: datetime | None = None) -> None:
        """Tell that jobs were handed to the store, just now where nothing else is said."""
        now = self._clock().now()
        self.observer.tell(JobsEnqueued(jobs=jobs, ids=ids, started_at=started_at or now, ended_at=now))

    def render(self) -> tuple[bytes, str]:
        """The metrics of this process and its store, and their content type."""
        with self._lock:
            if self._exposition is None:
                from perdure.observe.exposition import Exposition  # here, so that only who renders loads the library

                self._exposition = Exposition(self.metrics, Look(self._store, self._clock()), self._version())
        return self._exposition.render()

    def watched(self, worker: W, names: Iterable[tuple[str, str]] = ()) -> W:
        """The worker, which shows its slots and what it may run, by queue and task, among the metrics from now on."""
        self.metrics.expect(names)
        self.metrics.attach(worker)
        return worker

    def served(self, worker: W, port: int | None = None) -> W:
        """The worker, its metrics and health served where a port is set; call it on the worker's event loop."""
        port = self._settings.metrics_port if port is None else port
        if port is None:
            return worker
        from perdure.observe.endpoint import Endpoint  # here, so that only who serves loads the server

        loop = asyncio.get_running_loop()
        self._endpoint = Endpoint(
            self._settings.metrics_host,
            port,
            render=self.render,
            is_alive=lambda: _turns(loop),
            problems=lambda: _problems(loop, worker),
        )
        logger.info("Metrics are served at %s/metrics", self._endpoint.address)
        return worker

    @property
    def address(self) -> str | None:
        """Where metrics are served, if they are."""
        return None if self._endpoint is None else self._endpoint.address

    def close(self) -> None:
        """Stop serving."""
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is not None:
            endpoint.close()

    def _trace(self) -> Observer:
        try:
            from perdure.observe.otel import OtelObserver, OtelTracing  # only where tracing is on
        except ImportError as error:
            raise BadSetting(
                f"Tracing is on, but OpenTelemetry is not installed: {error}.",
                "Install it with: pip install 'perdure[otel]'",
            ) from None
        self.tracing = OtelTracing(self._settings.otel_ratio)
        return OtelObserver(self._settings.otel_ratio)


def _turns(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the loop does something that it is asked to do, soon."""
    has_turned = threading.Event()
    try:
        loop.call_soon_threadsafe(has_turned.set)
    except RuntimeError:
        return False  # the loop is closed
    return has_turned.wait(_TURN)


def _problems(loop: asyncio.AbstractEventLoop, worker: Watched) -> list[str]:
    return worker.problems() if _turns(loop) else ["the event loop does not turn"]
