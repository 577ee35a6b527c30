"""A link to a TCP server that can be cut and mended: what a network partition is for who is on its far side."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class FlakyLink:
    """Forwards connections to a port of this machine. Once `cut`, open connections end and new ones are refused, until
    it is `mended`."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self.drops = 0
        self._target = target
        self._up = True
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def cut(self) -> None:
        """Drops all connections at once."""
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result(600)

    def mend(self) -> None:
        """Lets new ones through."""
        self._up = True

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(600)

    def end(self) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(600)

    async def _cut(self) -> None:
        self._up = False
        for one in [*self._writers]:
            self.drops += 1
            one.transport.abort()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._forward, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._up:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        both = {writer, back}
        self._writers |= both
        try:
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        finally:
            self._writers -= both


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextmanager
def flaky_link(target: int) -> Iterator[FlakyLink]:
    """A running one."""
    link = FlakyLink(target)
    link.start()
    try:
        yield link
    finally:
        link.end()
