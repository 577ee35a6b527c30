"""Probabilities of a dimension's levels, and how far they are from people's ratings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional

_LEAST_GAP = 1e-4  # between two thresholds, so that no level is impossible


class CumulativeLink(nn.Module):  # type: ignore[misc]  # the library has no types
    """Proportional odds (McCullagh 1980, JRSS B 42:109): P(level ≤ k) = σ(θₖ − score), with thresholds θ₀ < θ₁ < … that
    are learned. One score orders the answers; levels next to each other are confused more easily than distant ones.

    `shares` are those of the levels where the score is 0, each above 0.

    >>> link = CumulativeLink([0.25, 0.5, 0.25])
    >>> link(torch.tensor([[0.0]])).exp().round(decimals=3).tolist()
    [[0.25, 0.5, 0.25]]
    """

    outputs = 1

    def __init__(self, shares: Sequence[float]) -> None:
        super().__init__()
        sums = [sum(shares[: k + 1]) / sum(shares) for k in range(len(shares) - 1)]
        logits = [math.log(one / (1 - one)) for one in sums]
        gaps = [after - before for before, after in pairwise(logits)]
        self.lowest = nn.Parameter(torch.tensor(logits[:1]))
        self.gaps = nn.Parameter(
            torch.tensor([math.log(math.expm1(max(gap - _LEAST_GAP, _LEAST_GAP))) for gap in gaps])
        )

    def forward(self, scores: Any) -> Any:
        """Scores (rows × 1) to log-probabilities (rows × levels)."""
        gaps = functional.softplus(self.gaps) + _LEAST_GAP
        apart = torch.cat([self.lowest, self.lowest + torch.cumsum(gaps, 0)]) - scores  # rows × thresholds
        below, above = functional.logsigmoid(apart), functional.logsigmoid(-apart)
        # σ(b) − σ(a) = σ(b) σ(−a) (1 − exp(a − b)), which does not cancel
        between = below[:, 1:] + above[:, :-1] + torch.log(-torch.expm1(-gaps))
        return torch.cat([below[:, :1], between, above[:, -1:]], dim=1)


class SeparateClasses(nn.Module):  # type: ignore[misc]
    """A softmax over the levels, which have no order (SUAT-BMI's three-way classification)."""

    def __init__(self, shares: Sequence[float]) -> None:
        super().__init__()
        self.outputs = len(shares)
        self.bias = nn.Parameter(torch.tensor([math.log(one / sum(shares)) for one in shares]))

    def forward(self, scores: Any) -> Any:
        """Scores (rows × levels) to log-probabilities (rows × levels)."""
        return functional.log_softmax(scores + self.bias, dim=1)


LINKS = {"ordinal": CumulativeLink, "classes": SeparateClasses}
"""By the name of the loss."""


def level_shares(values: Sequence[float | None], levels: Sequence[float]) -> Any:
    """Ratings as shares of levels (rows × levels): a mean of raters between two levels belongs to both, by its distance;
    a rating that is missing to none.

    >>> level_shares([0.25, 1.0, None], (0.0, 0.5, 1.0)).tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """
    rows = torch.zeros(len(values), len(levels))
    for row, value in enumerate(values):
        if value is None:
            continue
        above = next(k for k, level in enumerate(levels) if level >= value - 1e-9)
        if above == 0 or abs(levels[above] - value) < 1e-9:
            rows[row, above] = 1.0
        else:
            upper = (value - levels[above - 1]) / (levels[above] - levels[above - 1])
            rows[row, above - 1], rows[row, above] = 1 - upper, upper
    return rows


def level_weights(shares: Any, *, balanced: bool) -> Any:
    """A weight for each level: 1, or balanced, n / (levels · nₖ), one answer being added to every level so that none is
    infinite.

    >>> level_weights(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), balanced=True).tolist()
    [0.75, 1.5]
    """
    if not balanced:
        return torch.ones(shares.shape[1])
    counts = shares.sum(dim=0) + 1
    return counts.sum() / (len(counts) * counts)


def level_loss(log_probabilities: Any, shares: Any, weights: Any) -> Any:
    """The weighted mean of −log P of what people rated; 0 where nothing is rated."""
    weighted = shares * weights
    return -(weighted * log_probabilities).sum() / weighted.sum().clamp(min=1e-9)
