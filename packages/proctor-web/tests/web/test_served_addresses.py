"""The address that a server says."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import proctor_web
from proctor_web import commands
from tests.support.program import proctor


@pytest.mark.parametrize(
    ("host", "more", "address"),
    [("::1", (), "http://[::1]:8123"), ("localhost", ("--tls-cert", "c.pem", "--tls-key", "k.pem"), "https://localhost:8123")],
)  # fmt: skip
def test_the_address_of_a_server_is_one_that_can_be_opened(
    host: str, more: tuple[str, ...], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[Any] = []
    listening = SimpleNamespace(getsockname=lambda: (host, 8123))

    @contextlib.contextmanager
    def bound(_: Any) -> Iterator[Any]:
        yield listening

    monkeypatch.setattr(proctor_web, "bound", bound)
    monkeypatch.setattr(proctor_web, "serve", lambda *given: served.append(given))
    monkeypatch.setattr(commands, "_opened", lambda *_, **__: SimpleNamespace(title="my review"))
    done = proctor("serve", "folder", "--host", host, *more)
    assert (done.returncode, done.stdout) == (0, f"Serving my review at {address} (Ctrl+C stops)\n")
    ((_, how, sockets),) = served
    assert (how.host, how.port, sockets) == (host, 8000, [listening])
