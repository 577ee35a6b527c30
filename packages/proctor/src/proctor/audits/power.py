"""The power of comparing two metrics, by number of groups and with second ratings: simulated from the ratings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from proctor.audits.agreement import KINDS, CorrelationSettings, RatingCell, RatingCells, paired
from proctor.audits.ratings import ALL, Key, MetricScores, RatingsTable
from proctor.core import InputError, generator
from proctor.stats import STATISTICS, Floats, Ints

SIZES = (50, 100, 200, 400, 800, 1600)
"""The default numbers of groups."""

DIFFERENCES = (0.02, 0.03, 0.05, 0.1)
"""The default true differences."""

POWER = 0.8
_SAMPLES = 1000
_IMPUTED = 8
_NEAR = 8  # answers before and after one, in the order of their fitted ratings
_MIN_PAIRS = 20
_MAX_NEEDED = 1_000_000
_ROUNDING = 1e-12


@dataclass(frozen=True)
class PowerPlan:
    """What to simulate: numbers of groups and true differences. `agreement` is Pearson's r of two raters of the same
    answers (None: unknown), `level` that of the test."""

    sizes: tuple[int, ...] = SIZES
    differences: tuple[float, ...] = DIFFERENCES
    agreement: float | None = None
    level: float = 0.05
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Power:
    """The chance that a paired two-sided test detects a true `lead`, for each of the plan's sizes. `needed` groups give a
    power of 80 %, `needed_low` to `needed_high` is its 95 % confidence interval; None above a million. `seconds`: a second
    rater rated every answer; the lead is still that with one rating."""

    language: str
    seconds: bool
    lead: float
    chances: tuple[float, ...]
    needed: int | None
    needed_low: int | None
    needed_high: int | None


@dataclass(frozen=True)
class PowerTable:
    """The power to distinguish `first` and `second` by their mean correlation over a language's dimensions, from ratings of
    `groups` groups. `agreement` is that of raters, and `measured` whether it was computed from the ratings."""

    first: str
    second: str
    plan: PowerPlan
    groups: int
    agreement: float | None
    measured: bool
    rows: tuple[Power, ...]


def power(table: RatingsTable, first: MetricScores, second: MetricScores, plan: PowerPlan | None = None) -> PowerTable:
    """The power of comparing two metrics, by number of groups.

    For each size that many groups are drawn with replacement, 1,000 times. The standard deviation of the difference over
    the draws is its standard error; a draw, shifted to the true lead, is significant if it exceeds Student's t with
    groups − 1 degrees of freedom. The observed groups stand for all groups: with few of them the result is rough. The
    interval of the number needed is that of the variance per group, a multiple of χ² with Satterthwaite's degrees of
    freedom from the kurtosis of the jackknife influences. There is no row for the observed lead: the power to detect what
    was observed is a function of its p, and no news (Hoenig and Heisey 2001, The American Statistician 55:19).

    Second ratings are simulated: with some probability the second rater repeats the first rating, else gives the rating
    of an answer with similar scores by both metrics. The probability is such that two ratings correlate by the agreement.
    The mean of both is correlated with the metrics, and a lead grows by √(2 / (1 + agreement)) (Spearman-Brown). The
    agreement is the plan's, else that of answers with two ratings; without either there are no rows with second ratings.
    Where an answer has several ratings, the draws use its first one.

    Raises `InputError` if a metric has no correlation or both have the same, and for an agreement below that of both
    metrics together with the ratings.
    """
    plan = plan or PowerPlan()
    frame = RatingCells(table, CorrelationSettings(draws=0))
    measured = None if plan.agreement is not None else rater_agreement(table)
    agreement = measured if plan.agreement is None else plan.agreement
    rows: list[Power] = []
    for language in dict.fromkeys(language for language, _ in table.dimensions):
        own = [cell for cell in frame.cells if (cell.dataset, cell.language) == (ALL, language)]
        row = {group: k for k, group in enumerate(frame.samples(own[0]).labels)}  # by contents, not by name
        cells = [_Compared.of(cell, first, second, row) for cell in own]
        ratio = _ratio_of_variances(cells)
        rng = generator(plan.seed, "power", language)
        rows += _rows(language, 1.0, ratio, _simulated([cells], plan, rng), plan)
        if agreement is not None:
            twice = [[cell.rated_twice(agreement, rng) for cell in cells] for _ in range(_IMPUTED)]
            surer = math.sqrt(2 / (1 + agreement))
            rows += _rows(language, surer, ratio, _simulated(twice, plan, rng), plan)
    groups = len({rating.cluster for rating in table.ratings})
    return PowerTable(first.name, second.name, plan, groups, agreement, measured is not None, tuple(rows))


@dataclass(frozen=True)
class _Compared:
    """One dimension: both metrics' scores beside the first rating of each answer. `used` are the dimension's groups among
    the `groups` of the language, `unit` the position of each answer's group among them."""

    location: str
    ratings: Floats
    scores: tuple[Floats, Floats]
    used: Ints
    unit: Ints
    groups: int

    @classmethod
    def of(cls, cell: RatingCell, first: MetricScores, second: MetricScores, index: Mapping[str, int]) -> _Compared:
        seen: dict[Key, int] = {}
        for row, key in enumerate(cell.keys):
            seen.setdefault(key, row)
        one = cell.part(list(seen.values()))
        scores = []
        for metric in (first, second):
            values, reason = paired(one, metric)
            if reason or np.ptp(values) == 0 or np.ptp(one.values) == 0:
                why = reason or "scores or ratings that are all the same"
                raise InputError(f"{metric.name} on {one.language}/{one.dimension}", found=why, expected="a figure")
            scores.append(values)
        used, unit = np.unique([index[group] for group in one.groups], return_inverse=True)
        where = f"{one.language}/{one.dimension}"
        return cls(where, one.values, (scores[0], scores[1]), used, unit.astype(np.int64), len(index))

    def difference(self, weights: Floats) -> Floats:
        """The difference of the metrics' mean correlations, under each row of weights of groups."""
        each = [
            np.mean(
                [STATISTICS[kind](scores, self.ratings, self.unit)(weights[:, self.used]) for kind in KINDS], axis=0
            )
            for scores in self.scores
        ]
        return np.asarray(each[0] - each[1], dtype=np.float64)

    def rated_twice(self, agreement: float, rng: np.random.Generator) -> _Compared:
        """A copy with the mean of two ratings, the second one simulated."""
        design = np.stack([np.ones(len(self.ratings)), *self.scores], axis=1)
        fitted = design @ np.linalg.lstsq(design, self.ratings, rcond=None)[0]
        explained = float(fitted.var() / self.ratings.var())
        if not explained < agreement < 1:
            expected = f"above {explained:.2f}, the share of variance that both metrics explain, and below 1"
            raise InputError(f"rater agreement on {self.location}", found=f"{agreement:g}", expected=expected)
        order = np.argsort(fitted, kind="stable")
        near = np.arange(len(order)) + rng.integers(-_NEAR, _NEAR + 1, len(order))
        near = np.abs(near)  # the ends are mirrored
        near = np.where(near >= len(order), 2 * len(order) - 2 - near, near).clip(0, len(order) - 1)
        other = np.empty(len(order))
        other[order] = self.ratings[order[near]]
        same = rng.random(len(order)) < (agreement - explained) / (1 - explained)
        return replace(self, ratings=(self.ratings + np.where(same, self.ratings, other)) / 2)


