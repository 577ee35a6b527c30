"""How requests reach servers that speak the OpenAI protocol: connections, or a folder of batch files."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from proctor.core import JSON_BREAKS, InputError, JsonError, PendingError, current_repetition, load_json, whole_file
from proctor.models.endings import end_of_body

if TYPE_CHECKING:
    from ssl import SSLContext

    import aiohttp
    import httpx2

MAX_REPLY_BYTES = 16 * 2**20
"""The limit of one reply, packed and unpacked. Replies of text take a thousandth of it."""

ENCODINGS = "gzip, deflate"
"""The encodings that are unpacked here, with a limit."""

_UNPACKED_AT_ONCE = 2**16


class BodyError(ValueError):
    """A reply's body is larger than `MAX_REPLY_BYTES`, or not packed as its header says."""


class _Stream(Protocol):
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    async def aclose(self) -> None: ...


async def limit_body(response: httpx2.Response) -> None:
    """A response hook: reading the body raises `BodyError` once it exceeds `MAX_REPLY_BYTES`, packed or unpacked. The
    hook itself reads nothing."""
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
    """Unpacks a body piece by piece, no more than `MAX_REPLY_BYTES` in all."""

    def __init__(self, encoding: str) -> None:
        """`encoding` is the header's. Raises `BodyError` for one that was not requested."""
        encoding = encoding.strip().lower()
        self._read = self._given = 0
        if encoding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
            raise BodyError(f"a reply packed as {encoding[:40]!r}, which was not asked for")
        self._packed = encoding not in {"", "identity"}
        self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, by its first bytes
        self._first = True

    def pieces(self, packed: bytes) -> Iterator[bytes]:
        """The unpacked bytes. Raises `BodyError` where the body exceeds its limit, packed or unpacked, and where it is
        not packed as its header says."""
        self._read += len(packed)
        for piece in self._unpacked(packed):
            self._given += len(piece)
            if max(self._read, self._given) > MAX_REPLY_BYTES:
                raise BodyError(f"a reply of more than {MAX_REPLY_BYTES // 2**20} MB")
            yield piece

    def _unpacked(self, packed: bytes) -> Iterator[bytes]:
        if not self._packed:
            yield packed
            return
        more = True
        while more:
            try:
                piece = self._unpack.decompress(packed, _UNPACKED_AT_ONCE)
            except zlib.error as error:
                if not self._first:
                    raise BodyError("a reply whose packed body is broken") from error
                self._unpack = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers send deflate without its head
                self._first = False
                continue
            self._first = self._first and not piece
            packed = self._unpack.unconsumed_tail
            more = bool(packed) or len(piece) == _UNPACKED_AT_ONCE
            yield piece


_IDLE_S = 15.0
_SENT_AT_ONCE = 2**18


