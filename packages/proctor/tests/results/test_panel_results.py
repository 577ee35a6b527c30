"""A panel's scores in results, boards, comparisons and audits: what counts, what is left out, and by whom."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from proctor.core import (
    ACCURACY,
    NO_ANSWER,
    Answer,
    Benchmark,
    FailedPolicy,
    InputError,
    Item,
    Judgement,
    Reference,
    Score,
    Status,
    Usage,
)
from proctor.core.formats import CountFormat, FreeTextFormat
from proctor.judges import PANEL_ACCURACY, SINGLE_JUDGE, UNRESOLVED
from proctor.metrics import AccuracyScorer
from proctor.reports.analysis import together_figures
from proctor.results import (
    Options,
    Result,
    analyse,
    compare,
    compared,
    export_rows,
    flagged_judgements,
    judge_agreement,
    leaderboard,
    load_items,
    rank_runs,
    results,
    scorer_coverage,
)
from proctor.results.run_scores import load_accuracy
from proctor.runs import PaidJudgements, Run, Store
from proctor.runs.schema import card_of
from proctor.stats import RankingPlan, Resampling

EXCLUDE = FailedPolicy.EXCLUDE
TWO, THREE = "panel[a, b]", "panel[a, b, c]"


def benchmark(metrics: tuple[object, ...] = (PANEL_ACCURACY,)) -> Benchmark:
    """Four counts and four free texts of four videos."""
    items = [
        Item(
            id=f"{kind}{number}",
            group=f"v{number}",
            question="How many, or why?",
            answer=CountFormat(strict=True) if kind == "count" else FreeTextFormat(max_chars=20),
            reference=Reference(answer=2 if kind == "count" else "to press"),
            tags={"half": number % 2, "kind": kind},
        )
        for kind in ("count", "text")
        for number in range(4)
    ]
    return Benchmark(
        "mixed",
        "Mixed",
        tuple(items),
        metrics,  # type: ignore[arg-type]
        "accuracy",
        facets=("half", "kind"),
        buckets=("half",),
    )


def answers(right: int) -> list[Answer]:
    """Counts of which the first ones are right, and four texts."""
    counts = [
        Answer(item_id=f"count{n}", text=str(2 if n < right else 3), parsed=2 if n < right else 3) for n in range(4)
    ]
    return counts + [Answer(item_id=f"text{n}", text=f"text {n}", parsed=f"text {n}") for n in range(4)]


def add(store: Store, system: str, given: list[Answer]) -> Run:
    """A run scored by code."""
    run = store.start_run("mixed", system, "video", {})
    items = {item.id: item for item in store.items("mixed")}
    scorer = AccuracyScorer()
    store.write(
        run,
        [
            (one, asyncio.run(scorer.score(items[one.item_id], one)) if scorer.applies(items[one.item_id]) else [])
            for one in given
        ],
    )
    return run


def judge(store: Store, run: Run, panel: str, *verdicts: float | None) -> None:
    """A panel's scores on the first texts; None is a tie."""
    store.declare_metrics("mixed", (PANEL_ACCURACY, UNRESOLVED, SINGLE_JUDGE))
    for number, verdict in enumerate(verdicts):
        how = "tie" if verdict is None else "resolved"
        scores = [(UNRESOLVED.name, float(verdict is None), how)]
        scores += [] if verdict is None else [(ACCURACY.name, verdict, "right" if verdict else "wrong")]
        store.add_scores(
            run,
            [
                Score(item_id=f"text{number}", metric=metric, value=value, scorer=panel, label=label)
                for metric, value, label in scores
            ],
        )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = Store(tmp_path / "runs.db")
    opened.add_benchmark(benchmark())
    return opened


def rows(store: Store, metric: str = "accuracy", failed: FailedPolicy = EXCLUDE) -> dict[tuple[str, str], Result]:
    found = results(store, "mixed", Options(draws=100, failed=failed)).rows
    return {(row.system, row.scorer): row for row in found if row.metric == metric}


