"""Orders: worked by hand, compared with scipy and against all permutations."""

from __future__ import annotations

from itertools import combinations, permutations
from statistics import mean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from proctor.core import InputError, generator
from proctor.core.formats import OrderingFormat
from proctor.metrics.ordering import (
    MOST_LABELS,
    ORDERING_METRICS,
    compare_orders,
    kemeny,
    kemeny_of_votes,
    nearest_order,
    order_chance,
    order_estimates,
    overall_score,
    position_confusion,
)
from proctor.stats import Resampling
from tests.support.virtual_time import steps_of

KEY = ["D", "B", "A", "C"]


@pytest.mark.parametrize(
    ("said", "exact", "adjacent", "run", "first", "last", "reversal"),
    [
        ("DBAC", True, 3, 4, True, True, True),
        ("CABD", False, 0, 1, False, False, True),
        ("BDAC", False, 2, 3, False, True, False),  # B>A and A>C hold, D>B does not
        ("DACB", False, 2, 2, True, False, False),  # D>B and A>C hold, B>A does not
        ("DBA", False, 2, 3, False, False, False),  # C is missing: A>C is wrong, and no position is known
        ("DBBAC", False, 3, 4, True, True, False),  # B twice: its first position counts
        ("DABAC", False, 2, 2, True, True, False),  # A before B by its first position: B>A is wrong
        ("XDBAC", False, 3, 4, True, True, False),  # X is unknown and ignored for pairs
        ("", False, 0, 0, False, False, False),
        ("D", False, 0, 1, False, False, False),  # one label alone is neither first nor last
        ("C", False, 0, 1, False, False, False),
        ("XY", False, 0, 0, False, False, False),
    ],
)
def test_one_order_by_hand(
    said: str, exact: bool, adjacent: int, run: int, first: bool, last: bool, reversal: bool
) -> None:
    found = compare_orders(KEY, list(said))
    assert (found.exact, found.adjacent_right, found.up_to_reversal) == (exact, adjacent, reversal)
    assert found.longest_run == run
    assert (found.first_right, found.last_right) == (first, last)


def test_faults_are_listed() -> None:
    found = compare_orders(KEY, ["D", "X", "D", "C", "X", "C", "Y"])
    assert (found.missing, found.repeated, found.unknown) == (("B", "A"), ("D", "C"), ("X", "Y"))
    assert found.positions == (0, None, None, 1)
    nothing = compare_orders(KEY, None)
    assert (nothing.answered, nothing.missing, nothing.tau) == (False, tuple(KEY), -1.0)


def test_a_reference_must_be_an_order() -> None:
    with pytest.raises(InputError, match=r"^reference: found 'A > B > A', expected two or more different"):
        compare_orders(["A", "B", "A"], ["A"])
    with pytest.raises(InputError, match=r"^reference: found 'A'"):
        compare_orders(["A"], ["A"])


@given(st.permutations(list("ABCDEF")))
def test_tau_is_scipys_and_the_formats_distance(order: list[str]) -> None:
    found = compare_orders("ABCDEF", order)
    other = kendalltau(range(6), [order.index(label) for label in "ABCDEF"]).statistic
    assert found.tau == pytest.approx(other)
    distance = OrderingFormat(labels=tuple("ABCDEF")).distance(list("ABCDEF"), list(order))
    assert found.tau == pytest.approx(1 - 2 * (distance or 0.0))


@given(st.lists(st.sampled_from("ABCDXY"), max_size=8))
def test_whatever_is_said_the_counts_hold(said: list[str]) -> None:
    found = compare_orders("ABCD", said)
    assert 0 <= found.adjacent_right <= 3
    assert found.all_right <= 6
    assert (found.longest_run == 0) == (not set(said) & set("ABCD"))
    if found.exact:
        assert (found.tau, found.adjacent_right, found.longest_run) == (1.0, 3, 4)
    if found.missing or found.repeated or found.unknown:
        assert not found.exact


