"""A mean with its interval, and what it stands on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over `n` items in `groups` groups, with its confidence interval.

    `value` is None where there is no item; `ci_low` and `ci_high` are None together, where there are
    fewer than two groups. Never NaN.

    >>> Estimate(value=0.5, ci_low=0.4, ci_high=0.6, n=20, groups=4).ci_low
    0.4
    """

    value: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    groups: int
