"""The worker: from the queue to a result, what ends otherwise, and what it takes up again."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from sqlalchemy import RowMapping, select

from proctor.core import InfrastructureError
from proctor_challenge.boards import Figures
from proctor_challenge.challenge import Challenge
from proctor_challenge.containers import BoxLimits
from proctor_challenge.containers.executors import StartedBox
from proctor_challenge.queue import Leased, claim
from proctor_challenge.schema import boards, quotas, results, scorers
from proctor_challenge.scoring import ScorerChangedError, rerun_all
from proctor_challenge.submissions import cancel, submission_row
from proctor_challenge.worker import Worker
from tests.support.hosted import StandingClock, opened, team
from tests.support.hosted_work import DirectScorer, TrustingExecutor, answer_file, asked_folder, image, queued, upload


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def challenge(tmp_path: Path, clock: StandingClock) -> Challenge:
    return opened(asked_folder(tmp_path), now=clock)


@pytest.fixture
def mine(challenge: Challenge) -> int:
    return team(challenge)


def work(
    challenge: Challenge, scorer: DirectScorer | None = None, executor: TrustingExecutor | None = None, **more: float
) -> list[str]:
    said: list[str] = []
    worker = Worker(
        challenge, executor or TrustingExecutor(), scorer or DirectScorer(challenge), ("file", "image"), log=said.append, **more  # type: ignore[arg-type]
    )  # fmt: skip
    asyncio.run(worker.work(asyncio.Event(), once=True))
    return said


def row(challenge: Challenge, submission: int) -> RowMapping:
    with challenge.reading() as connection:
        return submission_row(connection, submission)


def shares(challenge: Challenge, submission: int) -> list[tuple[float, int]]:
    """The share of right answers, and how many there are, by each version of the scorer."""
    query = select(results.c.figures).where(results.c.submission == submission).order_by(results.c.scorer)
    with challenge.reading() as connection:
        found = [one["boards"][0] for one in connection.execute(query).scalars()]
    return [(one["mean"], one["questions"]) for one in found]


def counters(challenge: Challenge, of: int) -> tuple[int, int, int]:
    with challenge.reading() as connection:
        found = connection.execute(select(quotas).where(quotas.c.team == of)).mappings().one()
    return found["holding"], found["attempted"], found["scored"]


def test_a_file_and_an_image_get_their_results(challenge: Challenge, mine: int) -> None:
    first = queued(challenge, mine, "file", answer_file(challenge.folder))
    second = queued(challenge, mine, "image", image(challenge.folder))
    assert work(challenge)[-1] == f"submission {second}: scored"
    assert shares(challenge, first) == [(1.0, 10)]
    assert shares(challenge, second) == [(0.5, 10)]
    assert row(challenge, second)["log"]["counts"] == {"answered": 10}
    assert row(challenge, second)["image_digest"]
    assert counters(challenge, mine) == (0, 2, 2)
    with challenge.reading() as connection:
        assert len(connection.execute(select(boards)).all()) == 2


def test_questions_come_one_at_a_time_in_the_order_of_the_seed(challenge: Challenge, mine: int) -> None:
    log = challenge.folder / "asked.log"
    code = f"open({str(log)!r}, 'a').write(question['question'].splitlines()[0] + chr(10))"
    orders = []
    for number in range(2):
        made = queued(challenge, mine, "image", image(challenge.folder, code, f"# {number}"))
        work(challenge)
        orders.append(log.read_text().splitlines())
        log.unlink()
        with challenge.sealed.store("test") as store:
            (run,) = (one for one in store.runs("focus") if one.system == f"Hand Surgeons#{made}")
        assert run.settings["order_seed"] == made
    assert sorted(orders[0]) == sorted(orders[1])
    assert len(orders[0]) == 10
    assert orders[0] != orders[1]
    assert sorted(orders[0]) != orders[0]


@pytest.mark.parametrize(
    ("code", "before", "end", "status"),
    [
        ("os._exit(3)", "", ("crashed", "crashed", "participant"), None),
        ("", "raise SystemExit(4)", ("crashed", "crashed", "participant"), None),
        ("", "time.sleep(9999)", ("timed_out", "timed_out", "participant"), None),
        ("raise ValueError", "", ("scored", "", "nobody"), {"error": 10}),
    ],
)
def test_ends_of_containers(
    tmp_path: Path, code: str, before: str, end: tuple[str, str, str], status: dict[str, int] | None
) -> None:
    challenge = opened(asked_folder(tmp_path))
    object.__setattr__(challenge.settings.phases[0].budget, "startup_s", 1.0 if "sleep" in before else 60.0)
    mine = team(challenge)
    made = queued(challenge, mine, "image", image(challenge.folder, code or "pass", before))
    work(challenge)
    found = row(challenge, made)
    assert (found["state"], found["reason"], found["fault"]) == end
    assert counters(challenge, mine) == (0, 1, int(end[0] == "scored"))
    if status is not None:
        assert found["log"]["counts"] == status


def test_what_an_earlier_worker_asked_is_not_asked_again(
    challenge: Challenge, mine: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first worker is told to stop after four answers; the next one asks the other six."""
    log, stop = challenge.folder / "asked.log", asyncio.Event()
    code = f"open({str(log)!r}, 'a').write(question['id'] + chr(10))"
    made = queued(challenge, mine, "image", image(challenge.folder, code))
    with monkeypatch.context() as patch:
        told = "proctor_challenge.queue.SubmissionLease.report"
        patch.setattr(told, lambda _, counts: stop.set() if sum(counts.values()) == 4 else None)
        worker = Worker(challenge, TrustingExecutor(), DirectScorer(challenge), ("image",))
        asyncio.run(worker.work(stop))
    found = row(challenge, made)
    assert (found["state"], found["requeued"], found["attempted"]) == ("queued", 0, 0)
    before = log.read_text().splitlines()
    assert 4 <= len(before) <= 5
    work(challenge)
    asked = log.read_text().splitlines()
    assert len(asked) == len(set(asked)) == 10
    assert row(challenge, made)["state"] == "scored"


