"""Published figures, computed again from the recorded answers; and a wrong one that was planted is found."""

from __future__ import annotations

import asyncio
import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import proctor
from proctor.core import InputError, Status, Verified, VerifiedFigure
from proctor.interchange import results_of_recorded
from proctor.judges import RUBRIC_LABELS
from proctor.tasks.rexsonovqa.native import read_recorded
from proctor.tasks.rexsonovqa.verification import _count
from tests.support.program import proctor as program


def test_all_four_papers(data: Path) -> None:
    found = proctor.verify(data)
    states = {name: [one.state.value for at, one in found.figures if at == name] for name, _ in found.figures}
    counts = {name: {state: own.count(state) for state in set(own)} for name, own in states.items()}
    assert counts == {
        "clinicalskillqa": {"same": 6, "explained": 1},
        "focus": {"same": 107},
        "mediqa-eval": {"same": 98},
        "rexsonovqa": {"same": 26, "absent": 8},
    }
    assert found.ok
    assert found.missing == ()
    by = {one.name: one for _, one in found.figures}
    assert by["Gemini 3 Pro, accuracy: correct"].ours == 97 + 68
    assert by["FBK, overall score from its parts"].ours == pytest.approx(58.8)
    assert by["ALL-en-ALL-mean"].ours == pytest.approx(by["ALL-en-ALL-mean"].published, abs=1e-9)


def test_a_call_that_failed_counts_as_the_lowest_level(data: Path) -> None:
    """Table A2 with one answer of the highest level less: the recorded calls of the fourth model failed three times."""
    benchmark = proctor.load("rexsonovqa", data / "rexsonovqa")
    recorded = read_recorded(data / "rexsonovqa" / "results" / "gemini-3-pro", benchmark)
    counted = {item.id for item in benchmark.counted()}
    best = next(
        one.item_id
        for one in recorded.scores
        if one.item_id in counted and (one.metric, one.label) == ("rubric_by_error_type", RUBRIC_LABELS[0])
    )
    answers = tuple(
        one.model_copy(update={"status": Status.FAILED, "parsed": None}) if one.item_id == best else one
        for one in recorded.answers
    )
    scores = tuple(one for one in recorded.scores if one.item_id != best)
    judgements = tuple(one for one in recorded.judgements if one.item_id != best)
    changed = replace(recorded, answers=answers, scores=scores, judgements=judgements)
    found = asyncio.run(results_of_recorded(benchmark, {"Gemini 3 Pro": changed}))
    row = next(one for one in found if (one.system, one.metric) == ("Gemini 3 Pro", "rubric_by_error_type"))
    assert [_count(row, level) for level in RUBRIC_LABELS] == [98, 29, 24, 114]


def test_a_planted_figure_of_the_script_is_found(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data / "mediqa-eval", tmp_path / "task")
    expected = tmp_path / "task" / "expected_scores_overlap.json"
    figures = json.loads(expected.read_text())
    figures["iiyi-en-overall-pearson"] += 1e-6
    expected.write_text(json.dumps(figures))
    done = program("reproduce", "--published", tmp_path, "--benchmark", "mediqa-eval", "--format", "json")
    assert done.returncode == 1
    rows = [row for row in json.loads(done.stdout) if row["state"] != "same"]
    assert [(row["figure"], row["state"]) for row in rows] == [("iiyi-en-overall-pearson", "different")]
    assert rows[0]["difference"] == pytest.approx(-1e-6, abs=1e-9)
    expected.write_text(json.dumps({"iiyi-en-overall-pearson": "high"}))
    done = program("reproduce", "--published", tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "iiyi-en-overall-pearson: found 'high', expected a number" in done.stderr


def test_a_planted_answer_is_found(data: Path, tmp_path: Path) -> None:
    """One response more that is right, and one bound of an interval that is another one."""
    task = tmp_path / "task"
    shutil.copytree(data / "focus-toolkit", task)
    summary = task / "expected_summary.csv"
    with summary.open(newline="") as lines:
        rows = list(csv.reader(lines))
    rows[3][3] = str(float(rows[3][3]) + 0.001)
    with summary.open("w", newline="") as lines:
        csv.writer(lines).writerows(rows)
    found = proctor.verify(task, "focus")
    different = [one.name for _, one in found.figures if one.state is Verified.DIFFERENT]
    assert different == [f"{rows[3][0]} {rows[3][1]}: ci_low"]
    assert not found.ok
    assert "Different" in str(found)


def test_a_folder_without_answers(tmp_path: Path) -> None:
    found = proctor.verify(tmp_path)
    assert set(found.missing) == {"focus", "mediqa-eval", "rexsonovqa"}
    assert (
        found.notes[0] == "focus: no folder holds requests.json, references.json, responses.json, expected_summary.csv."
    )
    assert {name for name, _ in found.figures} == {"clinicalskillqa"}
    with pytest.raises(InputError, match="found no such folder"):
        proctor.verify(tmp_path / "none")
    with pytest.raises(InputError, match="found 'simulated', expected one with published figures"):
        proctor.verify(tmp_path, "simulated")


@pytest.mark.parametrize(
    ("ours", "explained", "state"),
    [
        (0.66265, "", "same"),
        (0.6635, "", "same"),
        (0.66351, "", "different"),
        (0.7, "why", "explained"),
        (None, "", "absent"),
    ],
)
def test_a_figure_is_the_same_within_its_last_digit(ours: float | None, explained: str, state: str) -> None:
    assert VerifiedFigure("a", "b", 0.663, ours, 0.0005, explained).state == state
