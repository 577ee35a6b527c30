"""Rationales of a store's answers on the command line: by BERTScore without a model, and by a judge that may see the
frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support.faulty_server import FaultyServer
from tests.support.program import proctor, within

KEYS = [
    {"id": "q1", "order": ["B", "A", "C"], "rationale": "The scene is checked before the pads.", "video": "v1"},
    {"id": "q2", "order": ["A", "C", "B"], "rationale": "Compressions follow the breaths.", "video": "v2"},
    {"id": "q3", "order": ["A", "B", "C"], "rationale": "", "video": "v3"},
]
SAID = [
    {"id": "q1", "order": ["B", "A", "C"], "rationale": "The scene is checked before the pads."},
    {"id": "q2", "order": ["A", "C", "B"]},
    {"id": "q3", "order": ["A", "B", "C"], "rationale": "As they are."},
]
ASPECTS = ("coverage", "grounding", "correctness", "consistency")
VERDICT = json.dumps({name: {"reason": "because", "score": 4} for name in ASPECTS})


@pytest.fixture
def stored(tmp_path: Path) -> tuple[Path, Path]:
    folder = tmp_path / "task"
    for row, key in enumerate(KEYS):
        (folder / str(key["id"])).mkdir(parents=True)
        for number, label in enumerate("ABC"):
            picture = Image.new("RGB", (24, 16), (40 * number, 60 * row, 90))
            picture.save(folder / str(key["id"]) / f"{label}.jpg")
    (folder / "references.json").write_text(json.dumps(KEYS), encoding="utf-8")
    said = tmp_path / "said.json"
    said.write_text(json.dumps(SAID), encoding="utf-8")
    store = tmp_path / "runs.db"
    done = proctor(
        "import", "clinicalskillqa", said, "--data", folder, "--name", "mine", "--store", store
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return store, folder


def first_json(said: str) -> Any:
    """What a command printed for programs, without the notes after it."""
    return json.JSONDecoder().raw_decode(said)[0]


def rows(store: Path, start: str) -> list[dict[str, Any]]:
    done = proctor("results", "clinicalskillqa", "--store", store, "--system", "mine", "--format", "json")
    return [row for row in json.loads(done.stdout) if row["metric"].startswith(start)]


def test_bertscore_scores_rationales_without_a_model(stored: tuple[Path, Path]) -> None:
    store, _ = stored
    done = proctor("score", "clinicalskillqa", "--store", store, "--judge", "bertscore", "--system", "mine")
    assert done.returncode == 0, done.stderr
    assert "2 answers scored by bertscore[all-MiniLM-L6-v2_L5_no-idf" in done.stdout
    (row,) = rows(store, "rationale_f1")
    assert (row["value"], row["n"]) == (pytest.approx(0.5, abs=1e-6), 2)  # q1 says the same, q2 nothing
    again = proctor("score", "clinicalskillqa", "--store", store, "--judge", "bertscore", "--system", "mine")
    assert "0 answers scored" in again.stdout


def test_bertscore_says_where_there_is_nothing_to_score(tmp_path: Path, stored: tuple[Path, Path]) -> None:
    _, folder = stored
    keys = [{**key, "rationale": ""} for key in KEYS]
    (folder / "references.json").write_text(json.dumps(keys), encoding="utf-8")
    other = tmp_path / "other.db"
    done = proctor(
        "import", "clinicalskillqa", tmp_path / "said.json", "--data", folder, "--name", "mine", "--store", other
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = proctor("score", "clinicalskillqa", "--store", other, "--judge", "bertscore")
    assert done.returncode == 1
    assert done.stderr.strip().endswith("benchmark clinicalskillqa: found no reference with a rationale, expected some")


def test_a_judge_that_sees_the_frames_is_another_judge(stored: tuple[Path, Path]) -> None:
    store, folder = stored
    with FaultyServer(VERDICT) as server:
        options: list[str | Path] = [
            "score", "clinicalskillqa", "--store", store, "--judge", "rationale", "--system", "mine",
            "--model", "judge-1", "--base-url", server.url, "--structured", "prompted",
        ]  # fmt: skip
        blind = proctor(*options)
        assert blind.returncode == 0, blind.stderr
        assert {request.image_bytes for request in server.requests} == {()}
        asked = len(server.requests)
        seeing = proctor(*options, "--media", folder)
        assert seeing.returncode == 0, seeing.stderr
        shown = [len(request.image_bytes) for request in server.requests[asked:]]
    assert asked == 2  # q2 has no rationale: nothing to judge
    assert shown == [3, 3]
    judges = {row["scorer"].split("[")[0] for row in rows(store, "rationale_grounding")}
    assert judges == {"rationale", "rationale+frames"}


def test_a_judge_of_text_alone_refuses_frames(stored: tuple[Path, Path]) -> None:
    store, folder = stored
    with FaultyServer(VERDICT) as server:
        done = proctor(
            "score", "clinicalskillqa", "--store", store, "--judge", "three-level", "--model", "judge-1",
            "--base-url", server.url, "--media", folder,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.strip() == "proctor: judge three-level: found frames to see, expected none: it reads text alone"


def test_a_stored_run_gets_the_overall_score_of_the_task(stored: tuple[Path, Path]) -> None:
    """By hand: all orders are right, of two rationales one says the same and one nothing: 100 · (0.8 + 0.2 · 0.5)."""
    store, _ = stored
    asked = ("results", "clinicalskillqa", "--store", store, "--system", "mine", "--protocol", "official")
    before = proctor(*asked)
    why = "no rationale is scored yet (proctor score --judge bertscore)"
    assert f"No rationale F1 and no overall score: {why}." in before.stderr
    unscored = {row["name"]: row for row in json.loads(proctor(*asked, "--format", "json").stdout)}
    assert {(unscored[name]["value"], unscored[name]["reason"]) for name in ("rationale_f1", "overall")} == {
        (None, why)
    }
    proctor("score", "clinicalskillqa", "--store", store, "--judge", "bertscore", "--system", "mine")
    done = proctor(*asked, "--format", "json")
    assert done.returncode == 0, done.stderr
    found = {row["name"]: row for row in json.loads(done.stdout)}
    assert {name: row["value"] for name, row in found.items()} == {
        "task_accuracy": 1.0,
        "pairwise_accuracy": 1.0,
        "rationale_f1": pytest.approx(0.5, abs=1e-6),
        "overall": pytest.approx(90.0, abs=1e-4),
        "rationale_tracks_order": None,
    }
    assert found["overall"]["scorer"].startswith("bertscore[all-MiniLM-L6-v2_L5_no-idf")
    assert found["task_accuracy"]["scorer"] == ""
    corrected = proctor(*asked[:-1], "corrected")
    assert (
        corrected.stderr.strip()
        == "proctor: --protocol 'corrected' does not fit: give official, there is nothing to correct."
    )


def test_without_rationales_in_the_references_no_command_is_advised(tmp_path: Path, stored: tuple[Path, Path]) -> None:
    """`proctor score --judge bertscore` was named, and then refused for want of a reference."""
    _, folder = stored
    (folder / "references.json").write_text(json.dumps([{**key, "rationale": ""} for key in KEYS]), encoding="utf-8")
    other, said = tmp_path / "other.db", tmp_path / "said.json"
    proctor("import", "clinicalskillqa", said, "--data", folder, "--name", "mine", "--store", other)
    done = proctor("results", "clinicalskillqa", "--store", other, "--system", "mine", "--protocol", "official")
    assert "No rationale F1 and no overall score: no reference has a rationale." in done.stderr


def test_no_rationale_asked_for_is_no_zero(stored: tuple[Path, Path]) -> None:
    """A run whose answers were never asked for a reason has no F1 and no overall score; neither does a baseline."""
    store, folder = stored
    bare = folder.parent / "bare.json"
    bare.write_text(json.dumps([{"id": key["id"], "order": key["order"]} for key in KEYS]), encoding="utf-8")
    code, said = within("import", "clinicalskillqa", bare, "--data", folder, "--name", "bare", "--store", store)
    assert code == 0, said
    code, said = within("score", "clinicalskillqa", "--store", store, "--judge", "bertscore")
    assert code == 0, said
    assert "No score for bare / video" in " ".join(said.split())
    assert "random / text-only" in " ".join(said.split())
    code, said = within("results", "clinicalskillqa", "--store", store, "--format", "json")
    scored = {row["system"] for row in first_json(said) if row["metric"] == "rationale_f1"}
    assert scored == {"mine"}
    code, said = within("results", "clinicalskillqa", "--store", store, "--system", "bare", "--protocol", "official")
    assert "no rationale was asked for or kept" in said
    assert next(row.split() for row in said.splitlines() if "Overall" in row)[-3:] == ["–", "–", "–"]
    code, said = within(
        "score", "clinicalskillqa", bare, "--references", folder / "references.json", "--format", "json"
    )
    found = first_json(said)
    assert (found["rationale_f1"], found["overall"], found["reason"]) == (None, None, "no prediction has a rationale")
