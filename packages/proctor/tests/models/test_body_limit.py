"""A reply's body is read up to a limit, packed and unpacked: one that has no end costs one answer, and no memory."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Iterator

import pytest

from proctor.core import InfrastructureError
from proctor.models import ModelClient, ModelSpec
from proctor.models.connections import MAX_REPLY_BYTES
from tests.support.raw_server import completion, raw_server
from tests.support.scripted_transport import TRANSPORTS, choose_transport

GOOD = completion("Answer: A")


@pytest.fixture(params=TRANSPORTS, autouse=True)
def _by_each_transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    choose_transport(monkeypatch, request.param)


def ask(url: str) -> str:
    async def run() -> str:
        client = ModelClient(ModelSpec(name="m", base_url=url, retries=2, backoff_s=0.01))
        try:
            return (await client.ask(["Which?"])).text
        finally:
            await client.aclose()

    return asyncio.run(run())


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("identity", GOOD),
        ("gzip", gzip.compress(GOOD)),
        ("x-gzip", gzip.compress(GOOD)),
        ("deflate", zlib.compress(GOOD)),
        ("deflate", raw_deflate(GOOD)),
    ],
    ids=["plain", "gzip", "x-gzip", "deflate", "raw deflate"],  # packed bytes carry the time of day
)
def test_a_packed_reply_is_read(encoding: str, body: bytes) -> None:
    with raw_server(lambda _: body, headers={"Content-Encoding": encoding}) as url:
        assert ask(url) == "Answer: A"


def test_a_long_reply_is_read_to_its_end_and_in_many_pieces() -> None:
    text = "x" * 3_000_000
    packed = gzip.compress(completion(text))
    pieces = [packed[position : position + 7] for position in range(0, len(packed), 7)]
    with raw_server(lambda _: pieces, headers={"Content-Encoding": "gzip"}) as url:
        assert ask(url) == text


class Endless:
    """A body that counts what was taken of it."""

    def __init__(self) -> None:
        self.taken = 0
        self.requests = 0

    def __call__(self, _: object) -> Iterator[bytes]:
        self.requests += 1
        while self.taken < 40 * MAX_REPLY_BYTES:
            self.taken += 2**20
            yield b" " * 2**20


@pytest.mark.parametrize("status", [200, 500])
def test_a_body_without_an_end_is_left_unread_and_not_asked_for_again(status: int) -> None:
    body = Endless()
    with raw_server(body, status=status) as url, pytest.raises(InfrastructureError) as caught:
        ask(url)
    assert str(caught.value) == "m: a reply of more than 16 MB"
    assert body.requests == 1
    assert body.taken < 4 * MAX_REPLY_BYTES  # what the two sides' buffers hold comes on top of the limit


def test_a_small_body_that_unpacks_to_gigabytes_is_stopped() -> None:
    packer = zlib.compressobj(9, wbits=31)
    head, block = (packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    bomb = head + 999 * block  # after a full flush the same bytes are packed alike; the sum at the end is never reached
    assert len(bomb) < MAX_REPLY_BYTES / 10
    with (
        raw_server(lambda _: bomb, headers={"Content-Encoding": "gzip"}) as url,
        pytest.raises(InfrastructureError, match="a reply of more than 16 MB"),
    ):
        ask(url)


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ("gzip", "m: a reply whose packed body is broken"),
        ("br", "m: a reply packed as 'br', which was not asked for"),
        ("zstd", "m: a reply packed as 'zstd', which was not asked for"),
    ],
)
def test_a_body_that_is_not_packed_as_asked_is_said(encoding: str, message: str) -> None:
    with (
        raw_server(lambda _: GOOD, headers={"Content-Encoding": encoding}) as url,
        pytest.raises(InfrastructureError) as caught,
    ):
        ask(url)
    assert str(caught.value) == message