class BrokenExecutor(TrustingExecutor):
    async def start(self, image: str, limits: BoxLimits, *, label: str) -> StartedBox:
        raise InfrastructureError("no space left on this machine")


def test_a_broken_machine_costs_the_team_nothing(
    challenge: Challenge, mine: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor_challenge.worker._REST_S", 0.0)
    made = queued(challenge, mine, "image", image(challenge.folder))
    said = work(challenge, executor=BrokenExecutor())
    found = row(challenge, made)
    assert (found["state"], found["fault"], found["attempted"]) == ("lost", "platform", 0)
    assert counters(challenge, mine) == (0, 0, 0)
    assert sum("no space left" in line for line in said) == 6


def test_a_bug_that_one_submission_finds_does_not_stop_the_others(challenge: Challenge, mine: int) -> None:
    class Buggy(DirectScorer):
        async def score(self, leased: Leased) -> tuple[Figures, str]:
            if leased.number == 1:
                raise ZeroDivisionError("a bug")
            return await super().score(leased)

    made = [queued(challenge, mine, "file", answer_file(challenge.folder, seed=seed)) for seed in range(2)]
    said = work(challenge, Buggy(challenge))
    assert [row(challenge, one)["state"] for one in made] == ["scorer_fault", "scored"]
    assert f"submission {made[0]}: ZeroDivisionError: a bug" in said


def test_an_image_that_can_not_be_loaded_is_its_teams(challenge: Challenge, mine: int) -> None:
    class NoImage(TrustingExecutor):
        async def load(self, archive: Path) -> str:
            from proctor.core import InputError

            raise InputError(archive, found="no image", expected="one")

    made = queued(challenge, mine, "image", upload(challenge.folder, b"nothing"))
    work(challenge, executor=NoImage())
    assert (row(challenge, made)["state"], row(challenge, made)["reason"]) == ("crashed", "load")


def test_a_fault_of_the_scorer_costs_nothing_until_all_is_scored_again(challenge: Challenge, mine: int) -> None:
    first, second = (queued(challenge, mine, "file", answer_file(challenge.folder, seed=seed)) for seed in range(2))
    work(challenge, DirectScorer(challenge, faults={first}))
    assert [row(challenge, one)["state"] for one in (first, second)] == ["scorer_fault", "scored"]
    assert counters(challenge, mine) == (0, 1, 1)
    with challenge.writing() as connection:
        assert rerun_all(connection, "f" * 64, "", challenge.now()) == (1, 1)  # what is scored stays scored
        assert rerun_all(connection, "e" * 64, "the judge is back", challenge.now()) == (2, 1)
    assert counters(challenge, mine) == (2, 2, 0)
    work(challenge, DirectScorer(challenge, version="e" * 64))
    assert counters(challenge, mine) == (0, 2, 2)
    assert [len(shares(challenge, one)) for one in (first, second)] == [1, 2]
    with challenge.reading() as connection:
        assert connection.execute(select(scorers.c.version, scorers.c.why)).all() == [(1, ""), (2, "the judge is back")]


def test_a_worker_with_other_code_scores_nothing(challenge: Challenge, mine: int) -> None:
    made = queued(challenge, mine, "file", answer_file(challenge.folder))
    work(challenge)
    with pytest.raises(ScorerChangedError, match="proctor challenge submission rescore"):
        work(challenge, DirectScorer(challenge, version="e" * 64))
    assert len(shares(challenge, made)) == 1


def test_a_cancelled_one_stops_and_keeps_its_attempt(challenge: Challenge, mine: int) -> None:
    begun = challenge.folder / "begun"
    code = f"open({str(begun)!r}, 'w').close(); time.sleep(25)"
    made = queued(challenge, mine, "image", image(challenge.folder, code))

    def cancel_once_it_runs() -> None:
        while not begun.exists():
            threading.Event().wait(0.01)
        with challenge.writing() as connection:
            cancel(connection, challenge, made)

    other = threading.Thread(target=cancel_once_it_runs)
    other.start()
    said = work(challenge, lease_s=0.2)
    other.join(600)
    assert said[-1] == f"submission {made}: cancelled, or leased by another worker"
    assert row(challenge, made)["state"] == "cancelled"
    assert counters(challenge, mine) == (0, 1, 0)


def test_a_claim_that_was_not_confirmed_is_found(challenge: Challenge, mine: int) -> None:
    made = queued(challenge, mine, "file", answer_file(challenge.folder))
    worker = Worker(challenge, TrustingExecutor(), DirectScorer(challenge), ("file",))
    with challenge.writing() as connection:
        assert claim(connection, worker.name, challenge.now(), 60) is not None
    asyncio.run(worker.work(asyncio.Event(), once=True))
    assert (row(challenge, made)["state"], row(challenge, made)["fence"]) == ("scored", 1)


def test_boards_that_were_not_made_are_made(challenge: Challenge, mine: int) -> None:
    """A worker that is killed between a result and its boards leaves them to the next one."""

    class Silent(DirectScorer):
        async def publish(self, phase: str) -> None:
            return

    queued(challenge, mine, "file", answer_file(challenge.folder))
    work(challenge, Silent(challenge))
    with challenge.reading() as connection:
        assert connection.execute(select(boards)).all() == []
    work(challenge)
    with challenge.reading() as connection:
        assert len(connection.execute(select(boards)).all()) == 1


def test_containers_of_two_challenges_have_other_labels(tmp_path: Path) -> None:
    """A worker that removes what a dead one left touches nothing of a challenge whose folder has the same name."""
    here, there = (opened(asked_folder(tmp_path / location / "trays")) for location in ("here", "there"))
    assert here.label != there.label
    assert (here.name, here.label.partition("-")[0]) == ("trays", "trays")