def test_chance_is_the_mean_over_all_permutations() -> None:
    for count in (2, 4, 5):
        labels = "ABCDEF"[:count]
        found = [compare_orders(labels, order) for order in permutations(labels)]
        assert mean(one.exact for one in found) == pytest.approx(order_chance("accuracy", [count]))
        assert mean(one.adjacent_right / (count - 1) for one in found) == pytest.approx(
            order_chance("pairwise_accuracy", [count])
        )
        assert mean(one.tau for one in found) == pytest.approx(0.0)
    assert order_chance("accuracy", []) is None


def test_many_orders_by_hand() -> None:
    # 3 of 3, 0 of 3 and 4 of 5 neighbours: 7 of 11, not the mean of the shares.
    found = [compare_orders("ABCD", "ABCD"), compare_orders("ABCD", None), compare_orders("ABCDEF", "ABDCEF")]
    scores = {score.metric.name: score.estimate for score in order_estimates(found, ["v1", "v2", "v3"])}
    assert list(scores) == [metric.name for metric in ORDERING_METRICS]
    values = {name: estimate.value for name, estimate in scores.items()}
    assert values == {
        "task_accuracy": pytest.approx(1 / 3),
        "pairwise_accuracy": pytest.approx(7 / 11),
        "kendall_tau": pytest.approx((1 - 1 + 2 * 14 / 15 - 1) / 3),
        "longest_run": pytest.approx((1 + 0 + 3 / 6) / 3),
        "first_right": pytest.approx(2 / 3),
        "last_right": pytest.approx(2 / 3),
        "up_to_reversal": pytest.approx(1 / 3),
    }
    assert {estimate.n for estimate in scores.values()} == {3}


def test_scores_of_nothing_and_of_lengths_that_differ() -> None:
    assert {score.estimate.value for score in order_estimates([], [])} == {None}
    with pytest.raises(InputError, match=r"^orders: found 1 and 0, expected as many comparisons as groups"):
        order_estimates([compare_orders("AB", "AB")], [])


def test_confusion_counts_every_frame_once() -> None:
    found = [compare_orders("ABCD", "BACD"), compare_orders("ABCD", "ABD"), compare_orders("ABCDEF", "FEDCBA")]
    tables = position_confusion(found)
    assert list(tables) == [4, 6]
    assert tables[4].tolist() == [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 0, 1], [0, 0, 1, 1, 0]]
    assert tables[6][:, :6].tolist() == np.eye(6, dtype=int)[::-1].tolist()


def test_overall_by_hand_and_its_bounds() -> None:
    # 0.8 · (0.7 · 0.5 + 0.3 · 0.8) + 0.2 · 0.6 = 0.8 · 0.59 + 0.12 = 0.592
    assert overall_score(0.5, 0.8, 0.6) == pytest.approx(59.2)
    assert overall_score(0.5, 0.8, 0.6, alpha=1, beta=1) == pytest.approx(50)
    assert overall_score(0.0, 0.0, 0.0) == 0.0
    assert overall_score(1.0, 1.0, 1.0) == pytest.approx(100.0)
    with pytest.raises(InputError, match=r"^alpha: found 1.2, expected a number from 0 to 1"):
        overall_score(0.5, 0.8, 0.6, alpha=1.2)


VOTES = st.integers(2, 7).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 9), min_size=n, max_size=n), min_size=n, max_size=n)
)


def against(votes: list[list[int]], order: tuple[int, ...]) -> int:
    return sum(votes[later][earlier] for earlier, later in combinations(order, 2))


@settings(max_examples=60, deadline=None)
@given(VOTES)
def test_kemeny_is_the_best_of_all_permutations_and_the_first_of_them(votes: list[list[int]]) -> None:
    n = len(votes)
    best = min(permutations(range(n)), key=lambda order: (against(votes, order), order))
    found = kemeny_of_votes([str(index) for index in range(n)], np.array(votes, dtype=float))
    assert found.order == tuple(str(index) for index in best)
    assert found.against == against(votes, best)
    cast = sum(votes[i][j] for i in range(n) for j in range(n) if i != j)
    assert found.agreement == (pytest.approx(1 - found.against / cast) if cast else None)


