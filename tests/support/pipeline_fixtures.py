"""What tests of projects share: a short film, and a server that does by rule what a good model does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

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


@pytest.fixture
def one_source(tmp_path: Path, film: Path, server: FaultyServer) -> Path:
    """A project of one video with a written log of six events."""
    from tests.construction.pipeline.test_questions import events_csv

    root = tmp_path / "liver"
    (root / "sources").mkdir(parents=True)
    (root / "sources" / "a.mp4").symlink_to(film / "videos" / "sim-000.mp4")
    (root / "sources" / "a.vtt").write_text("WEBVTT\n\n00:00.000 --> 00:03.000\nWe begin.\n")
    (root / "sources" / "a.csv").write_text(events_csv(6))
    model = {"name": "openai:m", "base_url": server.url, "retries": 0, "structured": "prompted"}
    settings = {
        "kind": "rexsonovqa",
        "models": {"writer": {**model}, "screen": {**model}},
        "sources": [{"id": "a", "video": "sources/a.mp4", "transcript": "sources/a.vtt", "events": "sources/a.csv"}],
        "stages": {"normalise": {"model": False}, "questions": {"free_share": 0.0, "per_event": 1.0, "per_minute": 0}},
    }
    (root / "project.yaml").write_text(yaml.safe_dump(settings))
    return root
