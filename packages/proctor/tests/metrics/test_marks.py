"""Scores beyond accuracy: by hand, against other implementations, and whatever the order and the names."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    balanced_accuracy_score,
    cohen_kappa_score,
    f1_score,
    jaccard_score,
    matthews_corrcoef,
    precision_score,
    recall_score,
)

from proctor.core import InputError
from proctor.metrics import MetricEstimate, estimates_of
from proctor.metrics.corpus import (
    count_sums,
    match_times,
    nominal_sums,
    percentage_sums,
    scale_sums,
    set_sums,
    time_sums,
)
from proctor.stats import Resampling, mean_interval, sums_interval

RNG = np.random.default_rng(0)
VIDEOS = [f"v{number}" for number in RNG.integers(0, 12, 120)]


def values(scores: list[MetricEstimate]) -> dict[tuple[str, str], float | None]:
    return {(score.metric.name, score.part): score.estimate.value for score in scores}


def test_counts_by_hand() -> None:
    # References 1 2 2 5 8, median 2: the constant costs 1 + 0 + 0 + 3 + 6 = 10. Answers cost 0 + 1 + 0 + 2,
    # and the missing one 8 − 1 = 7: 10 / 10.
    scores = values(estimates_of(count_sums([1, 2, 2, 5, 8], [1, 3, 2, 7, None]), list("abcde")))
    assert scores == {
        ("normalised_cost", ""): 1.0,
        ("absolute_error", ""): 2.0,
        ("absolute_error", "answered only"): 0.75,
        ("unanswered", ""): 0.2,
        ("within_one", ""): 0.6,
    }


def test_the_best_constant_costs_one_and_nothing_is_cheaper() -> None:
    truth = RNG.poisson(3, 120).astype(float).tolist()
    costs = {
        constant: values(estimates_of(count_sums(truth, [constant] * 120), VIDEOS, Resampling(draws=1)))[
            "normalised_cost", ""
        ]
        for constant in range(9)
    }
    assert min(cost for cost in costs.values() if cost is not None) == 1.0
    assert costs[int(np.sort(truth)[59])] == 1.0


def test_counts_that_say_nothing() -> None:
    assert values(estimates_of(count_sums([2, 2], [2, 2]), ["a", "b"]))["normalised_cost", ""] is None
    assert set(values(estimates_of(count_sums([], []), [])).values()) == {None}


def brute_force(reference: list[float], prediction: list[float], tolerance: float) -> tuple[int, float]:
    short, long = sorted((reference, prediction), key=len)
    best = (0, 0.0)
    for chosen in permutations(long, len(short)):
        near = [abs(a - b) for a, b in zip(short, chosen, strict=True) if abs(a - b) <= tolerance]
        best = max(best, (len(near), -sum(near)))
    return best[0], -best[1]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 30).map(float), max_size=4),
    st.lists(st.integers(0, 30).map(float), max_size=5),
    st.sampled_from([0.0, 2.0, 5.0, float("inf")]),
)
def test_matching_is_the_best_there_is(a: list[float], b: list[float], tolerance: float) -> None:
    pairs = match_times(a, b, tolerance)
    count, cost = brute_force(a, b, tolerance)
    assert len(pairs) == count
    assert sum(abs(a[i] - b[j]) for i, j in pairs) == pytest.approx(cost)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == count


def test_times_by_hand() -> None:
    # Matched within 5 s: 10–12; 20–none; 40–41; the third answer names nothing. 2 of 4 found, 2 of 3 named.
    scores = values(
        estimates_of(
            time_sums([[10], [20, 40], [7]], [[12, 99], [41], None], tolerances=(5,)), list("abc"), Resampling(draws=50)
        )
    )
    assert scores["time_error", "answered only"] == pytest.approx((2 + 1) / 2)
    assert ("time_error", "") not in scores, "nobody knows how far off the third could have been"
    assert scores["unanswered", ""] == pytest.approx(1 / 3)
    assert scores["time_recall", "5 s"] == pytest.approx(2 / 4)
    assert scores["time_precision", "5 s"] == pytest.approx(2 / 3)
    assert scores["time_f1", "5 s"] == pytest.approx(4 / 7)


def test_a_missing_time_is_as_far_off_as_the_video_allows() -> None:
    # Shown are 0 to 100 s: off 7 at most 93, off 20 and 40 at most (80 + 60) / 2 = 70.
    references, groups = [[10.0], [20.0, 40.0], [7.0]], list("abc")
    spans = [(0.0, 100.0)] * 3
    scores = values(
        estimates_of(time_sums(references, [[12.0], None, None], spans=spans), groups, Resampling(draws=50))
    )
    assert scores["time_error", ""] == pytest.approx((2 + 70 + 93) / 3)
    assert scores["time_error", "answered only"] == pytest.approx(2)


def test_percentages_by_hand() -> None:
    # Off by 4, 5 and 5.5; the missing one at 30 may be off by 70.
    scores = values(
        estimates_of(percentage_sums([20, 50, 90, 30], [24, 45, 84.5, None]), list("abcd"), Resampling(draws=50))
    )
    assert scores["percentage_error", ""] == pytest.approx((4 + 5 + 5.5 + 70) / 4)
    assert scores["percentage_error", "answered only"] == pytest.approx(14.5 / 3)
    assert scores["unanswered", ""] == 0.25
    assert scores["within_five_points", ""] == 0.5


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=2, max_size=12), st.data())
def test_leaving_an_answer_out_never_lowers_the_error(pairs: list[tuple[int, int]], data: Any) -> None:
    """Whatever was answered within the scale: without the answer the error over all questions is no smaller."""
    truth, said = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    out = data.draw(st.integers(0, len(pairs) - 1))
    fewer: list[float | None] = [None if position == out else one for position, one in enumerate(said)]
    groups = [str(position) for position in range(len(pairs))]
    whole = values(estimates_of(percentage_sums(truth, said), groups, Resampling(draws=1)))["percentage_error", ""]
    less = values(estimates_of(percentage_sums(truth, fewer), groups, Resampling(draws=1)))["percentage_error", ""]
    spans, single = [(0.0, 100.0)] * len(pairs), [[one] for one in truth]
    timed = values(estimates_of(time_sums(single, [[one] for one in said], spans=spans), groups, Resampling(draws=1)))
    fewer_times = [None if one is None else [one] for one in fewer]
    untimed = values(estimates_of(time_sums(single, fewer_times, spans=spans), groups, Resampling(draws=1)))
    for before, after in ((whole, less), (timed["time_error", ""], untimed["time_error", ""])):
        assert before is not None
        assert after is not None
        assert after >= before - 1e-9


def test_sets_against_another_implementation() -> None:
    names = ["clip", "mesh", "sponge"]
    truth, said = RNG.random((60, 3)) < 0.5, RNG.random((60, 3)) < 0.4
    scores = values(
        estimates_of(
            set_sums(
                [[name for name, here in zip(names, row, strict=True) if here] for row in truth],
                [[name for name, here in zip(names, row, strict=True) if here] for row in said],
            ),
            VIDEOS[:60],
            Resampling(draws=20),
        )
    )
    for number, name in enumerate(names):
        pair = (truth[:, number], said[:, number])
        assert scores["class_precision", name] == pytest.approx(precision_score(*pair))
        assert scores["class_recall", name] == pytest.approx(recall_score(*pair))
        assert scores["class_f1", name] == pytest.approx(f1_score(*pair))
    expected = jaccard_score(truth, said, average="samples", zero_division=1.0)
    assert scores["jaccard", ""] == pytest.approx(expected)


def test_a_set_that_is_missing_agrees_with_nothing() -> None:
    scores = values(estimates_of(set_sums([["clip"], []], [None, None]), ["a", "b"]))
    assert scores["jaccard", ""] == 0.0
    assert (scores["class_recall", "clip"], scores["class_precision", "clip"]) == (0.0, None)


def test_nominal_against_another_implementation() -> None:
    truth = RNG.integers(0, 4, 120)
    said = np.where(RNG.random(120) < 0.5, truth, RNG.integers(0, 4, 120))
    letters = [list("ABCD")[number] for number in truth], [list("ABCD")[number] for number in said]
    scores = values(estimates_of(nominal_sums(*letters), VIDEOS, Resampling(draws=20)))
    assert scores["balanced_accuracy", ""] == pytest.approx(balanced_accuracy_score(truth, said))
    assert scores["mcc", ""] == pytest.approx(matthews_corrcoef(truth, said))


def test_no_answer_is_a_wrong_class() -> None:
    scores = values(estimates_of(nominal_sums([True, True, False, False], [True, None, False, None]), list("abcd")))
    assert scores["balanced_accuracy", ""] == 0.5
    assert scores["mcc", ""] == pytest.approx(matthews_corrcoef(list("yynn"), list("y-n-")))


def test_names_and_order_change_nothing() -> None:
    truth = RNG.poisson(2, 120).astype(float)
    said = np.maximum(0, truth + RNG.integers(-1, 3, 120))
    order = RNG.permutation(120)
    renamed = [f"other {VIDEOS[position]}" for position in order]
    given = [None if position % 10 == 0 else float(one) for position, one in enumerate(said)]
    first = estimates_of(count_sums(truth.tolist(), given), VIDEOS, Resampling(draws=300))
    second = estimates_of(
        count_sums(truth[order].tolist(), [given[position] for position in order]), renamed, Resampling(draws=300)
    )
    assert first == second
    for score in first:
        assert score.estimate.ci_low is not None
        assert score.estimate.ci_high is not None
        assert score.estimate.value is not None
        assert score.estimate.ci_low < score.estimate.value < score.estimate.ci_high


def test_a_mean_as_a_quotient_of_sums_has_nearly_the_interval_of_the_mean() -> None:
    right = 0.5 * (RNG.random(120) < 0.6)  # a score between its bounds; a share has an interval of its own
    columns = np.stack([right, np.ones(120)], axis=1)
    one = sums_interval(
        columns, VIDEOS, lambda sums: sums[:, 0] / sums[:, 1], plan=Resampling(draws=4000, bounds=(0, 1))
    )
    other = mean_interval(right, VIDEOS, Resampling(draws=4000, bounds=(0, 1)))
    assert one.value == other.value
    assert one.ci_low == pytest.approx(other.ci_low, abs=0.02)
    assert one.ci_high == pytest.approx(other.ci_high, abs=0.02)


def test_two_levels_of_a_quotient_are_those_of_the_mean_and_wider() -> None:
    right = (RNG.random(120) < 0.6).astype(float)
    columns = np.stack([right, np.ones(120)], axis=1)

    def ends(columns: Any, groups: Any, *, two_level: bool) -> tuple[float, float]:
        one = sums_interval(
            columns,
            groups,
            lambda sums: sums[:, 0] / sums[:, 1],
            plan=Resampling(draws=4000, method="percentile", two_level=two_level),
        )
        assert one.ci_low is not None
        assert one.ci_high is not None
        return one.ci_low, one.ci_high

    mean = mean_interval(right, VIDEOS, Resampling(draws=4000, method="percentile", two_level=True))
    found, plain = ends(columns, VIDEOS, two_level=True), ends(columns, VIDEOS, two_level=False)
    assert found[0] == pytest.approx(mean.ci_low, abs=0.015)
    assert found[1] == pytest.approx(mean.ci_high, abs=0.015)
    assert found[1] - found[0] > 1.1 * (plain[1] - plain[0])
    shuffled = RNG.permutation(120)
    renamed = [f"z{VIDEOS[position]}" for position in shuffled]
    assert ends(columns[shuffled], renamed, two_level=True) == found


def test_intervals_of_a_quotient_cover_by_simulation() -> None:
    rng, held = np.random.default_rng(4), 0
    for _ in range(300):
        sizes = rng.geometric(0.15, 30)
        groups = np.repeat(np.arange(30), sizes)
        chance = rng.beta(2, 3, 30)[groups]
        truth = rng.random(len(groups)) < 0.5
        said = np.where(rng.random(len(groups)) < chance, truth, ~truth)
        columns = np.stack([truth & said, truth, said], axis=1).astype(float)
        one = sums_interval(
            columns, groups, lambda sums: sums[:, 0] / sums[:, 1], plan=Resampling(draws=500, bounds=(0, 1))
        )
        assert one.ci_low is not None
        assert one.ci_high is not None
        held += one.ci_low <= 0.4 <= one.ci_high
    assert 0.91 <= held / 300 <= 0.985  # two standard errors around 93 to 97 %


@pytest.mark.parametrize("sums", [count_sums, time_sums, set_sums, nominal_sums, percentage_sums])
def test_lengths_that_differ_are_named(sums: Any) -> None:
    with pytest.raises(InputError, match="found 0, expected 1, one for each item"):
        sums([[1]], [])


def test_groups_that_are_not_one_for_each_item_are_named() -> None:
    with pytest.raises(InputError, match="groups: found 1, expected 2, one for each item"):
        estimates_of(count_sums([1, 2], [1, 2]), ["a"])


def test_sums_refuse_what_they_do_not_do() -> None:
    with pytest.raises(InputError, match=r"columns: found shape \(2,\), expected items × columns of numbers"):
        sums_interval(np.ones(2), ["a", "b"], lambda sums: sums[:, 0])


def test_a_perfect_precision_is_not_known_for_sure() -> None:
    one = sums_interval(
        np.ones((8, 2)), list("abcdefgh"), lambda sums: sums[:, 0] / sums[:, 1], plan=Resampling(bounds=(0, 1))
    )
    assert (one.value, one.ci_high) == (1.0, 1.0)
    assert one.ci_low == pytest.approx(0.025 ** (1 / 8))


def test_weighted_kappa_is_that_of_scikit_learn_on_any_levels() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        low = int(rng.integers(-2, 3))
        high, n = low + int(rng.integers(1, 9)), int(rng.integers(2, 40))
        truth, said = rng.integers(low, high + 1, n), rng.integers(low, high + 1, n)
        groups = rng.integers(0, 5, n).tolist()
        (score,) = estimates_of(
            scale_sums(truth.tolist(), said.tolist(), [(low, high)] * n), groups, Resampling(draws=100)
        )
        if len({*truth.tolist(), *said.tolist()}) == 1:
            assert score.estimate.value is None
        else:
            levels = [*range(low, high + 1)]  # else it leaves out those that nobody used, and the distances shrink
            theirs = cohen_kappa_score(truth, said, weights="quadratic", labels=levels)
            assert score.estimate.value == pytest.approx(theirs, abs=1e-12)


def test_weighted_kappa_by_hand_with_a_missing_answer_and_two_scales() -> None:
    """References 1, 2, 4 and answers 1, 3, none: none is 1, the far end from 4. Σ(x−y)² = 0 + 1 + 9 = 10; by chance the
    mean of (x−y)² over the nine pairs, times three: (0 + 4 + 0 + 1 + 1 + 1 + 9 + 1 + 9) / 3 = 26 / 3."""
    scales = [(1, 5), (1, 5), (1, 5), (0, 1)]
    first, second = estimates_of(scale_sums([1, 2, 4, 1], [1, 3, None, 1], scales), list("abca"))[::-1]
    assert (first.part, second.part) == ("1 to 5", "0 to 1")
    assert first.estimate.value == pytest.approx(1 - 10 / (26 / 3))
    assert second.estimate.value is None


def test_the_interval_of_weighted_kappa_respects_groups() -> None:
    """Ten copies of each question within its group change neither the value nor the interval."""
    truth, said, groups = [1, 2, 3, 4, 5, 3, 2, 4], [1, 3, 3, 4, 4, 2, 2, 5], list("abcdefgh")
    (once,) = estimates_of(scale_sums(truth, said, [(1, 5)] * 8), groups)
    (often,) = estimates_of(scale_sums(truth * 10, said * 10, [(1, 5)] * 80), groups * 10)
    assert once.estimate.ci_low is not None
    assert once.estimate.value is not None
    assert once.estimate.ci_low < once.estimate.value < 1
    ends = ("value", "ci_low", "ci_high")
    assert [getattr(often.estimate, end) for end in ends] == pytest.approx(
        [getattr(once.estimate, end) for end in ends]
    )


def test_a_class_rests_on_the_answers_and_videos_that_name_it() -> None:
    """A drain in 3 of 60 questions of ten videos: named in three answers of two videos, twice rightly."""
    videos = [f"v{number // 6}" for number in range(60)]
    truth: list[list[str]] = [["drain"] if number in (0, 1, 30) else [] for number in range(60)]
    said: list[list[str]] = [["drain"] if number in (0, 1, 31) else [] for number in range(60)]
    found = {score.metric.name: score.estimate for score in estimates_of(set_sums(truth, said), videos)}
    assert (found["jaccard"].n, found["jaccard"].groups) == (60, 10)
    precision, recall, f1 = (found[name] for name in ("class_precision", "class_recall", "class_f1"))
    assert (precision.value, precision.n, precision.groups) == (2 / 3, 3, 2)
    assert (recall.value, recall.n, recall.groups) == (2 / 3, 3, 2)
    assert (f1.value, f1.n, f1.groups) == (2 / 3, 4, 2)
    for score in (precision, recall, f1):
        assert score.ci_low is not None
        assert score.ci_high is not None
        assert score.ci_low < 0.2
        assert score.ci_high > 0.9


def test_times_rest_on_the_times_not_on_the_questions() -> None:
    truth, said = [[10.0, 20.0], [30.0], []], [[10.0], [31.0, 90.0], None]
    found = {
        (score.metric.name, score.part): score.estimate
        for score in estimates_of(time_sums(truth, said, tolerances=(5,)), ["a", "b", "c"])
    }
    recall, precision, f1 = (found[name, "5 s"] for name in ("time_recall", "time_precision", "time_f1"))
    assert (recall.value, recall.n, recall.groups) == (2 / 3, 3, 2)
    assert (precision.value, precision.n, precision.groups) == (2 / 3, 3, 2)
    assert (f1.value, f1.n, f1.groups) == (2 / 3, 4, 2)  # two pairs, and two times without a partner


def test_matthews_correlation_allows_for_the_outcomes_that_few_cases_do_not_show() -> None:
    """One case of a class in ten videos, found: the next may be missed."""
    truth = [number == 0 for number in range(60)]
    videos = [f"v{number // 6}" for number in range(60)]
    found = {score.metric.name: score.estimate for score in estimates_of(nominal_sums(truth, truth), videos)}
    for score in found.values():
        assert score.value == 1.0
        assert score.ci_low is not None
        assert score.ci_low < 0.6