@settings(max_examples=60, deadline=None)
@given(st.permutations(range(7)), st.integers(2, 7), st.data())
def test_the_nearest_order_is_the_best_of_all_permutations(mixed: list[int], n: int, more: st.DataObject) -> None:
    labels = [f"f{index}" for index in mixed if index < n]
    pair = st.tuples(st.sampled_from(labels), st.sampled_from(labels)).filter(lambda two: two[0] != two[1])
    rules = more.draw(st.lists(pair, max_size=12))

    def cost(order: tuple[str, ...]) -> tuple[int, int]:
        put = {label: position for position, label in enumerate(order)}
        broken = sum(put[a] > put[b] for a, b in rules)
        return broken, sum(put[a] > put[b] for a, b in combinations(labels, 2))

    best = min(cost(order) for order in permutations(labels))
    found = nearest_order(labels, rules)
    assert cost(found.order) == best == (len(found.broken), len(found.moved))


def test_a_consensus_of_orders_that_lack_labels() -> None:
    found = kemeny([["A", "B"], ["B", "C"], ["A", "C"], ["C", "A"]], weights=[1, 1, 2, 1])
    assert (found.order, found.against, found.agreement) == (("A", "B", "C"), 1.0, 0.8)
    assert kemeny([["A"]]).agreement is None


def test_orders_that_can_not_be_brought_together() -> None:
    with pytest.raises(InputError, match=r"^labels: found 0, expected 1 to 14"):
        kemeny([])
    with pytest.raises(InputError, match=r"^orders: found A > A, expected each label at most once"):
        kemeny([["A", "A"]])
    with pytest.raises(InputError, match=r"^weights: found 1, expected 2, one per order"):
        kemeny([["A"], ["A"]], weights=[1])
    with pytest.raises(InputError, match=r"^votes: found shape \(2, 2\), expected 2 × 2 weights from 0"):
        kemeny_of_votes(["A", "B"], np.array([[0, -1], [0, 0]]))
    with pytest.raises(InputError, match=r"^rules: found A before itself, expected two labels"):
        nearest_order(["A", "B"], [("A", "A")])
    with pytest.raises(InputError, match=r"^labels: found 15"):
        nearest_order([str(index) for index in range(MOST_LABELS + 1)], [])


def test_rules_that_hold_change_nothing_and_unknown_labels_are_left_aside() -> None:
    found = nearest_order(KEY, [("D", "C"), ("Z", "D")])
    assert (found.order, found.broken, found.moved) == (tuple(KEY), (), ())


def test_ten_frames_cost_their_subsets_and_not_their_orders() -> None:
    """10! = 3,628,800 orders; of the 2^10 subsets each is extended by each label once."""
    votes = generator(0, "kemeny").random((10, 10))
    labels = [f"f{index}" for index in range(10)]
    rules = list(zip(labels[1:], labels, strict=False))
    assert steps_of(lambda: kemeny_of_votes(labels, votes)) < 10 * 10 * 2**10
    assert steps_of(lambda: nearest_order(labels, rules)) < 10 * 10 * 2**10


def test_chance_is_what_all_orders_reach_on_average() -> None:
    """The longest ascending runs of all orders of four: 1, 16, 6 and 1 of them are 1, 2, 3 and 4 long."""
    assert order_chance("longest_run", [4]) == pytest.approx((1 * 1 + 16 * 2 + 6 * 3 + 1 * 4) / 24 / 4)
    found = [compare_orders("ABCDE", order) for order in permutations("ABCDE")]
    for score in order_estimates(found, [str(position) for position in range(len(found))], plan=Resampling(draws=10)):
        assert order_chance(score.metric.name, [5]) == pytest.approx(score.estimate.value)
    assert order_chance("rationale_f1", [4]) is None
