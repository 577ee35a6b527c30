"""Connections to servers that speak OpenAI's protocol, kept open between requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from proctor.models.body_limit import LimitedBody

if TYPE_CHECKING:
    from ssl import SSLContext

    import aiohttp

_IDLE_S = 15.0
_AT_ONCE = 2**18


@dataclass(frozen=True, slots=True)
class Posted:
    """What a server replied: the status, the headers by their names in lower case, and the body, unpacked."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connections:
    """As many as are asked for at once. `connect_s` bounds connecting and nothing else. To be closed with `aclose()`."""

    def __init__(self, tls: SSLContext, connect_s: float) -> None:
        self._tls = tls
        self._connect_s = connect_s
        self._open: (
            tuple[asyncio.AbstractEventLoop, AsyncGenerator[aiohttp.ClientSession], aiohttp.ClientSession] | None
        )
        self._open = None

    async def post(self, url: str, headers: Mapping[str, str], body: Sequence[bytes]) -> Posted:
        """Sends a body, given in pieces, and reads the whole reply, whatever its status; a redirect is a reply like
        others.

        Raises `OSError` where no whole reply came (`TimeoutError` where connecting took too long) and `BodyError` for
        one that is too long, or not packed as it says.
        """
        import aiohttp

        data: bytes | AsyncGenerator[bytes] = body[0]
        if len(body) > 1:
            headers = {**headers, "Content-Length": str(sum(map(len, body)))}
            data = _together(body)
        try:
            async with (await self._session()).post(
                url, data=data, headers=headers, allow_redirects=False, proxy=_proxy(url), ssl=self._tls
            ) as reply:
                known = {name.lower(): value for name, value in reply.headers.items()}
                limited = LimitedBody(known.get("content-encoding", "identity"))
                pieces = [piece async for packed in reply.content.iter_any() for piece in limited.pieces(packed)]
                return Posted(reply.status, known, pieces[0] if len(pieces) == 1 else b"".join(pieces))
        except OSError:
            raise
        except aiohttp.ClientError as error:
            raise ConnectionError(str(error) or type(error).__name__) from error

    async def _session(self) -> aiohttp.ClientSession:
        """The session of the loop that runs: connections of one that has ended can't be used any more."""
        loop = asyncio.get_running_loop()
        if self._open is None or self._open[0] is not loop:
            held = self._held()
            self._open = loop, held, await anext(held)
        return self._open[2]

    async def _held(self) -> AsyncGenerator[aiohttp.ClientSession]:
        """A loop that ends closes its generators, and this one the connections: also those that nobody closed."""
        import aiohttp

        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_s),
            auto_decompress=False,
        ) as session:
            yield session

    async def aclose(self) -> None:
        """Closes what is open."""
        if self._open is not None:
            (_, held, _), self._open = self._open, None
            await held.aclose()


async def _together(pieces: Sequence[bytes]) -> AsyncGenerator[bytes]:
    """Pieces in fewer ones, each of which is one call of the system: copied once, and never as a whole."""
    waiting, size = [], 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _AT_ONCE:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


@cache
def _proxy(url: str) -> str | None:
    """The proxy that the environment names for an address. Read here, not by the library, which would send the
    passwords of `~/.netrc`, too."""
    parts = urlsplit(url)
    proxies = getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    return None if found is None or proxy_bypass(parts.netloc) else found
