"""TLS in front of a server that has none: takes the encryption off and hands everything on."""

from __future__ import annotations

import asyncio
import ssl
import threading
from pathlib import Path


class TlsDoor:
    """Listens on a port of its own, with a certificate, and connects each client to a Unix socket."""

    def __init__(self, server: Path, context: ssl.SSLContext) -> None:
        self._server = server
        self._context = context
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._listener = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(60)
        self.port: int = self._listener.sockets[0].getsockname()[1]

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection(str(self._server))
        try:
            await asyncio.gather(_hand_on(reader, far_writer), _hand_on(far_reader, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            far_writer.close()
            writer.close()

    async def _end(self) -> None:
        self._listener.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _hand_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while part := await source.read(65536):
        target.write(part)
        await target.drain()
    target.close()
