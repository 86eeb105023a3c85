"""Hints that something may be ready: at once inside this process, through LISTEN and NOTIFY to and from others.

NOTIFY makes all commits of a database wait for each other, so each process sends few. The first hint goes with the
statement that made the jobs. Hints that follow closely are collected and sent as one, with the next statement that may
carry a hint, or alone if no such statement comes soon. The minimum gap adapts to how long the statement takes: while
commits are quick, each job is announced at once; when commits queue up, hints become rare.

Changes by this process wake its own subscribers directly. Subscribers on an event loop are notified on that loop by its
listener. For other subscribers one thread listens on a connection of its own; it also sends collected hints. It starts
with the first such subscriber or the first hint to send, reconnects with growing pauses, and stops with `close()`.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import select
import socket
import threading
from collections.abc import Callable

import psycopg

from perdure.engines.postgres.address import Address
from perdure.engines.postgres.connection import ThreadConnection, connect, shut
from perdure.engines.postgres.enqueue import Hint
from perdure.engines.postgres.fault import NoConnectionError, TookTooLongError
from perdure.engines.postgres.loop_listener import LoopListener, pause_after
from perdure.engines.postgres.sql import quoted, statement
from perdure.system.clock import Clock, SystemClock
from perdure.system.fork import lock_of

_LEAST_GAP = 0.002
_BUSY_GAP = 0.008
_MOST_GAP = 0.025
"""Between these lies the shortest time between two hints to other processes, in seconds."""
_GAP_PER_COMMIT = 2.0
"""How many times as long as the quicker of the last two statements that carried hints the gap to the next one is."""
_CLOSE = 0.003
"""Whoever makes jobs that close upon each other, in seconds, is busy: then the gap is not the least one."""
_GAPS_OWED = 2.0
"""How many gaps after the last hint one that is owed is sent by itself."""
_ACTIVE_FOR = 0.25
"""For so long after a hint went the thread looks by itself whether another is owed, and need not be woken for it."""
_LOCAL_GAP = 0.003
"""The shortest time between two hints inside this process, while there is a thread to make up for those left out."""
_LOOK_EVERY = 30.0
_LONGEST_NAME = 63

Wake = Callable[[], None]


class PostgresWakeups:
    """The source of hints of one open store."""

    def __init__(self, address: Address, sender: str, *, has_thread: bool, clock: Clock | None = None) -> None:
        self._address = address
        self._sender = sender
        self._channel = channel_of(address.schema)
        self._has_thread = has_thread and address.has_hints
        self._clock = clock or SystemClock()
        self._random = random.Random()
        self._lock = lock_of(self)
        self._subscribers: tuple[Wake, ...] = ()
        self._listeners: dict[asyncio.AbstractEventLoop, LoopListener] = {}
        self._on_thread = 0
        """For how many subscribers the thread listens."""
        self._gap = _MOST_GAP
        self._took = 0.0
        self._last_sent = float("-inf")
        self._left_out = 0
        self._is_busy = False
        self._looks_at = float("inf")
        self._last_woken = float("-inf")
        self._is_owed = False
        self._is_local_owed = False
        self._is_closing = False
        self._is_listening = False
        self._thread: threading.Thread | None = None
        self._wake_sender, self._wake_receiver = socket.socketpair()
        for end in (self._wake_sender, self._wake_receiver):
            end.setblocking(False)

    def subscribe(self, wake: Wake) -> Callable[[], None]:
        with self._lock:
            self._subscribers = (*self._subscribers, wake)
        stop_listening = self._listen()

        def stop() -> None:
            with self._lock:
                is_known = wake in self._subscribers
                self._subscribers = tuple(other for other in self._subscribers if other is not wake)
            if is_known:
                stop_listening()

        return stop

    def listener(self) -> LoopListener | None:
        """Who listens on the running event loop, if there is one and somebody does."""
        try:
            return self._listeners.get(asyncio.get_running_loop())
        except RuntimeError:
            return None

    def turn(self) -> Hint:
        """The hint that may go with a statement now; an empty one when another went a moment ago."""
        now = self._clock.monotonic()
        with self._lock:
            if not self._has_thread or now - self._last_sent < self._gap:
                return Hint()
            was_owed = self._mark_sent(now)
        return Hint(self._channel, self._sender, was_owed)

    def always(self) -> Hint:
        """The hint for a caller's transaction: nobody knows when it commits, this process no better than others."""
        return Hint(self._channel) if self._address.has_hints else Hint()

    def sent(self) -> None:
        """The statement that carried a hint is done: what it took says how soon the next may go."""
        took, before = self._clock.monotonic() - self._last_sent, self._took
        self._took = took
        # One slow commit between quick ones is the disk's mood, or a connection's beginning; nothing queues up for it.
        took = min(took, before)
        self._gap = min(_MOST_GAP, max(_BUSY_GAP if self._is_busy else _LEAST_GAP, _GAP_PER_COMMIT * took))

    def failed(self, hint: Hint) -> None:
        """The statement that was to carry a hint came to nothing: what was owed before it still is."""
        if hint.was_owed:
            self._owe()

    def hint(self, *, is_sent: bool = False) -> None:
        """Wake the subscribers here, at once or in a moment, and unless a hint went already, others soon."""
        if self._subscribers:
            left = self._last_woken + _LOCAL_GAP - self._clock.monotonic()
            if left <= 0 or not (self._is_listening or self._listeners):
                self._wake_all()
            elif not self._is_local_owed:
                self._is_local_owed = True
                self._wake_later(left)
        if not is_sent:
            self._left_out += 1
            self._owe()

    def close(self) -> None:
        with self._lock:
            self._is_closing = True
            thread = self._thread
            listeners, self._listeners = list(self._listeners.values()), {}
        for listener in listeners:
            listener.stop()
        if thread is not None:
            self._ring()
            if thread is not threading.current_thread():
                thread.join()
        self._wake_sender.close()
        self._wake_receiver.close()

    def _listen(self) -> Callable[[], None]:
        """Have somebody listen for one more subscriber; gives the way to end that."""
        if not self._has_thread or self._address.has_pooler or self._is_closing:
            return lambda: None
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            with self._lock:
                self._on_thread += 1
            self._ring()
            return self._listen_less
        with self._lock:
            for gone in [other for other in self._listeners if other.is_closed()]:
                del self._listeners[gone]
            listener = self._listeners.get(loop)
            if listener is None:
                listener = self._listeners[loop] = LoopListener(self._address, self._channel, self._heard)
            listener.users += 1
        return lambda: self._use_less(loop, listener)

    def _listen_less(self) -> None:
        with self._lock:
            self._on_thread -= 1

    def _use_less(self, loop: asyncio.AbstractEventLoop, listener: LoopListener) -> None:
        with self._lock:
            listener.users -= 1
            is_over = listener.users == 0 and self._listeners.get(loop) is listener
            if is_over:
                del self._listeners[loop]
        if is_over:
            listener.stop()

    def _heard(self, sender: bytes | None) -> None:
        """A hint has come; of what this process did itself its subscribers know already."""
        if sender != self._sender.encode():
            self._wake_all()

    def _wake_later(self, seconds: float) -> None:
        """Wake the subscribers here in a moment: by the thread that listens, or on a loop where one does."""
        listeners = list(self._listeners.values())
        if self._is_listening or not any(listener.call_later(seconds, self._wake_all) for listener in listeners):
            self._ring()

    def _owe(self) -> None:
        """See to it that others are woken soon, though not at once."""
        if not self._has_thread or self._is_owed:
            return
        self._is_owed = True
        # Waking the thread for each hint would cost more than many a hint saves: it is, if it does not look in time.
        if self._looks_at > self._last_sent + _GAPS_OWED * self._gap:
            self._ring()

    def _mark_sent(self, now: float) -> bool:
        """A hint goes now, with the lock held; whether it tells of earlier jobs as well."""
        self._is_busy = self._left_out > 0 and now - self._last_sent < _CLOSE * (self._left_out + 1)
        was_owed, self._is_owed = self._is_owed, False
        self._last_sent, self._left_out = now, 0
        return was_owed

    def _ring(self) -> None:
        """Make the thread look; start it when there is none."""
        with self._lock:
            if not self._has_thread:
                return
            if self._thread is None and not self._is_closing:
                self._thread = threading.Thread(target=self._work, name="perdure-postgres-listener", daemon=True)
                self._thread.start()
        try:
            self._wake_sender.send(b"!")
        except (BlockingIOError, OSError):
            # It has been rung often enough, or is gone.
            pass

    def _wake_all(self) -> None:
        self._last_woken = self._clock.monotonic()
        self._is_local_owed = False
        for wake in self._subscribers:
            try:
                wake()
            except Exception:
                # A subscriber whose loop is gone must not cost the others their hint; a hint may be lost.
                continue

    def _work(self) -> None:
        failures = 0
        is_first = True
        # One turn is always taken: a store that is closed in a hurry may still owe a hint.
        while is_first or not self._is_closing:
            is_first = False
            connection: ThreadConnection | None = None
            try:
                connection = connect(self._address)
                failures = 0
                self._serve(connection)
            except (psycopg.Error, NoConnectionError, TookTooLongError, OSError):
                # Polling is the safety net; the verbs report what is wrong with the server.
                failures += 1
                self._wait([], pause_after(failures, self._random))
            finally:
                self._is_listening = False
                self._looks_at = float("inf")
                if connection is not None:
                    shut(connection)

    def _serve(self, connection: ThreadConnection) -> None:
        """Listen and send until the store closes or the connection breaks."""
        while True:
            connection.deadline = self._clock.monotonic() + self._address.timeout
            if self._on_thread and not self._is_listening:
                connection.execute(f"LISTEN {quoted(self._channel)}")
                self._is_listening = True
                # What happened while nobody listened may have been missed.
                self._wake_all()
            pause = self._send_owed(connection)
            if self._is_closing:
                return
            if self._is_local_owed:
                left = self._last_woken + _LOCAL_GAP - self._clock.monotonic()
                if left > 0:
                    pause = min(pause, left)
                else:
                    self._wake_all()
            self._looks_at = self._clock.monotonic() + pause
            if pause > _ACTIVE_FOR and self._is_owed:
                # Somebody who thought that it was about to look has not woken it.
                continue
            if self._wait([connection.fileno()], pause):
                connection.pgconn.consume_input()
            while (notice := connection.pgconn.notifies()) is not None:
                self._heard(notice.extra)

    def _send_owed(self, connection: ThreadConnection) -> float:
        """Send the hint that is owed, if its time has come; gives how long to wait at most."""
        now = self._clock.monotonic()
        with self._lock:
            left = self._last_sent + _GAPS_OWED * self._gap - now
            if not self._is_owed:
                return max(left, self._gap) if now - self._last_sent < _ACTIVE_FOR else _LOOK_EVERY
            if left > 0 and not self._is_closing:
                return left
            self._mark_sent(now)
        found = statement("hint", self._address.schema)
        values = found.values({"channel": self._channel, "sender": self._sender})
        psycopg.RawCursor(connection).execute(found.text, values)
        return _LOOK_EVERY

    def _wait(self, others: list[int], timeout: float) -> bool:
        """Wait for the wake-up socket or the other descriptors; whether it was one of the others."""
        poll = select.poll()
        for number in [self._wake_receiver.fileno(), *others]:
            poll.register(number, select.POLLIN)
        ready = {number for number, _ in poll.poll(timeout * 1000)}
        if self._wake_receiver.fileno() in ready:
            self._wake_receiver.recv(4096)
        return any(number in ready for number in others)


def channel_of(schema: str) -> str:
    """The channel of a schema; names of channels must be as short as those of tables."""
    name = f"perdure.{schema}"
    return name if len(name) < _LONGEST_NAME else f"perdure.{hashlib.sha256(schema.encode()).hexdigest()[:32]}"
