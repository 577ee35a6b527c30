"""Connections over real sockets: who is let in, who is closed and when, and that others are served all the while. No
time passes: the guard is told of it."""

from __future__ import annotations

import errno
import logging
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from proctor_web.connections import ConnectionLimits, ConnectionStage, Guard, Listener, NoiseFilter, Progress, report
from proctor_web.proxies import PerVisitor, behind, proxy_addresses
from proctor_web.site import Site, proxy_networks
from tests.support.guarded_server import Served, guarded, read_all, without_checks
from tests.support.web_folder import invitations, review_folder
from tests.support.web_open import OpenSite, open_site
from tests.web.test_serve import certificate

LIMITS = ConnectionLimits(connections=4, per_address=2)
HEAD = b"GET /login HTTP/1.1\r\nHost: review.test\r\n"
FORM = b"POST /login HTTP/1.1\r\nHost: review.test\r\nContent-Type: application/x-www-form-urlencoded\r\n"
UPLOAD = b"POST /send HTTP/1.1\r\nHost: review.test\r\nContent-Type: multipart/form-data; boundary=edge\r\n"


@pytest.fixture(autouse=True)
def _heard(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """uvicorn's log is heard, whatever a server in this process set before."""
    for name in ("uvicorn", "uvicorn.error"):
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
        monkeypatch.setattr(logging.getLogger(name), "disabled", False)
        caplog.set_level(logging.WARNING, logger=name)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = open_site(tmp_path)
    yield made
    made.engine.dispose()


@pytest.fixture
def served(site: Site) -> Iterator[Served]:
    with guarded(site) as running:
        yield running


def is_served(served: Served, source: str = "127.0.0.99") -> bool:
    with served.opened(HEAD, b"Connection: close\r\n\r\n", source=source) as visitor:
        return read_all(visitor).startswith(b"HTTP/1.1 200 ")


def holds(served: Served, count: int, stage: ConnectionStage | None = None) -> None:
    """Waits until there are so many connections, all in this stage."""
    served.until(lambda: len(served.guard) == count and (stage is None or served.stages() == [stage] * count))


def has_ended(opened: socket.socket) -> bool:
    try:
        return not opened.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


# -- the guard alone


class Pretended:
    """A connection whose progress a test sets."""

    def __init__(
        self, address: str, stage: ConnectionStage, seconds: float, received: int = 0, *, upload: bool = False
    ) -> None:
        self.address, self.ended = address, False
        self.now = Progress(stage, seconds, received, upload=upload)

    def progress(self, now: float) -> Progress:
        del now
        return self.now

    def end(self, *, told: bool) -> None:
        del told
        self.ended = True


def room_made_by(*held: Pretended, address: str = "new") -> list[int] | None:
    """Which connections make room for another one; None where it is refused."""
    guard = Guard(LIMITS, Counter())
    for one in held:
        guard.enter(one)
    if not guard.has_room(address, 0.0):
        return None
    return [at for at, one in enumerate(held) if one.ended]


def test_those_without_a_request_make_room_first_and_the_longest_of_them() -> None:
    idle = Pretended("a", ConnectionStage.IDLE, 60)
    slow = Pretended("b", ConnectionStage.BODY, 20, 100)
    young, old = Pretended("c", ConnectionStage.HEADERS, 1), Pretended("d", ConnectionStage.HANDSHAKE, 4)
    assert room_made_by(idle, slow, young) == []
    assert room_made_by(idle, slow, young, old) == [3]
    old.ended = False
    assert room_made_by(old, idle, *(Pretended("many", ConnectionStage.HEADERS, seconds) for seconds in (4, 5))) == [3]
    assert room_made_by(slow, idle, *(Pretended("many", ConnectionStage.HEADERS, seconds) for seconds in (1, 2))) == [0]
    assert room_made_by(young, idle, *(Pretended("many", ConnectionStage.HEADERS, seconds) for seconds in (1, 2))) == [
        3
    ]
    idle.ended = slow.ended = False
    busy = [Pretended(name, ConnectionStage.ANSWER, 100) for name in "xyz"]
    assert room_made_by(idle, slow, *busy[:2]) == [1]
    assert room_made_by(idle, *busy) == [0]
    assert room_made_by(*busy, Pretended("w", ConnectionStage.BODY, 20, 10**6, upload=True)) is None, (
        "it sends fast enough"
    )
    assert room_made_by(*busy, Pretended("w", ConnectionStage.BODY, 1)) is None, "it has just begun"
    assert room_made_by(*busy, Pretended("w", ConnectionStage.STALLED, 1)) is None, "it reads"
    assert room_made_by(*busy, Pretended("w", ConnectionStage.STALLED, 9)) == [3]


def test_an_address_with_many_makes_room_among_its_own() -> None:
    mine = Pretended("new", ConnectionStage.IDLE, 1), Pretended("new", ConnectionStage.ANSWER, 1)
    assert room_made_by(Pretended("a", ConnectionStage.HEADERS, 9), *mine) == [1]
    assert room_made_by(Pretended("new", ConnectionStage.ANSWER, 1), mine[1]) is None
    guard = Guard(LIMITS, Counter(), proxy_addresses(["192.0.2.1/32"]))
    for _ in range(3):
        guard.enter(Pretended("192.0.2.1", ConnectionStage.ANSWER, 1))
    assert guard.has_room("192.0.2.1", 0.0), "a proxy's address is that of many"


OVERDUE = {
    "a handshake": (Progress(ConnectionStage.HANDSHAKE, 11), True),
    "headers": (Progress(ConnectionStage.HEADERS, 11), True),
    "a form": (Progress(ConnectionStage.BODY, 29, 500), False),
    "a slow form": (Progress(ConnectionStage.BODY, 31, 10**6), True),
    "an upload at 10 kB/s": (Progress(ConnectionStage.BODY, 3600, 36_000_000, upload=True), False),
    "an upload at 9 kB/s": (Progress(ConnectionStage.BODY, 3600, 32_400_000, upload=True), True),
    "an upload that has just begun": (Progress(ConnectionStage.BODY, 29, 0, upload=True), False),
    "an answer that takes long": (Progress(ConnectionStage.ANSWER, 10**6), False),
    "a reader who takes nothing": (Progress(ConnectionStage.STALLED, 61), True),
}


@pytest.mark.parametrize("case", OVERDUE)
def test_each_step_has_its_time(case: str) -> None:
    progress, over = OVERDUE[case]
    assert progress.is_overdue(LIMITS) == over


def test_caps_follow_the_descriptors_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def caps(files: int) -> tuple[int, int]:
        monkeypatch.setattr("resource.getrlimit", lambda _: (files, files))
        found = ConnectionLimits.of_process()
        return found.connections, found.per_address

    assert caps(1024) == (720, 180)
    assert caps(65_536) == (2048, 512)
    assert caps(80) == (16, 8)


# -- over sockets


def test_half_requests_end_with_their_time_and_others_are_served(served: Served) -> None:
    slow = [served.opened(HEAD, source=f"127.0.0.{location}") for location in (1, 1, 2)]
    silent = served.opened()
    holds(served, 4, ConnectionStage.HEADERS)
    assert is_served(served)
    holds(served, 4, ConnectionStage.HEADERS)
    served.pass_by(9)
    assert len(served.guard) == 4
    slow[0].sendall(b"X-a: b\r\n")  # another header does not begin the time again
    served.pass_by(2)
    assert [read_all(one)[:28] for one in slow] == [b"HTTP/1.1 408 Request Timeout"] * 3
    assert read_all(silent) == b"", "browsers open connections in advance: one without a request ends without a word"
    holds(served, 0)
    assert served.tally == {"closed after its time was over (headers)": 4}


def test_half_forms_end_with_their_time_and_leave_no_traceback(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    slow = served.opened(FORM, b"Content-Length: 500\r\n\r\nname=an")
    holds(served, 1, ConnectionStage.BODY)
    served.pass_by(29)
    assert len(served.guard) == 1
    served.pass_by(2)
    assert read_all(slow).startswith(b"HTTP/1.1 408 Request Timeout")
    holds(served, 0)
    assert is_served(served)
    assert caplog.text == ""


def test_an_upload_goes_on_while_its_rate_is_kept(served: Served, site: Site) -> None:
    slow = served.opened(UPLOAD, b"Content-Length: 2000000\r\n\r\n--edge")
    served.until(lambda: len(list(site.folder.glob(".incoming-*"))) == 1)
    served.pass_by(29)
    assert len(served.guard) == 1
    served.pass_by(60)
    assert b" 408 " in read_all(slow)[:20]
    served.until(lambda: not list(site.folder.glob(".incoming-*")))


EARLY = {"too large": (3_500_000, b"413"), "without a token": (2_500_000, b"403")}


@pytest.mark.parametrize("kind", EARLY)
def test_who_is_refused_before_all_is_sent_finds_the_answer(served: Served, kind: str) -> None:
    """A proxy that is still sending would find a broken connection, and tell its visitor of a bad gateway."""
    size, status = EARLY[kind]
    file = b'--edge\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'
    sender = served.opened(UPLOAD, b"Content-Length: %d\r\n\r\n" % size, file)
    assert sender.recv(65_536)[9:12] == status
    rest = size - len(file)
    for _ in range(9):
        sender.sendall(b"x" * (rest // 10))
        sender.settimeout(0)
        ended = has_ended(sender)
        sender.settimeout(60)
        assert not ended
    sender.sendall(b"x" * (rest - rest // 10 * 9))
    assert b"408" not in read_all(sender), "it ends with what was sent"


def stopped_with_an_upload(served: Served, site: Site) -> socket.socket:
    """An upload of which some has arrived when the server is told to stop, and to wait for nothing."""
    begun = served.opened(UPLOAD, b"Content-Length: 200000\r\n\r\n--edge")
    served.until(lambda: len(list(site.folder.glob(".incoming-*"))) == 1)
    served.server.config.timeout_graceful_shutdown = 0
    served.server.should_exit = True
    served.until(lambda: refused(served.port))
    return begun


def refused(port: int) -> bool:
    with socket.socket() as visitor:
        return visitor.connect_ex(("127.0.0.1", port)) != 0


def test_a_server_that_is_stopped_completes_its_uploads(served: Served, site: Site) -> None:
    begun = stopped_with_an_upload(served, site)
    threading.Event().wait(0.5)  # a server that waits for nothing has ended it by now
    assert len(served.guard) == 1
    begun.sendall(b"x" * 199_994)
    assert read_all(begun).startswith(b"HTTP/1.1 400 Bad Request"), "by the page, which has read it to its end"


def test_a_server_that_is_stopped_does_not_wait_for_who_sends_too_slowly(served: Served, site: Site) -> None:
    begun = stopped_with_an_upload(served, site)
    served.clock.ahead += 60
    assert b" 408 " in read_all(begun)[:20]


@dataclass(frozen=True, kw_only=True)
class LargeSite(OpenSite):
    """`/large` is 40 MB long."""

    def mount(self, app: FastAPI) -> None:
        app.get("/large")(lambda: StreamingResponse(bytes(100_000) for _ in range(400)))


def test_who_reads_nothing_of_an_answer_is_disconnected_and_who_reads_slowly_is_not(tmp_path: Path) -> None:
    small = open_site(tmp_path)
    site = LargeSite(**{one.name: getattr(small, one.name) for one in fields(small)})
    ask = b"GET /large HTTP/1.1\r\nHost: review.test\r\n\r\n"
    with guarded(site) as served:
        deaf, slow = served.opened(ask), served.opened(ask)
        holds(served, 2, ConnectionStage.STALLED)
        for left in (2, 1, 1):
            served.pass_by(40)
            taken = 0
            while taken < 8_000_000:
                taken += len(slow.recv(1_000_000))
            holds(served, left, ConnectionStage.STALLED)
        assert served.tally == {"closed after its time was over (stalled)": 1}
        deaf.close()
        slow.close()
        holds(served, 0)
    site.engine.dispose()


def test_slow_sockets_make_room_for_those_who_ask(served: Served) -> None:
    """As many as there may be, from as many addresses."""
    first = [served.opened(HEAD, source=f"127.0.1.{row % 4 + 1}") for row in range(20)]
    holds(served, 20, ConnectionStage.HEADERS)
    served.clock.ahead += 1
    second = [served.opened(HEAD, source=f"127.0.1.{row % 4 + 1}") for row in range(20)]
    holds(served, 40, ConnectionStage.HEADERS)
    served.clock.ahead += 4
    visitors = [served.opened(HEAD, b"\r\n", source=f"127.0.2.{row + 1}") for row in range(10)]
    assert [one.recv(12) for one in visitors] == [b"HTTP/1.1 200"] * 10
    assert len(served.guard) == 40
    assert served.tally == {"closed to make room (headers)": 10}
    for one in (*first, *second):
        one.settimeout(0)
    assert [has_ended(one) for one in first].count(True) == 10
    assert not any(has_ended(one) for one in second), "those who have waited longest make room"


def test_one_address_has_a_part_of_the_room_alone(served: Served) -> None:
    slow = [served.opened(FORM, b"Content-Length: 9\r\n\r\n", source="127.0.0.1") for _ in range(20)]
    holds(served, 20, ConnectionStage.BODY)
    with served.opened(source="127.0.0.1") as more:
        assert read_all(more).startswith(b"HTTP/1.1 503 ")
    assert is_served(served)
    for one in slow:
        one.close()
    holds(served, 0)
    assert served.tally == {"connections refused: too many from one address": 1}


def test_a_body_with_two_lengths_is_refused_and_its_connection_ends(served: Served) -> None:
    """RFC 9112, 6.1: what follows it may be another request, or not."""
    both = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    for head in (FORM, UPLOAD, FORM.replace(b"review", b"foreign"), HEAD):
        with served.opened(head + both + HEAD + b"\r\n") as opened:
            answer = read_all(opened)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1 ") == 1


def test_nonsense_ends_its_own_connection_and_is_counted(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("uvicorn.error").addFilter(noise := NoiseFilter(served.tally))
    try:
        with served.opened(b"\x16\x03\x01nonsense\r\n\r\n") as opened:
            assert read_all(opened).startswith(b"HTTP/1.1 400 ")
        with served.opened(FORM + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n") as opened:
            assert b" 200 " not in read_all(opened)[:20]
        with served.opened(HEAD + b"Content-Length: 3\r\n\r\nabcXX\r\n\r\n") as opened:  # after its answer
            read_all(opened)
        holds(served, 0)
    finally:
        logging.getLogger("uvicorn.error").removeFilter(noise)
    assert served.tally["requests that are no HTTP"] >= 2
    assert caplog.text == ""


def test_a_half_handshake_ends_with_its_time(site: Site, tmp_path: Path) -> None:
    (tmp_path / "tls").mkdir()
    with guarded(site, tls=certificate(tmp_path / "tls")) as served:
        slow = [served.opened(b"\x16\x03\x01") for _ in range(3)]
        holds(served, 3)
        with without_checks().wrap_socket(served.opened(), server_hostname="localhost") as visitor:
            visitor.sendall(HEAD + b"Connection: close\r\n\r\n")
            assert visitor.recv(12) == b"HTTP/1.1 200"
        served.pass_by(11)
        assert [read_all(one) for one in slow] == [b""] * 3
        with served.opened(b"GET / HTTP/1.1\r\n\r\n") as plain:
            read_all(plain)
        served.until(lambda: served.tally["handshakes that failed"] >= 1)
        holds(served, 0)
        assert served.tally["closed after its time was over (handshake)"] == 3


def test_handshakes_make_room_as_requests_do(site: Site, tmp_path: Path) -> None:
    (tmp_path / "tls").mkdir()
    with guarded(site, tls=certificate(tmp_path / "tls"), connections=8, per_address=4) as served:
        slow = [served.opened(source=f"127.0.1.{row % 3 + 1}") for row in range(8)]
        holds(served, 8)
        for _ in range(3):
            visitor: ssl.SSLSocket
            with without_checks().wrap_socket(served.opened(source="127.0.0.9")) as visitor:
                visitor.sendall(HEAD + b"Connection: close\r\n\r\n")
                assert visitor.recv(12) == b"HTTP/1.1 200"
        for one in slow:
            one.close()
        holds(served, 0)


# -- the door, and the log


class NoFiles(socket.socket):
    """A listening socket of a process without a free descriptor."""

    tries = 0

    def accept(self) -> tuple[socket.socket, object]:
        self.tries += 1
        raise OSError(errno.EMFILE, "Too many open files")


def test_without_descriptors_the_door_is_closed_for_a_moment() -> None:
    """asyncio's own tries as often as its backlog is long, with a traceback each."""
    import asyncio

    async def knocked() -> tuple[int, Counter[str]]:
        tally: Counter[str] = Counter()
        with NoFiles() as opened:
            opened.bind(("127.0.0.1", 0))
            opened.listen()
            listener = Listener(opened, Guard(LIMITS, tally), lambda _: pytest.fail("nobody came in"), None)
            with socket.create_connection(opened.getsockname()):
                for _ in range(1000):
                    await asyncio.sleep(0)
            listener.close()
            return opened.tries, tally

    assert asyncio.run(knocked()) == (1, {"pauses without a free file descriptor": 1})


def test_the_log_has_a_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    tally = Counter({"closed after its time was over (headers)": 1100, "requests that are no HTTP": 3})
    report(tally)
    report(tally)
    assert [record.getMessage() for record in caplog.records] == [
        "in the last minute: 1100 × closed after its time was over (headers), 3 × requests that are no HTTP"
    ]


def test_behind_a_proxy_the_visitors_address_counts() -> None:
    import asyncio

    tally: Counter[str] = Counter()
    gate, seen = asyncio.Event(), list[int]()

    async def app(scope: object, receive: object, send: object) -> None:
        await gate.wait()

    async def asked(limited: PerVisitor, client: str) -> None:
        async def send(message: object) -> None:
            if isinstance(message, dict) and "status" in message:
                seen.append(message["status"])

        await limited({"type": "http", "client": (client, 1)}, None, send)  # type: ignore[arg-type]

    async def all_of_them() -> None:
        limited = PerVisitor(app, 2, tally)
        first = [asyncio.create_task(asked(limited, "2001:db8::1")) for _ in range(2)]
        await asyncio.sleep(0)
        await asked(limited, "2001:db8::2")  # the same network
        other = asyncio.create_task(asked(limited, "2001:db8:1::1"))
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*first, other)
        await asked(limited, "2001:db8::2")

    asyncio.run(all_of_them())
    assert seen == [503]
    assert tally == {"requests refused: too many from one address": 1}


# -- the program


def test_a_server_with_few_descriptors_outlasts_more_slow_sockets_than_it_has(tmp_path: Path) -> None:
    """By `proctor serve`, with 200 descriptors; 300 sockets from 30 addresses send half of their headers. It wrote 25 MB
    of tracebacks a minute and served nobody."""
    folder = review_folder(tmp_path / "review")
    invitations(folder)
    command = [sys.executable, "-m", "proctor", "serve", str(folder), "--port", "0"]
    limited = ["bash", "-c", 'ulimit -n 200; exec "$@"', "serve", *command]
    with subprocess.Popen(limited, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(next(line for line in process.stdout if line.startswith("Serving")).split(":")[-1].split(" ")[0])
        slow = [socket.create_connection(("127.0.0.1", port), 60, (f"127.0.1.{row % 30 + 1}", 0)) for row in range(300)]
        for one in slow:
            with suppress(ConnectionError):
                one.sendall(b"GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\nX-a: ")
        for row in range(20):
            with socket.create_connection(("127.0.0.1", port), 60, (f"127.0.2.{row + 1}", 0)) as visitor:
                visitor.sendall(b"GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                assert read_all(visitor).startswith(b"HTTP/1.1 200 ")
        for one in slow:
            one.close()
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
    assert "closed to make room" in log
    assert "Traceback" not in log
    assert len(log) < 2000


FORWARDED = {
    # --proxy, the connection's address, and the visitor's address that the pages see; * where the header is ignored
    ("127.0.0.1", "127.0.0.1"): "10.1.2.3",
    ("172.18.0.0/16", "172.18.0.5"): "10.1.2.3",
    ("172.18.0.9/16", "172.18.0.5"): "10.1.2.3",
    ("192.0.2.1, 2001:db8::7", "2001:db8::7"): "10.1.2.3",
    ("*", "203.0.113.9"): "10.1.2.3",
    ("127.0.0.1", "172.18.0.5"): "*",
    ("", "172.18.0.5"): "*",
}


@pytest.mark.parametrize(("proxy", "connection"), FORWARDED)
def test_a_proxy_that_is_not_named_is_told_of_once(
    proxy: str, connection: str, caplog: pytest.LogCaptureFixture
) -> None:
    import asyncio

    seen: list[str] = []

    async def app(scope: Any, receive: object, send: object) -> None:
        seen.append(scope["client"][0])

    served = behind(proxy_networks(proxy), app, 9, Counter())
    for _ in range(2):
        headers = [(b"x-forwarded-for", b"10.1.2.3")]
        scope = {"type": "http", "client": (connection, 5000), "headers": headers, "scheme": "http"}
        asyncio.run(served(scope, None, None))  # type: ignore[arg-type]
    asyncio.run(served({"type": "http", "client": (connection, 5000), "headers": []}, None, None))  # type: ignore[arg-type]
    expected = FORWARDED[proxy, connection]
    assert seen == [connection if expected == "*" else expected] * 2 + [connection]
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == (expected == "*")
    assert all(f"--proxy {connection}" in line for line in told)


def test_networks_narrower_than_what_is_told_apart_are_still_the_proxys() -> None:
    known = proxy_addresses(proxy_networks("2001:db8::7, 2001:db8:1:2:3::/80"))
    assert known("2001:db8::/64")
    assert known("2001:db8:1:2::/64")
    assert not known("2001:db8:9::/64")
