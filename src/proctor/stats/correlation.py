"""How two numbers per item go together, with clustered intervals."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from proctor.core import InputError
from proctor.stats.clusters import Floats, Groups, Ints, Values, finite, group_codes
from proctor.stats.coefficients import STATISTICS, Kind
from proctor.stats.ends import bca_ends, percentile_ends
from proctor.stats.estimate import Estimate
from proctor.stats.matrix import system_table
from proctor.stats.options import Options, Resampling
from proctor.stats.resampling import group_units, weights
from proctor.stats.special import stdtrit

_FEWEST = 5


def correlation(a: Values, b: Values, groups: Groups, kind: Kind = "pearson", **options: Unpack[Options]) -> Estimate:
    """The correlation of a and b over items, −1 to 1, with a clustered interval.

    kind: "pearson" (linear), "spearman" (Pearson's of mid-ranks) or "kendall" (τ-b: concordant less
    discordant pairs over √(pairs not tied in a · pairs not tied in b); Kendall 1945, Biometrika 33:239).
    Values are paired by position; `groups` and options as in `mean_interval`, but whole groups only.

    The interval is the BCa interval over samples of groups, the acceleration from leaving out each group,
    with z widened to √(G / (G − 1)) · t at G − 1 degrees of freedom for G groups (Hesterberg 2015, The
    American Statistician 69:371), and by the ratio of the jackknife error to the bootstrap's where that is
    above 1; an end that the bootstrap can't reach (see `mean_interval`) is taken from the jackknife error
    on the scale of Fisher's artanh. Samples in which it isn't defined are left out. By simulation (normal
    values, sizes 1 to 9) 95 % covers 93 to 95 % with 10, 30 and 200 groups.

    Edges: value None with fewer than two items, or where a or b is the same everywhere; no interval with
    fewer than three groups, and where a or b differs from its most frequent value in fewer than five groups (and in
    at most half of them): what those few say is in every sample, so no sample tells what others would. Where five or
    more carry the variation, but at most half, t has one degree of freedom less than these. Time of "spearman" grows with draws × items, of "kendall" with items².

    Raises `InputError` for values that are not finite, for lengths that differ, and for `two_level`.

    >>> correlation([1, 2, 3, 4], [1, 3, 2, 4], list("abcd"), "kendall", draws=100).value
    0.6666666666666666
    >>> correlation([1, 1], [1, 2], ["a", "b"]).value is None
    True
    """
    plan = Resampling(**options)
    if plan.two_level:
        raise InputError(None, "two_level", found="True", expected="False for a correlation")
    first, second = finite(a, "a's value"), finite(b, "b's value")
    if len(first) != len(second):
        raise InputError(None, "values", found=f"{len(first)} and {len(second)}", expected="pairs")
    code = group_codes(groups, len(first))
    if not len(first):
        return Estimate(None, None, None, 0, 0)
    table = system_table(np.stack([first, second]), code)
    unit, n_units = group_units(table.n_groups, plan.seed)
    unit = unit[table.codes()]
    statistic = STATISTICS[kind](table.matrix[0], table.matrix[1], unit)
    value = float(statistic(np.ones((1, n_units)))[0])
    n, n_groups = len(first), table.n_groups
    if not np.isfinite(value):
        return Estimate(None, None, None, n, n_groups)
    carrying = min(carrying_groups(row, unit) for row in table.matrix)
    if n_groups < 3 or too_few_carry(carrying, n_groups):
        return Estimate(value, None, None, n, n_groups)
    drawn = np.concatenate([statistic(part) for part in weights(n_units, plan.draws, plan.seed)])
    df = degrees(carrying, n_units)
    low, high = ends(drawn, statistic(1.0 - np.eye(n_units)), value, plan, df)
    return Estimate(value, low, high, n, n_groups)


def carrying_groups(values: Floats, group: Ints) -> int:
    """In how many groups some value differs from the most frequent one.

    >>> carrying_groups(np.array([0.0, 0.0, 1.0, 0.0]), np.array([0, 0, 1, 2]))
    1
    """
    distinct, times = np.unique(values, return_counts=True)
    return len(np.unique(group[values != distinct[np.argmax(times)]]))


def too_few_carry(carrying: int, groups: int) -> bool:
    """Whether fewer than five groups, and at most half of them, carry a variation.

    >>> [too_few_carry(4, 100), too_few_carry(5, 100), too_few_carry(3, 4)]
    [True, False, False]
    """
    return carrying < _FEWEST and 2 * carrying <= groups


def degrees(carrying: int, units: int) -> int:
    """Student's degrees of freedom: one less than the groups, or than those that carry the variation where these are at
    most half, since only they say how far the correlation varies.

    >>> degrees(12, 100), degrees(80, 100)
    (11, 99)
    """
    return (carrying if 2 * carrying <= units else units) - 1


def ends(drawn: Floats, without: Floats, value: float, plan: Resampling, df: int) -> tuple[float | None, float | None]:
    """The interval of `correlation`, from the statistic in every bootstrap sample (`drawn`) and with each of
    three or more units left out (`without`), with `df` degrees of freedom; NaN where it isn't defined. None where it
    isn't anywhere."""
    n_units = len(without)
    ordered = np.sort(drawn)[:, None]
    if plan.method == "percentile":
        low, high = percentile_ends(ordered, plan.level)
    else:
        t = float(stdtrit(df, (1 + plan.level) / 2))
        error, skew = _jackknife(without)
        inside = np.clip(value, -1 + 1e-12, 1 - 1e-12)
        reach = t * error / (1 - inside**2)
        far = (np.array([np.tanh(np.arctanh(inside) - reach)]), np.array([np.tanh(np.arctanh(inside) + reach)]))
        seen = float(np.nanstd(drawn)) if np.isfinite(drawn).any() else 0.0
        wider = max(1.0, error / seen) if seen > 0 else 1.0
        z = np.array([t * wider * np.sqrt(n_units / (n_units - 1))])
        low, high = bca_ends(ordered, np.array([value]), z, np.array([skew / 6]), far)
    if not (np.isfinite(low[0]) and np.isfinite(high[0])) or not low[0] < high[0]:
        return None, None
    return float(np.clip(low[0], -1, 1)), float(np.clip(high[0], -1, 1))


def _jackknife(without: Floats) -> tuple[float, float]:
    """The standard error, and the skewness that BCa's acceleration is a sixth of."""
    n_units, known = len(without), without[np.isfinite(without)]
    pull = known.mean() - known if known.size else np.zeros(1)
    squared = float((pull**2).sum())
    error = float(np.sqrt(squared * (n_units - 1) / n_units))
    return error, float((pull**3).sum() / squared**1.5) if squared > 0 else 0.0
