"""Boards as shown: those of `proctor rank` on the same answers, rounded, and each visitor's part of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from proctor_challenge.board_pages import (
    board_tables,
    board_version,
    counted_submissions,
    leaders,
    passed_gate,
    publish,
    visible_boards,
)
from proctor_challenge.challenge import Challenge
from proctor_challenge.queue import Leased, claim
from proctor_challenge.schema import scorers, submissions, teams
from proctor_challenge.scoring import keep_figures, keep_result, rerun_all, score_submission, scorer_version
from proctor_challenge.settings import ChallengeSettings, Gate
from proctor_challenge.submissions import disqualify
from proctor_challenge.teams import withdraw_team
from proctor_challenge.worker import Worker
from tests.support.hosted import team
from tests.support.hosted_work import DirectScorer, TrustingExecutor
from tests.support.program import proctor
from tests.support.scored_challenge import PHASE, Hosted, copied

SKILLS = {"Alpha": 0.9, "Beta": 0.6, "Gamma": 0.62, "Delta": 0.3}
NOW = datetime(2026, 11, 23, tzinfo=UTC)


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    found = Hosted(tmp_path_factory.mktemp("boards") / "c")
    for name, skill in SKILLS.items():
        found.submit(team(found.challenge, name), skill)
    publish(found.challenge, PHASE)
    yield found
    found.challenge.close()


@pytest.fixture
def own(hosted: Hosted, tmp_path: Path) -> Iterator[Challenge]:
    """A challenge that a test may change."""
    found = copied(hosted.challenge, tmp_path / "c")
    yield found
    found.close()


def seen(challenge: Challenge, visitor: Any = "public", **more: Any) -> Any:
    settings = more.pop("settings", challenge.settings)
    with challenge.reading() as connection:
        return visible_boards(connection, settings, PHASE, visitor, more.pop("now", NOW), **more)


def ranked(challenge: Challenge, *systems: str) -> list[dict[str, Any]]:
    """What `proctor rank` prints of the same answers."""
    words = [word for name in systems for word in ("--system", name)]
    command: list[str | Path] = [
        "rank",
        "focus",
        "--store",
        challenge.folder / f"sealed/{PHASE}.sqlite",
        "--condition",
        "text-only",
    ]
    drawn = ["--draws", "200", "--stability", "20", "--latency", "optional", "--baseline", "plain", "--format", "json"]
    found = proctor(*command, *drawn, *words)
    assert found.returncode == 0, found.stderr
    boards: list[dict[str, Any]] = json.loads(found.stdout)
    return boards


def test_boards_equal_rank_on_the_same_answers(hosted: Hosted) -> None:
    shown = seen(hosted.challenge)["boards"]
    theirs = ranked(hosted.challenge, *(f"{name}#1" for name in SKILLS))
    assert [one["name"] for one in shown] == [one["board"] for one in theirs] == ["technical", "clinical"]
    for mine, other in zip(shown, theirs, strict=True):
        assert (mine["facts"]["questions"], mine["facts"]["groups"]) == (other["questions"], other["groups"])
        assert [one["name"] for one in mine["rows"]] == [one["system"].removesuffix("#1") for one in other["systems"]]
        for row, system in zip(mine["rows"], other["systems"], strict=True):
            for field in ("rank", "score", "won", "lost", "tied", "rank_by_mean", "rank_low", "rank_high", "baseline"):
                assert row[field] == system[field]
            for field in ("mean", "win_rate", "p_first"):
                assert row[field] == (None if system[field] is None else round(system[field], 3))
            assert row["below_line"] == system["below_line"]
            assert row["advances"] == system["advances"]
            assert row["chances"] == (
                None if system.get("chances") is None else [round(x, 3) for x in system["chances"]]
            )


def test_who_is_better_stands_before_and_the_baseline_has_no_place(hosted: Hosted) -> None:
    technical = seen(hosted.challenge)["boards"][0]["rows"]
    assert technical[0]["name"] == "Alpha"
    assert (technical[-1]["name"], technical[-1]["rank"], technical[-1]["baseline"]) == ("plain", None, True)
    below = {row["name"] for row in technical[:-1] if row["below_line"]}
    assert below == {"Delta"}
    assert all(row["low"] < row["mean"] < row["high"] for row in technical)


def test_numbers_are_rounded_and_no_question_is_named(hosted: Hosted) -> None:
    content = seen(hosted.challenge, "organiser")
    text = json.dumps(content)
    assert "v00" not in text
    assert "q01" not in text

    def floats(value: Any) -> Iterator[float]:
        if isinstance(value, float):
            yield value
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from floats(one)

    assert all(round(one, 3) == one for one in floats(content["boards"]))


def test_what_the_phase_has_given_away_is_the_organiser_s_to_see(hosted: Hosted) -> None:
    assert "given_away" not in seen(hosted.challenge)
    assert "given_away" not in seen(hosted.challenge, "participant")
    told = seen(hosted.challenge, "organiser")["given_away"]
    assert [(row["who"], row["results"]) for row in told["rows"]] == [("one team", 1), ("all teams", 4)]
    alone, together = told["rows"]
    assert abs(alone["all"]["luck"]["optimism"]) < 4 * alone["all"]["luck"]["error"]
    assert together["all"]["luck"]["optimism"] > 4 * together["all"]["luck"]["error"]
    assert together["ladder"]["luck"]["optimism"] < together["all"]["luck"]["optimism"]


def test_who_sees_the_boards_and_when(hosted: Hosted) -> None:
    phase = hosted.challenge.settings.phase(PHASE)

    def settings(**results: Any) -> ChallengeSettings:
        changed = phase.model_copy(update={"results": phase.results.model_copy(update=results)})
        return hosted.challenge.settings.model_copy(update={"phases": (changed,)})

    for audience, allowed in (("public", 3), ("participants", 2), ("organisers", 1)):
        found = [
            seen(hosted.challenge, visitor, settings=settings(boards=audience)) is not None
            for visitor in ("organiser", "participant", "public")
        ]
        assert found == [True] * allowed + [False] * (3 - allowed)
    embargo = settings(shown_from=datetime(2026, 12, 1, tzinfo=UTC))
    assert seen(hosted.challenge, "participant", settings=embargo) is None
    assert seen(hosted.challenge, "organiser", settings=embargo) is not None
    assert seen(hosted.challenge, settings=embargo, now=datetime(2026, 12, 1, tzinfo=UTC)) is not None


def changed_team(challenge: Challenge, name: str, **values: Any) -> None:
    with challenge.writing() as connection:
        connection.execute(update(teams).where(teams.c.name == name).values(values))


def test_a_team_that_is_not_listed_has_no_name_for_others(own: Challenge) -> None:
    changed_team(own, "Beta", listed=0)
    publish(own, PHASE)
    beta = next(row["team"] for row in seen(own, "organiser")["boards"][0]["rows"] if row["name"] == "Beta")
    assert "Beta" not in json.dumps(seen(own))
    assert "Beta" not in json.dumps(seen(own, "participant", team=beta + 1))
    mine = [row["name"] for row in seen(own, "participant", team=beta)["boards"][0]["rows"] if row["mine"]]
    assert mine == ["Beta"]
    assert not any("team" in row for row in seen(own)["boards"][0]["rows"])


def test_best_and_last(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path / "c", videos=4, baseline=None)
    of = team(hosted.challenge)
    for skill in (0.6, 0.9, 0.5):
        hosted.submit(of, skill)
    for counts, expected in (("best", [2]), ("last", [3])):
        phase = hosted.challenge.settings.phase(PHASE).model_copy(update={"counts": counts})
        with hosted.challenge.reading() as connection:
            assert [one.number for one in counted_submissions(connection, phase, 1)] == expected
    hosted.challenge.close()


def test_the_gate_opens_for_who_beats_all_baselines_on_one_board(hosted: Hosted) -> None:
    settings = hosted.challenge.settings
    final = settings.phases[0].model_copy(update={"name": "test", "gate": Gate(phase=PHASE)})
    gated = ChallengeSettings.model_validate(
        settings.model_dump() | {"phases": [settings.phases[0].model_dump(), final.model_dump()]}
    )
    with hosted.challenge.reading() as connection:
        ids = {row.name: row.id for row in connection.execute(teams.select())}
        passed = {name: passed_gate(connection, gated, "test", number) for name, number in ids.items()}
        assert passed == {"Alpha": True, "Beta": True, "Gamma": True, "Delta": False}
        assert passed_gate(connection, gated, PHASE, ids["Delta"])


def test_disqualified_and_withdrawn_are_off_the_boards(own: Challenge) -> None:
    with own.writing() as connection:
        alpha = connection.execute(teams.select().where(teams.c.name == "Alpha")).one()
        connection.execute(
            update(submissions).where(submissions.c.team == alpha.id).values(disqualified="spoke to the judge")
        )
    changed_team(own, "Delta", withdrawn="2026")
    publish(own, PHASE)
    assert {row["name"] for row in seen(own)["boards"][0]["rows"]} == {"Beta", "Gamma", "plain"}


def test_a_ruling_is_seen_at_once_and_boards_are_made_again(own: Challenge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a worker comes: who was withdrawn or disqualified has no row, and who is unlisted no name."""
    with own.writing() as connection:
        numbers = {row.name: row.id for row in connection.execute(teams.select())}
        alpha = connection.execute(submissions.select().where(submissions.c.team == numbers["Alpha"])).one()
        disqualify(connection, own, None, alpha.id, "spoke to the judge")
        withdraw_team(connection, own, None, numbers["Delta"])
    changed_team(own, "Beta", listed=0)
    for visitor in ("public", "participant", "organiser"):
        told = seen(own, visitor)
        assert [{row["name"] for row in one["rows"]} & {"Alpha", "Delta"} for one in told["boards"]] == [set(), set()]
        assert ("Beta" in json.dumps(told)) == (visitor == "organiser")
        assert told["outdated"]
        assert "before the last decision" in board_tables(told)[0].title
        assert leaders(told["boards"][0]) != "Nobody has a rank.", "Alpha was first"

    async def published(_: DirectScorer, phase: str) -> None:
        publish(own, phase)

    monkeypatch.setattr(DirectScorer, "publish", published)
    with own.reading() as connection:
        (version,) = connection.execute(select(scorers.c.fingerprint)).scalars()
    worker = Worker(own, TrustingExecutor(), DirectScorer(own, version), ("file",))
    assert [row["rank"] for row in seen(own)["boards"][0]["rows"]] != [1, 2, None]
    asyncio.run(worker.work(asyncio.Event(), once=True))
    assert [row["rank"] for row in seen(own)["boards"][0]["rows"]] == [1, 2, None]
    assert (seen(own)["outdated"], board_tables(seen(own))[0].title) == (
        False,
        "Technical leaderboard (160 questions in 8 groups)",
    )
    own.now.pass_by(seconds=1)  # type: ignore[attr-defined]
    with own.writing() as connection:
        disqualify(connection, own, None, alpha.id, "", undo=True)
    assert seen(own)["outdated"], "Alpha lacks a row"
    asyncio.run(worker.work(asyncio.Event(), once=True))
    assert seen(own)["boards"][0]["rows"][0]["name"] == "Alpha"