def _simulated(imputed: Sequence[Sequence[_Compared]], plan: PowerPlan, rng: np.random.Generator) -> dict[int, Floats]:
    """By number of groups the centred difference, averaged over the dimensions, in each draw."""
    found = {}
    for size in plan.sizes:
        parts = []
        for cells in imputed:
            groups = cells[0].groups
            weights = rng.multinomial(size, np.full(groups, 1 / groups), _SAMPLES // len(imputed)).astype(np.float64)
            drawn = np.mean([cell.difference(weights) for cell in cells], axis=0)
            drawn = drawn[np.isfinite(drawn)]
            parts.append(drawn - drawn.mean())
        found[size] = np.concatenate(parts)
    return found


def _ratio_of_variances(cells: Sequence[_Compared]) -> tuple[float, float]:
    """The 95 % confidence interval of the variance of one group's influence on the difference, as multiples of the
    estimate."""
    from scipy.special import chdtri

    without = np.mean([cell.difference(1.0 - np.eye(cells[0].groups)) for cell in cells], axis=0)
    without = without[np.isfinite(without)]
    pull = without - without.mean()
    n, squared = len(pull), float((pull**2).sum())
    if n < 4 or squared <= 0:
        return 0.0, math.inf
    kurtosis = n * float((pull**4).sum()) / squared**2
    df = float(np.clip(2 * n / max(kurtosis - (n - 3) / (n - 1), 1e-9), 1.0, n - 1))
    return df / float(chdtri(df, 0.025)), df / float(chdtri(df, 0.975))


def _rows(
    language: str, surer: float, ratio: tuple[float, float], drawn: Mapping[int, Floats], plan: PowerPlan
) -> list[Power]:
    """The rows with one rating of each answer (`surer` 1), or with two. `ratio` is that of `_ratio_of_variances`."""
    errors = {size: float(values.std(ddof=1)) for size, values in drawn.items()}
    unit = float(np.mean([error * math.sqrt(size) for size, error in errors.items()]))
    if unit < _ROUNDING:
        raise InputError("power", found="two metrics with the same figures", expected="two that differ")
    rows = []
    for difference in plan.differences:
        true = surer * abs(difference)
        chances = tuple(
            float(np.mean(np.abs(values + true) > _critical(size, plan.level) * errors[size]))
            for size, values in drawn.items()
        )
        needed = (_needed(true / unit / math.sqrt(times), plan.level) for times in (1.0, *ratio))
        rows.append(Power(language, surer > 1, difference, chances, *needed))
    return rows


def _critical(groups: int, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(groups - 1, 1 - level / 2))


def _needed(effect: float, level: float) -> int | None:
    """The smallest number of groups with a power of 80 % for a lead of `effect` standard errors of one group."""
    low, high = 2, 4
    while _chance(effect, high, level) < POWER:
        low, high = high, 2 * high
        if high > _MAX_NEEDED:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _chance(effect, middle, level) >= POWER else (middle, high)
    return high


def _chance(effect: float, groups: int, level: float) -> float:
    """The power, by the normal distribution around the lead."""
    from scipy.special import ndtr

    return 1 - float(ndtr(_critical(groups, level) - effect * math.sqrt(groups)))


def rater_agreement(table: RatingsTable) -> float | None:
    """Pearson's r of two raters of the same answers, averaged over languages' dimensions; None if in one of them fewer than
    20 answers have two ratings, or these are constant.

    >>> rater_agreement(RatingsTable(())) is None
    True
    """
    found = []
    for cell in RatingCells(table, CorrelationSettings(draws=0)).cells:
        if cell.dataset != ALL:
            continue
        by_key: dict[Key, list[float]] = {}
        for rating in sorted(cell.ratings, key=lambda rating: rating.rater):
            by_key.setdefault(rating.key, []).append(rating.value)
        pairs = np.array([values[:2] for values in by_key.values() if len(values) > 1])
        if len(pairs) < _MIN_PAIRS or min(np.ptp(pairs, axis=0)) == 0:
            return None
        found.append(float(np.corrcoef(pairs.T)[0, 1]))
    return float(np.mean(found)) if found else None
