"""A judge without a verdict leaves an answer unresolved: shown, asked again, by a fallback too, and never an
advantage."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from proctor.core import (
    Answer,
    Benchmark,
    ConfigurationError,
    FailedPolicy,
    InfrastructureError,
    Item,
    Metric,
    NoVerdictError,
    Reference,
    RefusalError,
    Score,
    Scorer,
    SystemFaultError,
)
from proctor.core.formats import FreeTextFormat
from proctor.judges import NO_VERDICT, TIE, UNRESOLVED, WithFallback
from proctor.judges.verdict_metrics import RUBRIC
from proctor.reports import Prose, comparison_blocks
from proctor.results import BOTH, Options, Result, compare, leaderboard, load_items, public_copy, results
from proctor.results.arrays import load_labels
from proctor.runs import JudgeLimits, Run, Store, declare_scorer, delete_scores, judge_all
from proctor.runs.unresolved import open_answers

QUESTIONS = 8


class Rubric:
    """Gives what it is told, 2 or 0 by the answer's word; declines answers that hold a word."""

    def __init__(self, name: str, declines: str = "", *, down: bool = False) -> None:
        self.name, self.declines, self.down = name, declines, down
        self.metrics: tuple[Metric, ...] = (RUBRIC,)
        self.asked: list[str] = []

    def applies(self, item: Item) -> bool:
        return isinstance(item.answer, FreeTextFormat)

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        self.asked.append(item.id)
        if self.down:
            raise InfrastructureError("connection refused")
        if self.declines and self.declines in answer.text:
            raise NoVerdictError(f"{self.name}: no verdict: I can't help with that")
        value = 2.0 if "right" in answer.text else 0.0
        return [Score(item_id=item.id, metric=RUBRIC.name, value=value, scorer=self.name)]