@dataclass(frozen=True, slots=True)
class Posted:
    """A server's reply: the status, the headers by their names in lower case, and the body, unpacked."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connections:
    """Connections that stay open between requests, without a limit of their number. `connect_s` is the time-out of
    connecting. Close them with `aclose()`."""

    def __init__(self, tls: SSLContext, connect_s: float) -> None:
        self._tls = tls
        self._connect_s = connect_s
        self._open: (
            tuple[asyncio.AbstractEventLoop, AsyncGenerator[aiohttp.ClientSession], aiohttp.ClientSession] | None
        )
        self._open = None

    async def post(self, url: str, headers: Mapping[str, str], body: Sequence[bytes]) -> Posted:
        """Sends a body, given in pieces, and reads the whole reply, whatever its status; redirects are not followed.

        Raises `OSError` without a whole reply (`TimeoutError` where connecting took too long) and `BodyError` for one
        that is too long, or not packed as its header says.
        """
        import aiohttp

        data: bytes | AsyncGenerator[bytes] = body[0]
        if len(body) > 1:
            headers = {**headers, "Content-Length": str(sum(map(len, body)))}
            data = _joined(body)
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
        """The session of the running loop: connections of an ended loop are unusable."""
        loop = asyncio.get_running_loop()
        if self._open is None or self._open[0] is not loop:
            held = self._held()
            self._open = loop, held, await anext(held)
        return self._open[2]

    async def _held(self) -> AsyncGenerator[aiohttp.ClientSession]:
        """Holds the session in a generator: a loop that ends closes its generators, and so the connections."""
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


async def _joined(pieces: Sequence[bytes]) -> AsyncGenerator[bytes]:
    """Joins small pieces, since each costs a system call; the body is never copied as a whole."""
    waiting, size = [], 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _SENT_AT_ONCE:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


@cache
def _proxy(url: str) -> str | None:
    """The proxy of the environment for an address. Read here, since the library would send passwords of `~/.netrc`."""
    parts = urlsplit(url)
    proxies = getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    return None if found is None or proxy_bypass(parts.netloc) else found


_REQUESTS = "requests-"
_MOST_LINES = 50_000  # in one file, as OpenAI takes it
_MOST_FILE = 100 * 2**20
_BY_US = re.compile(rb'\{"custom_id":"([0-9a-f]{32}(?:-r[0-9]{1,4})?)"')
_MAY_COME = {408, 409, 425, 429}
_OK, _ERROR, _SERVER_ERROR = 200, 400, 500


class BatchFolder:
    """A folder with the files of OpenAI's batch protocol, instead of `Connections`: requests are written, and replies
    are read once somebody has put them there.

    A request is identified by its hash, and by its repetition after the first: equal requests are written once, and share
    one reply; those of two repetitions never do. Files `requests-….jsonl`
    are written here; all other `.jsonl` files are replies, as OpenAI's batches and `vllm run-batch` write them. A
    request that failed for an infrastructure error is written again, once for each failure; one without a reply yet is
    not.

    Raises `InputError` with file and line for an invalid reply; then nothing is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: list[Path] = []
        """The files of this session; complete once it is closed."""
        self._slots: dict[str, tuple[Path, int]] | None = None
        self._waiting: set[str] = set()
        self._open = ExitStack()
        self._file: BinaryIO | None = None
        self._lines = 0

    async def post(self, url: str, headers: Mapping[str, str], body: Sequence[bytes]) -> Posted:
        """The reply to a request. Without one, writes the request to a file and raises `PendingError`. Nothing is sent,
        and headers, which hold keys, are not written."""
        del headers
        digest = hashlib.sha256(urlsplit(url).path.encode())
        for piece in body:
            digest.update(piece)
        number = current_repetition().number
        key = digest.hexdigest()[:32] + (f"-r{number}" if number else "")
        if self._slots is None:
            self._look()
        if (location := (self._slots or {}).get(key)) is not None:
            return self._reply(*location)
        if key not in self._waiting:
            self._write(key, urlsplit(url).path, body)
            self._waiting.add(key)
        raise PendingError(f"the reply comes by {self.folder}")

    async def aclose(self) -> None:
        """Completes the files that were begun."""
        self._file = None
        self._open.close()

    def _look(self) -> None:
        """Reads the folder. A request waits if it was written more often than it failed. What is known stays unset
        until every file was read: after an invalid reply, no request may be taken for one that was never written."""
        positions: dict[str, tuple[Path, int]] = {}
        failed, written = Counter[str](), Counter[str]()
        ours = sorted(self.folder.glob(f"{_REQUESTS}*.jsonl"))
        for file in sorted(set(self.folder.glob("*.jsonl")) - set(ours)):
            for position, line, number in _numbered_lines(file):
                key, status, body = _read_reply(file, number, line)
                whole = status == _OK and not _broke_off(body)
                if whole or (_ERROR <= status < _SERVER_ERROR and status not in _MAY_COME):
                    positions[key] = file, position
                else:
                    failed[key] += 1
        for file in ours:
            with file.open("rb") as lines:
                found = (_BY_US.match(line) for line in lines)
                written.update(one[1].decode() for one in found if one)
        self._waiting |= set(written - failed)
        self._slots = positions

    def _reply(self, file: Path, position: int) -> Posted:
        with file.open("rb") as stream:
            stream.seek(position)
            _, status, body = _read_reply(file, 0, stream.readline(MAX_REPLY_BYTES))
        return Posted(status, {"content-type": "application/json"}, json.dumps(body).encode())

    def _write(self, key: str, path: str, body: Sequence[bytes]) -> None:
        size = sum(map(len, body))
        if self._file is None or self._lines >= _MOST_LINES or self._file.tell() + size > _MOST_FILE:
            known = [int(found[1]) for one in self._names() if (found := re.search(r"-(\d{4,9})\.jsonl$", one))]
            name = f"{_REQUESTS}{max(known, default=0) + 1:04d}.jsonl"
            self.written.append(self.folder / name)
            self._file = self._open.enter_context(self._open.enter_context(whole_file(self.written[-1])).open("wb"))
            self._lines = 0
        head = f'{{"custom_id":"{key}","method":"POST","url":{json.dumps(path)},"body":'
        self._file.writelines([head.encode(), *map(_unbroken, body), b"}\n"])
        self._lines += 1

    def _names(self) -> list[str]:
        return [path.name for path in (*self.folder.glob(f"{_REQUESTS}*.jsonl"), *self.written)]


def _broke_off(body: object) -> bool:
    """Whether the body of a reply under status 200 is none: an error, a body of another kind, or a reply that broke off."""
    try:
        return not isinstance(body, dict) or not body.get("choices") or bool(end_of_body(body).fault)
    except ValueError:
        return True


def _numbered_lines(file: Path) -> Iterator[tuple[int, bytes, int]]:
    """Each line with its location in bytes and its number."""
    with file.open("rb") as stream:
        position, number = 0, 1
        while line := stream.readline(MAX_REPLY_BYTES + 1):
            if len(line) > MAX_REPLY_BYTES:
                raise InputError(file, f"line {number}", found="more than 16 MB", expected="a reply")
            if line.strip():
                yield position, line, number
            position, number = position + len(line), number + 1


def _unbroken(body: bytes) -> bytes:
    """JSON without characters that some readers of JSON Lines take for the end of a line."""
    for character, escape in JSON_BREAKS.items():
        body = body.replace(character.encode(), escape.encode())
    return body


def _read_reply(file: Path, number: int, line: bytes) -> tuple[str, int, object]:
    """The request's key of a line, the status (500 without one) and the body."""
    try:
        said = load_json(line.decode(), halves=True)
        key, response = said["custom_id"], said.get("response")
        status = _SERVER_ERROR if response is None else int(response["status_code"])
        body = None if response is None else response["body"]
    except (JsonError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise InputError(
            file, f"line {number}", found=line[:60].decode(errors="replace"), expected="a reply of a batch"
        ) from error
    return str(key), status, body
