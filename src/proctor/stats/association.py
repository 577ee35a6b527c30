"""Several correlations from the same bootstrap samples, so that they can be averaged and compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Self, Unpack

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats.clusters import Floats, Ints, Values, finite
from proctor.stats.coefficients import STATISTICS, Kind, Statistic
from proctor.stats.correlation import carrying_groups, degrees, ends, too_few_carry
from proctor.stats.estimate import Estimate
from proctor.stats.options import Options, Resampling
from proctor.stats.resampling import group_units, weights
from proctor.stats.special import stdtr, stdtrit


@dataclass(frozen=True, slots=True)
class Sampled:
    """A statistic on all items (`whole`), in every bootstrap sample (`drawn`) and with each unit left out
    (`without`); NaN where it isn't defined. `present` marks the units that have items, `n` counts items and
    `groups` their groups. `carrying` is how many groups carry the variation of the side that varies in fewer of
    them (see `carrying_groups`), None where that isn't asked.

    >>> one = Resamples(["a", "b", "c"], draws=50).correlation("pearson", [1, 2, 3], [1, 2, 4], list("abc"))
    >>> one.estimate().value
    0.9819805060619657
    """

    whole: float
    drawn: Floats
    without: Floats
    present: NDArray[np.bool_]
    n: int
    groups: int
    plan: Resampling
    carrying: int | None = None

    @property
    def thin(self) -> bool:
        """Whether so few groups carry the variation that no sample of them can tell what others would show."""
        return self.carrying is not None and too_few_carry(self.carrying, self.groups)

    @property
    def df(self) -> int:
        """Student's degrees of freedom of its interval and of its tests (`proctor.stats.correlation.degrees`)."""
        units = int(self.present.sum())
        return degrees(units if self.carrying is None else self.carrying, units)

    @property
    def defined(self) -> bool:
        """Whether there is a value at all."""
        return bool(np.isfinite(self.whole))

    def estimate(self) -> Estimate:
        """The value with its interval, as `correlation` gives it; no interval with fewer than three groups, and
        where too few carry the variation (`thin`)."""
        if not self.defined:
            return Estimate(None, None, None, self.n, self.groups)
        if self.groups < 3 or not self.drawn.size or self.thin:
            return Estimate(self.whole, None, None, self.n, self.groups)
        low, high = ends(self.drawn, self.without[self.present], self.whole, self.plan, self.df)
        return Estimate(self.whole, low, high, self.n, self.groups)


class Resamples:
    """Bootstrap samples of groups that several correlations share.

    `groups` are the labels of all groups, each once or as often as it occurs; they are put in order by
    their text, so the same labels and seed give the same samples whatever the order of items. `drawing`
    false leaves the samples out where no interval is wanted. Options: see `Resampling`.

    `weights` (rows × units) says how often each unit counts: once on the whole (row 0), then in each bootstrap
    sample, then with each unit left out.

    >>> Resamples(["b", "a", "b"], draws=10).weights.shape
    (13, 2)
    """

    def __init__(self, groups: Sequence[str], *, drawing: bool = True, **options: Unpack[Options]) -> None:
        self.plan = Resampling(**options)
        if self.plan.two_level:
            raise InputError(None, "two_level", found="True", expected="False for a correlation")
        self.labels = sorted(set(groups))
        self._place = {label: number for number, label in enumerate(self.labels)}
        self._unit, self.n_units = group_units(len(self.labels), self.plan.seed)
        rows = [np.ones((1, self.n_units))]
        if drawing and self.n_units:
            rows += [*weights(self.n_units, self.plan.draws, self.plan.seed), 1.0 - np.eye(self.n_units)]
        self.weights = np.concatenate(rows)
        self._draws = self.plan.draws if drawing and self.n_units else 0

    def units(self, groups: Sequence[str]) -> Ints:
        """The unit that each item's group belongs to: the group itself, or a bundle of very many groups."""
        place = np.fromiter((self._place[label] for label in groups), np.int64, count=len(groups))
        return self._unit[place]

    def correlation(self, kind: Kind, a: Values, b: Values, groups: Sequence[str]) -> Sampled:
        """The correlation of a and b, paired by position, with each item's group.

        Not defined with fewer than two items, or where a or b is the same everywhere. Raises `InputError`
        for values that are not finite and for lengths that differ.
        """
        first, second = finite(a, "a's value"), finite(b, "b's value")
        if not len(first) == len(second) == len(groups):
            found = f"{len(first)}, {len(second)} and {len(groups)}"
            raise InputError(None, "values", found=found, expected="pairs with a group each")
        unit, n_groups = self.units(groups), len(set(groups))
        if not len(first):
            return self.sampled(np.full(len(self.weights), np.nan), unit, n=0, groups=0)
        used, own = np.unique(unit, return_inverse=True)
        statistic: Statistic = STATISTICS[kind](first, second, own.astype(np.int64))
        rows = self.weights[:, used]
        held = rows.any(axis=1)  # a sample may have drawn none of these units
        values = np.full(len(rows), np.nan)
        values[held] = statistic(rows[held])
        carrying = min(carrying_groups(first, unit), carrying_groups(second, unit))
        return self.sampled(values, unit, n=len(first), groups=n_groups, carrying=carrying)

    def sampled(self, values: Floats, units: Ints, *, n: int, groups: int, carrying: int | None = None) -> Sampled:
        """Any statistic that was computed under every row of `weights` over items of these units."""
        present = np.zeros(self.n_units, dtype=np.bool_)
        present[units] = True
        drawn, without = values[1 : 1 + self._draws], values[1 + self._draws :]
        return Sampled(float(values[0]), drawn, without, present, n, groups, self.plan, carrying)


