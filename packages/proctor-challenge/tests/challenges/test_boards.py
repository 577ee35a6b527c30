"""Boards of a benchmark that is not ranked over buckets: its headline's leaderboard, baselines beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from proctor.core import ACCURACY, Answer, Benchmark, Item, Metric, Reference, Score
from proctor.core.formats import BinaryFormat, FreeTextFormat
from proctor.results import Options, leaderboard
from proctor.runs import Store
from proctor.stats import HiddenSet, ShownMeans
from proctor_challenge.boards import BoardFigure, BoardMaker, Figures, HiddenQuestions, given_away
from proctor_challenge.settings import Phase, RankingChoice
from tests.support.contest import NAME, contest_store, skilled, write_run

PHASE = Phase(name="test", questions="public/test", counts="best")
RANKING = RankingChoice(draws=100, stability=0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A contest whose benchmark names no buckets."""
    made = tuple(
        Item(
            id=f"q{number:03d}",
            group=f"v{number // 2 % 12:02d}",
            question="Is it there?",
            answer=BinaryFormat(),
            reference=Reference(answer=True),
        )
        for number in range(240)
    )
    found = Store(tmp_path / "contest.db")
    found.add_benchmark(Benchmark(NAME, "Contest", made, (ACCURACY,), "accuracy"))
    for number, (name, rate) in enumerate({"A#1": 0.9, "B#1": 0.6, "C#1": 0.3, "plain": 0.5}.items()):
        write_run(found, name, skilled(rate, rate, seed=number))
    return found


COUNTS = {"one team": 3, "all teams": 5}
SECONDS_OFF = Metric("seconds_off", "Seconds off", high=60.0, higher_is_better=False)
CREDIT = Metric("credit", "Partial credit", percent=True)


def judged_store(folder: Path, metric: Metric, values: Mapping[str, Callable[[int], float]]) -> Store:
    """Systems with a value for each of 24 questions on six videos, by any metric."""
    items = tuple(
        Item(
            id=f"q{number}",
            group=f"v{number % 6}",
            question="When?",
            answer=FreeTextFormat(),
            reference=Reference(answer="now"),
        )
        for number in range(24)
    )
    found = Store(folder / "judged.db")
    found.add_benchmark(Benchmark(NAME, "Contest", items, (metric,), metric.name))
    for system, valued in values.items():
        run = found.start_run(NAME, system, "video", {})
        scores = [
            Score(item_id=item.id, metric=metric.name, value=valued(n), scorer="judge") for n, item in enumerate(items)
        ]
        found.write(run, [(Answer(item_id=one.item_id, text="now"), [one]) for one in scores])
    return found


def maker(store: Store, *baselines: str) -> BoardMaker:
    return BoardMaker(store, NAME, PHASE, RANKING, baselines)


def test_it_is_the_leaderboard_and_baselines_have_no_place(store: Store) -> None:
    (board,) = maker(store, "plain").made(("A#1", "B#1", "C#1"))
    theirs = leaderboard(store, NAME, condition="video", options=Options(systems=("A#1", "B#1", "C#1")))
    assert [(row["system"], row["rank"]) for row in board.rows] == [("A#1", 1), ("B#1", 2), ("C#1", 3), ("plain", None)]
    for row, one in zip(board.rows, theirs.rows, strict=False):
        assert (row["mean"], row["low"], row["high"]) == (one.value, one.ci_low, one.ci_high)
        assert (row["rank_low"], row["rank_high"], row["p_first"]) == (one.rank_low, one.rank_high, one.p_best)
    assert {row["system"]: row["below_line"] for row in board.rows[:3]} == {"A#1": False, "B#1": False, "C#1": True}
    assert board.rows[3]["baseline"]
    assert board.facts["questions"] == 240


def test_without_baselines_nobody_is_compared_with_them(store: Store) -> None:
    (board,) = maker(store).made(("A#1", "C#1"))
    assert {row["below_line"] for row in board.rows} == {None}


