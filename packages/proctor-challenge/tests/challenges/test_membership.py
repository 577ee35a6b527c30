"""Who leaves a team or is moved: submissions stay with their team, and nobody gains one by changing teams."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import insert, select

from proctor_challenge.boards import result_counts
from proctor_challenge.challenge import Challenge
from proctor_challenge.membership import (
    TeamError,
    add_member,
    end_membership,
    join_team,
    members_of,
    move_member,
    new_join_secret,
    team_of,
)
from proctor_challenge.schema import results, scorers, submissions
from proctor_challenge.states import PhaseState, SubmissionState, set_phase
from proctor_challenge.submissions import HandIn, HandInError, cancel, move, quota_left, settle, submissions_of
from proctor_challenge.teams import TeamEntry, register_team
from proctor_challenge.uploads import keep_upload
from proctor_web import pseudonym_of
from proctor_web import schema as web_schema
from tests.support.hosted import SETTINGS, SHA, StandingClock, account, challenge_folder, handed_in, opened

RULES = SETTINGS.replace("quota: {scored: 2, attempted: 4}", "quota: {scored: 3, attempted: 6, per_day: 2}")


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Challenge]:
    """Ten results for each team, in both databases."""
    store = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    rules = RULES.replace("{scored: 3, attempted: 6, per_day: 2}", "{scored: 10, attempted: 100}")
    made = opened(challenge_folder(tmp_path, rules), store=store)
    yield made
    made.close()


@pytest.fixture
def challenge(tmp_path: Path) -> Challenge:
    """Three results, six attempts, and two attempts in 24 hours for each team; three members at most."""
    return opened(challenge_folder(tmp_path, RULES + "teams: {members: 3}\n"))


def registered(challenge: Challenge, name: str, first: int) -> tuple[int, str]:
    with challenge.writing() as connection:
        return register_team(connection, challenge, first, TeamEntry(name, "Clinic", "AT", challenge.terms))


def used(challenge: Challenge, team: int) -> int:
    """How many results of its three a team has used."""
    with challenge.reading() as connection:
        return 3 - quota_left(connection, challenge, team, "test").scored


def scored(challenge: Challenge, team: int, count: int = 1, *, days_ago: bool = True) -> None:
    """That many results of a team, each on a day of its own."""
    for _ in range(count):
        made = handed_in(challenge, team)
        with challenge.writing() as connection:
            assert settle(connection, challenge, made) == ""
            steps = (SubmissionState.LEASED, SubmissionState.RUNNING, SubmissionState.SCORING, SubmissionState.SCORED)
            for state in steps:
                move(connection, made, state, now=challenge.now())
        if days_ago:
            assert isinstance(challenge.now, StandingClock)
            challenge.now.pass_by(days=1, seconds=1)


def left(challenge: Challenge, who: int, by: int | None = None) -> int:
    with challenge.writing() as connection:
        return end_membership(connection, challenge, who if by is None else by, who)


def test_who_leaves_is_in_no_team_and_the_team_keeps_its_submissions(challenge: Challenge) -> None:
    anna, ben = account(challenge, "anna"), account(challenge, "ben")
    team, secret = registered(challenge, "A", anna)
    with challenge.writing() as connection:
        join_team(connection, challenge, ben, secret)
    scored(challenge, team, 2)
    assert left(challenge, ben) == team
    with challenge.reading() as connection:
        assert team_of(connection, ben) is None
        assert members_of(connection, team) == [anna]
        assert len(submissions_of(connection, team)) == 2
        assert quota_left(connection, challenge, team, "test").scored == 1
    with pytest.raises(TeamError, match="found one in no team"):
        left(challenge, ben)


def test_the_secret_that_a_former_member_knows_lets_nobody_in(challenge: Challenge) -> None:
    anna, ben, cleo = (account(challenge, name) for name in ("anna", "ben", "cleo"))
    team, secret = registered(challenge, "A", anna)
    with challenge.writing() as connection:
        join_team(connection, challenge, ben, secret)
    left(challenge, ben)
    with challenge.writing() as connection:
        for one in (ben, cleo):
            with pytest.raises(TeamError, match="found none of a team"):
                join_team(connection, challenge, one, secret)
        assert join_team(connection, challenge, ben, new_join_secret(connection, challenge, anna, team)) == team
    assert used(challenge, team) == 0


def test_a_new_team_of_a_former_member_has_no_new_quota(challenge: Challenge) -> None:
    """Three results a team, and each of three teams would have had three."""
    anna = account(challenge, "anna")
    first, _ = registered(challenge, "A", anna)
    scored(challenge, first, 2)
    left(challenge, anna)
    second, _ = registered(challenge, "B", anna)
    assert used(challenge, second) == 2
    scored(challenge, second)
    left(challenge, anna)
    third, _ = registered(challenge, "C", anna)
    assert used(challenge, third) == 3, "what came with her into B came with her into C"
    with pytest.raises(HandInError, match="as many results as the phase allows"):
        handed_in(challenge, third)


def test_what_came_with_a_member_stays_counted_when_the_member_leaves(challenge: Challenge) -> None:
    anna, ben = account(challenge, "anna"), account(challenge, "ben")
    first, _ = registered(challenge, "A", anna)
    scored(challenge, first, 2)
    left(challenge, anna)
    second, secret = registered(challenge, "B", ben)
    with challenge.writing() as connection:
        join_team(connection, challenge, anna, secret)
    assert used(challenge, second) == 2
    left(challenge, anna)
    assert used(challenge, second) == 2
    assert used(challenge, first) == 2


def test_two_who_come_from_one_team_bring_its_submissions_once(challenge: Challenge) -> None:
    anna, ben = account(challenge, "anna"), account(challenge, "ben")
    first, secret = registered(challenge, "A", anna)
    with challenge.writing() as connection:
        join_team(connection, challenge, ben, secret)
    scored(challenge, first, 2)
    for one in (anna, ben):
        left(challenge, one)
    second, secret = registered(challenge, "B", anna)
    with challenge.writing() as connection:
        join_team(connection, challenge, ben, secret)
    assert used(challenge, second) == 2


def test_the_daily_quota_comes_along(challenge: Challenge) -> None:
    anna = account(challenge, "anna")
    first, _ = registered(challenge, "A", anna)
    scored(challenge, first, 2, days_ago=False)
    left(challenge, anna)
    second, _ = registered(challenge, "B", anna)
    with challenge.reading() as connection:
        assert quota_left(connection, challenge, second, "test").today == 0
    with pytest.raises(HandInError, match="attempts in 24 hours"):
        handed_in(challenge, second)


def test_what_waits_when_somebody_leaves_counts_in_the_next_team(challenge: Challenge) -> None:
    anna = account(challenge, "anna")
    first, _ = registered(challenge, "A", anna)
    received = handed_in(challenge, first)
    left(challenge, anna)
    second, _ = registered(challenge, "B", anna)
    assert used(challenge, second) == 1, "its check may end well"
    with challenge.writing() as connection:
        settle(connection, challenge, received)
    assert used(challenge, second) == 1
    with challenge.writing() as connection:
        cancel(connection, challenge, received)
    assert used(challenge, second) == 0


def test_nobody_joins_a_team_that_would_exceed_the_quota_then(challenge: Challenge) -> None:
    anna, ben = account(challenge, "anna"), account(challenge, "ben")
    first, _ = registered(challenge, "A", anna)
    second, secret = registered(challenge, "B", ben)
    scored(challenge, first, 2)
    scored(challenge, second, 2)
    left(challenge, anna)
    with challenge.writing() as connection:
        with pytest.raises(TeamError, match="phase test: found submissions of a former team") as found:
            join_team(connection, challenge, anna, secret)
        assert found.value.reason == "quota"
        with pytest.raises(TeamError, match="phase test"):
            add_member(connection, challenge, None, anna, second)
        assert members_of(connection, second) == [ben]
    assert used(challenge, second) == 2
    with challenge.writing() as connection:
        set_phase(connection, "test", PhaseState.CLOSED, challenge.now(), checks=())
        assert join_team(connection, challenge, anna, secret) == second


def test_a_team_without_members_keeps_its_name_and_gets_one_from_an_organiser(challenge: Challenge) -> None:
    anna, ben, olga = (account(challenge, name) for name in ("anna", "ben", "olga"))
    team, _ = registered(challenge, "A", anna)
    scored(challenge, team)
    left(challenge, anna)
    with pytest.raises(TeamError, match="which there is already"):
        registered(challenge, "a", ben)
    with challenge.writing() as connection:
        add_member(connection, challenge, olga, ben, team)
        assert members_of(connection, team) == [ben]
    assert used(challenge, team) == 1


def test_an_organiser_moves_a_member_and_the_trail_says_who_did_what(challenge: Challenge) -> None:
    anna, ben, olga = (account(challenge, name) for name in ("anna", "ben", "olga"))
    first, _ = registered(challenge, "A", anna)
    second, _ = registered(challenge, "B", ben)
    scored(challenge, first)
    with challenge.writing() as connection:
        move_member(connection, challenge, olga, anna, second)
        assert members_of(connection, first) == []
        assert members_of(connection, second) == [ben, anna]
    assert used(challenge, second) == 1
    left(challenge, anna)
    trail = web_schema.trail.c
    with challenge.reading() as connection:
        rows = connection.execute(select(trail.person, trail.action, trail.subject, trail.detail)).all()
        annas, olgas = (pseudonym_of(connection, one) for one in (anna, olga))
    assert [tuple(row) for row in rows[2:]] == [
        (olgas, "remove member", "team 1", {"account": annas}),
        (olgas, "add member", "team 2", {"account": annas}),
        (annas, "leave team", "team 2", {}),
    ]


def test_results_that_a_member_brought_are_known_to_the_team(challenge: Challenge) -> None:
    anna, ben = account(challenge, "anna"), account(challenge, "ben")
    first, _ = registered(challenge, "A", anna)
    second, _ = registered(challenge, "B", ben)
    scored(challenge, first, 2)
    scored(challenge, second)
    with challenge.writing() as connection:
        version = {"version": 1, "at": "", "fingerprint": "", "why": ""}
        connection.execute(insert(scorers).values(version))
        for submission in (1, 2, 3):
            connection.execute(insert(results).values(submission=submission, scorer=1, figures={}, at=""))
        assert result_counts(connection, "test", 1) == {"one team": 2, "all teams": 3}
        move_member(connection, challenge, None, anna, second)
        assert result_counts(connection, "test", 1) == {"one team": 3, "all teams": 3}


def test_a_full_team_takes_nobody_from_an_organiser(challenge: Challenge) -> None:
    people = [account(challenge, name) for name in ("anna", "ben", "cleo", "dan")]
    team, _ = registered(challenge, "A", people[0])
    with challenge.writing() as connection:
        for one in people[1:3]:
            add_member(connection, challenge, None, one, team)
        with pytest.raises(TeamError, match="found 3 members"):
            add_member(connection, challenge, None, people[3], team)
        end_membership(connection, challenge, None, people[1])
        with pytest.raises(TeamError, match="a member of a team"):
            add_member(connection, challenge, None, people[0], team)
        add_member(connection, challenge, None, people[3], team)


def test_an_upload_that_ends_after_its_sender_left_is_refused(challenge: Challenge) -> None:
    anna = account(challenge, "anna")
    team, _ = registered(challenge, "A", anna)
    entry = HandIn(team, anna, "test", "file", SHA, 10, "answers.json", ".json")
    kept: list[Path] = []
    assert keep_upload(challenge, entry, kept.append) == 1
    left(challenge, anna)
    with pytest.raises(HandInError, match="no longer a member"):
        keep_upload(challenge, entry, kept.append)
    assert len(kept) == 1
    assert keep_upload(challenge, replace(entry, account=0), kept.append) == 2, "from the shell"


def test_who_changes_teams_while_uploads_come_in_gains_none(shared: Challenge) -> None:
    anna = account(shared, "anna")
    registered(shared, "T", anna)

    def hands_in(turn: int) -> None:
        with shared.reading() as connection:
            mine = team_of(connection, anna)
        entry = HandIn(1 if mine is None else mine["id"], anna, "test", "file", f"{turn:064}", 10, "a.json", ".json")
        with suppress(HandInError):
            made = keep_upload(shared, entry, lambda _: None)
            with shared.writing() as connection:
                settle(connection, shared, made)

    def changes_team(turn: int) -> None:
        if turn % 3 == 0:
            with suppress(TeamError), shared.writing() as connection:
                move_member(connection, shared, None, anna, 1)
        with suppress(TeamError):
            left(shared, anna)
        with suppress(TeamError):
            if turn % 2:
                with shared.writing() as connection:
                    add_member(connection, shared, None, anna, 1)
            else:
                registered(shared, f"T {turn}", anna)

    with ThreadPoolExecutor(6) as pool:
        turns = [pool.submit(changes_team if turn % 5 == 0 else hands_in, turn) for turn in range(80)]
        for one in turns:
            one.result()
    changes_team(80)
    for turn in range(81, 101):
        hands_in(turn)
    with shared.reading() as connection:
        states = connection.scalars(select(submissions.c.state)).all()
    assert states.count(SubmissionState.QUEUED) == 10
    assert len({*states} - {SubmissionState.QUEUED, SubmissionState.REFUSED}) == 0
