"""Two hundred submissions at once for a quota of ten, and many workers for them, on both databases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from proctor_challenge.boards import Figures
from proctor_challenge.challenge import Challenge
from proctor_challenge.queue import advance, claim
from proctor_challenge.scoring import keep_result, known_scorer
from proctor_challenge.states import SubmissionState as State
from proctor_challenge.submissions import HandInError, settle
from tests.support.challenge_counts import check_counts, times_scored
from tests.support.hosted import SETTINGS, challenge_folder, handed_in, opened, team

AT_ONCE, QUOTA, THREADS = 200, 10, 12
NOTHING, SCORER = Figures(boards=(), statuses={}), "f" * 64


@pytest.fixture(params=["sqlite", "postgres"])
def challenge(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Challenge]:
    store = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    rules = SETTINGS.replace("{scored: 2, attempted: 4}", f"{{scored: {QUOTA}, attempted: {AT_ONCE}}}")
    made = opened(challenge_folder(tmp_path, rules), store=store)
    yield made
    made.close()


def settled(challenge: Challenge, submission: int) -> str:
    with challenge.writing() as connection:
        return settle(connection, challenge, submission)


def entered(challenge: Challenge, of: int) -> str:
    """One that is handed in and checked at once."""
    try:
        return settled(challenge, handed_in(challenge, of))
    except HandInError as error:
        return error.reason


def worked(challenge: Challenge, worker: int) -> list[int]:
    """Takes one after another to its result, until none is left."""
    mine: list[int] = []
    while True:
        with challenge.writing() as connection:
            leased = claim(connection, f"w{worker}", challenge.now(), 60)
        if leased is None:
            return mine
        mine.append(leased.submission)
        with challenge.writing() as connection:
            advance(connection, leased, State.SCORING, challenge.now())
        with challenge.writing() as connection:
            keep_result(connection, leased, NOTHING, SCORER, challenge.now())


def test_exactly_as_many_as_the_quota_get_through(challenge: Challenge) -> None:
    """Half of them wait to be checked when the quota is still free; the others come while it fills."""
    mine = team(challenge)
    waiting = [handed_in(challenge, mine) for _ in range(AT_ONCE // 2)]
    with ThreadPoolExecutor(THREADS) as pool:
        ends = [pool.submit(settled, challenge, one) for one in waiting]
        ends += [pool.submit(entered, challenge, mine) for _ in range(AT_ONCE // 2)]
        found = Counter(one.result() for one in ends)
    assert found == {"": QUOTA, "quota_scored": AT_ONCE - QUOTA}
    assert check_counts(challenge)["queued"] == QUOTA
    with challenge.writing() as connection:
        known_scorer(connection, SCORER, challenge.now())
    with ThreadPoolExecutor(8) as pool:
        done = [one for some in pool.map(lambda number: worked(challenge, number), range(8)) for one in some]
    assert sorted(done) == sorted(times_scored(challenge))
    assert check_counts(challenge)["scored"] == len(done) == QUOTA
    assert set(times_scored(challenge).values()) == {1}
    assert entered(challenge, mine) == "quota_scored"


def test_a_server_and_its_workers_may_begin_at_once(tmp_path: Path, postgres_url: str) -> None:
    """All of them make the tables of an empty database, or find them."""
    folder = challenge_folder(tmp_path)
    with ThreadPoolExecutor(6) as pool:
        for one in list(pool.map(lambda _: opened(folder, store=postgres_url), range(6))):
            one.close()
