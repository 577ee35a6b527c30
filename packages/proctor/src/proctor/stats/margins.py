"""Non-inferiority and equivalence: is a difference certainly on one side of a margin?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from proctor.core import InputError
from proctor.stats.bootstrap import Estimate
from proctor.stats.paired import Difference

Interval = Callable[[float], Difference | Estimate]
"""The difference with its interval, by confidence level."""

Finding = Literal["not worse", "worse", "equivalent", "different", "undecided"]

MOST_P = 0.25
"""The largest one-sided p of a margin that is computed; above it stands "p above 0.25"."""

LEAST_P = 0.0005
_STEPS = 12  # of a bisection on a logarithmic scale: p to 0.2 %


@dataclass(frozen=True, slots=True)
class Margin:
    """How much worse is accepted, in the unit of the scores and above 0. With `equivalence` neither of the two may be better
    by as much either. Raises `InputError` for a margin that is no number above 0.

    >>> Margin(0.03).equivalence
    False
    """

    width: float
    equivalence: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.width < math.inf:
            raise InputError("margin", found=f"{self.width:g}", expected="a number above 0")


@dataclass(frozen=True, slots=True)
class MarginTest:
    """What a difference shows about a margin.

    `finding` is read from the two-sided interval at 1 − 2α (95 %: α = 0.025), and from nothing else:

    - non-inferiority: "not worse" if the interval lies above −margin, "worse" (by more than the margin) if it lies below;
    - equivalence (two one-sided tests, Schuirmann 1987, Journal of Pharmacokinetics and Biopharmaceutics 15:657):
      "equivalent" if it lies between −margin and +margin, "different" if it lies outside on one side;
    - "undecided" otherwise, and without an interval.

    `p` is one-sided, the smallest α at which the interval shows non-inferiority or equivalence, so that p ≤ α if and only
    if it does. It is None without an interval and where it is above 0.25; 0.0005 means "at most 0.0005".

    >>> MarginTest(Margin(0.03), 0.025, "undecided", 0.2).finding
    'undecided'
    """

    margin: Margin
    alpha: float
    finding: Finding
    p: float | None


def margin_test(
    margin: Margin, interval: Interval, level: float = 0.95, *, higher_is_better: bool = True
) -> MarginTest:
    """Tests the difference of first minus second, whose interval at a confidence level is `interval(level)`.

    Where lower scores are better, first is worse if the difference is above +margin.

    >>> def interval(level):  # a normal difference of 1 point with a standard error of 1
    ...     from statistics import NormalDist
    ...     z = NormalDist().inv_cdf((1 + level) / 2)
    ...     return Estimate(1.0, 1 - z, 1 + z, 100, 20)
    >>> test = margin_test(Margin(3.0), interval)
    >>> test.finding, test.p  # 1 − Φ(4) < 0.0005
    ('not worse', 0.0005)
    >>> margin_test(Margin(0.5), interval).finding
    'undecided'
    """
    alpha = (1 - level) / 2
    ends = _ends(interval(level), higher_is_better=higher_is_better)
    if ends is None:
        return MarginTest(margin, alpha, "undecided", None)
    return MarginTest(margin, alpha, _finding(margin, *ends), _p(margin, interval, alpha, higher_is_better))


def _ends(found: Difference | Estimate, *, higher_is_better: bool) -> tuple[float, float] | None:
    """The interval's ends, turned so that more is better for the first."""
    if found.ci_low is None or found.ci_high is None:
        return None
    return (found.ci_low, found.ci_high) if higher_is_better else (-found.ci_high, -found.ci_low)


def _finding(margin: Margin, low: float, high: float) -> Finding:
    if _shown(margin, low, high):
        return "equivalent" if margin.equivalence else "not worse"
    if high < -margin.width or (margin.equivalence and low > margin.width):
        return "different" if margin.equivalence else "worse"
    return "undecided"


def _shown(margin: Margin, low: float, high: float) -> bool:
    return low > -margin.width and (not margin.equivalence or high < margin.width)


def _p(margin: Margin, interval: Interval, alpha: float, higher_is_better: bool) -> float | None:
    """The smallest α that shows it, by bisection on the side of `alpha` on which the interval at `alpha` says it is."""

    def shown(one: float) -> bool:
        ends = _ends(interval(1 - 2 * one), higher_is_better=higher_is_better)
        return ends is not None and _shown(margin, *ends)

    if shown(alpha):
        low, high = LEAST_P, alpha
        if low >= high or shown(low):
            return min(low, high)
    else:
        low, high = alpha, MOST_P
        if low >= high or not shown(high):
            return None
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high
