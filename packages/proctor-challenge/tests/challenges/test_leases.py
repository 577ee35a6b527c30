"""Leases: one worker each, beats, what becomes of a submission whose worker is lost, on both databases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor_challenge.challenge import Challenge
from proctor_challenge.queue import RECEIVED_S, Leased, advance, beat, claim, expire, give_back
from proctor_challenge.states import PhaseState, set_phase
from proctor_challenge.states import SubmissionState as State
from proctor_challenge.submissions import StaleError, settle, submission_row
from tests.support.hosted import SETTINGS, StandingClock, challenge_folder, handed_in, opened, team

LEASE_S = 60.0


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture(params=["sqlite", "postgres"])
def challenge(request: pytest.FixtureRequest, tmp_path: Path, clock: StandingClock) -> Iterator[Challenge]:
    store = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    made = opened(challenge_folder(tmp_path), store=store, now=clock)
    yield made
    made.close()


def queued(challenge: Challenge, of: int) -> int:
    made = handed_in(challenge, of)
    with challenge.writing() as connection:
        assert settle(connection, challenge, made) == ""
    return made


def leased(challenge: Challenge, worker: str = "w") -> Leased | None:
    with challenge.writing() as connection:
        return claim(connection, worker, challenge.now(), LEASE_S)


def state(challenge: Challenge, submission: int) -> tuple[str, str, int, int]:
    with challenge.reading() as connection:
        row = submission_row(connection, submission)
    return row["state"], row["reason"], row["requeued"], row["fence"]


def lose(challenge: Challenge, clock: StandingClock) -> list[int]:
    clock.pass_by(seconds=LEASE_S + 1)
    with challenge.writing() as connection:
        return expire(connection, challenge.now())


def test_each_gets_another_one_in_their_order(challenge: Challenge) -> None:
    mine = team(challenge)
    first, second = queued(challenge, mine), queued(challenge, mine)
    found = [leased(challenge, name) for name in ("w1", "w2", "w3")]
    assert [one and (one.submission, one.worker, one.fence) for one in found] == [
        (first, "w1", 1),
        (second, "w2", 1),
        None,
    ]
    assert found[0] is not None
    assert (found[0].system, found[0].scoring) == ("Hand Surgeons#1", False)


def test_where_results_depend_on_earlier_ones_a_teams_submissions_go_one_after_the_other(challenge: Challenge) -> None:
    mine, others = team(challenge), team(challenge, "Others")
    first, second, third = queued(challenge, mine), queued(challenge, mine), queued(challenge, others)
    unchecked = handed_in(challenge, others)
    fourth = queued(challenge, others)

    def next_one() -> Leased | None:
        with challenge.writing() as connection:
            return claim(connection, "w", challenge.now(), LEASE_S, in_order=("test",))

    found = [next_one() for _ in range(4)]
    assert [one and one.submission for one in found] == [first, third, None, None]
    with challenge.writing() as connection:
        for one in found[:2]:
            assert one is not None
            advance(connection, one, State.SCORING, challenge.now())
    assert next_one() is None
    with challenge.writing() as connection:
        for one in found[:2]:
            assert one is not None
            advance(connection, one, State.SCORED, challenge.now())
    assert [one and one.submission for one in (next_one(), next_one())] == [second, None]  # one is still being checked
    with challenge.writing() as connection:
        settle(connection, challenge, unchecked, ["no JSON"])
    assert (last := next_one()) is not None
    assert last.submission == fourth


def test_a_worker_takes_the_kinds_that_it_can_run(challenge: Challenge) -> None:
    queued(challenge, team(challenge))
    with challenge.writing() as connection:
        assert claim(connection, "w", challenge.now(), LEASE_S, kinds=("image",)) is None


def test_a_lease_that_is_renewed_does_not_end(challenge: Challenge, clock: StandingClock) -> None:
    made = queued(challenge, team(challenge))
    one = leased(challenge)
    assert one is not None
    for done in range(3):
        clock.pass_by(seconds=LEASE_S - 1)
        with challenge.writing() as connection:
            assert expire(connection, challenge.now()) == []
            beat(connection, one, challenge.now(), LEASE_S, {"answered": done})
    with challenge.reading() as connection:
        assert submission_row(connection, made)["progress"] == {"answered": 2}


def test_lost_once_it_waits_again_and_lost_twice_it_is_given_back(challenge: Challenge, clock: StandingClock) -> None:
    made = queued(challenge, team(challenge))
    for end in (("queued", "requeued", 1, 1), ("lost", "lost", 2, 2)):
        one = leased(challenge)
        assert one is not None
        with challenge.writing() as connection:
            advance(connection, one, State.RUNNING, challenge.now())
            assert submission_row(connection, made)["attempted"] == 1
        assert lose(challenge, clock) == [made]
        assert state(challenge, made) == end
        with challenge.writing() as connection, pytest.raises(StaleError):
            beat(connection, one, challenge.now(), LEASE_S)
        with challenge.writing() as connection:
            assert submission_row(connection, made)["attempted"] == 0
    assert leased(challenge) is None


def test_a_worker_that_comes_back_writes_nothing(challenge: Challenge, clock: StandingClock) -> None:
    made = queued(challenge, team(challenge))
    former = leased(challenge, "former")
    assert former is not None
    lose(challenge, clock)
    assert leased(challenge, "later") is not None
    for change in (
        lambda connection: beat(connection, former, challenge.now(), LEASE_S),
        lambda connection: advance(connection, former, State.RUNNING, challenge.now()),
        lambda connection: give_back(connection, former, challenge.now()),
    ):
        with challenge.writing() as connection, pytest.raises(StaleError):
            change(connection)
    assert state(challenge, made)[0] == "leased"


def test_answers_that_are_there_are_not_asked_again(challenge: Challenge, clock: StandingClock) -> None:
    made = queued(challenge, team(challenge))
    for end in (("scoring", "", 1, 1), ("scorer_fault", "scorer_fault", 1, 2)):
        one = leased(challenge)
        assert one is not None
        if not one.scoring:
            with challenge.writing() as connection:
                advance(connection, one, State.SCORING, challenge.now())
        assert lose(challenge, clock) == [made]
        assert state(challenge, made) == end
    with challenge.reading() as connection:
        row = submission_row(connection, made)
    assert (row["attempted"], row["scored"], row["fault"]) == (0, 0, "organiser")


def test_a_worker_that_gives_up_is_like_one_that_is_lost(challenge: Challenge) -> None:
    made = queued(challenge, team(challenge))
    one = leased(challenge)
    assert one is not None
    with challenge.writing() as connection:
        assert give_back(connection, one, challenge.now()) is State.QUEUED
    assert state(challenge, made)[:3] == ("queued", "requeued", 1)


def test_a_check_that_was_interrupted_ends(challenge: Challenge, clock: StandingClock) -> None:
    made = handed_in(challenge, team(challenge))
    clock.pass_by(seconds=RECEIVED_S + 1)
    with challenge.writing() as connection:
        assert expire(connection, challenge.now()) == [made]
    assert state(challenge, made)[:2] == ("cancelled", "interrupted")


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("ahead", [-86400.0, -90.0, 90.0, 86400.0])
def test_a_worker_whose_own_clock_differs_takes_nothing_away(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: float, *, own: bool
) -> None:
    """The clock is that of the database: a living submission stays with its worker, and a check goes on."""
    store = None if own else request.getfixturevalue("postgres_url")
    folder = challenge_folder(tmp_path, SETTINGS.replace("    closes: 2026-12-24T00:00:00Z\n", ""))
    challenge = Challenge.open(folder, "organiser", store=store, same_user=True)
    with challenge.writing() as connection:
        set_phase(connection, "test", PhaseState.OPEN, challenge.clock(connection), checks=())
    mine = team(challenge)
    queued(challenge, mine)
    checked = handed_in(challenge, mine)
    with challenge.writing() as connection:
        former = claim(connection, "w", challenge.clock(connection), LEASE_S)
    assert former is not None
    with monkeypatch.context() as patch:
        real = time.time()
        patch.setattr("proctor.runs.database.time.time", lambda: real + ahead)
        other = Challenge.open(folder, "organiser", store=store, same_user=True)
        with other.writing() as connection:
            assert expire(connection, other.clock(connection)) == []
            assert abs((other.clock(connection) - other.now()).total_seconds()) < 60
            beat(connection, former, other.clock(connection), LEASE_S)
        other.close()
    with challenge.writing() as connection:
        assert expire(connection, challenge.clock(connection)) == []
    assert [state(challenge, one)[0] for one in (former.submission, checked)] == ["leased", "received"]
    challenge.close()


def test_a_lease_from_before_the_clock_was_set_back_does_not_hold(challenge: Challenge, clock: StandingClock) -> None:
    mine = team(challenge)
    made, checked = queued(challenge, mine), handed_in(challenge, mine)
    assert leased(challenge) is not None
    clock.pass_by(days=-1)
    with challenge.writing() as connection:
        assert sorted(expire(connection, challenge.now())) == [made, checked]
