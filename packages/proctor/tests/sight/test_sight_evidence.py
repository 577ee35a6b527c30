"""The exact tests behind a sight test: by hand, and held against SciPy's own."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.stats import binomtest, fisher_exact

from proctor.sight.evidence import ALPHA, RightOf, constant_share, is_gone, p_fewer, p_misplaced, p_seen


def test_fisher_by_hand() -> None:
    """None of 4 against all of 5: of the C(9, 4) = 126 ways to place four failures, one."""
    assert p_fewer(RightOf(0, 4), RightOf(5, 5)) == pytest.approx(1 / comb(9, 4))
    assert p_fewer(RightOf(0, 4), RightOf(3, 5)) == pytest.approx(comb(5, 3) / comb(9, 3))


@pytest.mark.parametrize(("few", "many"), [*product([(0, 4), (1, 5), (2, 8), (4, 4)], [(5, 5), (3, 7), (0, 6)])])
def test_fisher_is_scipys(few: tuple[int, int], many: tuple[int, int]) -> None:
    table = np.array([[few[0], few[1] - few[0]], [many[0], many[1] - many[0]]])
    assert p_fewer(RightOf(*few), RightOf(*many)) == pytest.approx(fisher_exact(table, "less").pvalue)


def test_the_sum_of_kinds_by_hand() -> None:
    """Two of two at one half and three of four at one quarter: 5 or 6 right of 6."""
    three, four = 4 * 0.25**3 * 0.75, 0.25**4
    expected = 0.25 * three + (0.25 + 0.5) * four  # both and 3; both and 4, or one of two and 4
    assert p_seen([(RightOf(2, 2), 0.5), (RightOf(3, 4), 0.25)]) == pytest.approx(expected)


@pytest.mark.parametrize("right", range(6))
def test_one_kind_is_a_binomial_test(right: int) -> None:
    expected = binomtest(right, 5, 0.25, "greater").pvalue
    assert p_seen([(RightOf(right, 5), 0.25)]) == pytest.approx(expected)


def test_the_constant_answer_that_scored_four_of_six() -> None:
    """Always answering 1 was right 4 times of 6 in a test elsewhere; it is no evidence of sight here."""
    share = constant_share(["1", "1", "1", "1", "2", "3"], 4)
    assert share == pytest.approx(4 / 6)
    assert p_seen([(RightOf(4, 6), share)]) > 0.5


def test_weak_eyes_are_not_gone() -> None:
    assert is_gone(RightOf(0, 8), RightOf(5, 5))
    assert not is_gone(RightOf(0, 4), RightOf(5, 5))  # too few replies
    assert not is_gone(RightOf(0, 8), RightOf(2, 5))
    assert not is_gone(RightOf(1, 8), RightOf(40, 40))  # one of 900 numbers is read: something arrives
    assert not is_gone(RightOf(0, 0), RightOf(5, 5))
    assert p_misplaced(0, 0) == 1.0
    assert p_misplaced(5, 8) > ALPHA > p_misplaced(6, 8)
