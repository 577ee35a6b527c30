"""A view of a store: by a client in this process, and served to a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.testclient import TestClient

from proctor_web.view.app import create_view
from proctor_web.view.server import OpenView, open_view
from tests.support.served_app import serving


@contextmanager
def opened(
    store: str | Path, *, media: Path | None = None, ask_token: bool = False
) -> Iterator[tuple[OpenView, TestClient]]:
    """A view that follows nothing by itself (`watch.look` does), and a client of it."""
    made = open_view(store, media=media, ask_token=ask_token)
    app = create_view(made.view, made.token, ("view.test",))
    client = TestClient(app, base_url="http://view.test", headers={"accept": "text/html"}, follow_redirects=False)
    try:
        yield made, client
    finally:
        client.close()
        made.view.close()


@contextmanager
def served(store: Path, *, media: Path | None = None) -> Iterator[str]:
    """The address of a view that follows the store, while the block lasts."""
    made = open_view(store, media=media)
    app = create_view(made.view, made.token, ("127.0.0.1",))
    made.view.watch.start()
    try:
        with serving(app) as address:
            yield address
    finally:
        made.view.close()
