"""What a run lacks, and its scores under each policy, worked by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import JsonValue

from proctor.core import ACCURACY, Answer, Benchmark, FailedPolicy, Item, Reference, Status
from proctor.core.formats import BinaryFormat
from proctor.judges import UNRESOLVED
from proctor.reports import results_tables
from proctor.results import Options, compare, policies, results
from proctor.results.arrays import STATUS_CODES, Outcomes, Series
from proctor.results.run_scores import RunScores, run_scores
from proctor.runs import BenchmarkCard, Store
from proctor.runs.schema import card_of
from tests.support.contest import NAME, contest_store, skilled, write_run
from tests.support.ledger import ledger_benchmark

NAN = float("nan")
LINES = (Status.ANSWERED, Status.ERROR, Status.FAILED, None, Status.ANSWERED, Status.ANSWERED, Status.FAILED)
# Right, an error of the system (wrong), failed, not asked, no verdict, not judged yet; the last one is not scored by it.
VALUES = [1.0, 0.0, NAN, NAN, NAN, NAN, NAN]
MARKABLE = np.array([True, True, True, True, True, True, False])
UNRESOLVED_ONES = np.array([False, False, False, False, True, False, False])


def run(values: list[float] | None = None, metric: str = "accuracy") -> RunScores:
    codes = [-1 if status is None else STATUS_CODES[status.value] for status in LINES]
    everything = np.ones(len(LINES), dtype=np.bool_)
    outcomes = Outcomes(np.array(codes), everything, everything, ~everything, ~everything)
    series = Series(metric, "judge", np.array(VALUES if values is None else values))
    declared = ACCURACY if metric == "accuracy" else UNRESOLVED
    return run_scores(declared, series, MARKABLE, outcomes, UNRESOLVED_ONES)


def test_every_item_that_a_metric_scores_has_a_score_or_one_reason() -> None:
    one = run()
    masks = [~np.isnan(one.scores), one.failed, one.not_asked, one.unresolved, one.waiting]
    assert (np.sum(masks, axis=0) == MARKABLE).all()
    assert [np.flatnonzero(mask).tolist() for mask in masks] == [[0, 1], [2], [3], [4], [5]]
    assert np.flatnonzero(one.lacking).tolist() == [2, 3, 4]
    assert not one.settled


def test_under_wrong_what_is_lacking_has_the_worst_score_and_what_waits_for_a_judge_has_none() -> None:
    wrong, exclude = run().values(FailedPolicy.WRONG), run().values(FailedPolicy.EXCLUDE)
    np.testing.assert_array_equal(wrong, [1, 0, 0, 0, 0, NAN, NAN])
    np.testing.assert_array_equal(exclude, [1, 0, NAN, NAN, NAN, NAN, NAN])


def test_whether_a_judge_came_to_a_verdict_is_no_score_of_the_system() -> None:
    one = run([0, 0, NAN, NAN, 1, NAN, NAN], metric=UNRESOLVED.name)
    np.testing.assert_array_equal(one.values(FailedPolicy.WRONG), one.values(FailedPolicy.EXCLUDE))


def test_a_run_whose_every_item_has_a_score_is_complete() -> None:
    one = run([1, 0, 1, 0, 1, 1, NAN])
    assert not np.any(one.lacking | one.waiting | one.unsupported)


@pytest.fixture
def card() -> BenchmarkCard:
    return card_of(ledger_benchmark())


def test_the_chosen_policy_goes_before_the_benchmarks_and_none_is_both(card: BenchmarkCard) -> None:
    strict = card_of(replace(ledger_benchmark(), failed=FailedPolicy.WRONG))
    assert policies(None, card) == (FailedPolicy.WRONG, FailedPolicy.EXCLUDE)
    assert policies(None, strict) == (FailedPolicy.WRONG,)
    assert policies(FailedPolicy.EXCLUDE, strict) == (FailedPolicy.EXCLUDE,)


def test_a_card_of_an_older_store_names_no_policy(card: BenchmarkCard) -> None:
    old = card.model_dump(mode="json")
    del old["failed"]
    assert BenchmarkCard.model_validate(old).failed is None


def test_where_nothing_is_decided_a_comparison_holds_under_both_readings(tmp_path: Path) -> None:
    """The larger p of the two readings, and an interval that reaches over both."""
    store = contest_store(tmp_path, failed=None)
    write_run(store, "whole", skilled(0.9, 0.8, seed=1))
    partly = [right if number % 10 else None for number, right in enumerate(skilled(0.8, 0.7, seed=2))]
    write_run(store, "partly", partly)
    (one,) = compare(store, NAME, Options(draws=200, systems=("whole", "partly"))).comparisons
    wrong, excluded = one.if_wrong, one.if_excluded
    assert one.policy == "both"
    assert wrong.p is not None
    assert excluded.p is not None
    assert wrong.p < excluded.p
    assert (one.difference.value, one.difference.p) == (None, excluded.p)
    ends = [end for end in (wrong.ci_low, wrong.ci_high, excluded.ci_low, excluded.ci_high) if end is not None]
    assert (one.difference.ci_low, one.difference.ci_high) == (min(ends), max(ends))
    for names, left_out in ((("whole", "partly"), (24, 0)), (("partly", "whole"), (0, 24))):
        options = Options(draws=200, systems=names, failed=FailedPolicy.EXCLUDE)
        (one,) = compare(store, NAME, options).comparisons
        assert (one.first.system, one.only_first, one.only_second, one.difference.n) == (names[0], *left_out, 216)


def test_of_unreadable_answers_those_that_the_token_limit_cut_off_are_counted(tmp_path: Path) -> None:
    """`run` said why they can't be read, and what is published did not. Readable ones and other causes don't count."""
    items = tuple(
        Item(id=f"q{n}", group=f"g{n}", question="?", answer=BinaryFormat(), reference=Reference(answer=True))
        for n in range(6)
    )
    benchmark = Benchmark("cut", "Cut", items, (ACCURACY,), ACCURACY.name)
    store = Store(tmp_path / "runs.db")
    store.add_benchmark(benchmark)
    run = store.start_run("cut", "m", "text-only", {})
    ended: list[tuple[bool | None, dict[str, JsonValue]]] = [
        (True, {"cut_off": True}),
        (True, {"cut_off": False}),
        (None, {"finish_reason": "MAX_TOKENS", "cut_off": True}),
        (None, {"cut_off": True, "frames": 8}),
        (None, {"cut_off": False, "model": '"cut_off": true'}),
        (None, {}),
    ]
    for item, (value, extra) in zip(items, ended, strict=True):
        store.write(run, [(Answer(item_id=item.id, text="yes" if value else "hm", parsed=value, extra=extra), ())])
    (row,) = results(store, "cut", Options(draws=100)).rows
    assert (row.answered, row.unreadable, row.cut_off) == (6, 4, 2)
    (table,) = results_tables(results(store, "cut", Options(draws=100)))
    named = dict(zip([column.label for column in table.columns], table.rows[0], strict=True))
    assert (named["Unreadable"], named["Of these cut off"]) == (4, 2)
    store.close()
