"""A question's deadline, in virtual time: to the moment, whatever else took how long."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.core import Frame, Status, aside
from proctor.runs import ask
from proctor_challenge.containers import BoxedSystem, BoxError, BoxLimits
from proctor_challenge.containers.executors import BoxEnd, StartedBox
from proctor_challenge.containers.gateway import invoke, wait_until_ready
from tests.support.doubles_of_boxes import Shows, question
from tests.support.virtual_time import run_in_virtual_time

READY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class SocketBox:
    """A box whose connections find these bytes, and are never closed."""

    media_inside = "/input"

    def __init__(self, media: Path, *replies: bytes) -> None:
        self.media = media
        self._replies = list(replies)
        self._open: list[socket.socket] = []

    def connect(self) -> socket.socket:
        here, there = socket.socketpair()
        here.setblocking(False)
        self._open += [here, there]
        there.sendall(self._replies.pop(0) if self._replies else b"")
        return here

    async def ended(self) -> bool:
        return False

    async def stop(self) -> BoxEnd:
        for one in self._open:
            one.close()
        return BoxEnd()


class OneBox:
    """An executor that takes an hour to start a box."""

    name = "one"

    def __init__(self, box: StartedBox) -> None:
        self._box = box

    async def start(self, image: str, limits: BoxLimits, *, label: str) -> StartedBox:
        await asyncio.sleep(3600)
        return self._box

    async def remove_left(self, label: str) -> int:
        return 0

    async def load(self, archive: Path) -> str:
        return ""

    async def unload(self, image: str) -> None:
        """Nothing."""


class Slow(Shows):
    """A view whose pictures take a minute to be decoded."""

    async def frames(
        self, *, count: int | None = None, fps: float | None = None, window: tuple[float, float] | None = None
    ) -> list[Frame]:
        with aside("media"):
            await asyncio.sleep(60)
        return await super().frames()


@contextlib.contextmanager
def closing(box: SocketBox) -> Iterator[SocketBox]:
    try:
        yield box
    finally:
        asyncio.run(box.stop())


@pytest.mark.parametrize("deadline_s", [5.0, 15.0, 30.0])
@pytest.mark.parametrize(
    "sent", [b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"]
)
def test_a_question_ends_at_its_deadline(tmp_path: Path, deadline_s: float, sent: bytes) -> None:
    async def seconds(box: SocketBox) -> float:
        loop = asyncio.get_running_loop()
        started = loop.time()
        with pytest.raises(TimeoutError):
            await invoke(box, {}, deadline_s)
        return loop.time() - started

    with closing(SocketBox(tmp_path, sent)) as box:
        assert run_in_virtual_time(seconds(box)) == pytest.approx(deadline_s, abs=1e-6)


def test_only_the_time_with_the_question_counts(tmp_path: Path) -> None:
    """Neither the hour until the container is there, nor the minute of decoding."""

    async def asked(box: SocketBox) -> None:
        system = BoxedSystem(
            "team#1", OneBox(box), "", BoxLimits(), question_s=5.0, startup_s=60.0, seed=0, label="test/1/1"
        )
        async with system:
            answer = await ask(system, question(), lambda _: Slow(b"pixels"))
        assert (answer.status, answer.reason) == (Status.TIMED_OUT, "took longer than 5 s")
        assert answer.timing is not None
        assert answer.timing.model_s == pytest.approx(5.0, abs=1e-6)
        assert answer.timing.media_s == pytest.approx(60.0, abs=1e-6)

    with closing(SocketBox(tmp_path, READY)) as box:
        run_in_virtual_time(asked(box))


def test_a_container_has_its_time_until_it_is_ready_whatever_a_single_request_takes(tmp_path: Path) -> None:
    """A request without a reply is given up after ten seconds, and another one finds it ready."""

    async def ready(box: SocketBox) -> float:
        return await wait_until_ready(box, 60)

    async def never(box: SocketBox) -> float:
        started = asyncio.get_running_loop().time()
        with pytest.raises(BoxError, match="not ready after 60 s"):
            await wait_until_ready(box, 60)
        return asyncio.get_running_loop().time() - started

    with closing(SocketBox(tmp_path, b"", b"", READY)) as box:
        assert run_in_virtual_time(ready(box)) == pytest.approx(20.0, abs=1)
    with closing(SocketBox(tmp_path)) as box:
        assert run_in_virtual_time(never(box)) == pytest.approx(60.0, abs=1e-6)
