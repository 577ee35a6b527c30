"""A judge on the command line: votes are on disk, and a second pass pays for nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.faulty_server import Fault, FaultyServer
from tests.support.program import proctor

VERDICT = json.dumps(
    {"score": 1, "error_type": "wrong_conclusion", "explanation": "The sweep is right, its goal is not."}
)


def imported(data: Path, tmp_path: Path) -> Path:
    tree, store = data / "rexsonovqa", tmp_path / "runs.db"
    done = proctor(
        "import",
        "rexsonovqa",
        tree / "results" / "llava-video-72b",
        "--data",
        tree,
        "--name",
        "llava",
        "--store",
        store,
    )
    assert done.returncode == 0, done.stderr
    return store


def score(store: Path, server: FaultyServer, *more: str) -> tuple[int, str, str]:
    done = proctor(
        "score", "rexsonovqa", "--store", store, "--model", "judge-1", "--base-url", server.url, "--system", "llava",
        "--structured", "prompted", "--concurrency", "16", "--timeout", "600", *more,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def rubric(store: Path) -> dict[str, dict[str, object]]:
    done = proctor("results", "rexsonovqa", "--store", store, "--system", "llava", "--format", "json", "--draws", "100")
    return {row["scorer"]: row for row in json.loads(done.stdout) if row["metric"] == "rubric"}


def test_a_second_judge_marks_beside_the_recorded_one(data: Path, tmp_path: Path) -> None:
    store = imported(data, tmp_path)
    with FaultyServer(VERDICT) as server:
        code, out, err = score(store, server)
        assert code == 0, err
        assert "265 answers marked by three-level[" in out
        paid = len(server.requests)
        assert err.splitlines()[-1] == f"Next: proctor results rexsonovqa --store {store}"
        assert paid == 265  # only answers to items that count are paid for
        code, out, err = score(store, server)
        assert code == 0, err
        assert "0 answers marked" in out
        assert len(server.requests) == paid
    found = rubric(store)
    second = next(row for scorer, row in found.items() if scorer.startswith("three-level["))
    assert (second["value"], second["n"], second["unmarked"]) == (1.0, 265, 0)
    assert found["gemini-3-pro-preview"]["value"] == (2 * 7 + 49) / 265


def test_a_judge_that_fails_leaves_answers_unresolved_and_says_so(data: Path, tmp_path: Path) -> None:
    store = imported(data, tmp_path)
    with FaultyServer(VERDICT, faults=0.4, kinds=[Fault.SERVER_ERROR], seed=3) as server:
        code, _, err = score(store, server, "--retries", "0")
    assert code == 3
    assert "answers have no verdict" in err
    judged = next(row for scorer, row in rubric(store).items() if scorer.startswith("three-level["))
    assert (judged["value"], judged["if_excluded"], judged["n"], judged["unmarked"]) == (None, 1.0, 265, 0)
    assert isinstance(judged["unresolved"], int)
    assert judged["unresolved"] > 20
    assert judged["if_wrong"] == pytest.approx((265 - judged["unresolved"]) / 265)
    with FaultyServer(VERDICT) as server:
        code, _, err = score(store, server)
        assert code == 0, err
        assert 0 < len(server.requests) < 265
    judged = next(row for scorer, row in rubric(store).items() if scorer.startswith("three-level["))
    assert (judged["n"], judged["unresolved"], judged["value"]) == (265, 0, 1.0)
