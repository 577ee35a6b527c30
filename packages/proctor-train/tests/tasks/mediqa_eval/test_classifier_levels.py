"""Probabilities of levels by hand, and what an input keeps where it is too long."""

from __future__ import annotations

import math

import pytest
import torch

from proctor_train.mediqa_eval.classifier.network import (
    CumulativeLink,
    SeparateClasses,
    kept_lengths,
    level_loss,
    level_shares,
    level_weights,
)


def sigma(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def test_the_cumulative_link_by_hand() -> None:
    link = CumulativeLink([1.0, 2.0, 1.0])  # thresholds at ln(1/3) and ln 3
    (row,) = link(torch.tensor([[0.5]])).exp().tolist()
    low, high = sigma(-math.log(3) - 0.5), sigma(math.log(3) - 0.5)
    assert row == pytest.approx([low, high - low, 1 - high], abs=1e-6)
    far = link(torch.tensor([[60.0], [-60.0]]))
    assert bool(far.isfinite().all())
    assert far[0].argmax() == 2
    assert far[1].argmax() == 0
    assert torch.logsumexp(far, 1).abs().max() < 1e-5


def test_two_levels_are_a_logistic_regression() -> None:
    link = CumulativeLink([3.0, 1.0])
    (row,) = link(torch.tensor([[0.2]])).exp().tolist()
    assert row[1] == pytest.approx(sigma(0.2 - math.log(3)), abs=1e-6)


def test_a_distant_level_costs_more_than_the_next_one_only_where_levels_are_ordered() -> None:
    scores = torch.tensor([[3.0]])
    ordered = -CumulativeLink([1.0, 1.0, 1.0])(scores)[0]
    assert ordered[0] > ordered[1] > ordered[2]
    classes = -SeparateClasses([1.0, 1.0, 1.0])(torch.tensor([[0.0, 0.0, 3.0]]))[0]
    assert classes[0] == classes[1] > classes[2]


def test_thresholds_stay_in_order_whatever_is_learned() -> None:
    link = CumulativeLink([1.0, 1.0, 1.0, 1.0])
    with torch.no_grad():
        link.gaps.copy_(torch.tensor([-900.0, 4.0]))
    found = link(torch.linspace(-20, 20, 9).unsqueeze(1)).exp()
    assert bool((found >= 0).all())
    assert found.sum(dim=1).tolist() == pytest.approx([1.0] * 9, abs=1e-5)


def test_the_loss_by_hand_with_weights_and_a_rating_between_two_levels() -> None:
    shares = level_shares([0.0, 0.75, None], (0.0, 0.5, 1.0))
    assert shares.tolist() == [[1, 0, 0], [0, 0.5, 0.5], [0, 0, 0]]
    log_p = torch.tensor([[0.5, 0.25, 0.25], [0.2, 0.3, 0.5], [1.0, 1e-9, 1e-9]]).log()
    weights = torch.tensor([2.0, 1.0, 1.0])
    expected = -(2 * math.log(0.5) + 0.5 * math.log(0.3) + 0.5 * math.log(0.5)) / 3
    assert float(level_loss(log_p, shares, weights)) == pytest.approx(expected, abs=1e-6)
    assert float(level_loss(log_p[2:], shares[2:], weights)) == 0.0  # nothing is rated: nothing is made up


def test_balanced_weights_by_hand() -> None:
    shares = level_shares([1.0, 1.0, 1.0, 0.0], (0.0, 0.5, 1.0))
    assert level_weights(shares, balanced=True).tolist() == pytest.approx([7 / 6, 7 / 3, 7 / 12])
    assert level_weights(shares, balanced=False).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("lengths", "kept"),
    [
        ({"question": 10, "answer": 20}, {"question": 10, "answer": 20}),
        ({"caption": 40, "question": 40, "answer": 40, "references": 40}, dict.fromkeys(("caption", "question", "answer", "references"), 15)),
        ({"question": 10, "answer": 30, "references": 500}, {"question": 10, "answer": 30, "references": 20}),
        ({"question": 500, "answer": 40}, {"question": 30, "answer": 30}),
        ({"question": 5, "answer": 500}, {"question": 5, "answer": 55}),
    ],
)  # fmt: skip
def test_the_rule_of_cutting(lengths: dict[object, int], kept: dict[str, int]) -> None:
    found = kept_lengths(lengths, 60)  # type: ignore[arg-type]  # names of parts
    assert found == kept
    assert sum(found.values()) <= 60
