"""The gateway: HTTP to a box over its Unix socket, with a deadline by our own clock and a limit on every reply."""

from __future__ import annotations

import asyncio
import json
import re
import time
from contextlib import suppress
from dataclasses import dataclass

from pydantic import JsonValue

from proctor.core import JsonError, SystemFaultError, load_json, missing_extra
from proctor_challenge.containers.executors import BoxError, StartedBox

try:
    import h11
except ModuleNotFoundError as error:
    raise missing_extra("challenge", "a container") from error

MOST_REPLY = 2**20
"""The maximum size of a reply in bytes, with its headers."""

MOST_TEXT = 2**16
"""The maximum length of an answer in characters."""

_HEAD = 2**14
_MOST_PIECES = 2**11
_SOON_S = 0.02
_LATER_S = 0.25
_BREATH_S = 5.0
_HEALTH_S = 10.0
_CLASS = re.compile(r"[A-Za-z_][\w.]{0,99}")


class BoxFaultError(SystemFaultError):
    """The reply of a box is no answer. `error_class` is the error that the reply names, if any."""

    def __init__(self, message: str, error_class: str = "") -> None:
        super().__init__(message)
        self.error_class = error_class


class BoxGoneError(SystemFaultError):
    """A box ended, or closed its socket, while it had a question."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """The status and body of a reply."""

    status: int
    body: bytes


async def wait_until_ready(box: StartedBox, startup_s: float) -> float:
    """Requests `GET /health` until the status is 200; returns the seconds that took. Raises `BoxError` when the box
    ends before that, or is not ready in time."""
    started = time.monotonic()
    try:
        async with asyncio.timeout(startup_s):
            while not await _healthy(box):
                if await box.ended():
                    raise BoxError("the container ended before it was ready", late=False)
                await asyncio.sleep(_SOON_S if time.monotonic() - started < 2 else _LATER_S)
    except TimeoutError:
        raise BoxError(f"the container was not ready after {startup_s:g} s", late=True) from None
    return time.monotonic() - started


async def answers_still(box: StartedBox) -> bool:
    """Whether a box that broke off a reply can be asked again: it runs, and its socket responds."""
    with suppress(BoxError):
        await wait_until_ready(box, _BREATH_S)
        return True
    return False


async def _healthy(box: StartedBox) -> bool:
    try:
        async with asyncio.timeout(_HEALTH_S):
            return (await request(box, "GET", "/health")).status == 200
    except (OSError, SystemFaultError):  # a TimeoutError is an OSError, too
        return False


async def invoke(box: StartedBox, question: dict[str, JsonValue], deadline_s: float) -> str:
    """Asks one question by `POST /invoke`; returns the text of the answer. Raises `TimeoutError` after the deadline, by
    the monotonic clock from this call on, `BoxGoneError` when nothing listens or the reply breaks off, and
    `BoxFaultError` for an invalid reply."""
    try:
        async with asyncio.timeout(deadline_s):
            reply = await request(box, "POST", "/invoke", json.dumps(question).encode())
    except OSError as error:
        if isinstance(error, TimeoutError):
            raise
        raise BoxGoneError("the container did not take the question") from error
    return answer_in(reply)


def answer_in(reply: HttpReply) -> str:
    """The answer in a reply. Raises `BoxFaultError` for another status than 200 and 201, and without an answer.

    >>> answer_in(HttpReply(200, b'{"answer": "B"}'))
    'B'
    """
    if reply.status not in {200, 201}:
        raise BoxFaultError(f"the container replied with HTTP {reply.status}, expected 200", _named_error(reply.body))
    text = _field(reply.body, "answer")
    if text is None:
        raise BoxFaultError('the reply is no JSON object with a text "answer"')
    if len(text) > MOST_TEXT:
        raise BoxFaultError(f"the answer has more than {MOST_TEXT:,} characters")
    return text


def _named_error(body: bytes) -> str:
    name = _field(body, "error") or ""
    return name if _CLASS.fullmatch(name) else ""


def _field(body: bytes, name: str) -> str | None:
    """A text field of a JSON object; None without one."""
    try:
        reply = load_json(body, halves=True)
    except (JsonError, UnicodeDecodeError, RecursionError):
        return None
    text = reply.get(name) if isinstance(reply, dict) else None
    return text if isinstance(text, str) else None


async def request(box: StartedBox, method: str, target: str, body: bytes = b"") -> HttpReply:
    """One request on a connection of its own. Raises `OSError` when nothing listens, `BoxGoneError` when the reply
    breaks off, and `BoxFaultError` when it is too long or no HTTP."""
    while True:
        try:
            connection = box.connect()
            break
        except BlockingIOError:  # its queue of connections is full
            await asyncio.sleep(_SOON_S)
    reader, writer = await asyncio.open_unix_connection(sock=connection)
    try:
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD)
        headers = [("Host", "proctor"), ("Connection", "close"), ("Content-Length", str(len(body)))]
        headers += [("Content-Type", "application/json")] if body else []
        events = [h11.Request(method=method, target=target, headers=headers), h11.Data(data=body), h11.EndOfMessage()]
        writer.write(b"".join(http.send(event) or b"" for event in events))
        return await _reply(http, reader)
    except ConnectionError:
        raise BoxGoneError("the container closed the connection") from None
    finally:
        writer.transport.abort()


async def _reply(http: h11.Connection, reader: asyncio.StreamReader) -> HttpReply:
    status, body, came, pieces, closed = 0, bytearray(), 0, 0, False
    try:
        while not isinstance(event := http.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                data = await reader.read(2**16)
                closed, came = not data, came + len(data)
                if came > MOST_REPLY:
                    raise BoxFaultError(f"the reply has more than {MOST_REPLY // 2**20} MB")
                http.receive_data(data)
                continue
            pieces += 1
            if pieces > _MOST_PIECES:
                raise BoxFaultError(f"the reply comes in more than {_MOST_PIECES:,} pieces")
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
    except h11.RemoteProtocolError:
        if closed:
            raise BoxGoneError("the container closed the connection before its reply was complete") from None
        raise BoxFaultError("the reply is no HTTP") from None
    return HttpReply(status, bytes(body))
