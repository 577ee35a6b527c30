"""ClinicalSkillQA on the command line, from a participant's side: run without references, hand in, validate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support.faulty_server import FaultyServer
from tests.support.program import within

KEYS = [
    {"id": "i01", "order": [*"DBAC"], "rationale": "First the scene, then the chest is bared.", "video": "v1"},
    {"id": "i02", "order": [*"BADC"], "rationale": "The pads are placed before the shock.", "video": "v2"},
    {"id": "i03", "order": [*"ABCD"], "rationale": "The mask is on before the bag is squeezed.", "video": "v3"},
]
REPLIES = [
    "Rationale: First the scene, then the chest is bared.\nAnswer: D > B > A > C",
    "Rationale: The pads come before the shock.\nAnswer: B > A > D",
    "I can't tell.",
]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    folder = tmp_path / "task"
    for position, key in enumerate(KEYS):
        (folder / str(key["id"])).mkdir(parents=True)
        for number, label in enumerate("ABCD"):
            picture = Image.new("RGB", (24, 16), (40 * number, 60 * position, 90))
            picture.save(folder / str(key["id"]) / f"{label}.jpg")
    return folder


def with_references(task: Path) -> Path:
    file = task / "references.json"
    file.write_text(json.dumps(KEYS), encoding="utf-8")
    return file


def first_json(said: str) -> Any:
    """What a command printed for programs, without the notes after it."""
    return json.JSONDecoder().raw_decode(said)[0]


def asked(task: Path, store: Path) -> str:
    """A run of a model whose replies go by the instance."""
    replies = iter(REPLIES)
    with FaultyServer(lambda _: next(replies)) as server:
        code, said = within(
            "run", "clinicalskillqa", "--data", task, "--model", "m", "--base-url", server.url,
            "--store", store, "--concurrency", "1",
        )  # fmt: skip
    assert code == 0, said
    return said


def test_without_references_a_run_is_kept_and_scored_when_they_come(task: Path, tmp_path: Path) -> None:
    """Nobody stops a participant, who never has them: what needs them is skipped, and the answers can be handed in."""
    store = tmp_path / "runs.db"
    said = " ".join(asked(task, store).split())
    assert "majority (no references)" in said
    assert "longest-option (unsupported answer format)" in said
    out = tmp_path / "mine.jsonl"
    code, said = within(
        "export", "clinicalskillqa", "--format", "submission", "--store", store, "--system", "m", "--out", out
    )
    assert code == 0, said
    entries = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert entries == [
        {"id": "i01", "order": [*"DBAC"], "rationale": "First the scene, then the chest is bared."},
        {"id": "i02", "order": [*"BAD"], "rationale": "The pads come before the shock."},
        {"id": "i03", "order": [], "rationale": entries[2]["rationale"]},
    ]
    code, said = within("check", "clinicalskillqa", out, "--data", task)
    assert code == 3
    assert "wrong: missing-label: item 'i02': found" in said
    code, said = within("score", "clinicalskillqa", out, "--references", with_references(task), "--format", "json")
    assert code == 0, said
    assert (first_json(said)["items"], first_json(said)["task_accuracy"]) == (3, 1 / 3)


def test_a_submission_scores_as_its_run_does(task: Path, tmp_path: Path) -> None:
    """The round trip: what leaves the store is read back with the same figures, F1 and overall among them."""
    keys, store, out = with_references(task), tmp_path / "runs.db", tmp_path / "mine.json"
    asked(task, store)
    code, said = within("score", "clinicalskillqa", "--judge", "bertscore", "--store", store, "--system", "m")
    assert code == 0, said
    code, said = within(
        "results", "clinicalskillqa", "--protocol", "official", "--store", store, "--system", "m", "--format", "json"
    )
    own = {row["name"]: row for row in first_json(said)}
    assert own["overall"]["invalid"] == 1
    within("export", "clinicalskillqa", "--format", "submission", "--store", store, "--system", "m", "--out", out)
    code, said = within("score", "clinicalskillqa", out, "--references", keys, "--format", "json")
    assert code == 0, said
    found = first_json(said)
    for name in ("task_accuracy", "pairwise_accuracy", "rationale_f1", "overall"):
        assert found[name] == pytest.approx(own[name]["value"]), name
    assert found["invalid"]["pairwise_accuracy_partial"] == pytest.approx(own["pairwise_partial"]["value"])
    assert 20 < found["overall"] < 60


def test_tables_hold_the_runs_that_are_named(task: Path, tmp_path: Path) -> None:
    with_references(task)
    store, out = tmp_path / "runs.db", tmp_path / "rows.jsonl"
    asked(task, store)
    code, said = within("export", "clinicalskillqa", "--store", store, "--system", "m", "--out", out)
    assert code == 0, said
    assert {json.loads(line)["system"] for line in out.read_text(encoding="utf-8").splitlines()} == {"m"}
    code, said = within("export", "clinicalskillqa", "--store", store, "--system", "x", "--out", out)
    assert (code, "no run with the system 'x'" in said) == (1, True)
    code, said = within(
        "export", "clinicalskillqa", "--store", store, "--format", "submission", "--system", "m", "--out",
        tmp_path / "mine.csv",
    )  # fmt: skip
    assert (code, "found the ending '.csv', expected .jsonl or .json" in said) == (1, True)


def test_lint_groups_what_is_wrong(task: Path, tmp_path: Path) -> None:
    file = tmp_path / "said.jsonl"
    rows: list[dict[str, Any]] = [
        {"id": "i01", "order": [*"DBA"], "rationale": "why"},
        {"id": "i01", "order": [*"DBAC"], "rationale": "why"},
        {"id": "i02", "order": "B > A > A > D > C > Z"},
        {"id": "i09", "order": [*"DBAC"], "rationale": "why"},
        {"order": [*"DBAC"]},
    ]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    code, said = within("check", "clinicalskillqa", file, "--data", task)
    assert code == 1
    lines = said.splitlines()
    assert [": ".join(line.split(": ")[:2]) for line in lines[:-1]] == [
        "error: entry",
        "error: duplicate",
        "error: unknown",
        "wrong: no-answer",
        "wrong: missing-label",
        "wrong: repeated-label",
        "wrong: unknown-label",
        "warning: no-rationale",
    ]
    assert lines[4] == ("wrong: missing-label: item 'i01': found C missing, expected each label of the instance once")
    assert lines[-1] == "5 answers to 3 instances: 3 errors, 3 counted as wrong, 1 warning"
    code, said = within("check", "clinicalskillqa", file, "--data", task, "--format", "json")
    assert (code, first_json(said)["errors"], first_json(said)["wrong"]) == (1, 3, 3)
    rows = [{key: value for key, value in one.items() if key != "video"} for one in KEYS]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert within("check", "clinicalskillqa", file, "--data", task)[0] == 0


def test_lint_shows_three_of_many(task: Path, tmp_path: Path) -> None:
    file = tmp_path / "said.json"
    rows = [{"id": f"x{number}", "order": "A > B", "rationale": "why"} for number in range(7)]
    file.write_text(json.dumps([*rows, *KEYS]), encoding="utf-8")
    code, said = within("check", "clinicalskillqa", file, "--data", task)
    line = said.splitlines()[0]
    assert code == 1
    assert line.startswith("error: unknown: 7 times: expected an instance of the folder; found item 'x0': entry 1;")
    assert line.endswith("and 4 more (--all)")
    lines = within("check", "clinicalskillqa", file, "--data", task, "--all")[1].splitlines()
    assert sum(line.startswith("error: unknown: ") for line in lines) == 7


def test_every_share_of_pairs_has_one_interval_in_every_output(tmp_path: Path) -> None:
    """Twelve orders on four videos, half of them invalid: `results`, `--protocol official` and `score` say the same to
    the last digit, with and without partial credit."""
    task, store = tmp_path / "task", tmp_path / "runs.db"
    keys, given = [], []
    said = ["BADCEF", "ABC", "AABCD", "ABCZ", "DCBA", "ABDC", "FEDCBA", "ACBDEF", "", "ABCDE", "ABCD", "BCD"]
    for position, order in enumerate(said):
        name, labels = f"i{position:02d}", "ABCDEF"[: 4 + 2 * (position % 2)]
        (task / name).mkdir(parents=True)
        for number, label in enumerate(labels):
            Image.new("RGB", (24, 16), (40 * number, 20 * position, 90)).save(task / name / f"{label}.jpg")
        scenario = ("CPR", "AED")[position % 5 > 2]
        keys.append({"id": name, "order": [*labels], "video": f"v{position // 3}", "scenario": scenario})
        given.append({"id": name, "order": [*order]})
    (task / "references.json").write_text(json.dumps(keys), encoding="utf-8")
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(given), encoding="utf-8")
    code, told = within("import", "clinicalskillqa", file, "--data", task, "--name", "mine", "--store", store)
    assert code == 0, told
    asked_for = ("results", "clinicalskillqa", "--store", store, "--system", "mine", "--format", "json")
    results = {row["metric"]: row for row in first_json(within(*asked_for)[1])}
    official = {row["name"]: row for row in first_json(within(*asked_for, "--protocol", "official")[1])}
    for invalid, name in (("wrong", "pairwise_accuracy"), ("partial", "pairwise_partial")):
        scored = within(
            "score", "clinicalskillqa", file, "--references", task / "references.json",
            "--option", f"invalid={invalid}", "--format", "json",
        )  # fmt: skip
        whole = {row["metric"]: row for row in first_json(scored[1])["results"] if row["by"] == "all"}
        found = [results[name], official[name], whole["pairwise_accuracy"]]
        numbers = [(row["value"], row["ci_low"], row["ci_high"]) for row in found]
        assert numbers[0] == numbers[1] == numbers[2], name
        assert numbers[0][1] < numbers[0][0] < numbers[0][2]
        parts = {
            row["value_of"]: row for row in first_json(scored[1])["results"] if row["metric"] == "pairwise_accuracy"
        }
        by_scenario = first_json(within(*asked_for, "--by", "scenario")[1])
        for row in by_scenario:
            if row["metric"] == name:
                one = parts[row["facets"]["scenario"]]
                assert [row[end] for end in ("value", "ci_low", "ci_high")] == [
                    one[end] for end in ("value", "ci_low", "ci_high")
                ]
        assert len(by_scenario) > 2
    exact = (official["task_accuracy"], whole["task_accuracy"], results["accuracy"])
    assert len({(row["value"], row["ci_low"], row["ci_high"]) for row in exact}) == 1
    assert results["pairwise_partial"]["value"] > results["pairwise_accuracy"]["value"] + 0.1
