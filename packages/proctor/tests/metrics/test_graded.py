"""How nearly right an answer is: by hand, and against what ActivityNet's own program gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.core import Answer, Item, Reference, Status
from proctor.core.formats import IntervalsFormat, QuantityFormat, covered, iou, matching
from proctor.metrics import GradedScorer, estimates_of, graded_metrics
from proctor.metrics.graded import AP_LEAST, average_precision, hits_by_rank, located_sums
from proctor.stats import Resampling


def when(*references: Any, several: bool = True) -> Item:
    answer, *accepted = references
    return Item(
        id="q1",
        group="v1",
        question="When?",
        answer=IntervalsFormat(several=several),
        reference=Reference(answer=answer, accepted=tuple(accepted)),
    )


def graded(item: Item, parsed: Any) -> dict[str, float]:
    said = Answer(item_id=item.id, text="-", parsed=parsed, problem="" if parsed is not None else "expected")
    return {one.metric: one.value for one in GradedScorer().compute(item, said)}


def test_overlap_by_hand() -> None:
    assert iou((0, 10), (5, 15)) == 5 / 15
    assert iou((0, 10), (10, 20)) == 0
    assert iou((0, 0, 4, 4), (2, 2, 6, 6)) == 4 / 28
    # 10 of 0-10 and 20-30; said 5-25 and 8-12 (inside it): both cover 5-10 and 20-25, either 0-30.
    assert covered([(0, 10), (20, 30)], [(5, 25), (8, 12)]) == 10 / 30
    # two boxes side by side cover what one box covers
    assert covered([(0, 0, 4, 2)], [(0, 0, 2, 2), (2, 0, 4, 2)]) == 1


def test_grades_by_hand() -> None:
    item = when([[0, 10], [20, 30]])
    # the first overlaps 9/10, the second 6/10; said in the order of sureness
    found = graded(item, [[0, 9], [24, 30]])
    assert found["iou"] == 15 / 20
    assert (found["recall_at_0.3"], found["recall_at_0.5"], found["recall_at_0.7"]) == (1, 1, 0.5)
    # precision 1 at recall 0.5 (overlaps to 0.9) and at recall 1 (to 0.6): 1 · 3 + 0.5 · 6 + 0 of ten thresholds
    assert found["average_precision"] == pytest.approx((3 * 1 + 6 * 0.5) / 10)


def test_relative_error_by_hand() -> None:
    item = Item(
        id="q1",
        group="v1",
        question="How long?",
        answer=QuantityFormat(unit="mm"),
        reference=Reference(answer=20.0, accepted=(30.0,)),
    )
    assert graded(item, 25.0) == {"relative_error": pytest.approx(5 / 30)}  # of two references the nearer one
    assert graded(item, 500.0) == {"relative_error": 1.0}
    assert graded(item, None) == {"relative_error": 1.0}
    none = item.model_copy(update={"reference": Reference(answer=0.0)})
    assert (graded(none, 0.0), graded(none, 1.0)) == ({"relative_error": 0.0}, {"relative_error": 1.0})


def test_what_is_not_there_is_worst_and_the_best_of_several_references_counts() -> None:
    assert set(graded(when([[0, 10]]), None).values()) == {0.0}
    late = Answer(item_id="q1", status=Status.TIMED_OUT, reason="late")
    assert {(one.value, one.label) for one in GradedScorer().compute(when([[0, 10]]), late)} == {(0.0, "timed out")}
    assert graded(when([[50, 60]], [[0, 10]]), [[0, 10]])["iou"] == 1
    with pytest.raises(ValueError, match="never scored"):
        GradedScorer().compute(when([[0, 10]]), Answer(item_id="q1", status=Status.FAILED, reason="down"))


def test_a_benchmark_declares_the_metrics_of_its_formats_alone() -> None:
    assert graded_metrics(["choice", "binary"]) == ()
    assert [one.name for one in graded_metrics(["intervals"])] == [
        "iou",
        "recall_at_0.3",
        "recall_at_0.5",
        "recall_at_0.7",
        "average_precision",
    ]


ORACLE = json.loads((Path(__file__).parent / "activitynet_precision.json").read_text(encoding="utf-8"))
"""120 random queries with the average precision at IoU 0.5, 0.55 … 0.95 that `compute_average_precision_detection` of
activitynet/ActivityNet (commit 82304fa, Evaluation/eval_detection.py) gives them; scores fall from the first
prediction to the last."""


def test_average_precision_is_that_of_activitynet() -> None:
    for case in ORACLE:
        reference = [tuple(one) for one in case["reference"]]
        prediction = [tuple(one) for one in case["prediction"]]
        found = [average_precision(reference, prediction, least) for least in AP_LEAST]
        assert found == pytest.approx(case["ap"], abs=1e-11), case
        mean = graded(when(case["reference"]), case["prediction"])["average_precision"]
        assert mean == pytest.approx(np.mean(case["ap"]), abs=1e-11)
    assert {0.0, 1.0} < {value for case in ORACLE for value in case["ap"]}, "the cases tell programs apart"


def test_of_one_question_the_pooled_precision_is_that_of_activitynet() -> None:
    for case in ORACLE[:40]:
        found = estimates_of(located_sums([case["reference"]], [case["prediction"]]), ["v"], Resampling(draws=1))
        values = [one.estimate.value for one in found]
        wanted = [np.mean(case["ap"]), case["ap"][0], case["ap"][5]]
        assert values == pytest.approx(wanted, abs=1e-11)


def test_pooled_precision_by_hand() -> None:
    """Three questions with one reference each; firsts: hit, miss, hit; a second: hit for the second question.

    After the firsts 2 of 3 are found by 3 named (2/3), after the second 3 of 3 by 4 named (3/4, which is higher, so
    that the curve is 3/4 all along): 3/4. A fourth question without an answer: 3 of 4, 3/4 · 3/4.
    """
    references: list[Any] = [[[0, 10]]] * 3
    said: list[Any] = [[[0, 10]], [[50, 60], [0, 10]], [[0, 10]]]
    found = estimates_of(located_sums(references, said), list("abc"), Resampling(draws=50))
    assert [one.estimate.value for one in found] == pytest.approx([0.75] * 3)
    more = estimates_of(located_sums([*references, [[0, 10]]], [*said, None]), list("abcd"), Resampling(draws=200))
    assert more[0].estimate.value == pytest.approx(0.75 * 0.75)
    assert more[0].estimate.ci_low is not None
    assert more[0].estimate.ci_high is not None
    assert more[0].estimate.ci_low < 0.5625 < more[0].estimate.ci_high
    assert estimates_of(located_sums([], []), [])[0].estimate.value is None


def test_the_interval_of_the_pooled_precision_respects_the_clusters() -> None:
    """Ten videos that are all right or all wrong: 40 copies of a question in each say no more than one."""
    rng = np.random.default_rng(5)
    right = rng.random(10) < 0.5
    one = estimates_of(
        located_sums([[[0, 10]]] * 10, [[[0, 10]] if ok else None for ok in right]),
        [f"v{n}" for n in range(10)],
        Resampling(draws=500),
    )[0].estimate
    many = estimates_of(
        located_sums([[[0, 10]]] * 400, [[[0, 10]] if right[n % 10] else None for n in range(400)]),
        [f"v{n % 10}" for n in range(400)],
        Resampling(draws=500),
    )[0].estimate
    assert (one.ci_low, one.ci_high) == pytest.approx((many.ci_low, many.ci_high))
    assert (many.n, many.groups) == (400, 10)


_SPANS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 10)).map(lambda one: (one[0], one[0] + one[1])), max_size=5
)


@settings(max_examples=150, deadline=None)
@given(_SPANS, _SPANS, st.sampled_from([0.3, 0.5, 0.9]))
def test_matching_and_cover_agree_with_counting(a: list[Any], b: list[Any], least: float) -> None:
    seconds = [{second for low, high in some for second in range(low, high)} for some in (a, b)]
    both, either = seconds[0] & seconds[1], seconds[0] | seconds[1]
    assert covered(a, b) == pytest.approx(len(both) / len(either) if either else 0)
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    near = np.array([[iou(one, other) >= least for other in b] for one in a], dtype=int).reshape(len(a), len(b))
    most = int((maximum_bipartite_matching(csr_array(near)) >= 0).sum()) if near.size else 0
    assert matching(a, b, least) == most
    assert sum(hits_by_rank(a, b, least)) <= most