def test_a_panel_s_accuracy_is_that_of_all_questions(store: Store) -> None:
    judge(store, add(store, "one", answers(right=3)), THREE, 1.0, 0.0, None)
    found = rows(store)
    code, panel = found["one", "code"], found["one", THREE]
    assert (code.value, code.n, code.answered, code.unscored) == (3 / 4, 4, 4, 0)
    assert (panel.value, panel.n, panel.answered) == (4 / 6, 6, 8)
    assert (panel.unresolved, panel.unscored) == (1, 1)
    assert panel.n + panel.unresolved + panel.unscored == panel.answered
    wrong = rows(store, failed=FailedPolicy.WRONG)["one", THREE]
    assert (wrong.value, wrong.n) == (4 / 7, 7)  # the tie is wrong; what waits for the panel is neither
    left = rows(store, "unresolved")["one", THREE]
    assert (left.value, left.n, left.unscored) == (1 / 3, 3, 1)
    assert left.levels == {"resolved": 2, "tie": 1}


def test_slices_count_what_they_hold(store: Store) -> None:
    judge(store, add(store, "one", answers(right=3)), THREE, 1.0, 0.0, None, 1.0)
    found = results(store, "mixed", Options(draws=100, by=("kind",), failed=EXCLUDE)).rows
    panel = {row.facets["kind"]: row for row in found if (row.metric, row.scorer) == ("accuracy", THREE)}
    assert (panel["count"].value, panel["count"].n, panel["count"].unresolved) == (3 / 4, 4, 0)
    assert (panel["text"].value, panel["text"].n, panel["text"].unresolved) == (2 / 3, 3, 1)


def test_causes_are_counted_apart(store: Store) -> None:
    given = [
        *answers(right=4)[:4],
        Answer(item_id="text0", reason=NO_ANSWER, problem=NO_ANSWER),
        Answer(item_id="text1", text="x" * 21, problem="expected at most 20 characters"),
        Answer(item_id="text2", status=Status.TIMED_OUT, text="late"),
        Answer(item_id="text3", status=Status.REFUSED),
    ]
    given[0] = Answer(item_id="count0", reason=NO_ANSWER, problem=NO_ANSWER)
    add(store, "one", given)
    code, waiting = rows(store)["one", "code"], rows(store)["one", ""]
    assert (code.not_submitted, code.unreadable, code.value) == (1, 0, 3 / 4)
    assert (waiting.not_submitted, waiting.unreadable, waiting.timed_out, waiting.refused) == (1, 1, 1, 1)
    assert (waiting.n, waiting.value, waiting.unscored) == (0, None, 4)


def test_boards_hold_systems_against_each_other_by_the_same_scorer(store: Store) -> None:
    for system, right, verdicts in (("one", 4, (1.0, 1.0, None, 0.0)), ("two", 1, (0.0, 1.0, 1.0, 0.0))):
        judge(store, add(store, system, answers(right)), THREE, *verdicts)
    by_code = leaderboard(store, "mixed", condition="video", scorer="code")
    assert (by_code.items, by_code.left_out) == (4, 0)
    by_panel = leaderboard(store, "mixed", condition="video", scorer=THREE)
    assert (by_panel.items, by_panel.left_out) == (8, 0)  # what is unresolved for one is not taken from the other
    assert {row.system: row.value for row in by_panel.rows} == {"one": None, "two": 3 / 8}
    assert {row.system: (row.if_wrong, row.if_excluded) for row in by_panel.rows}["one"] == (6 / 8, 6 / 7)
    wrong = leaderboard(store, "mixed", condition="video", scorer=THREE, options=Options(failed=FailedPolicy.WRONG))
    assert {row.system: row.value for row in wrong.rows} == {"one": 6 / 8, "two": 3 / 8}
    with pytest.raises(InputError, match=r"found accuracy by code, panel\[a, b, c\], expected one scorer"):
        leaderboard(store, "mixed", condition="video")
    board = rank_runs(store, "mixed", plan=RankingPlan(draws=100, stability=100))[0]
    # What one panel did not settle for one system takes nothing from the other.
    assert (board.items, board.left_out) == (8, 0)
    assert board.judge == THREE
    assert {one.standing.name: one.lacking.unresolved for one in board.runs} == {"one": 1, "two": 0}
    found = compare(store, "mixed", Options(draws=100, failed=EXCLUDE)).comparisons
    assert {one.scorer: one.difference.n for one in found if one.metric == "accuracy"} == {"code": 4, THREE: 7}


