"""Confidences of runs whose items were answered several times: by hand, and against the same answers as rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proctor.core import ACCURACY, Answer, Benchmark, FailedPolicy, Item, Reference, Score, Status
from proctor.core.formats import BinaryFormat
from proctor.results import ConfidenceResult, Options, confidence_results, results
from proctor.runs import Store
from proctor.stats import Resampling, calibration, risk_coverage, sure_errors

Said = tuple[bool, float | None] | Status | None
"""Whether an answer is right and its confidence; a status; or no answer."""

QUICK = Options(draws=200)


def stored(folder: Path, rows: list[list[Said]], *, groups: int = 0) -> Store:
    """A run whose items have these repetitions, every item a group of its own, or in `groups`."""
    items = tuple(
        Item(
            id=f"q{k}",
            group=f"v{k % groups if groups else k}",
            question="?",
            answer=BinaryFormat(),
            reference=Reference(answer=True),
        )
        for k in range(len(rows))
    )
    folder.mkdir(exist_ok=True)
    store = Store(folder / "runs.db")
    store.add_benchmark(Benchmark("toy", "Toy", items, (ACCURACY,), "accuracy"))
    run = store.start_run("toy", "model", "video", {"repeats": len(rows[0])} if len(rows[0]) > 1 else {})
    for repetition in range(len(rows[0])):
        for item, row in zip(items, rows, strict=True):
            said = row[repetition]
            if said is None:
                continue
            if isinstance(said, Status):
                ended = Answer(item_id=item.id, repetition=repetition, status=said, reason="no")
                wrong = Score(item_id=item.id, repetition=repetition, metric="accuracy", value=0.0)
                store.write(run, [(ended, [] if said is Status.FAILED else [wrong])])
                continue
            right, sure = said
            stated: dict[str, Any] = {} if sure is None else {"confidence": {"source": "stated", "value": sure}}
            answer = Answer(item_id=item.id, repetition=repetition, text="yes", parsed=right, extra=stated)
            score = Score(item_id=item.id, repetition=repetition, metric="accuracy", value=float(right))
            store.write(run, [(answer, [score])])
    return store


def row_of(store: Store, options: Options = QUICK) -> ConfidenceResult:
    (row,) = confidence_results(store, "toy", options).rows
    return row


def test_all_repetitions_count_by_hand(tmp_path: Path) -> None:
    """Four items, two answers each: 8 answers, of which 5 are right; in the order of confidence R R W R W R, then two
    without a confidence (one right, one an abstention)."""
    rows: list[list[Said]] = [
        [(True, 0.95), (True, 0.9)],
        [(False, 0.85), (True, 0.8)],
        [(False, 0.7), (True, 0.6)],
        [(True, None), Status.ABSTAINED],
    ]
    row = row_of(stored(tmp_path, rows))
    assert (row.n, row.answers, row.repetitions, row.groups) == (4, 8, 2, 4)
    assert (row.with_confidence, row.without_confidence, row.abstained, row.abstained_right) == (6, 1, 1, 0)
    assert row.accuracy.value == pytest.approx((1 + 0.5 + 0.5 + 0.5) / 4)
    assert row.curve is not None
    # risks after 1 … 6 answers; the last two are one tie with one wrong: 2.5/7 and 3/8
    risks = [0, 0, 1 / 3, 1 / 4, 2 / 5, 2 / 6, 2.5 / 7, 3 / 8]
    assert row.curve.area.value == pytest.approx(sum(risks) / 8)
    half = row.accuracy_at(0.5)
    assert half is not None
    assert half.value == pytest.approx(3 / 4)
    assert row.curve.points[-1].risk.value == pytest.approx(3 / 8)
    assert row.calibration is not None
    squares = [0.05**2, 0.1**2, 0.85**2, 0.2**2, 0.7**2, 0.4**2]
    assert row.calibration.brier.value == pytest.approx(sum(squares) / 6)
    assert row.calibration.bias.value == pytest.approx((0.95 + 0.9 + 0.85 + 0.8 + 0.7 + 0.6) / 6 - 4 / 6)
    assert row.sure is not None
    assert (row.sure.errors, row.sure.n, row.sure.groups) == (0.0, 2, 1)
    assert row.sure.limit is None  # two answers to one item bound nothing
    shown = row.to_json()
    assert (shown["answers"], shown["repetitions"]) == (8, 2)


def test_what_failed_or_was_not_asked_is_wrong_and_comes_last_or_is_left_out(tmp_path: Path) -> None:
    rows: list[list[Said]] = [[(True, 0.9), Status.FAILED], [(True, 0.8), (False, 0.3)], [(True, 0.7), None]]
    store = stored(tmp_path, rows)
    wrong = row_of(store)
    assert (wrong.n, wrong.answers, wrong.lacking, wrong.policy) == (3, 6, 2, "wrong")
    assert wrong.accuracy.value == pytest.approx(0.5)
    assert wrong.curve is not None
    assert wrong.curve.area.value == pytest.approx((0 + 0 + 0 + 1 / 4 + 2 / 5 + 3 / 6) / 6)
    out = row_of(store, Options(draws=200, failed=FailedPolicy.EXCLUDE))
    assert (out.n, out.answers, out.lacking, out.policy) == (3, 4, 2, "exclude")
    assert out.accuracy.value == pytest.approx((1 + 0.5 + 1) / 3)


def test_the_accuracy_is_that_of_results(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    rows: list[list[Said]] = [[(bool(rng.random() < 0.7), float(rng.random())) for _ in range(3)] for _ in range(30)]
    store = stored(tmp_path, rows, groups=8)
    (found,) = results(store, "toy").rows
    one = row_of(store, Options()).accuracy
    assert (one.value, one.ci_low, one.ci_high) == (found.value, found.ci_low, found.ci_high)


def test_the_same_answer_given_five_times_is_one_answer(tmp_path: Path) -> None:
    """An item is never taken for several: with the same answers again and again, no interval gets narrower."""
    rng = np.random.default_rng(5)
    once: list[list[Said]] = [[(bool(rng.random() < 0.6), float(rng.integers(1, 20)) / 20)] for _ in range(40)]
    one = row_of(stored(tmp_path / "once", once, groups=10))
    five = row_of(stored(tmp_path / "five", [row * 5 for row in once], groups=10))
    assert (one.n, one.answers, five.n, five.answers) == (40, 40, 40, 200)
    for first, second in (
        (one.accuracy, five.accuracy),
        *zip((point.risk for point in one.points), (point.risk for point in five.points), strict=True),
    ):
        for name in ("value", "ci_low", "ci_high"):
            assert getattr(second, name) == pytest.approx(getattr(first, name), abs=1e-6)
    assert one.calibration is not None
    assert five.calibration is not None
    assert one.sure is not None
    assert five.sure is not None
    for name in ("error", "brier", "bias"):
        a, b = getattr(one.calibration, name), getattr(five.calibration, name)
        assert (b.value, b.ci_low, b.ci_high) == pytest.approx((a.value, a.ci_low, a.ci_high), abs=0.01)
    assert five.calibration.debiased == pytest.approx(one.calibration.debiased, abs=1e-6)
    assert five.sure.limit == pytest.approx(one.sure.limit, abs=1e-6)


def test_the_figures_are_those_of_all_answers_as_rows(tmp_path: Path) -> None:
    """An oracle: the statistics on a table of answers, each with its item's group."""
    rng = np.random.default_rng(11)
    for number in range(4):
        rows: list[list[Said]] = [
            [
                (bool(rng.random() < 0.6), round(float(rng.random()), 2)) if rng.random() < 0.9 else (True, None)
                for _ in range(4)
            ]
            for _ in range(25)
        ]
        row = row_of(stored(tmp_path / str(number), rows, groups=7))
        flat = [(k % 7, said) for k, some in enumerate(rows) for said in some if isinstance(said, tuple)]
        losses = [1.0 - right for _, (right, _) in flat]
        sure = [np.nan if one is None else one for _, (_, one) in flat]
        groups, plan = [group for group, _ in flat], Resampling(draws=200, bounds=(0.0, 1.0))
        curve, gap = risk_coverage(losses, sure, groups, plan), calibration(losses, sure, groups, plan)
        assert row.curve is not None
        assert row.calibration is not None
        assert row.curve.area.value == pytest.approx(curve.area.value)
        assert [one.risk.value for one in row.points] == pytest.approx([one.risk.value for one in curve.points])
        assert (row.curve.area.ci_low, row.curve.area.ci_high) == pytest.approx((curve.area.ci_low, curve.area.ci_high))
        assert row.calibration.error == gap.error
        assert row.calibration.debiased == pytest.approx(gap.debiased)
        assert row.sure == sure_errors(losses, sure, groups)
