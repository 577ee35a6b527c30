"""Behind a real nginx with the block of the documentation: uploads come through, and no secret is in its logs."""

from __future__ import annotations

import signal
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from proctor_challenge.teams import TeamEntry, register_team
from tests.support.challenge_site import HIDDEN, challenge_site
from tests.support.forked import Program
from tests.support.means import missing
from tests.support.nginx import Nginx, free_port, nginx_before, program
from tests.support.program import proctor
from tests.support.web_folder import come_in, invitations, review_folder, serving
from tests.support.web_site import csrf_of
from tests.web.test_serve import certificate

MIB = 2**20


@dataclass(frozen=True)
class Served:
    """A server, nginx before it, a visitor who comes by nginx, and the paths of invitations by name."""

    server: Program
    nginx: Nginx
    client: httpx2.Client
    links: dict[str, str]


@pytest.fixture
def port() -> int:
    if program() is None:
        missing("nginx is not installed")
    return free_port()


@pytest.fixture
def challenge(tmp_path: Path, port: int) -> Iterator[Served]:
    folder = tmp_path / "challenge"
    settings = {"benchmark: focus": f"address: https://localhost:{port}\nuploads: {{file: 8m}}\nbenchmark: focus"}
    site = challenge_site(folder, settings)
    links = {name: invitation(folder, name) for name in ("anna", "ben")}
    with site.challenge.writing() as connection:
        register_team(connection, site.challenge, 1, TeamEntry("Hand Surgeons", "Clinic", "AT", site.challenge.terms))
    site.engine.dispose()
    yield from behind_nginx(tmp_path, port, folder, links, "--same-user")


@pytest.fixture
def review(tmp_path: Path, port: int) -> Iterator[Served]:
    folder = review_folder(tmp_path / "review", more=f"address: https://localhost:{port}\n")
    yield from behind_nginx(tmp_path, port, folder, invitations(folder))


def invitation(folder: Path, name: str) -> str:
    done = proctor("serve", "users", "add", folder, name)
    assert done.returncode == 0, done.stderr
    return "/invitation/" + done.stdout.strip().rpartition("/")[2]


def behind_nginx(tmp_path: Path, port: int, folder: Path, links: dict[str, str], *more: str) -> Iterator[Served]:
    files = certificate(tmp_path)
    trusting = ssl.create_default_context(cafile=str(files[0]))
    with (
        serving(folder, "--proxy", "127.0.0.1", *more) as (server, address),
        nginx_before(address, tmp_path / "nginx", files, port) as nginx,
        httpx2.Client(base_url=nginx.address, headers={"accept": "text/html"}, verify=trusting, timeout=60) as client,
    ):
        yield Served(server, nginx, client, links)


def submit(client: httpx2.Client, content: bytes) -> httpx2.Response:
    csrf = csrf_of(client.get(f"/phase/{HIDDEN}"))
    files = {"upload": ("answers.json", content)}
    return client.post(f"/phase/{HIDDEN}/file", data={"csrf": csrf, "name": "first"}, files=files)


def test_a_challenge_takes_uploads_and_says_the_limit(challenge: Served) -> None:
    come_in(challenge.client, challenge.links["anna"])
    taken = submit(challenge.client, b"[" + b"1," * (5 * MIB // 2) + b"1]")
    assert (taken.status_code, taken.headers["location"]) == (303, "/submission/1")
    refused = submit(challenge.client, b"x" * (9 * MIB))
    assert (refused.status_code, "at most 8 MiB are accepted here" in refused.text) == (413, True)
    assert "buffered to a temporary file" not in challenge.nginx.logs()


def test_a_review_is_served_and_no_log_has_the_secret_of_an_invitation(review: Served) -> None:
    page = review.client.get(review.links["anna"])
    assert page.headers["referrer-policy"] == "strict-origin"
    come_in(review.client, review.links["anna"])
    assert "0 of 6 submitted" in review.client.get("/").text
    assert review.client.get(review.links["ben"] + "x").status_code == 404
    review.server.send_signal(signal.SIGKILL)
    review.server.communicate(60)
    assert review.client.get(review.links["ben"]).status_code == 502, "nginx logs what it could not hand on"
    assert review.client.get("/").status_code == 502
    logged = review.nginx.logs()
    assert '"GET / HTTP/1.1" 200' in logged
    assert "connect() failed" in logged
    for link in review.links.values():
        assert link.rpartition("/")[2] not in logged
