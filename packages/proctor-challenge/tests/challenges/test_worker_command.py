"""`proctor worker` and `proctor challenge submission rescore`, with Proctor's own scoring."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from proctor_challenge.challenge import Challenge
from proctor_challenge.schema import boards, results, scorers
from proctor_challenge.scorer import ScorerProcess
from tests.support.hosted import opened, team
from tests.support.hosted_work import ASKED, TrustingExecutor, answer_file, asked_folder, image, queued
from tests.support.program import proctor


@pytest.fixture(autouse=True)
def _started_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scorer's process comes from one that has imported the libraries."""
    monkeypatch.setattr("proctor_challenge.worker.ScorerProcess", partial(ScorerProcess, context="forkserver"))


QUICK = ASKED + "ranking: {draws: 100, stability: 0}\n"


@pytest.fixture
def challenge(tmp_path: Path) -> Challenge:
    return opened(asked_folder(tmp_path / "trays", videos=6, settings=QUICK))


def test_no_executor_is_told(challenge: Challenge) -> None:
    done = proctor("worker", challenge.folder, PATH="/nowhere")
    assert (done.returncode, done.stderr) == (
        1,
        "proctor: found no podman, expected it in PATH; --executor process takes answer files alone\n",
    )


def test_a_corrected_reference_scores_answers_that_were_asked_and_those_of_files(
    challenge: Challenge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five keys of an image and a file are turned round: both are scored by the new ones, and nothing is asked
    again."""
    named = "proctor_challenge.worker.executor_named"
    monkeypatch.setattr(named, lambda name: (TrustingExecutor(), ("file", "image")))
    folder, mine = challenge.folder, team(challenge)
    log = folder / "asked.log"
    queued(challenge, mine, "file", answer_file(folder, 1.0))
    queued(challenge, mine, "image", image(folder, f"open({str(log)!r}, 'a').write('x')"))
    assert proctor("worker", folder, "--once").returncode == 0
    keys = folder / "sealed/test/references.json"
    known = json.loads(keys.read_text())
    for one in known[:5]:
        one["answer"] = "no" if one["answer"] == "yes" else "yes"
    yes = [sum(one["answer"] == "yes" for one in some) for some in (json.loads(keys.read_text()), known)]
    keys.write_text(json.dumps(known))
    refused = proctor("worker", folder, "--once")
    assert "expected the same, or proctor challenge submission rescore, which scores all again" in refused.stderr
    again = proctor("challenge", "submission", "rescore", folder, "--why", "five keys were wrong")
    assert again.stdout == f"Scorer version 2: 2 submissions waiting for workers (proctor worker {folder})\n", (
        again.stderr
    )
    done = proctor("worker", folder, "--once")
    assert done.stdout.count(": scored") == 2, done.stdout
    with challenge.reading() as connection:
        assert connection.execute(select(scorers.c.why)).scalars().all() == ["", "five keys were wrong"]
        assert connection.execute(select(boards.c.scorer).order_by(boards.c.id.desc()).limit(1)).scalar_one() == 2
    assert len(log.read_text()) == 60
    query = select(results.c.submission, results.c.scorer, results.c.figures).order_by(results.c.submission)
    with challenge.reading() as connection:
        found = {(row.submission, row.scorer): row.figures for row in connection.execute(query)}
    right = {one: _right(figures) for one, figures in found.items()}
    assert right == {(1, 1): 60, (1, 2): 55, (2, 1): yes[0], (2, 2): yes[1]}
    assert yes[0] != yes[1]


def _right(figures: dict[str, Any]) -> int:
    """How many answers are right, from the board whose mean is over all questions."""
    board = next(one for one in figures["boards"] if one["questions"] == 60)
    return round(float(board["mean"]) * 60)