def test_an_analysis_knows_how_judged_answers_ended(store: Store) -> None:
    given = answers(right=4)
    given[7] = Answer(item_id="text3", status=Status.TIMED_OUT, text="late")
    run = add(store, "one", given)
    judge(store, run, THREE, 1.0, 0.0, None)
    late = Score(item_id="text3", metric=ACCURACY.name, value=0.0, scorer=THREE, label="timed out")
    store.add_scores(run, [late])
    judge(store, run, TWO, 0.0)  # another panel's scores say nothing here
    add(store, "two", answers(right=3))
    found = analyse(store, "mixed", stability=0, plan=Resampling(draws=100))
    ends = {(row["system"], row["format"], row["cause"]): row["count"] for row in found.tables["failures"]}
    assert ends == {
        ("one", "count", "right"): 4,
        ("one", "free_text", "right"): 1,
        ("one", "free_text", "wrong"): 1,
        ("one", "free_text", "unresolved"): 1,
        ("one", "free_text", "timed out"): 1,
        ("two", "count", "right"): 3,
        ("two", "count", "wrong"): 1,
        ("two", "free_text", "not scored"): 4,
    }
    drawn = next(one for one in together_figures(found) if one.name == "failures")
    assert "unresolved" in drawn.svg


def test_one_judge_for_all_runs_is_chosen_by_its_scores_then_by_its_size(store: Store) -> None:
    runs = [add(store, system, answers(right=4)) for system in ("one", "two")]
    card = store.card("mixed")
    items = load_items(store, card)
    assert {one.scorer for one in load_accuracy(store, runs, items, card).values()} == {"code"}
    judge(store, runs[0], TWO, 1.0, None, 1.0, 1.0)
    judge(store, runs[0], THREE, 1.0, 0.0, 1.0)
    equal = load_accuracy(store, runs, items, card)
    assert [equal[run.id].scorer for run in runs] == [THREE, "code"]
    judge(store, runs[1], TWO, 0.0)
    most = load_accuracy(store, runs, items, card)
    assert [most[run.id].scorer for run in runs] == [TWO, TWO]
    assert np.isnan(most[runs[1].id].scores[5:]).all()


def test_code_s_scores_never_make_two_panels_agree(store: Store) -> None:
    run = add(store, "one", answers(right=4))
    judge(store, run, TWO, 1.0, 0.0, 1.0)
    judge(store, run, THREE, 0.0, 1.0, 0.0)
    table, (scores,) = compared(store, "mixed", [TWO], [THREE])
    assert {rating.item for rating in table.ratings} == {"text0", "text1", "text2"}
    assert {(item, metric) for item, _, metric in scores.scores} == {
        (f"text{number}", "accuracy") for number in range(3)
    }


def test_a_judge_may_widen_what_a_metric_scores() -> None:
    card = card_of(benchmark((ACCURACY,)))
    assert not card.metric("accuracy").scores("free_text")
    wider = card.with_metrics((PANEL_ACCURACY, UNRESOLVED))
    assert wider.metric("accuracy") == PANEL_ACCURACY
    assert [metric.name for metric in wider.metrics] == ["accuracy", "unresolved"]
    assert wider.with_metrics((ACCURACY,)) == wider


def test_agreement_by_hand(store: Store) -> None:
    run = add(store, "one", answers(right=4))
    votes = {"j1": (1, 1, 0, 1), "j2": (1, 0, 0, None), "j3": (0, 0, None, None)}
    for name, said in votes.items():
        store.add_scores(
            run,
            [
                Score(item_id=f"text{n}", metric=SINGLE_JUDGE.name, value=value, scorer=name)
                for n, value in enumerate(said)
                if value is not None
            ],
        )
    found = judge_agreement(store, "mixed", [run], ["j1", "j2", "j3"], draws=100)
    assert [(one.n, one.agreeing, one.right_by_first, one.right_by_second) for one in found.pairs] == [
        (3, 2, 2, 1),
        (2, 0, 2, 0),
        (2, 1, 1, 0),
    ]
    assert [one.share for one in found.pairs] == [2 / 3, 0.0, 0.5]
    assert [one.groups for one in found.pairs] == [3, 2, 2]
    for one in found.pairs:
        assert one.ci_low is not None
        assert one.ci_high is not None
        assert 0.0 <= one.ci_low <= (one.share or 0.0) <= one.ci_high <= 1.0
    # Units 110, 100, 00 (text3 has one vote): 2/2 + 2/2 pairs of three apart, twice each ordered: observed 4 of 8
    # votes; margins 3 and 5: expected 2 · 3 · 5 / (8 · 7)
    assert found.alpha.value == pytest.approx(1 - (4 / 8) / (30 / 56))
    assert (found.alpha.n, found.alpha.groups) == (3, 3)
    alone = judge_agreement(store, "mixed", [run], ["j3"], draws=100)
    assert (alone.pairs, alone.alpha.value) == ((), None)


