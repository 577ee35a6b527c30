"""A project whose run is killed again and again ends as one that never was: the same files, byte for byte."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from proctor.runs import Store
from proctor.tasks.simulated import narrate_folder, simulate
from proctor_build.pipeline import Project, run_stages
from proctor_build.pipeline.runner import Folder
from tests.support.faulty_server import FaultyServer
from tests.support.killed_child import in_a_fork

KILLS = 10


@pytest.fixture(scope="module")
def narrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = simulate(tmp_path_factory.mktemp("kill") / "sim", videos=2, seconds=20, size=(256, 144), fps=5, seed=5)
    narrate_folder(folder, 5)
    return folder


def project(folder: Path, sim: Path, url: str) -> Path:
    (folder / "sources").mkdir(parents=True)
    sources = []
    for one in sorted((sim / "videos").iterdir()):
        (folder / "sources" / one.name).symlink_to(one)
        (folder / "sources" / f"{one.stem}.vtt").symlink_to(sim / "narration" / f"{one.stem}.vtt")
        paths = {"video": f"sources/{one.name}", "transcript": f"sources/{one.stem}.vtt"}
        sources.append({"id": one.stem, **paths, "provenance": "simulated", "licence": "CC0"})
    model = {"name": "openai:m", "base_url": url, "retries": 0, "structured": "prompted"}
    settings = {
        "kind": "rexsonovqa",
        "name": "narrated",
        "models": {role: dict(model) for role in ("writer", "screen")},
        "sources": sources,
        "stages": {"events": {"overlap_s": 30}, "screen": {"seeds": 2, "alpha": 0.1}},
    }
    (folder / "project.yaml").write_text(yaml.safe_dump(settings))
    return folder


def content(folder: Path) -> dict[str, bytes]:
    files = [*(folder / "work").rglob("*.json"), *(folder / "items").rglob("*")]
    return {str(one.relative_to(folder)): one.read_bytes() for one in sorted(files) if one.is_file()}


def run(folder: Path) -> set[str]:
    return {one.state for one in asyncio.run(run_stages(Project(folder)))}


def run_and_die(folder: Path, moment: int, *, before: bool) -> bool:
    """Runs the project in a child that is killed at its `moment`th write, before or after it; whether it was."""
    left = [moment]

    def deadly(write: Any) -> Any:
        def written(*given: Any) -> Any:
            left[0] -= 1
            if left[0] == 0 and before:
                os.kill(os.getpid(), signal.SIGKILL)
            done = write(*given)
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return written

    def deadly_run() -> None:
        Store.put_judgements = deadly(Store.put_judgements)  # type: ignore[method-assign]
        Folder.write = deadly(Folder.write)  # type: ignore[method-assign]
        run(folder)

    return in_a_fork(deadly_run) == -signal.SIGKILL


def test_killed_and_resumed(tmp_path: Path, narrated: Path, server: FaultyServer) -> None:
    whole = project(tmp_path / "whole", narrated, server.url)
    assert run(whole) == {"made"}
    asked = server.count
    assert any(name.startswith("items/") for name in content(whole))

    broken = project(tmp_path / "broken", narrated, server.url)
    rng, killed = np.random.default_rng(11), 0
    for _ in range(KILLS):
        killed += run_and_die(broken, int(rng.integers(1, 7)), before=bool(rng.integers(2)))
    assert killed >= KILLS // 2  # the last ones may have found nothing left to do
    assert run(broken) <= {"made", "kept"}
    assert content(broken) == content(whole)
    assert server.count - asked <= asked + killed * 8  # what was under way when it was killed may be asked again

    before = server.count
    assert run(broken) == {"kept"}
    assert server.count == before