def test_the_lead_is_the_paired_difference(store: Store) -> None:
    found = maker(store).lead("A#1", "B#1")
    expected = np.mean(np.subtract(skilled(0.9, 0.9, seed=0), skilled(0.6, 0.6, seed=1), dtype=float))
    assert found.value == pytest.approx(expected)
    assert found.ci_low is not None
    assert found.ci_low > 0
    other = maker(store).lead("B#1", "A#1")
    assert other.value == pytest.approx(-expected)
    assert other.ci_high is not None
    assert other.ci_high < 0


def test_in_buckets_the_lead_is_the_difference_of_the_means_over_them(tmp_path: Path) -> None:
    contest = contest_store(tmp_path)
    write_run(contest, "A#1", skilled(0.9, 0.7, seed=1))
    write_run(contest, "B#1", skilled(0.6, 0.6, seed=2))
    made = maker(contest).made(("A#1", "B#1"), quick=True)[0]
    found = maker(contest).lead("A#1", "B#1")
    assert found.value == pytest.approx(made.row("A#1")["mean"] - made.row("B#1")["mean"])
    assert found.ci_low is not None
    assert found.ci_low > 0


def test_given_away_names_the_questions_that_there_are() -> None:
    """The simulation takes groups of equal size, so it has 80 here."""
    board = BoardFigure(name="technical", title="All", mean=0.8, low=0.7, high=0.9, questions=78, groups=4)
    hidden = HiddenQuestions(HiddenSet(4, 20, 0.8), ShownMeans.of_all([2] * 78))
    told = given_away(Phase(name="test", questions="q"), [Figures(boards=(board,), statuses={})], COUNTS, hidden)
    assert (told["questions"], told["groups"]) == (78, 4)


@pytest.mark.parametrize(
    ("metric", "values", "known"),
    [
        (SECONDS_OFF, {"A#1": lambda n: 2.0 + n % 3, "B#1": lambda n: 20.0 + n % 3}, False),
        (SECONDS_OFF, {"A#1": lambda n: float(n % 2), "B#1": lambda _: 1.0}, False),
        (CREDIT, {"A#1": lambda n: n % 3 / 2, "B#1": lambda _: 0.5}, False),
        (CREDIT, {"A#1": lambda n: float(n % 3 > 0), "B#1": lambda n: float(n % 2)}, True),
    ],
    ids=["an error", "an error that is 0 or 1", "partial credit", "right or wrong"],
)
def test_what_is_given_away_is_known_of_shares_of_right_answers_alone(
    tmp_path: Path, metric: Metric, values: Mapping[str, Callable[[int], float]], known: bool
) -> None:
    made = maker(judged_store(tmp_path, metric, values))
    (board,) = made.made(("A#1", "B#1"))
    assert board.facts["shares"] is known
    figures = [
        Figures(
            boards=(
                BoardFigure(
                    name="technical",
                    title=metric.label,
                    questions=24,
                    groups=6,
                    higher_is_better=metric.higher_is_better,
                    mean=row["mean"],
                    low=row["low"],
                    high=row["high"],
                ),
            ),
            statuses={},
        )
        for row in board.rows
    ]
    told = given_away(PHASE, figures, COUNTS, made.hidden("A#1") if known else None)
    assert [(row["who"], row["results"]) for row in told["rows"]] == [*COUNTS.items()]
    assert [row["all"] is None and row["ladder"] is None for row in told["rows"]] == [not known, not known]
    if known:  # of 24 questions, the best of five equal systems is some points too good
        assert 0.02 < told["rows"][1]["all"]["luck"]["optimism"] < 0.25


def test_without_a_mean_nothing_is_known_of_what_was_given_away() -> None:
    board = BoardFigure(name="technical", title="All", mean=None, low=None, high=None, questions=24)
    told = given_away(PHASE, [Figures(boards=(board,), statuses={})], COUNTS, None)
    assert {row["all"] for row in told["rows"]} == {None}
