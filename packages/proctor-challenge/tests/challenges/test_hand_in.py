"""Handing in: who may, what it costs, and what of the sealed part the web process can reach."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError

from proctor.core import ConfigurationError, InputError
from proctor_challenge.challenge import Challenge
from proctor_challenge.queue import Leased, advance, claim
from proctor_challenge.schema import events
from proctor_challenge.states import PhaseState, set_phase
from proctor_challenge.states import SubmissionState as State
from proctor_challenge.submissions import (
    DAILY,
    HandIn,
    HandInError,
    QuotaLeft,
    StaleError,
    cancel,
    disqualify,
    hand_in,
    quota_left,
    settle,
    submission_row,
    submissions_of,
)
from proctor_challenge.teams import withdraw_team
from tests.support.hosted import SETTINGS, SHA, StandingClock, challenge_folder, handed_in, opened, team


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def challenge(tmp_path: Path, clock: StandingClock) -> Challenge:
    return opened(challenge_folder(tmp_path), now=clock)


def settled(challenge: Challenge, of: int, problems: tuple[str, ...] = ()) -> tuple[int, str]:
    made = handed_in(challenge, of)
    with challenge.writing() as connection:
        return made, settle(connection, challenge, made, problems)


def leased(challenge: Challenge) -> Leased:
    with challenge.writing() as connection:
        found = claim(connection, "w", challenge.now(), 60)
    assert found is not None
    return found


def left(challenge: Challenge, of: int) -> QuotaLeft:
    with challenge.reading() as connection:
        return quota_left(connection, challenge, of, "test")


def test_a_quota_of_results_is_held_from_the_queue_on(challenge: Challenge) -> None:
    mine = team(challenge)
    assert [settled(challenge, mine)[1] for _ in range(2)] == ["", ""]
    assert left(challenge, mine) == QuotaLeft(0, 2, None)
    with pytest.raises(HandInError) as caught:
        handed_in(challenge, mine)
    assert caught.value.reason == "quota_scored"


def test_what_was_received_before_the_last_place_went_is_refused_with_a_sentence(challenge: Challenge) -> None:
    mine = team(challenge)
    made = [handed_in(challenge, mine) for _ in range(3)]
    with challenge.writing() as connection:
        assert [settle(connection, challenge, one) for one in made] == ["", "", "quota_scored"]
        row = submission_row(connection, made[-1])
    assert (row["state"], row["fault"], row["attempted"]) == ("refused", "participant", 0)


def test_an_invalid_one_costs_nothing_and_its_problems_are_kept(challenge: Challenge) -> None:
    mine = team(challenge)
    made, reason = settled(challenge, mine, ("q1: no answer",))
    assert reason == "invalid"
    assert left(challenge, mine) == QuotaLeft(2, 4, None)
    with challenge.reading() as connection:
        assert submission_row(connection, made)["log"] == {"problems": ["q1: no answer"]}


def test_attempts_run_out_though_nothing_was_scored(challenge: Challenge) -> None:
    mine = team(challenge)
    for number in range(4):
        assert settled(challenge, mine)[1] == ""
        one = leased(challenge)
        with challenge.writing() as connection:
            advance(connection, one, State.RUNNING, challenge.now())
            advance(connection, one, State.CRASHED, challenge.now(), reason="crashed")
        assert left(challenge, mine) == QuotaLeft(2, 3 - number, None)
    with pytest.raises(HandInError) as caught:
        handed_in(challenge, mine)
    assert caught.value.reason == "quota_attempted"


def test_cancelled_before_it_runs_costs_nothing_and_while_it_runs_an_attempt(challenge: Challenge) -> None:
    mine = team(challenge)
    first = settled(challenge, mine)[0]
    with challenge.writing() as connection:
        cancel(connection, challenge, first)
    assert left(challenge, mine) == QuotaLeft(2, 4, None)
    second, one = settled(challenge, mine)[0], leased(challenge)
    with challenge.writing() as connection:
        advance(connection, one, State.RUNNING, challenge.now())
        cancel(connection, challenge, second, organiser=True)
    assert left(challenge, mine) == QuotaLeft(2, 3, None)
    with challenge.writing() as connection, pytest.raises(StaleError, match="it can't be scoring now"):
        advance(connection, one, State.SCORING, challenge.now())


def test_a_day_has_24_hours(tmp_path: Path, clock: StandingClock) -> None:
    daily = SETTINGS.replace("attempted: 4", "attempted: 4, per_day: 1")
    challenge = opened(challenge_folder(tmp_path, daily), now=clock)
    mine = team(challenge)
    settled(challenge, mine)
    with pytest.raises(HandInError) as caught:
        handed_in(challenge, mine)
    assert caught.value.reason == "quota_day"
    clock.pass_by(hours=24)
    assert settled(challenge, mine)[1] == ""


def test_nonsense_without_end_is_stopped(challenge: Challenge) -> None:
    mine = team(challenge)
    for _ in range(DAILY):
        handed_in(challenge, mine)
    with pytest.raises(HandInError) as caught:
        handed_in(challenge, mine)
    assert caught.value.reason == "too_many"


def test_who_may_not_hand_in(challenge: Challenge, clock: StandingClock, tmp_path: Path) -> None:
    mine, other = team(challenge), team(challenge, "B")
    gated = opened(
        challenge_folder(tmp_path / "gated", SETTINGS + "  - {name: final, sealed: sealed/test, accepts: [image], gate: {phase: test}}"),
        now=clock,
    )  # fmt: skip
    theirs = team(gated)
    reasons = []
    with challenge.writing() as connection:
        withdraw_team(connection, challenge, None, other)
    for of, at, entry in (
        (challenge, clock, HandIn(other, 1, "test", "file", SHA, 1, "a")),
        (gated, clock, HandIn(theirs, 1, "final", "image", SHA, 1, "a", passed=False)),
        (gated, clock, HandIn(theirs, 1, "final", "file", SHA, 1, "a")),
    ):
        with of.writing() as connection, pytest.raises(HandInError) as caught:
            hand_in(connection, of, entry)
        reasons.append(caught.value.reason)
        assert at() == of.now()
    with challenge.writing() as connection:
        set_phase(connection, "test", PhaseState.CLOSED, clock(), checks=())
    with pytest.raises(HandInError, match="not open"):
        handed_in(challenge, mine)
    with challenge.writing() as connection:
        set_phase(connection, "test", PhaseState.OPEN, clock(), checks=())
    clock.pass_by(days=60)
    with pytest.raises(HandInError) as caught:
        handed_in(challenge, mine)
    assert [*reasons, caught.value.reason] == ["withdrawn", "gate", "not_accepted", "not_open"]
    with pytest.raises(InputError, match="phase: found 'finale', expected one of test"):
        challenge.phase("finale")


def test_a_number_is_given_once_and_a_seed_is_kept(challenge: Challenge) -> None:
    mine = team(challenge)
    made = [handed_in(challenge, mine) for _ in range(3)]
    with challenge.reading() as connection:
        rows = submissions_of(connection, mine, "test")
    assert [(row["id"], row["number"], row["seed"]) for row in rows] == [(one, one, one) for one in reversed(made)]


def test_events_stay_as_they_are(challenge: Challenge) -> None:
    handed_in(challenge, team(challenge))
    with pytest.raises(IntegrityError, match="rows of events stay as they are"), challenge.writing() as connection:
        connection.execute(update(events).values(after="scored"))


def test_a_disqualified_one_says_why_and_can_be_reinstated(challenge: Challenge) -> None:
    made = handed_in(challenge, team(challenge))
    with challenge.writing() as connection:
        disqualify(connection, challenge, None, made, "copied another team's image")
        assert submission_row(connection, made)["disqualified"] == "copied another team's image"
        disqualify(connection, challenge, None, made, "", undo=True)
        assert submission_row(connection, made)["disqualified"] is None


def test_the_web_process_opens_nothing_sealed(tmp_path: Path) -> None:
    folder = challenge_folder(tmp_path)
    web = opened(folder, "web")
    with pytest.raises(ConfigurationError, match="opens nothing of the sealed part"):
        _ = web.sealed
    with pytest.raises(InputError, match=r"found a folder that the web server could open, expected .*--same-user"):
        Challenge.open(folder, "web")
    with opened(folder, "worker").sealed.store("test"):
        assert (folder / "sealed" / "test.sqlite").is_file()


def test_a_newer_challenge_is_not_opened(tmp_path: Path) -> None:
    challenge = opened(challenge_folder(tmp_path))
    from proctor.runs import store_meta

    with challenge.writing() as connection:
        connection.execute(update(store_meta).where(store_meta.c.key == "challenge_version").values(value="99"))
        assert connection.execute(select(store_meta.c.value)).scalars().all()
    with pytest.raises(InputError, match="found a challenge of version 99"):
        opened(tmp_path)


def test_a_database_that_does_not_answer_is_told_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"postgresql\+psycopg://proctor@127.0.0.1:9/none: found .*refused"):
        opened(challenge_folder(tmp_path), store="postgresql+psycopg://proctor@127.0.0.1:9/none")
