"""A second server on one folder, as in an upgrade without a pause, ends nobody's upload."""

from __future__ import annotations

import signal
import socket
import threading
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from proctor_challenge.teams import TeamEntry, register_team
from tests.support.challenge_site import HIDDEN, answers, challenge_site
from tests.support.program import proctor
from tests.support.web_folder import come_in, serving
from tests.support.web_site import csrf_of

EDGE = "edge-of-a-form"


@pytest.fixture
def challenge(tmp_path: Path, postgres_url: str) -> tuple[Path, str, bytes]:
    """A folder with a team of Anna's, her invitation, and a file that fits."""
    folder = tmp_path / "challenge"
    site = challenge_site(folder, {"benchmark: focus": f"store: {postgres_url}\nbenchmark: focus"})
    done = proctor("serve", "users", "add", folder, "anna")
    assert done.returncode == 0, done.stderr
    with site.challenge.writing() as connection:
        register_team(connection, site.challenge, 1, TeamEntry("Hand Surgeons", "Clinic", "AT", site.challenge.terms))
    content = answers(site)
    site.engine.dispose()
    return folder, "/invitation/" + done.stdout.strip().rpartition("/")[2], content


def form(csrf: str, content: bytes) -> bytes:
    fields = "".join(
        f'--{EDGE}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in (("csrf", csrf), ("name", "first"))
    )
    file = f'--{EDGE}\r\ncontent-disposition: form-data; name="upload"; filename="answers.json"\r\n\r\n'
    return (fields + file).encode() + content + f"\r\n--{EDGE}--\r\n".encode()


class HalfSent:
    """An upload of which half is sent, over a connection of its own."""

    def __init__(self, address: str, client: httpx2.Client, content: bytes) -> None:
        at = urlsplit(address)
        body = form(csrf_of(client.get(f"/phase/{HIDDEN}")), content)
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in client.cookies.jar)
        head = (
            f"POST /phase/{HIDDEN}/file HTTP/1.1\r\nhost: {at.netloc}\r\ncookie: {cookies}\r\nconnection: close\r\n"
            f"content-type: multipart/form-data; boundary={EDGE}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        half = len(body) // 2
        self._rest = body[half:]
        self._socket = socket.create_connection((at.hostname or "", at.port or 0), timeout=60)
        self._socket.sendall(head.encode() + body[:half])

    def finished(self) -> bytes:
        """The answer, once the rest is sent."""
        with self._socket:
            self._socket.sendall(self._rest)
            answer = b""
            while part := self._socket.recv(65_536):
                answer += part
            return answer


def test_an_upload_outlives_a_second_server_and_the_end_of_the_first(challenge: tuple[Path, str, bytes]) -> None:
    folder, invitation, content = challenge
    uploads = folder / "uploads"
    page = {"accept": "text/html"}
    with serving(folder, "--same-user") as (first, address), httpx2.Client(base_url=address, headers=page) as client:
        come_in(client, invitation)
        upload = HalfSent(address, client, content)
        arrived(uploads)
        (left,) = uploads.glob(".incoming-*")
        (uploads / ".incoming-9-of-a-killed-process").write_bytes(b"half")
        with serving(folder, "--same-user") as (_, second), httpx2.Client(base_url=second) as other:
            assert list(uploads.glob(".incoming-*")) == [left], "what a killed process left is gone, and no other"
            other.cookies.update(dict(client.cookies))
            other.headers["accept"] = "text/html"
            files = {"upload": ("answers.json", content)}
            data = {"csrf": csrf_of(other.get(f"/phase/{HIDDEN}")), "name": "beside"}
            beside = other.post(f"/phase/{HIDDEN}/file", data=data, files=files)
            assert (beside.status_code, "still being checked" in beside.text) == (409, True), "one at a time"
            first.send_signal(signal.SIGTERM)  # it completes what it has begun
            assert upload.finished().startswith(b"HTTP/1.1 303")
            assert "/submission/1" in other.get(f"/phase/{HIDDEN}").text
    assert not list(uploads.glob(".incoming-*"))


def arrived(uploads: Path) -> None:
    """Waits until the first half has a file."""
    waiting = threading.Event()
    for _ in range(600):
        if any(uploads.glob(".incoming-*")):
            return
        waiting.wait(0.05)
    raise AssertionError("nothing arrived")
