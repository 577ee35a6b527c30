"""`proctor demo`: everything on simulated videos, and nothing twice."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from proctor import api
from proctor.cli import demo
from proctor.runs import Store
from tests.support.program import proctor


def test_the_demo_runs_and_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, seeds = tmp_path / "demo", []
    for name in ("rank", "report"):
        function = getattr(api, name)

        def noted(*args: Any, _function: Any = function, **named: Any) -> Any:
            seeds.append(named.get("seed"))
            return _function(*args, **named)

        monkeypatch.setattr(api, name, noted)
    first = proctor("demo", "--videos", "2", "--seed", "5", "--out", out)
    assert first.returncode == 0, first.stderr
    for page in ("report.html", "key-frames.html"):
        assert "</html>" in (out / page).read_text(encoding="utf-8")[-20:]
    assert seeds == [5, 5, 5]  # the ranking and both reports
    boards = first.stdout.split("\n\n")
    conditions = ("video", "text-only", "black", "shuffled")
    for row, condition in enumerate(conditions):
        assert boards[row].startswith(
            f"Simulated procedures (rendered, not real): Accuracy under {condition}, 24 items"
        )
    assert boards[4].startswith("All questions (24 in 2 groups)")
    assert [board.split(": ")[1].split(" under")[0] for board in boards[5:7]] == [
        "key frames in order (of rendered videos, not real)", "key frames in order (of rendered videos, not real)",
    ]  # fmt: skip
    assert ["Accuracy under video, 12 items" in boards[5], "Pairwise accuracy under video, 12 items" in boards[6]] == [
        True, True,
    ]  # fmt: skip
    known = json.loads((out / "key-frames" / "about.json").read_text())
    assert (known["videos"], known["events"], known["seed"], known["seconds"]) == (2, True, 5, 3.0)
    store = Store(out / "demo.db", create=False)
    asked = {
        name: [(run.condition, *store.count_answers(run)) for run in store.runs(name)]
        for name in store.benchmark_names()
    }
    store.close()
    assert {name: {condition for condition, *_ in runs} for name, runs in asked.items()} == {
        "simulated": {"video", "text-only", "black", "shuffled"}, "clinicalskillqa": {"video"},
    }  # fmt: skip
    assert all(failed == 0 < answered for runs in asked.values() for _, answered, failed in runs)
    made = [file.stat().st_mtime_ns for folder in ("simulated", "key-frames") for file in (out / folder).rglob("*.*")]

    again = proctor("demo", "--videos", "2", "--seed", "5", "--out", out)
    assert again.returncode == 0, again.stderr
    assert "is there already and is used as it is." in again.stderr
    assert again.stderr.count("answers there already; 0 to ask.") == 2
    assert made == [f.stat().st_mtime_ns for folder in ("simulated", "key-frames") for f in (out / folder).rglob("*.*")]

    other = proctor("demo", "--videos", "3", "--seed", "5", "--out", out)
    assert (other.returncode, other.stdout) == (1, "")
    assert "found seed 5, 2 videos, expected seed 5, 3 videos: take another --out" in " ".join(other.stderr.split())


def test_without_the_extra_of_optical_flow_the_demo_leaves_one_system_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo._ordering_systems() == demo.ORDERING_SYSTEMS
    monkeypatch.setitem(sys.modules, "cv2", None)
    assert demo._ordering_systems() == ("random", "as-given", "classical-vision")
    told = "Left out: seriation needs the extra 'vision': pip install 'proctor-eval[vision]'\n"
    assert capsys.readouterr().err == told
