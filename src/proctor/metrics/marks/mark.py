"""A mark: a number over many answers with its interval."""

from __future__ import annotations

from dataclasses import dataclass

from proctor.core import Metric
from proctor.stats import Estimate

__all__ = ["Mark"]


@dataclass(frozen=True, slots=True)
class Mark:
    """One number: what it is, its estimate, and of what part it is (a class, a tolerance), if of one.

    >>> Mark(Metric("mae", "Mean absolute error"), Estimate(0.5, 0.2, 0.9, 20, 4)).part
    ''
    """

    metric: Metric
    estimate: Estimate
    part: str = ""
