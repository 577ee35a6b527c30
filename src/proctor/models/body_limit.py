"""How much of a server's reply is read: a body without an end, or one that unpacks to gigabytes, ends one answer."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import httpx2

MOST_BYTES = 16 * 2**20
"""Of one reply, as it comes and as it is unpacked. Replies of text take a thousandth of it."""

ENCODINGS = "gzip, deflate"
"""What servers are told that they may use: what is unpacked here, with a limit."""

_AT_ONCE = 2**16


class BodyError(ValueError):
    """A reply's body is larger than `MOST_BYTES`, or not packed as the server says."""


class _Stream(Protocol):
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    async def aclose(self) -> None: ...


async def limit_body(response: httpx2.Response) -> None:
    """A hook for responses: the body that is read afterwards ends in `BodyError` once it exceeds
    `MOST_BYTES`, packed or unpacked. Nothing of it is read here."""
    import httpx2

    class Limited(httpx2.AsyncByteStream):
        def __init__(self, stream: _Stream, encoding: str) -> None:
            self._stream = stream
            self._encoding = encoding

        async def __aiter__(self) -> AsyncIterator[bytes]:
            body = LimitedBody(self._encoding)
            async for packed in self._stream:
                for piece in body.pieces(packed):
                    yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    encoding = response.headers.pop("content-encoding", "identity")
    response.stream = Limited(response.stream, encoding)  # type: ignore[arg-type]


class LimitedBody:
    """Unpacks a body piece by piece, never more at once than a little, and no more than `MOST_BYTES` in all."""

    def __init__(self, encoding: str) -> None:
        """`encoding` as the header says it. Raises `BodyError` for one that was not asked for."""
        encoding = encoding.strip().lower()
        self._read = self._given = 0
        if encoding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
            raise BodyError(f"a reply packed as {encoding[:40]!r}, which was not asked for")
        self._packed = encoding not in {"", "identity"}
        self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, by its first bytes
        self._first = True

    def pieces(self, packed: bytes) -> Iterator[bytes]:
        """What these bytes unpack to. Raises `BodyError` where the body exceeds its limit, packed or unpacked, and
        where it is not packed as the server says."""
        self._read += len(packed)
        for piece in self._unpacked(packed):
            self._given += len(piece)
            if max(self._read, self._given) > MOST_BYTES:
                raise BodyError(f"a reply of more than {MOST_BYTES // 2**20} MB")
            yield piece

    def _unpacked(self, packed: bytes) -> Iterator[bytes]:
        if not self._packed:
            yield packed
            return
        more = True
        while more:
            try:
                piece = self._unpack.decompress(packed, _AT_ONCE)
            except zlib.error as error:
                if not self._first:
                    raise BodyError("a reply whose packed body is broken") from error
                self._unpack = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers send deflate without its head
                self._first = False
                continue
            self._first = self._first and not piece
            packed = self._unpack.unconsumed_tail
            more = bool(packed) or len(piece) == _AT_ONCE
            yield piece
