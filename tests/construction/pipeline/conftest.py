"""What tests of projects share: a short film, and a server that does by rule what a good model does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.tasks.simulated import simulate
from tests.support.faulty_server import FaultyServer
from tests.support.scribe import scribe


@pytest.fixture(scope="session")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate(tmp_path_factory.mktemp("film") / "sim", videos=1, seconds=25, size=(256, 144), fps=5, seed=1)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with FaultyServer(scribe) as running:
        yield running
