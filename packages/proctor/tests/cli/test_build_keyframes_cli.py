"""From videos to a ranked run of key frames, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.tasks.simulated import simulate
from tests.support.program import proctor


def test_from_videos_to_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "cache"))
    videos = simulate(tmp_path / "sim", videos=3, seconds=8, fps=5, size=(256, 144), questions_per_video=1)
    task, store = tmp_path / "task", tmp_path / "runs.db"
    build = ("build", "clinicalskillqa", "--videos", videos / "videos", "--out", task)
    done = proctor(
        *(*build, "--per-video", "2", "--seconds", "3", "--frames", "4", "--scenario", "CPR"),
        *("--events", videos / "events"),
    )
    assert done.returncode == 0, done.stderr
    assert f"6 instances of 3 videos in {task}" in done.stdout
    assert "is brought in" in (task / "references.jsonl").read_text("utf-8")
    again = proctor(*build)
    assert (again.returncode, "found something there already" in again.stderr) == (1, True)
    done = proctor(
        "run", "clinicalskillqa", "--data", task, "--system", "seriation", "--system", "as-given", "--store", store
    )
    assert done.returncode == 0, done.stderr
    done = proctor(
        "results", "clinicalskillqa", "--store", store, "--condition", "video", "--format", "json", "--draws", "100"
    )
    assert done.returncode == 0, done.stderr
    rows = [row for row in json.loads(done.stdout) if row["metric"] == "up_to_reversal"]
    found = {row["system"]: row for row in rows}
    assert (found["seriation"]["n"], found["seriation"]["groups"]) == (6, 3)
    assert found["seriation"]["value"] > found["as-given"]["value"]


def test_a_scenario_that_nobody_knows(tmp_path: Path) -> None:
    done = proctor("build", "clinicalskillqa", "--videos", tmp_path, "--out", tmp_path / "o", "--scenario", "ECG")
    assert done.returncode == 1
    assert done.stderr.strip() == "proctor: scenario: found 'ECG', expected one of CPR, AED, BMV"
