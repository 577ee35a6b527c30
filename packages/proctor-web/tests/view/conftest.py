"""The fixtures of tests of a view."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from proctor_web.view.server import OpenView
from tests.support.report_store import a_store
from tests.support.view_site import opened
from tests.support.web_fixtures import _one_loop, _own_cache  # noqa: F401


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with three systems under four conditions; nobody writes to it."""
    folder = tmp_path_factory.mktemp("toy")
    a_store(folder).close()
    return folder / "toy.db"


@pytest.fixture(scope="module")
def seen(toy: Path) -> Iterator[tuple[OpenView, TestClient]]:
    """A view of it, and a client."""
    with opened(toy) as both:
        yield both


@pytest.fixture
def client(seen: tuple[OpenView, TestClient]) -> TestClient:
    """A client of the view."""
    return seen[1]
