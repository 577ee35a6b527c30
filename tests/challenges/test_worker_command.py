"""`proctor worker` and `proctor challenge rerun`, with Proctor's own marking."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select

from proctor.challenges.challenge import Challenge
from proctor.challenges.schema import boards, results, scorers, submissions
from proctor.challenges.scorer import ScorerProcess
from proctor.challenges.states import SubmissionState
from tests.support.hosted import opened, team
from tests.support.hosted_work import ASKED, answer_file, asked_folder, queued
from tests.support.program import proctor


@pytest.fixture(autouse=True)
def _started_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scorer's process comes from one that has imported the libraries."""
    monkeypatch.setattr("proctor.challenges.working.ScorerProcess", partial(ScorerProcess, context="forkserver"))


QUICK = ASKED + "ranking: {draws: 100, stability: 0}\n"


@pytest.fixture
def challenge(tmp_path: Path) -> Challenge:
    return opened(asked_folder(tmp_path / "trays", videos=6, settings=QUICK))


def test_a_file_is_marked_and_marked_again_by_another_scorer(challenge: Challenge) -> None:
    folder = challenge.folder
    queued(challenge, team(challenge), "file", answer_file(folder, 0.8))
    done = proctor("worker", folder, "--executor", "process", "--once")
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["submission 1: scored"]), done.stderr
    rules = folder / "challenge.yaml"
    rules.write_text(rules.read_text().replace("attempted: 30", "attempted: 31"))
    refused = proctor("worker", folder, "--executor", "process", "--once")
    assert refused.returncode == 1
    assert "expected the same, or proctor challenge rerun, which marks all again" in refused.stderr
    again = proctor("challenge", "rerun", folder, "--why", "a rule changed")
    assert again.stdout == f"Scorer version 2: 1 submissions wait for workers (proctor worker {folder})\n", again.stderr
    done = proctor("worker", folder, "--executor", "process", "--once")
    assert done.returncode == 0, done.stderr
    with challenge.reading() as connection:
        assert connection.execute(select(submissions.c.state)).scalar_one() == SubmissionState.SCORED
        assert connection.execute(select(results.c.scorer)).scalars().all() == [1, 2]
        assert connection.execute(select(scorers.c.why)).scalars().all() == ["", "a rule changed"]
        assert connection.execute(select(boards.c.scorer)).scalars().all() == [1, 2]


def test_no_executor_is_told(challenge: Challenge) -> None:
    done = proctor("worker", challenge.folder, PATH="/nowhere")
    assert (done.returncode, done.stderr) == (
        1,
        "proctor: found no podman, expected it in PATH; --executor process takes answer files alone\n",
    )
