"""The scorer's process: it scores apart from the worker, and its death is no fault of anybody's."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import make_url

from proctor_challenge.boards import Figures
from proctor_challenge.challenge import Challenge
from proctor_challenge.queue import Leased, claim
from proctor_challenge.scorer import ScorerError, ScorerProcess, Scoring, _Replies
from proctor_challenge.worker import Worker
from tests.support.flaky_link import flaky_link
from tests.support.hosted import opened, team
from tests.support.hosted_work import (
    COUNTING,
    TrustingExecutor,
    answer_file,
    asked_folder,
    publish_count,
    queued,
    same_code,
    score_by_count,
)
from tests.support.virtual_time import until


@pytest.fixture
def challenge(tmp_path: Path) -> Challenge:
    return opened(asked_folder(tmp_path))


@pytest.fixture
def scorer(challenge: Challenge) -> Iterator[ScorerProcess]:
    made = ScorerProcess(challenge.folder, None, COUNTING, context="forkserver")
    yield made
    made.close()


def score_and_die_once(challenge: Challenge, leased: Leased) -> Figures:
    """Is killed the first time, once it has scored."""
    found = score_by_count(challenge, leased)
    if (challenge.folder / "scores.log").read_text().count("\n") == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return found


def score_and_die(challenge: Challenge, leased: Leased) -> Figures:
    os._exit(3)


def score_and_raise(challenge: Challenge, leased: Leased) -> Figures:
    raise ValueError("no judge\nhere")


def leased_file(challenge: Challenge) -> Leased:
    queued(challenge, team(challenge), "file", answer_file(challenge.folder))
    with challenge.writing() as connection:
        found = claim(connection, "w", challenge.now(), 60)
    assert found is not None
    return found


def test_a_worker_has_its_submissions_scored_there(challenge: Challenge, scorer: ScorerProcess) -> None:
    made = queued(challenge, team(challenge), "file", answer_file(challenge.folder))
    said: list[str] = []
    worker = Worker(challenge, TrustingExecutor(), scorer, ("file",), log=said.append)
    asyncio.run(worker.work(asyncio.Event(), once=True))
    assert said[-1] == f"submission {made}: scored"
    assert scorer.pid not in {None, os.getpid()}


@pytest.mark.parametrize(
    ("score", "told"),
    [(score_and_die, "the scorer's process ended 2 times"), (score_and_raise, "ValueError: no judge here")],
)
def test_what_ends_or_breaks_is_told(challenge: Challenge, score: object, told: str) -> None:
    scoring = Scoring(score, publish_count, same_code)  # type: ignore[arg-type]
    scorer = ScorerProcess(challenge.folder, None, scoring, context="forkserver")
    with challenge.writing() as connection:
        assert claim(connection, "w", challenge.now(), 60) is None
    one = Leased(1, 1, "Hand Surgeons", "test", 1, "file", "0", ".json", "", 1, "w", 1, scoring=False)
    try:
        with pytest.raises(ScorerError, match=told):
            asyncio.run(scorer.score(one))
    finally:
        scorer.close()


def test_an_answer_that_breaks_off_is_asked_for_again(challenge: Challenge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed while it writes a long answer: its length has come, and a part of it."""
    begun = []

    def started(scorer: ScorerProcess) -> tuple[Any, Connection]:
        ours, theirs = multiprocessing.Pipe()
        begun.append(theirs)
        with socket.socket(fileno=os.dup(theirs.fileno())) as end:
            end.sendall((2**20).to_bytes(4) + b"half")
            end.shutdown(socket.SHUT_WR)
        return SimpleNamespace(is_alive=lambda: False), ours

    monkeypatch.setattr(ScorerProcess, "_started", started)
    with pytest.raises(ScorerError, match="the scorer's process ended 2 times"):
        asyncio.run(ScorerProcess(challenge.folder, None, COUNTING).fingerprint())
    assert len(begun) == 2


def test_a_scorer_that_is_killed_is_started_again(challenge: Challenge) -> None:
    made = queued(challenge, team(challenge), "file", answer_file(challenge.folder))
    scoring = Scoring(score_and_die_once, publish_count, same_code)
    scorer = ScorerProcess(challenge.folder, None, scoring, context="forkserver")
    said: list[str] = []
    try:
        worker = Worker(challenge, TrustingExecutor(), scorer, ("file",), log=said.append)
        asyncio.run(worker.work(asyncio.Event(), once=True))
    finally:
        scorer.close()
    assert said[-1] == f"submission {made}: scored"


def test_a_scorer_waits_for_its_database_and_says_so_in_one_line(
    postgres_url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    address = make_url(postgres_url)
    assert address.port is not None
    challenge = opened(asked_folder(tmp_path), store=postgres_url)
    said: list[str] = []
    with flaky_link(address.port) as link:
        link.cut()
        there = address.set(port=link.port).render_as_string(hide_password=False)
        scorer = ScorerProcess(challenge.folder, there, COUNTING, context="forkserver", tell=said.append)
        with ThreadPoolExecutor(1) as pool:
            told = pool.submit(asyncio.run, scorer.fingerprint())
            until(lambda: bool(said))
            link.mend()
            assert told.result(600) == same_code(challenge)
        scorer.close()
    challenge.close()
    (line,) = said
    assert line.startswith(f"the scorer waits for postgresql+psycopg://proctor@127.0.0.1:{link.port}/")
    assert line.endswith(", expected a database that can be reached")
    assert capfd.readouterr() == ("", "")


def test_a_database_that_stays_away_is_told_and_so_is_an_invalid_folder(
    challenge: Challenge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor_challenge.scorer.OUTAGE_S", -1.0)
    said: list[str] = []
    replies = _Replies(challenge.folder, "postgresql+psycopg://nobody@127.0.0.1:1/nothing", COUNTING, said.append)
    ok, told = replies.reply("fingerprint", None)
    assert (ok, said) == (False, [])
    assert told.endswith("expected a database that can be reached")
    (challenge.folder / "challenge.yaml").write_text("title: 3\n")
    ok, told = _Replies(challenge.folder, None, COUNTING, said.append).reply("fingerprint", None)
    assert (ok, said) == (False, [])
    assert "challenge.yaml" in told
