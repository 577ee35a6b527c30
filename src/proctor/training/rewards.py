"""Rewards for reinforcement learning on ordinal ratings: exact match as published, or graded and concordant.

`exact` is MedAware's reward (Hao and Liu 2026, section 6.3 of the overview): exact match with the ratings and a small
bonus for the form. With three levels most of a group's replies earn the same, and a group of equals teaches nothing.
`graded` pays for distance and for order, so that near misses differ:

    r = 0.5 · (1 − d/range) + 0.4 · concordance with answers of other encounters + 0.1 · valid form
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats import Floats

RewardKind = Literal["graded", "exact"]

_GRADED, _CONCORDANT, _FORM = 0.5, 0.4, 0.1
_SAME = 1e-9  # closer than this, two numbers are one


@dataclass(frozen=True)
class Target:
    """What people gave one answer: the ratings of each dimension, one or more, all within the dimension's range.

    Raters who differ widen the target: every value between their lowest and their highest rating is as good, and the
    mean stands for the answer where it is compared with others. `cluster` is the encounter.

    >>> target = Target("e1", {"overall": (0.0, 0.5)})
    >>> target.distance("overall", 0.5), target.distance("overall", 1.0), target.centre("overall")
    (0.0, 0.5, 0.25)
    """

    cluster: str
    ratings: Mapping[str, tuple[float, ...]]

    def centre(self, dimension: str) -> float:
        """The mean rating."""
        given = self.ratings[dimension]
        return sum(given) / len(given)

    def distance(self, dimension: str, value: float) -> float:
        """How far a value lies outside of what the raters gave."""
        given = self.ratings[dimension]
        return max(min(given) - value, value - max(given), 0.0)

    def share(self, dimension: str, value: float) -> float:
        """The share of the raters who gave just this."""
        given = self.ratings[dimension]
        return sum(abs(one - value) < _SAME for one in given) / len(given)


@dataclass(frozen=True)
class SampledReply:
    """What one sampled reply says: a value for each dimension, or None where it is not of the form that was asked for.
    `formed` says whether it has the form in every respect (None is never)."""

    values: Mapping[str, float] | None
    formed: bool

    def __post_init__(self) -> None:
        if self.values is None and self.formed:
            raise ValueError("a reply without values has no valid form")


def rewards(
    kind: RewardKind,
    replies: Sequence[SampledReply],
    targets: Sequence[Target],
    ranges: Mapping[str, tuple[float, float]],
) -> list[float]:
    """The reward of each reply of a batch, all dimensions of its target weighted alike; `ranges` are the lowest and
    highest level by dimension.

    `graded` is between 0 and 1. Order is compared with the replies to other encounters that gave values for the same
    dimension: a pair earns 1 where both signs agree (ties with ties, too), 0.5 where just one side ties, 0 where they
    contradict; without such a pair 0.5, the same for a whole group. `exact` is the share of the raters who gave just
    this value, and 0.1 for the form. A reply without values earns 0.

    Raises `InputError` where a reply leaves out a dimension of its target, or gives a value that is out of range.

    >>> targets = [Target("e1", {"overall": (1.0,)}), Target("e2", {"overall": (0.0,)})]
    >>> said = [SampledReply({"overall": 0.5}, True), SampledReply({"overall": 0.0}, True)]
    >>> [round(one, 3) for one in rewards("graded", said, targets, {"overall": (0.0, 1.0)})]
    [0.75, 1.0]
    >>> rewards("exact", said, targets, {"overall": (0.0, 1.0)})
    [0.1, 1.1]
    """
    for place, (said, target) in enumerate(zip(replies, targets, strict=True)):
        _refuse_odd(place, said, target, ranges)
    orders = _concordance(replies, targets) if kind == "graded" else np.zeros(len(replies))
    found = []
    for said, target, order in zip(replies, targets, orders, strict=True):
        if said.values is None:
            found.append(0.0)
            continue
        form = _FORM * said.formed
        if kind == "exact":
            found.append(_mean([target.share(name, said.values[name]) for name in target.ratings]) + form)
        else:
            near = [
                1 - target.distance(name, said.values[name]) / (ranges[name][1] - ranges[name][0])
                for name in target.ratings
            ]
            found.append(_GRADED * _mean(near) + _CONCORDANT * float(order) + form)
    return found


def share_without_signal(values: Sequence[float], group: int) -> float:
    """The share of groups (`group` replies each, one after the other) whose rewards are all the same, so that they
    teach nothing. TRL's own `frac_reward_zero_std` looks at the whole batch where rewards are scaled by the batch.

    >>> share_without_signal([1.0, 1.0, 0.5, 1.0], 2)
    0.5
    """
    groups = np.asarray(values, dtype=np.float64).reshape(-1, group)
    return float(np.mean(np.ptp(groups, axis=1) < _SAME))


def _refuse_odd(place: int, said: SampledReply, target: Target, ranges: Mapping[str, tuple[float, float]]) -> None:
    if said.values is None:
        return
    for name in target.ratings:
        low, high = ranges[name]
        value = said.values.get(name)
        if value is None or not low <= value <= high:
            found = "nothing" if value is None else f"{value:g}"
            raise InputError("reward", f"reply {place + 1}, {name}", found=found, expected=f"{low:g} to {high:g}")


def _concordance(replies: Sequence[SampledReply], targets: Sequence[Target]) -> Floats:
    """The mean over dimensions and over pairs with other encounters of 1 − |sign of the values' difference − sign of
    the ratings' difference| / 2."""
    clusters = np.array([one.cluster for one in targets])
    names = list(dict.fromkeys(name for one in targets for name in one.ratings))
    total, counted = np.zeros(len(replies)), np.zeros(len(replies))
    for name in names:
        rows = np.array(
            [
                row
                for row, (said, target) in enumerate(zip(replies, targets, strict=True))
                if said.values is not None and name in target.ratings
            ],
            dtype=np.int64,
        )
        if not len(rows):
            continue
        values = np.array([(replies[row].values or {})[name] for row in rows])
        ratings = np.array([targets[row].centre(name) for row in rows])
        agree = 1 - np.abs(_signs(values) - _signs(ratings)) / 2
        others = clusters[rows][:, None] != clusters[rows][None, :]
        pairs = others.sum(axis=1)
        mean = np.where(pairs > 0, (agree * others).sum(axis=1) / np.maximum(pairs, 1), 0.5)
        total[rows] += mean
        counted[rows] += 1
    return np.where(counted > 0, total / np.maximum(counted, 1), 0.0)


def _signs(values: Floats) -> NDArray[np.float64]:
    difference = values[:, None] - values[None, :]
    return np.sign(np.where(np.abs(difference) < _SAME, 0.0, difference))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
