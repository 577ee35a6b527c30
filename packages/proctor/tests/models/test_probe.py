"""Before a run: is somebody there, at this address, with this key? Told at once, with the address."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from proctor.core import ConfigurationError
from proctor.models import reachable


@contextmanager
def serving(replies: dict[str, int]) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """A server that has a status for some paths and 404 for all others; its address, and what came."""
    came: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            came.append((self.path, self.headers.get("Authorization")))
            body = b'{"error": {"message": "the key sk-secret-key-123456789012345 is wrong"}}'
            self.send_response(replies.get(self.path, 404))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", came
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key-123456789012345")


def refused(url: str) -> str:
    with pytest.raises(ConfigurationError) as raised:
        asyncio.run(reachable([url]))
    return str(raised.value)


def test_a_server_that_answers_is_asked_once_with_the_key() -> None:
    with serving({"/v1/models": 200}) as (url, came):
        asyncio.run(reachable([f"{url}/v1", f"{url}/v1"]))
    assert came == [("/v1/models", "Bearer sk-secret-key-123456789012345")]


@pytest.mark.parametrize("status", [404, 500, 503])
def test_a_server_without_a_list_will_do(status: int) -> None:
    with serving({"/v1/models": status}) as (url, _):
        asyncio.run(reachable([f"{url}/v1"]))


def test_nobody_at_the_address() -> None:
    with serving({}) as (url, _):
        pass
    said = refused(f"{url}/v1")
    assert said.startswith(f"nobody answers at {url}/v1 (")


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_is_told_without_the_key(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"/v1/models": status}) as (url, _):
        said = refused(f"{url}/v1")
        assert said.startswith(f"{url}/v1 refuses access (HTTP {status}: ")
        assert said.endswith("expected another OPENAI_API_KEY")
        assert "sk-secret" not in said
        monkeypatch.delenv("OPENAI_API_KEY")
        assert refused(f"{url}/v1").endswith("expected OPENAI_API_KEY to be set")


@pytest.mark.parametrize("status", [200, 401])
def test_a_missing_v1_is_told(status: int) -> None:
    with serving({"/v1/models": status}) as (url, _):
        assert refused(url) == f"nothing at {url} (HTTP 404): did you mean --base-url {url}/v1?"


def test_a_server_with_another_path_will_do() -> None:
    with serving({}) as (url, came):
        asyncio.run(reachable([f"{url}/api/openai"]))
    assert [path for path, _ in came] == ["/api/openai/models", "/api/openai/v1/models"]