def average(parts: Sequence[Sampled]) -> Sampled:
    """The mean of several statistics from the same samples; not defined where one of them isn't.

    `n` and `groups` are the largest of the parts', `carrying` the smallest. Raises `InputError` without parts.

    >>> samples = Resamples(list("abcd"), draws=100)
    >>> parts = [samples.correlation("pearson", [1, 2, 3, 4], b, list("abcd")) for b in ([1, 2, 3, 4], [4, 3, 2, 1])]
    >>> round(average(parts).whole, 6)
    0.0
    """
    if not parts:
        raise InputError(None, "parts", found="none", expected="one or more statistics")
    count = len(parts)
    carrying = [part.carrying for part in parts if part.carrying is not None]
    return Sampled(
        sum(part.whole for part in parts) / count,
        reduce(np.add, (part.drawn for part in parts)) / count,
        reduce(np.add, (part.without for part in parts)) / count,
        reduce(np.logical_or, (part.present for part in parts)),
        max(part.n for part in parts),
        max(part.groups for part in parts),
        parts[0].plan,
        min(carrying, default=None),
    )


@dataclass(frozen=True, slots=True)
class Contrast:
    """The difference of two statistics on the same items, its interval and two-sided p; None where it can't
    be known: `value` where one of them isn't defined, the others with fewer than three groups too.

    >>> Contrast(value=0.1, ci_low=-0.1, ci_high=0.3, p=0.3).p
    0.3
    """

    value: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None

    def reversed(self) -> Self:
        """The same the other way round."""
        if self.value is None:
            return self
        low, high = self.ci_low, self.ci_high
        return type(self)(-self.value, None if high is None else -high, None if low is None else -low, self.p)


def contrast(first: Sampled, second: Sampled) -> Contrast:
    """first − second, both from the same samples of groups.

    The standard error is that of the difference over the bootstrap samples, or the jackknife's over groups
    where that is larger; interval and p are Student's t with groups − 1 degrees of freedom (with one less than the
    groups that carry the variation, where these are at most half: `Sampled.df`), so that an
    interval at the level 1 − α leaves 0 out exactly where p < α. p is 1, without an interval, where the two are
    equal everywhere; neither is known where they differ by the same in every sample, or where too few groups carry
    the variation of one of them (`Sampled.thin`). By simulation (two equally good metrics that share items,
    clusters of three, see `tests/stats/test_stats_association.py`) the test keeps its level with 12, 40 and 80
    groups.

    >>> samples = Resamples(list("abcd"), draws=100)
    >>> one = samples.correlation("pearson", [1, 2, 3, 4], [1, 3, 2, 4], list("abcd"))
    >>> contrast(one, one)
    Contrast(value=0.0, ci_low=None, ci_high=None, p=1.0)
    """
    whole = first.whole - second.whole
    if not np.isfinite(whole):
        return Contrast(None, None, None, None)
    present = first.present | second.present
    n_units = int(present.sum())
    drawn = first.drawn - second.drawn
    drawn = drawn[np.isfinite(drawn)]
    if min(first.groups, second.groups) < 3 or drawn.size < 2 or first.thin or second.thin:
        return Contrast(whole, None, None, None)
    without = (first.without - second.without)[present]
    without = without[np.isfinite(without)]
    if without.size < 2:
        return Contrast(whole, None, None, None)
    jackknife = float(np.sqrt((n_units - 1) / n_units * ((without - without.mean()) ** 2).sum()))
    error = max(float(drawn.std(ddof=1)), jackknife)
    if error <= 1e-12:
        same = abs(whole) <= 1e-12
        return Contrast(0.0, None, None, 1.0) if same else Contrast(whole, None, None, None)
    df = min(n_units - 1, first.df, second.df)
    reach = float(stdtrit(df, (1 + first.plan.level) / 2)) * error
    p = float(2 * stdtr(df, -abs(whole) / error))
    return Contrast(whole, whole - reach, whole + reach, p)
