"""Two correlations with the same third variable, on independent items: the tests of the textbooks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from proctor.core import InputError
from proctor.stats.special import ndtr, stdtr


@dataclass(frozen=True, slots=True)
class Dependent:
    """A test statistic, its degrees of freedom (None for a normal one) and its two-sided p; None where it
    can't be known: fewer than four items, or correlations of ±1.

    >>> Dependent(statistic=1.2, df=20, p=0.24).df
    20
    """

    statistic: float | None
    df: int | None
    p: float | None


def williams(r_a: float, r_b: float, r_ab: float, n: int) -> Dependent:
    """Williams' test of r_a = r_b, the Pearson correlations of a and of b with c, where a and b correlate
    by r_ab, over n independent items.

    t = (r_a − r_b) √[(n − 1)(1 + r_ab) / (2 |R| (n − 1)/(n − 3) + r̄² (1 − r_ab)³)] with n − 3 degrees of
    freedom, |R| = 1 − r_a² − r_b² − r_ab² + 2 r_a r_b r_ab, r̄ = (r_a + r_b) / 2 (Williams 1959; Steiger
    1980, Psychological Bulletin 87:245, equation 7). It takes items as independent: with several items
    of one encounter its p is for reference only.

    Raises `InputError` for a correlation outside −1 to 1.

    >>> test = williams(0.4, 0.5, 0.1, 103)
    >>> round(test.statistic, 2), test.df
    (-0.89, 100)
    """
    _check(r_a, r_b, r_ab)
    if n < 4 or abs(r_ab) >= 1:
        return Dependent(None, None, None)
    determinant = 1 - r_a**2 - r_b**2 - r_ab**2 + 2 * r_a * r_b * r_ab
    spread = 2 * determinant * (n - 1) / (n - 3) + ((r_a + r_b) / 2) ** 2 * (1 - r_ab) ** 3
    if spread <= 0:
        return Dependent(None, None, None)
    t = (r_a - r_b) * math.sqrt((n - 1) * (1 + r_ab) / spread)
    return Dependent(t, n - 3, float(2 * stdtr(n - 3, -abs(t))))


def steiger(r_a: float, r_b: float, r_ab: float, n: int) -> Dependent:
    """Steiger's Z of the same hypothesis: artanh(r_a) − artanh(r_b) over its standard error.

    Z = (artanh r_a − artanh r_b) √[(n − 3) / (2 − 2 s)], s the covariance of the two at their mean r̄:
    s = [r_ab (1 − 2 r̄²) − ½ r̄² (1 − 2 r̄² − r_ab²)] / (1 − r̄²)² (Steiger 1980, Psychological Bulletin
    87:245, equation 14). Independent items, as for `williams`.

    Raises `InputError` for a correlation outside −1 to 1.

    >>> round(steiger(0.4, 0.5, 0.1, 103).statistic, 2)
    -0.89
    """
    _check(r_a, r_b, r_ab)
    if n < 4 or max(abs(r_a), abs(r_b), abs(r_ab)) >= 1:
        return Dependent(None, None, None)
    squared = ((r_a + r_b) / 2) ** 2
    shared = (r_ab * (1 - 2 * squared) - squared * (1 - 2 * squared - r_ab**2) / 2) / (1 - squared) ** 2
    if shared >= 1:
        return Dependent(None, None, None)
    z = (math.atanh(r_a) - math.atanh(r_b)) * math.sqrt((n - 3) / (2 - 2 * shared))
    return Dependent(z, None, float(2 * ndtr(-abs(z))))


def _check(*correlations: float) -> None:
    for r in correlations:
        if not -1 <= r <= 1:
            raise InputError(None, "correlation", found=str(r), expected="a number from -1 to 1")