class Tied(Rubric):
    """A panel that is tied on everything."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.metrics = (RUBRIC, UNRESOLVED)

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        self.asked.append(item.id)
        return [Score(item_id=item.id, metric=UNRESOLVED.name, value=1.0, scorer=self.name, label=TIE)]


def run_of(store: Store, system: str, *texts: str) -> Run:
    run = store.start_run("told", system, "video", {})
    store.write(run, [(Answer(item_id=f"q{n}", text=text, parsed=text), []) for n, text in enumerate(texts)])
    return run


@pytest.fixture
def store(tmp_path: Path) -> Store:
    items = tuple(
        Item(
            id=f"q{number}",
            group=f"v{number}",
            question="What happens?",
            answer=FreeTextFormat(),
            reference=Reference(answer="It is clipped."),
        )
        for number in range(QUESTIONS)
    )
    opened = Store(tmp_path / "runs.db")
    opened.add_benchmark(Benchmark("told", "Told", items, (RUBRIC,), RUBRIC.name))
    return opened


def judged(store: Store, runs: list[Run], scorer: Scorer, give_up_after: int = 50) -> tuple[int, int, int]:
    store.declare_metrics("told", scorer.metrics)
    tally = asyncio.run(judge_all(store, runs, scorer, JudgeLimits(1, give_up_after)))
    return tally.total, tally.scored, tally.unscored


class EndsAll(Rubric):
    """Its first answer ends the pass while the others are judged, which takes a little longer."""

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        for _ in range(1 if item.id == "q0" else 100):
            await asyncio.sleep(0)
        if item.id == "q0":
            raise ConfigurationError("access denied")
        return await super().score(item, answer)


def test_what_is_judged_when_an_error_ends_the_pass_is_kept(store: Store) -> None:
    run = run_of(store, "honest", *["right"] * QUESTIONS)
    judge = EndsAll("judge")
    store.declare_metrics("told", judge.metrics)
    with pytest.raises(ConfigurationError, match="access denied"):
        asyncio.run(judge_all(store, [run], judge, JudgeLimits(concurrency=3)))
    assert judge.asked == ["q1", "q2"]  # those beside it; nothing was begun after it
    assert store.scored(run, "judge") == {"q1", "q2"}


def row(store: Store, system: str, failed: FailedPolicy | None = None, metric: str = RUBRIC.name) -> Result:
    found = results(store, "told", Options(draws=100, failed=failed)).rows
    (one,) = (one for one in found if (one.system, one.metric) == (system, metric))
    return one


def test_an_answer_that_trips_the_judge_is_never_worth_more_than_a_wrong_one(store: Store) -> None:
    honest = run_of(store, "honest", *["right"] * 5, *["wrong"] * 3)
    tripper = run_of(store, "tripper", *["right"] * 3, *["wrong, and TRIP"] * 5)
    judge = Rubric("judge", "TRIP")
    assert judged(store, [honest, tripper], judge) == (16, 11, 5)
    assert (row(store, "honest").value, row(store, "honest").policy) == (1.25, "")
    one = row(store, "tripper")
    assert (one.value, one.policy, one.unresolved, one.unscored) == (None, BOTH, 5, 0)
    assert (one.if_wrong, one.if_excluded) == (0.75, 2.0)
    assert row(store, "tripper", FailedPolicy.WRONG).value == 0.75
    for policy in (None, *FailedPolicy):
        board = leaderboard(store, "told", condition="video", options=Options(draws=100, failed=policy))
        assert board.rows[0].system == "honest"
        assert board.items == QUESTIONS
    assert row(store, "tripper", metric=UNRESOLVED.name).levels == {NO_VERDICT: 5}


def test_who_trips_the_judge_is_better_in_no_comparison(store: Store) -> None:
    honest = run_of(store, "honest", *["right"] * 5, *["wrong"] * 3)
    tripper = run_of(store, "tripper", *["right"] * 3, *["wrong, and TRIP"] * 5)
    judged(store, [honest, tripper], Rubric("judge", "TRIP"))
    for policy in (None, *FailedPolicy):
        options = Options(draws=100, failed=policy)
        pairs = compare(store, "told", options, metrics=[RUBRIC.name]).comparisons
        (one,) = pairs
        assert (one.first.system, one.second.system) == ("honest", "tripper")
        assert one.if_wrong.value is not None
        assert one.if_wrong.value > 0
        assert one.difference.p is None or one.difference.p > 0.05 or (one.difference.value or 0) > 0
    (one,) = compare(store, "told", Options(draws=100, failed=FailedPolicy.WRONG), metrics=[RUBRIC.name]).comparisons
    assert one.difference.value == pytest.approx(0.5)


def test_who_trips_the_judge_with_every_answer_has_the_judges_metric_all_the_same(store: Store) -> None:
    honest, tripper = run_of(store, "honest", *["right"] * 8), run_of(store, "tripper", *["TRIP"] * 8)
    judged(store, [honest, tripper], Rubric("judge", "TRIP"))
    assert row(store, "tripper", FailedPolicy.WRONG).value == 0.0
    one = row(store, "tripper")
    assert (one.scorer, one.if_wrong, one.if_excluded, one.unresolved) == ("judge", 0.0, None, 8)


def test_what_is_unresolved_is_asked_again_and_then_it_is_not(store: Store) -> None:
    run = run_of(store, "one", "right", "TRIP", *["wrong"] * 6)
    judged(store, [run], Rubric("judge", "TRIP"))
    again = Rubric("judge", "TRIP")
    assert judged(store, [run], again) == (1, 0, 1)
    healed = Rubric("judge")
    assert judged(store, [run], healed) == (1, 1, 0)
    assert healed.asked == ["q1"]
    assert judged(store, [run], Rubric("judge")) == (0, 0, 0)
    assert (row(store, "one").policy, row(store, "one").unresolved) == ("", 0)


def test_a_fallback_settles_what_the_judge_leaves_open_under_the_judges_name(store: Store) -> None:
    run = run_of(store, "one", "right", "right, TRIP", "wrong, TRIP", *["wrong"] * 5)
    judge, other = Rubric("judge", "TRIP"), Rubric("other")
    assert judged(store, [run], WithFallback(judge, other)) == (8, 8, 0)
    assert other.asked == ["q1", "q2"]
    one = row(store, "one")
    assert (one.scorer, one.value, one.n, one.unresolved) == ("judge", 0.5, 8, 0)
    items = load_items(store, store.card("told"))
    labels = load_labels(store, run, items, UNRESOLVED.name, "judge")
    assert labels == {1: "resolved by the fallback", 2: "resolved by the fallback"}


def test_a_fallback_named_later_is_asked_about_what_is_open_and_about_ties(store: Store) -> None:
    run = run_of(store, "one", *["right"] * 8)
    judged(store, [run], Tied("judge"))
    assert judged(store, [run], Tied("judge")) == (0, 0, 0)  # nobody asks a tied panel again
    assert judged(store, [run], WithFallback(Tied("judge"), Rubric("other"))) == (8, 8, 0)
    assert row(store, "one").value == 2.0


def test_where_the_fallback_has_no_verdict_either_the_answer_stays_open(store: Store) -> None:
    run = run_of(store, "one", *["TRIP"] * 8)
    both = WithFallback(Rubric("judge", "TRIP"), Rubric("other", "TRIP"))
    assert judged(store, [run], both) == (8, 0, 8)
    assert row(store, "one", metric=UNRESOLVED.name).levels == {NO_VERDICT: 8}


@pytest.mark.parametrize("error", [RefusalError("no"), SystemFaultError("no readable reply in 3 tries")])
def test_a_judge_of_others_may_pass_on_what_its_client_raises(store: Store, error: Exception) -> None:
    class Plain(Rubric):
        async def score(self, item: Item, answer: Answer) -> list[Score]:
            raise error

    run = run_of(store, "one", *["right"] * 8)
    assert judged(store, [run], Plain("judge")) == (8, 0, 8)
    assert judged(store, [run], WithFallback(Plain("judge"), Rubric("other"))) == (8, 8, 0)


def test_refusals_do_not_give_a_judge_up_and_a_server_that_is_down_does(store: Store) -> None:
    run = run_of(store, "one", *["TRIP"] * 8)
    assert judged(store, [run], Rubric("judge", "TRIP"), give_up_after=3) == (8, 0, 8)
    down = Rubric("gone", down=True)
    assert judged(store, [run], down, give_up_after=3) == (8, 0, 3)
    assert len(down.asked) == 3


def rubrics(store: Store) -> list[tuple[str, str, float | None, float | None, int]]:
    found = results(store, "told", Options(draws=100)).rows
    return [(one.metric, one.scorer, one.if_wrong, one.if_excluded, one.unresolved) for one in found]


def test_a_judge_without_any_verdict_has_its_metric_all_the_same(store: Store) -> None:
    run, judge = run_of(store, "one", *["TRIP"] * 8), Rubric("judge", "TRIP")
    declare_scorer(store, "told", judge)
    judged(store, [run], judge)
    (one,) = (one for one in rubrics(store) if one[0] == RUBRIC.name)
    assert one == (RUBRIC.name, judge.name, 0.0, None, 8)
    assert {entry.metric.name for entry in open_answers(store, "told")} == {RUBRIC.name}


def test_a_public_copy_shows_that_metric_without_the_judges_name(store: Store) -> None:
    run, judge, unused = run_of(store, "one", *["TRIP"] * 8), Rubric("judge", "TRIP"), Rubric("secret model")
    for one in (judge, unused):
        declare_scorer(store, "told", one)
    judged(store, [run], judge)
    copy = public_copy(store, "told")
    assert (RUBRIC.name, "judge A", 0.0, None, 8) in rubrics(copy)
    assert copy.card("told").gives == {"judge A": (RUBRIC.name,)}


def test_a_deleted_judge_without_any_verdict_leaves_no_metric(store: Store) -> None:
    run, judge = run_of(store, "one", *["TRIP"] * 8), Rubric("judge", "TRIP")
    judge.metrics = (Metric("clarity", "Clarity"),)
    declare_scorer(store, "told", judge)
    judged(store, [run], judge)
    assert ("clarity", "judge", 0.0, None, 8) in rubrics(store)
    assert delete_scores(store, "told", "judge") == 8
    assert "clarity" not in {metric.name for metric in store.card("told").metrics}
    assert [one[0] for one in rubrics(store)] == [RUBRIC.name]  # waits for a judge again


def notes_of(store: Store, failed: FailedPolicy) -> str:
    (one,) = compare(store, "told", Options(draws=100, failed=failed), metrics=[RUBRIC.name]).comparisons
    return " ".join(block.text for block in comparison_blocks(one, RUBRIC) if isinstance(block, Prose))


def test_a_comparison_says_which_items_are_not_in_its_table_and_why(store: Store) -> None:
    runs = [run_of(store, "honest", *["right"] * 8), run_of(store, "tripper", *["right"] * 3, *["TRIP"] * 5)]
    judged(store, runs, Rubric("three-level[m]", "TRIP"))
    for number, run in enumerate(runs):
        own = [f"q{position}" for position in range(8 if number == 0 else 3)]
        labels = ["1" if (item, number) == ("q0", 0) else "2" for item in own]
        store.add_scores(
            run,
            [
                Score(item_id=item, metric=RUBRIC.name, value=float(label), scorer="three-level[m]", label=label)
                for item, label in zip(own, labels, strict=True)
            ],
        )
    contradictory = "Not in the table: 1 item with another outcome (1: score and error type contradict each other)."
    wrong = notes_of(store, FailedPolicy.WRONG)
    assert contradictory in wrong
    assert "Not in the table: 5 items without an outcome on one side or both, which counts as wrong." in wrong
    left_out = notes_of(store, FailedPolicy.EXCLUDE)
    assert contradictory in left_out
    assert "counts as wrong" not in left_out