def test_coverage_by_hand(store: Store) -> None:
    """A panel is asked about free text alone; what it left open has a cause, and what it was not asked about has none."""
    run, other = add(store, "one", answers(right=4)), add(store, "two", answers(right=2)[:5])
    store.declare_metrics("mixed", [UNRESOLVED])
    given = [("text0", 1.0, "resolved"), ("text1", 0.0, "resolved, a judgement missing"), ("text2", None, "tie")]
    for name, value, how in given:
        scores = [] if value is None else [Score(item_id=name, metric="accuracy", value=value, scorer=TWO)]
        state = Score(item_id=name, metric="unresolved", value=float(value is None), scorer=TWO, label=how)
        store.add_scores(run, [*scores, state])
    found = {
        (one.metric.name, one.scorer, one.run.system): (one.answers, one.scored, dict(one.unresolved), one.waiting)
        for one in scorer_coverage(store, "mixed", [run, other])
    }
    assert found == {
        ("accuracy", "code", "one"): (4, 4, {}, 0),
        ("accuracy", "code", "two"): (4, 4, {}, 0),
        ("accuracy", TWO, "one"): (4, 2, {"tie": 1}, 1),
        ("accuracy", TWO, "two"): (1, 0, {}, 1),
    }


def test_flagged_judgements_come_with_their_answers(store: Store) -> None:
    run = add(store, "one", answers(right=4))
    for number, flags in ((1, ("prompt-injection",)), (0, ("prompt-injection", "contradiction")), (2, ())):
        key = f"{number}" * 64
        store.put(Judgement(key=key, judge="j", item_id=f"text{number}", reply={"verdict": "right"}, flags=flags))
        score = Score(item_id=f"text{number}", metric="single_judge", value=1, scorer="j", judgement_key=key)
        store.add_scores(run, [score])
    found = flagged_judgements(store, "mixed")
    assert [(one.item, one.flags, one.text) for one in found] == [
        ("text0", ("prompt-injection", "contradiction"), "text 0"),
        ("text1", ("prompt-injection",), "text 1"),
    ]
    assert flagged_judgements(store, "mixed", conditions=["video"]) == found
    with pytest.raises(InputError, match="no run with the system 'two'"):
        flagged_judgements(store, "mixed", ["two"])


def test_what_votes_cost_is_added_up_once(store: Store) -> None:
    paid = PaidJudgements(store)
    vote = Judgement(key="0" * 64, judge="j", item_id="text0", reply={}, usage=Usage(requests=1, cost_usd=0.5))
    assert paid.get(vote.key) is None
    paid.put(vote)
    assert paid.get(vote.key) == store.get(vote.key) == vote
    assert (paid.count, paid.usage.cost_usd) == (1, 0.5)


def test_an_export_has_no_row_for_what_a_scorer_does_not_score(store: Store) -> None:
    judge(store, add(store, "one", answers(right=4)), THREE, 1.0, None)
    _, exported = export_rows(store, "mixed", store.card("mixed"))
    found = {(row["item"], row["metric"], row["scorer"]): row["value"] for row in exported}
    assert not any(item.startswith("text") and scorer == "code" for item, _, scorer in found)
    assert found["text0", "accuracy", THREE] == 1
    assert found["text1", "accuracy", THREE] is None
    assert found["text1", "unresolved", THREE] == 1
    assert found["count0", "accuracy", THREE] == 1