def test_nothing_is_published_while_results_are_scored_again(own: Challenge) -> None:
    """The store's scores are of two versions then."""
    before = seen(own)
    with own.writing() as connection:
        _, waiting = rerun_all(connection, "e" * 64, "keys were wrong", own.now())
        assert waiting == len(SKILLS)
    publish(own, PHASE)
    assert seen(own) == before
    with own.writing() as connection:
        leased = claim(connection, "w", own.now(), 60.0)
        assert leased is not None
        keep_result(connection, leased, score_submission(own, leased), "e" * 64, own.now())
    publish(own, PHASE)
    assert seen(own) == before
    with own.writing() as connection:
        while (leased := claim(connection, "w", own.now(), 60.0)) is not None:
            keep_result(connection, leased, score_submission(own, leased), "e" * 64, own.now())
    publish(own, PHASE)
    assert seen(own)["scorer"] == before["scorer"] + 1


def test_a_gate_without_baselines_opens_for_any_result(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path / "c", videos=4, baseline=None)
    settings = hosted.challenge.settings
    final = settings.phases[0].model_copy(update={"name": "test", "gate": Gate(phase=PHASE)})
    gated = settings.model_copy(update={"phases": (settings.phases[0], final)})
    entered, idle = team(hosted.challenge, "Alpha"), team(hosted.challenge, "Beta")
    hosted.submit(entered, 0.2)
    with hosted.challenge.reading() as connection:
        assert passed_gate(connection, gated, "test", entered)
        assert not passed_gate(connection, gated, "test", idle)
    hosted.challenge.close()


def test_boards_are_of_one_version_of_the_scorer(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path / "c", videos=4, baseline=None)
    challenge = hosted.challenge
    made = {name: hosted.submit(team(challenge, name), skill) for name, skill in (("Alpha", 0.9), ("Beta", 0.6))}

    def version() -> int:
        with challenge.reading() as connection:
            return board_version(connection, PHASE)

    def again(number: int, name: str) -> None:
        leased = Leased(number, number, name, PHASE, 1, "file", "", "", "", 0, "w", 1, True)
        with challenge.writing() as connection:
            scorer = scorer_version(connection, "new code", NOW)
            keep_figures(connection, leased, scorer, made[name], NOW)

    assert version() == 1
    again(1, "Alpha")
    assert version() == 1
    again(2, "Beta")
    assert version() == 2
    challenge.close()


def test_nothing_to_show(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path / "c", videos=4, baseline=None)
    publish(hosted.challenge, PHASE)
    assert seen(hosted.challenge, "organiser") is None
    hosted.challenge.close()
