"""Hints that something may be ready: at once inside this process, through the server to and from others.

The scripts publish a hint when a line of ready jobs was empty, when a job is due before all others that wait, when a
running job is to be cancelled and when a queue is resumed: as long as a line is not empty, nobody waits for it. One
thread with a connection of its own listens. It starts with the first subscriber, passes on what it hears at most once
in a few milliseconds, mends its connection with growing pauses, and stops with `close()`.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from perdure.engines.redis.address import Address
from perdure.engines.redis.client import ThreadClient
from perdure.engines.redis.connection import Connection
from perdure.engines.redis.wire import ServerError, pack
from perdure.system.clock import SystemClock

GAP = 0.002
"""The shortest time between two hints from other processes, in seconds."""
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 5.0
_LISTEN_FOR = 1.0
"""How long to listen before looking whether the connection still lives."""
_PING_EVERY = 10.0

Wake = Callable[[], None]


class RedisWakeups:
    """The source of hints of one open store."""

    def __init__(self, address: Address, sender: str, client: ThreadClient, *, has_thread: bool) -> None:
        self._address = address
        self._client = client
        self._sender = sender.encode()
        self._channel = f"{address.tag}:hints"
        self._own_channel = f"{self._channel}:{sender}"
        self._has_thread = has_thread and address.has_hints
        self._clock = SystemClock()
        self._random = random.Random()
        self._lock = threading.Lock()
        self._subscribers: tuple[Wake, ...] = ()
        self._is_closing = threading.Event()
        self._thread: threading.Thread | None = None

    def subscribe(self, wake: Wake) -> Callable[[], None]:
        with self._lock:
            self._subscribers = (*self._subscribers, wake)
            if self._has_thread and self._thread is None and not self._is_closing.is_set():
                self._thread = threading.Thread(target=self._work, name="perdure-redis-listener", daemon=True)
                self._thread.start()

        def stop() -> None:
            with self._lock:
                self._subscribers = tuple(other for other in self._subscribers if other is not wake)

        return stop

    def hint(self) -> None:
        """Wake the subscribers in this process; the script has told the others."""
        for wake in self._subscribers:
            try:
                wake()
            except Exception:
                # A subscriber whose loop is gone must not cost the others their hint; a hint may be lost.
                continue

    def close(self) -> None:
        self._is_closing.set()
        thread = self._thread
        while thread is not None and thread is not threading.current_thread() and thread.is_alive():
            self._wake_listener()
            thread.join(0.05)

    def _wake_listener(self) -> None:
        """End the wait for the next message by sending one."""
        try:
            self._client.ask("PUBLISH", self._own_channel, b"close")
        except (ServerError, OSError):
            # Without a server the listener notices by itself.
            pass

    def _work(self) -> None:
        failures = 0
        while not self._is_closing.is_set():
            subscription: Connection | None = None
            try:
                subscription = Connection(self._address)
                subscription.say(pack("SUBSCRIBE", self._channel, self._own_channel))
                for _ in (self._channel, self._own_channel):
                    self._check(subscription.hear(self._address.timeout))
                # What happened while nobody listened may have been missed.
                self.hint()
                failures = 0
                self._listen(subscription)
            except (ServerError, OSError):
                # Polling is the safety net; the verbs report what is wrong with the server.
                failures += 1
                pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**failures) * self._random.uniform(0.5, 1.0)
                self._is_closing.wait(pause)
            finally:
                if subscription is not None:
                    subscription.close()

    def _check(self, subscribed: object) -> None:
        if isinstance(subscribed, Exception):
            raise subscribed
        if subscribed is None:
            raise TimeoutError

    def _listen(self, subscription: Connection) -> None:
        """Pass on what others tell, until the store closes or the connection breaks."""
        asked_at = heard_at = self._clock.monotonic()
        while not self._is_closing.is_set():
            message = subscription.hear(_LISTEN_FOR)
            now = self._clock.monotonic()
            if message is None:
                # A server that is gone without a word is noticed by its silence.
                if heard_at < asked_at and now - asked_at > self._address.timeout:
                    raise ConnectionError
                if now - max(heard_at, asked_at) > _PING_EVERY:
                    subscription.say(pack("PING"))
                    asked_at = now
                continue
            heard_at = now
            if isinstance(message, list) and message[0] == b"message" and message[2] != self._sender:
                self.hint()
                self._is_closing.wait(GAP)
