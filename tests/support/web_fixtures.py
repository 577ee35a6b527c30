"""Passwords of tests are hashed in a millisecond, their media are kept apart, and their requests share an event
loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from argon2 import PasswordHasher
from starlette.testclient import TestClient

from proctor_web.review import ReviewSite
from tests.support.web_site import site


@pytest.fixture(autouse=True, scope="session")
def _quick_hashes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("proctor_web.accounts._HASHER", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        yield


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROCTOR_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True, scope="session")
def _one_loop() -> Iterator[None]:
    with start_blocking_portal() as portal, pytest.MonkeyPatch.context() as patch:
        patch.setattr(TestClient, "portal", portal)
        yield


@pytest.fixture(scope="module")
def without_threads() -> Iterator[None]:
    """Routes run in the event loop's own thread, for requests that come one after the other by the thousand: waking
    another thread twice for each takes as long as the answer."""

    async def here(function: Callable[..., object], /, *given: object, **named: object) -> object:
        return function(*given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastapi.routing.run_in_threadpool", here)
        patch.setattr("fastapi.dependencies.utils.run_in_threadpool", here)
        yield


@pytest.fixture
def review(tmp_path: Path) -> Iterator[ReviewSite]:
    """An empty review on SQLite, under http://review.test."""
    made = site(tmp_path)
    yield made
    made.engine.dispose()
