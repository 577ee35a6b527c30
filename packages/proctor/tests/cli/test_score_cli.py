"""A judge on the command line: judgements are on disk, and a second pass pays for nothing."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.faulty_server import Fault, FaultyServer
from tests.support.program import proctor, start_proctor

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


def test_a_second_judge_scores_beside_the_recorded_one(data: Path, tmp_path: Path) -> None:
    store = imported(data, tmp_path)
    with FaultyServer(VERDICT) as server:
        code, out, err = score(store, server)
        assert code == 0, err
        assert "265 answers scored by three-level[" in out
        paid = len(server.requests)
        assert err.splitlines()[-1] == f"Next: proctor results rexsonovqa --store {store}"
        assert paid == 265  # only answers to items that count are paid for
        code, out, err = score(store, server)
        assert code == 0, err
        assert "0 answers scored" in out
        assert len(server.requests) == paid
    found = rubric(store)
    second = next(row for scorer, row in found.items() if scorer.startswith("three-level["))
    assert (second["value"], second["n"], second["unscored"]) == (1.0, 265, 0)
    assert found["gemini-3-pro-preview"]["value"] == (2 * 7 + 49) / 265


def test_a_judge_that_fails_leaves_answers_unresolved_and_says_so(data: Path, tmp_path: Path) -> None:
    store = imported(data, tmp_path)
    with FaultyServer(VERDICT, faults=0.4, kinds=[Fault.SERVER_ERROR], seed=3) as server:
        code, _, err = score(store, server, "--retries", "0")
    assert code == 3
    assert "answers without a verdict" in err
    judged = next(row for scorer, row in rubric(store).items() if scorer.startswith("three-level["))
    assert (judged["value"], judged["if_excluded"], judged["n"], judged["unscored"]) == (None, 1.0, 265, 0)
    assert isinstance(judged["unresolved"], int)
    assert judged["unresolved"] > 20
    assert judged["if_wrong"] == pytest.approx((265 - judged["unresolved"]) / 265)
    with FaultyServer(VERDICT) as server:
        code, _, err = score(store, server)
        assert code == 0, err
        assert 0 < len(server.requests) < 265
    judged = next(row for scorer, row in rubric(store).items() if scorer.startswith("three-level["))
    assert (judged["n"], judged["unresolved"], judged["value"]) == (265, 0, 1.0)


def test_a_trial_judges_the_first_answers_alone(data: Path, tmp_path: Path) -> None:
    store = imported(data, tmp_path)
    with FaultyServer(VERDICT, script=[Fault.SERVER_ERROR]) as server:
        code, out, err = score(store, server, "--limit", "3", "--retries", "0", "--concurrency", "1")
        assert (code, out.splitlines()[0]) == (3, f"2 answers scored by three-level[judge-1] in {store}"), err
        assert "1 answer without a verdict (" in err
        code, out, err = score(store, server, "--limit", "3")
        assert (code, server.count) == (0, 6), err
    judged = next(row for scorer, row in rubric(store).items() if scorer.startswith("three-level["))
    assert (judged["n"], judged["unscored"], judged["unresolved"]) == (5, 260, 0)


def test_shards_at_the_same_time_judge_each_answer_once(data: Path, tmp_path: Path) -> None:
    """Three processes on one store, and one alone on another."""
    alone, shared = imported(data, tmp_path), tmp_path / "shared.db"
    with closing(sqlite3.connect(alone)) as source, closing(sqlite3.connect(shared)) as target:
        source.backup(target)
    with FaultyServer(VERDICT, latency_s=0.01) as server:
        words = ("score", "rexsonovqa", "--model", "judge-1", "--base-url", server.url, "--system", "llava")
        same = (*words, "--structured", "prompted", "--timeout", "600", "--store", shared)
        begun = [start_proctor(*same, "--shard", f"{k}/3") for k in (1, 2, 3)]
        said = [one.communicate(600) for one in begun]
        assert [one.returncode for one in begun] == [0, 0, 0], said
        assert max(Counter(one.text for one in server.requests).values()) == 1
        assert len(server.requests) == 265
        judged = [int(out.split(" answers scored")[0].splitlines()[-1]) for out, _ in said]
        assert sum(judged) == 265
        assert min(judged) > 50
        assert score(shared, server)[1].startswith("0 answers scored")
        assert score(alone, server)[0] == 0
    hashes = [proctor("results", "rexsonovqa", "--store", one, "--hash").stdout for one in (alone, shared)]
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize("shard", ["0/3", "4/3", "3", "1/0", "a/b", "1/3/5", "-1/3", "٣/٤", ""])
def test_a_shard_is_one_of_several(shard: str, tmp_path: Path) -> None:
    done = proctor("score", "b", "--store", tmp_path / "runs.db", "--model", "openai:m", "--shard", shard)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--shard {shard!r} can't be used: write K/N, with K from 1 to N, such as 2/8." in done.stderr


def test_metrics_have_no_shards(tmp_path: Path) -> None:
    done = proctor("score", "b", "--store", tmp_path / "runs.db", "--metric", "rouge-l", "--shard", "1/2")
    assert (done.returncode, done.stderr) == (2, "proctor: --shard 1/2 is for judges. Leave it out.\n")
