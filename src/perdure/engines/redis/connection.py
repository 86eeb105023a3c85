"""A connection that blocks: for the threads that wait for answers, and for the one that listens."""

from __future__ import annotations

import select
from typing import Any

from perdure.engines.redis.address import Address
from perdure.engines.redis.wire import CHUNK, CLOSED, LATE, MORE, check_greeting, connect, greeting, make_reader


class Connection:
    """One connection, used by one thread at a time; whatever goes wrong on it closes it."""

    def __init__(self, address: Address) -> None:
        self._timeout = address.timeout
        self._socket = connect(address)
        self._reader = make_reader()
        self._buffer = bytearray(CHUNK)
        self._look = None
        if hasattr(select, "poll"):
            self._look = select.poll()
            self._look.register(self._socket, select.POLLIN)
        try:
            for packed in greeting(address):
                check_greeting(*self.ask(packed))
        except BaseException:
            self.close()
            raise

    def ask(self, packed: bytes, number: int = 1) -> list[Any]:
        """The answers to so many commands; an error of the server is an answer too."""
        try:
            self._socket.sendall(packed)
            return [self._read() for _ in range(number)]
        except BaseException as error:
            raise self._broken(error) from None

    def ask_one(self, packed: bytes) -> Any:
        """The answer to one command."""
        try:
            self._socket.sendall(packed)
            return self._read()
        except BaseException as error:
            raise self._broken(error) from None

    def say(self, packed: bytes) -> None:
        """Send a command whose answer is read when it comes."""
        self._socket.sendall(packed)

    def hear(self, patience: float) -> Any:
        """The next thing that the server says by itself; None when it says nothing for so long."""
        self._socket.settimeout(patience)
        try:
            return self._read()
        except TimeoutError:
            return None
        finally:
            self._socket.settimeout(self._timeout)

    @property
    def is_at_rest(self) -> bool:
        """Whether it can be used: a connection with something to read is out of step, or was closed by the server."""
        if self._reader.has_data():
            return False
        if self._look is not None:
            return not self._look.poll(0)
        return not select.select([self._socket], [], [], 0)[0]

    def close(self) -> None:
        self._socket.close()

    def _broken(self, error: BaseException) -> BaseException:
        """What is to be raised when something went wrong: nothing more is to be read here."""
        self.close()
        # So the system tells that the time is over which it was given.
        return TimeoutError(LATE) if isinstance(error, BlockingIOError) else error

    def _read(self) -> Any:
        answer = self._reader.gets()
        while answer is MORE:
            size = self._socket.recv_into(self._buffer)
            if size == 0:
                raise ConnectionResetError(CLOSED)
            self._reader.feed(self._buffer, 0, size)
            answer = self._reader.gets()
        if isinstance(answer, ConnectionError):
            raise answer
        return answer
