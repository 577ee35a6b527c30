"""How many groups, items per group and repetitions a comparison of two systems needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from proctor.core import InputError, generator
from proctor.stats.clusters import Groups, Values, finite, group_codes
from proctor.stats.signflip import can_decide, fewest_groups, rejects, sign_flip
from proctor.stats.special import chdtri, nctdtr, stdtrit

_SIMULATED = 24  # groups up to which the test itself is simulated; with more, it has the power of t
_SAMPLES = 4000
MOST_GROUPS = 1_000_000


@dataclass(frozen=True, slots=True)
class VarianceParts:
    """The variance of the difference between two systems on one item: between groups, between items of a group, and between
    repetitions of an item. Where `repetition` is not known apart (one answer per item) it is 0, and a part of `item`.

    >>> VarianceParts(0.01, 0.2).of_mean(StudyPlan(difference=0.05, items=4), 10)
    0.006
    """

    group: float
    item: float
    repetition: float = 0.0

    def __post_init__(self) -> None:
        for name in ("group", "item", "repetition"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise InputError(f"variance by {name}", found=f"{value:g}", expected="a number from 0 up")

    def of_mean(self, plan: StudyPlan, groups: int) -> float:
        """The variance of the mean difference over this many groups of `plan.items` items each."""
        return (self.group + (self.item + self.repetition / plan.repetitions) / plan.items) / groups

    def times(self, factor: float) -> VarianceParts:
        """All parts, multiplied."""
        return VarianceParts(self.group * factor, self.item * factor, self.repetition * factor)


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """What a study should show. `difference` is the true difference, in the unit of the scores. Without a `margin` it is
    detected by a two-sided test at `alpha`. With one, the first system is shown to be not worse by the margin (or, with
    `equivalence`, neither of the two better by it), each one-sided at alpha / 2: what the interval at 1 − alpha shows. Raises
    `InputError` for values out of range, and a difference that the margin forbids.

    >>> StudyPlan(difference=0.05).power
    0.8
    """

    difference: float
    items: int = 1
    repetitions: int = 1
    margin: float | None = None
    equivalence: bool = False
    alpha: float = 0.05
    power: float = 0.8
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("items", "repetitions"):
            if getattr(self, name) < 1:
                raise InputError(name, found=str(getattr(self, name)), expected="1 or more")
        for name in ("alpha", "power"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(name, found=f"{getattr(self, name):g}", expected="a number between 0 and 1")
        if self.margin is None:
            if not 0 < abs(self.difference) < math.inf:
                raise InputError("difference", found=f"{self.difference:g}", expected="a number other than 0")
            if self.equivalence:
                raise InputError("margin", found="none", expected="a margin within which the systems are equivalent")
        elif not 0 < self.margin < math.inf:
            raise InputError("margin", found=f"{self.margin:g}", expected="a number above 0")
        elif self.difference <= -self.margin or (self.equivalence and self.difference >= self.margin):
            found = f"{self.difference:g} with a margin of {self.margin:g}"
            raise InputError("difference", found=found, expected="one within the margin: nothing can show it otherwise")

    @property
    def limits(self) -> tuple[float, ...]:
        """The differences that must be rejected, with the sign of the side on which the true one lies."""
        if self.margin is None:
            return (0.0,)
        return (-self.margin, self.margin) if self.equivalence else (-self.margin,)


@dataclass(frozen=True, slots=True)
class Needed:
    """The number of groups that is needed, and its interval from the uncertainty of a pilot (both None if the variances are
    given). None: more than a million. `variance_low` and
    `variance_high` are the ends of the true variance by the pilot's.

    >>> Needed(34).low is None
    True
    """

    groups: int | None
    low: int | None = None
    high: int | None = None
    variance_low: float | None = None
    variance_high: float | None = None


def variance_parts(differences: Values, groups: Groups, repetition: float = 0.0, added: float = 0.0) -> VarianceParts:
    """The parts of the variance of a pilot's differences (a − b by item, means over repetitions), by analysis of variance
    with groups of unequal sizes (Searle, Casella and McCulloch 1992, Variance Components, 3.6); a negative part is 0.

    `repetition` is the variance between repetitions of a difference of single answers, and `added` what of it is in the
    differences at hand (a fifth, for means over five): that is taken off the items' part. Raises `InputError` for fewer than two
    groups, and without a group of two items.

    >>> variance_parts([1, 3, 5, 7], ["a", "a", "b", "b"])  # MS between 16, within 2
    VarianceParts(group=7.0, item=2.0, repetition=0.0)
    >>> variance_parts([1, 3, 5, 7], ["a", "a", "b", "b"], repetition=2.5, added=0.5)
    VarianceParts(group=7.0, item=1.5, repetition=2.5)
    """
    values = finite(differences, "difference")
    codes = group_codes(groups, len(values))
    sizes = np.bincount(codes).astype(np.float64)
    total, many = float(sizes.sum()), len(sizes)
    if many < 2:
        raise InputError("pilot", found=f"{many} groups", expected="two or more")
    if total == many:
        raise InputError("pilot", found="one item in each group", expected="a group of two items or more")
    means = np.bincount(codes, values) / sizes
    within = float(((values - means[codes]) ** 2).sum() / (total - many))
    between = float((sizes * (means - values.mean()) ** 2).sum() / (many - 1))
    typical = (total - float((sizes**2).sum()) / total) / (many - 1)
    return VarianceParts(max(0.0, (between - within) / typical), max(0.0, within - added), repetition)


def plan_power(parts: VarianceParts, plan: StudyPlan, groups: int) -> float:
    """The probability that a study of this many groups shows what the plan asks, for normally distributed groups' means.

    With up to 24 groups the sign-flip test is simulated (4,000 samples, seeded); with more, it has the power of Student's t
    (noncentral distribution). 0 where no outcome with so few groups could be significant (`can_decide`), 1 without any variance.

    >>> round(plan_power(VarianceParts(0.0, 1.0), StudyPlan(difference=0.5), 34), 2)  # t test, 34 pairs (Cohen 1988)
    0.81
    >>> plan_power(VarianceParts(0.0, 1.0), StudyPlan(difference=5.0), 5)
    0.0
    """
    if groups < 2 or not can_decide(groups, 1 - plan.alpha):
        return 0.0
    error = math.sqrt(parts.of_mean(plan, groups))
    if error == 0:
        return 1.0
    if groups <= _SIMULATED:
        return _simulated(error, plan, groups)
    critical = float(stdtrit(groups - 1, 1 - plan.alpha / 2))
    beyond = [1 - float(nctdtr(groups - 1, abs(plan.difference - limit) / error, critical)) for limit in plan.limits]
    return max(0.0, sum(beyond) - (len(beyond) - 1))


def _simulated(error: float, plan: StudyPlan, groups: int) -> float:
    noise = generator(plan.seed, "power", str(groups)).standard_normal((groups, _SAMPLES))
    drawn = plan.difference + noise * error * math.sqrt(groups)
    shown = np.ones(_SAMPLES, dtype=np.bool_)
    for limit in plan.limits:
        beyond = drawn - limit
        right = np.sign(beyond.sum(axis=0)) == np.sign(plan.difference - limit)
        shown &= rejects(sign_flip(beyond, (plan.alpha, plan.alpha)), 1 - plan.alpha) & right
    return float(shown.mean())


def needed_groups(parts: VarianceParts, plan: StudyPlan, pilot_groups: int | None = None) -> Needed:
    """The smallest number of groups with the plan's power; its 95 % interval, if the parts come from a pilot of this many groups.

    The interval has the numbers for the ends of the variance's interval (χ² with `pilot_groups` − 1 degrees of freedom), so that
    it is wide for a small pilot. No number stands for the pilot's own difference: the power to detect what was found is a
    function of its p (Hoenig and Heisey 2001, American Statistician 55:19).

    >>> needed_groups(VarianceParts(0.0, 1.0), StudyPlan(difference=0.5)).groups  # Cohen's table: 34
    34
    >>> found = needed_groups(VarianceParts(0.0, 1.0), StudyPlan(difference=0.5), pilot_groups=20)
    >>> found.groups, found.low, found.high
    (34, 21, 69)
    """
    found = _smallest(parts, plan)
    if pilot_groups is None:
        return Needed(found)
    if pilot_groups < 2:
        raise InputError("pilot", found=f"{pilot_groups} groups", expected="two or more")
    degrees = pilot_groups - 1
    low, high = (degrees / float(chdtri(degrees, beyond)) for beyond in (0.025, 0.975))
    return Needed(found, _smallest(parts.times(low), plan), _smallest(parts.times(high), plan), low, high)


def _smallest(parts: VarianceParts, plan: StudyPlan) -> int | None:
    low = high = fewest_groups(plan.alpha)
    while plan_power(parts, plan, high) < plan.power:
        low, high = high + 1, high * 2
        if low > MOST_GROUPS:
            return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if plan_power(parts, plan, middle) >= plan.power else (middle + 1, high)
    return high
