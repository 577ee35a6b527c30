"""Confidence and correctness: risk and coverage, calibration, the Brier score, and errors among confident answers.

A loss is 1 for a wrong answer and 0 for a right one (or a share between). A confidence is the stated probability, from 0
to 1, that the answer is right. Items come in groups, and every interval is over groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats.bootstrap import Estimate, Resampling, ratio, sums_intervals
from proctor.stats.clusters import Floats, Groups, Ints, Values, group_codes
from proctor.stats.means import mean_interval
from proctor.stats.special import psi

COVERAGES = tuple(round(0.05 * step, 2) for step in range(1, 21))
"""The coverages at which a curve is drawn."""

BINS = 10
"""The number of bins of equal mass of the calibration error."""

_MOST_LEVELS = 2_001  # distinct confidences; each has two columns of the bootstrap's sums


@dataclass(frozen=True, slots=True)
class CoveragePoint:
    """The risk (expected loss) of the share `coverage` of the items with the highest confidence.

    >>> risk_coverage([0, 1], [0.9, 0.1], ["a", "b"], coverages=(0.5,)).points[0].risk.value
    0.0
    """

    coverage: float
    risk: Estimate


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """A risk–coverage curve. `area` is the mean risk over all coverages 1/n … 1 (AURC, lower is better), `best` the area if
    all wrong items came last, `error` the risk of all items, which is also the expected area of an order at random.
    `covered` is the share of the items that have a confidence.

    >>> risk_coverage([0, 1], [0.9, 0.1], ["a", "b"]).covered
    1.0
    """

    area: Estimate
    best: float | None
    error: float | None
    covered: float
    points: tuple[CoveragePoint, ...]


def risk_coverage(
    losses: Values,
    confidences: Values,
    groups: Groups,
    plan: Resampling = Resampling(),
    *,
    coverages: Sequence[float] = COVERAGES,
) -> RiskCoverage:
    """The risk–coverage curve of answers that are accepted in the order of their confidence (El-Yaniv and Wiener 2010, JMLR
    11:1605), and the area under it (Geifman and El-Yaniv 2017, arXiv:1705.08500; `area` − `best` is their excess area,
    arXiv:1805.08206).

    Items of equal confidence are accepted in any order: the curve is the expectation over all orders, so nothing depends on
    the order of rows. An item without a confidence (NaN) is accepted after all others, as one tie: leaving the confidence
    out is worth no more than stating 0, and at coverage 1 the risk is that of all items.

    With k-th of n accepted, risk(k) is the mean loss of the first k, and the area is Σ risk(k) / n. In a tie of m items with
    the loss s, after a items with the loss l, Σ risk = s + (l − s·a/m) (H(a+m) − H(a)), with the harmonic numbers H. At a
    coverage between two items the loss is linear.

    Intervals are those of `sums_interval`, pointwise: each bootstrap sample of whole groups has a
    curve of its own. Edges: None without items; no interval with fewer than three groups. Raises `InputError` for losses and
    confidences outside 0 to 1, a coverage outside 0 to 1, more than 2,001 distinct confidences, and unequal lengths.

    >>> found = risk_coverage([0, 0, 1, 0], [0.9, 0.8, 0.7, 0.7], ["a", "b", "c", "d"], Resampling(draws=100), coverages=(0.5, 1))
    >>> [point.risk.value for point in found.points], round(found.area.value, 4)  # (0 + 0 + 0.5/3 + 1/4) / 4
    ([0.0, 0.25], 0.1042)
    """
    loss, sure, code = _checked(losses, confidences, groups)
    wrong = [one for one in coverages if not 0 < one <= 1]
    if wrong:
        raise InputError("coverage", found=f"{wrong[0]:g}", expected="above 0, up to 1")
    if not len(loss):
        nothing = Estimate(None, None, None, 0, 0)
        return RiskCoverage(nothing, None, None, 0.0, tuple(CoveragePoint(one, nothing) for one in coverages))
    levels, level = np.unique(-np.where(np.isnan(sure), -1.0, sure), return_inverse=True)  # the most confident first
    count = len(levels)
    if count > _MOST_LEVELS:
        raise InputError("confidences", found=f"{count} distinct", expected=f"at most {_MOST_LEVELS}: round them")
    sums = np.zeros((int(code.max()) + 1, 2 * count))
    np.add.at(sums, (code, level), 1.0)
    np.add.at(sums, (code, count + level), loss)

    def statistics(totals: Floats) -> Floats:
        items, lost = totals[:, :count], totals[:, count:]
        return np.column_stack([_area(items, lost), *(_risk_at(items, lost, one) for one in coverages)])

    estimates = sums_intervals(sums, np.arange(len(sums)), statistics, plan=plan.within(0.0, 1.0))
    area, *risks = (replace(one, n=len(loss)) for one in estimates)
    error = float(loss.mean())
    ordered = np.sort(loss)
    return RiskCoverage(
        area=area,
        best=float(np.mean(np.cumsum(ordered) / np.arange(1, len(ordered) + 1))),
        error=error,
        covered=float(np.mean(~np.isnan(sure))),
        points=tuple(CoveragePoint(one, risk) for one, risk in zip(coverages, risks, strict=True)),
    )


def _area(items: Floats, lost: Floats) -> Floats:
    """The area of each row: `items` and `lost` are the numbers of items and the losses of each tie, in their order."""
    before, earlier = np.cumsum(items, axis=1) - items, np.cumsum(lost, axis=1) - lost
    mean = np.divide(lost, items, out=np.zeros_like(lost), where=items > 0)
    harmonic = np.where(items > 0, psi(before + items + 1) - psi(before + 1), 0.0)
    return ratio((lost + (earlier - mean * before) * harmonic).sum(axis=1), items.sum(axis=1))


def _risk_at(items: Floats, lost: Floats, coverage: float) -> Floats:
    """The risk of each row at a coverage."""
    accepted = coverage * items.sum(axis=1)
    before = np.cumsum(items, axis=1) - items
    inside = np.clip(accepted[:, None] - before, 0.0, items)
    share = np.divide(inside, items, out=np.zeros_like(items), where=items > 0)
    return ratio((lost * share).sum(axis=1), accepted)


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """The answers with a confidence from `low` to `high`: their mean confidence, and the share that is right."""

    low: float
    high: float
    confidence: float
    accuracy: Estimate


@dataclass(frozen=True, slots=True)
class CalibrationGap:
    """How far confidences are from the share that is right. `error` is the expected calibration error, `debiased` the root
    of the debiased squared error (0 if that is negative; None if no bin has two groups), `brier` the Brier score; lower is
    better. `bias` is the mean confidence minus the share that is right: above 0 is overconfident.

    >>> calibration([0, 0], [0.5, 1.0], ["a", "b"], bins=2).bins[1].confidence
    1.0
    """

    error: Estimate
    debiased: float | None
    brier: Estimate
    bias: Estimate
    bins: tuple[CalibrationBin, ...]


def calibration(
    losses: Values, confidences: Values, groups: Groups, plan: Resampling = Resampling(), *, bins: int = BINS
) -> CalibrationGap:
    """The calibration of confidences, over the items that have one; the others (NaN) are left out.

    The expected calibration error is Σ n_b/n · |accuracy_b − confidence_b| over up to `bins` bins of equal mass
    (Naeini, Cooper and Hauskrecht 2015, AAAI; equal mass: Nixon et al. 2019, arXiv:1904.01685); equal confidences are in one
    bin. Noise alone makes it positive, so beside it stands the root of the debiased squared error, Σ n_b/n ·
    ((accuracy_b − confidence_b)² − variance_b), after Kumar, Liang and Ma 2019 (arXiv:1909.10155), where the variance is
    over groups; it needs two groups in each bin that counts. The Brier score is the mean of (confidence − right)² (Brier
    1950, Monthly Weather Review 78:1).

    Intervals: `sums_interval` for the error (bins as observed), `mean_interval` for the others. Edges: None without items
    that have a confidence. Raises `InputError` as `risk_coverage`, and for fewer than one bin.

    >>> found = calibration([0, 1, 0, 1], [0.8, 0.8, 0.8, 0.8], ["a", "b", "c", "d"], Resampling(draws=100))
    >>> round(found.error.value, 9), round(found.brier.value, 9), round(found.bias.value, 9)
    (0.3, 0.34, 0.3)
    """
    loss, sure, code = _checked(losses, confidences, groups)
    if bins < 1:
        raise InputError("bins", found=str(bins), expected="at least 1")
    there = ~np.isnan(sure)
    loss, sure, code = loss[there], sure[there], code[there]
    right = 1 - loss
    brier = mean_interval((sure - right) ** 2, code, plan.within(0.0, 1.0))
    bias = mean_interval(sure - right, code, plan.within(-1.0, 1.0))
    if not len(loss):
        return CalibrationGap(brier, None, brier, bias, ())
    which, count = _equal_mass(sure, bins)
    sums = np.zeros((len(loss), 2 * count))
    sums[np.arange(len(loss)), which] = 1.0
    sums[np.arange(len(loss)), count + which] = sure - right

    def error(totals: Floats) -> Floats:
        return ratio(np.abs(totals[:, count:]).sum(axis=1), totals[:, :count].sum(axis=1))[:, None]

    (estimate,) = sums_intervals(sums, code, error, plan=plan.within(0.0, 1.0))
    parts = []
    for number in range(count):
        own = which == number
        accuracy = mean_interval(right[own], code[own], plan.within(0.0, 1.0))
        low, high, mean = sure[own].min(), sure[own].max(), sure[own].mean()
        parts.append(CalibrationBin(float(low), float(high), float(mean), accuracy))
    return CalibrationGap(estimate, _debiased(sure - right, which, code, count), brier, bias, tuple(parts))


def _equal_mass(sure: Floats, bins: int) -> tuple[Ints, int]:
    """The bin of each item, by the middle rank of its confidence, and the number of bins that are not empty."""
    _, level, counts = np.unique(sure, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - counts / 2
    chosen = np.minimum((bins * middle / len(sure)).astype(np.int64), bins - 1)
    used, number = np.unique(chosen, return_inverse=True)
    return number[level], len(used)


def _debiased(gaps: Floats, which: Ints, code: Ints, count: int) -> float | None:
    """The root of Σ n_b/n · (mean gap² − its variance over groups)."""
    total, used = 0.0, 0
    for number in range(count):
        own = which == number
        gap, group = gaps[own], np.unique(code[own], return_inverse=True)[1]
        n_groups, n = int(group.max()) + 1, len(gap)
        if n_groups < 2:
            continue
        mean = float(gap.mean())
        residual = np.bincount(group, weights=gap) - mean * np.bincount(group)
        variance = n_groups / (n_groups - 1) * float((residual**2).sum()) / n**2
        total, used = total + n * (mean**2 - variance), used + n
    return float(np.sqrt(max(0.0, total / used))) if used else None


@dataclass(frozen=True, slots=True)
class SureErrors:
    """The answers with a confidence of at least `least`: how many there are, in how many groups, how many are wrong, and the
    one-sided upper limit of the share that is wrong; None with fewer than two groups, where nothing bounds it.

    >>> sure_errors([0] * 20, [1.0] * 20, range(20)).errors
    0.0
    """

    least: float
    errors: float
    n: int
    groups: int
    share: float | None
    limit: float | None
    level: float


def sure_errors(
    losses: Values, confidences: Values, groups: Groups, *, least: float = 0.9, level: float = 0.95
) -> SureErrors:
    """How often answers are wrong of which the system is at least `least` sure, and how often at most.

    The limit is the upper end of the clustered interval of the share at 2 · `level` − 1 (`share_ends`), so that 1 − `level`
    lies beyond. Raises `InputError` as `risk_coverage`.

    >>> sure_errors([1, 0, 0, 1], [0.95, 0.9, 0.99, 0.2], ["a", "b", "c", "d"]).share
    0.3333333333333333
    """
    loss, sure, code = _checked(losses, confidences, groups)
    own = np.nan_to_num(sure, nan=-1.0) >= least
    found = mean_interval(loss[own], code[own], Resampling(level=2 * level - 1, bounds=(0.0, 1.0)))
    return SureErrors(least, float(loss[own].sum()), found.n, found.groups, found.value, found.ci_high, level)


def _checked(losses: Values, confidences: Values, groups: Groups) -> tuple[Floats, Floats, Ints]:
    loss, sure = (np.asarray(one, dtype=np.float64) for one in (losses, confidences))
    if len(loss) != len(sure):
        raise InputError("confidences", found=f"{len(sure)}", expected=f"one for each of {len(loss)} losses")
    for name, given in (("losses", loss), ("confidences", sure[~np.isnan(sure)])):
        if not _within(given):
            raise InputError(name, found="a number outside of 0 to 1", expected="0 to 1")
    return loss, sure, group_codes(groups, len(loss))


def _within(values: NDArray[np.float64]) -> bool:
    return bool(np.all((values >= 0) & (values <= 1)))
