"""From narrated videos to a log of events: what is recovered, and what is refused."""

from __future__ import annotations

import asyncio
import csv
import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import yaml

from proctor.tasks.simulated import narrate_folder, simulate
from proctor_build.pipeline import Project, run_stages
from tests.support.faulty_server import FaultyServer


@pytest.fixture(scope="module")
def narrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = simulate(tmp_path_factory.mktemp("narrated") / "sim", videos=2, seconds=30, size=(256, 144), seed=3)
    narrate_folder(folder, 3)
    return folder


def project_of(folder: Path, sim: Path, url: str, **source: Any) -> Path:
    folder.mkdir()
    (folder / "sources").symlink_to(sim)
    sources = [
        {"id": one.stem, "video": f"sources/videos/{one.name}", "transcript": f"sources/narration/{one.stem}.vtt"}
        | source
        for one in sorted((sim / "videos").iterdir())
    ]
    model = {"name": "openai:m", "base_url": url, "retries": 0, "structured": "prompted"}
    stages = {"events": {"overlap_s": 30}, "normalise": {"terms": {"spunge": "sponge"}}}
    settings = {"kind": "rexsonovqa", "models": {"writer": model}, "sources": sources, "stages": stages}
    (folder / "project.yaml").write_text(yaml.safe_dump(settings))
    return folder


def made(folder: Path, stage: str) -> list[dict[str, Any]]:
    files = sorted((folder / "work" / stage).glob("*.json"))
    return [one for file in files for one in json.loads(file.read_text())["records"]]


def refused(folder: Path, stage: str) -> list[dict[str, Any]]:
    files = sorted((folder / "work" / stage).glob("*.json"))
    return [one for file in files for one in json.loads(file.read_text())["refused"]]


def test_true_events_are_recovered(tmp_path: Path, narrated: Path, server: FaultyServer) -> None:
    folder = project_of(tmp_path / "p", narrated, server.url)
    states = asyncio.run(run_stages(Project(folder), until="events"))
    assert {one.state for one in states} == {"made"}
    found = made(folder, "events")
    truth = [
        (file.stem, row)
        for file in sorted((narrated / "narration").glob("*.csv"))
        for row in csv.DictReader(file.read_text().splitlines())
    ]
    recovered, errors = 0, []
    for name, row in truth:
        near = [
            one for one in found
            if one["source"] == name and abs(one["start"] - float(row["start"])) < 3
            and one["action"].lower().split()[:2] == row["action"].split()[:2] and one["intent"] == row["intent"]
        ]  # fmt: skip
        if near:
            recovered += 1
            best = min(near, key=lambda one: abs(one["start"] - float(row["start"])))
            errors += [abs(best["start"] - float(row["start"])), abs(best["end"] - float(row["end"]))]
    assert len(truth) >= 12
    assert recovered / len(truth) >= 0.95
    assert median(errors) < 1.0
