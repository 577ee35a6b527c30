"""Several answers of a system to each item: how alike they are, how often all, any, or most of them are right, which part of
the variance lies between groups, items and repetitions, and whether a lead is larger than the noise between repetitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from proctor import stats
from proctor.core import Metric
from proctor.results.arrays import ItemTable
from proctor.results.run_scores import NO_REPETITION, RunScores
from proctor.runs import Run
from proctor.stats import Estimate, Resampling, VarianceShares

if TYPE_CHECKING:
    from proctor.results.results import Options


@dataclass(frozen=True)
class Consistency:
    """One metric by one scorer in a run whose items were answered `repetitions` times; `fewer` items have fewer answers.

    `alike` is the share of pairs of an item's repetitions with the same answer. `all_right` and `any_right` say for each k
    from 1 on how often all, or any, of k repetitions are right (drawn without replacement, so unbiased for every k), where
    right is the metric's best score; `majority` is the score of an item's most frequent answer. These are means over items
    that have enough repetitions. `variance` are the parts of the scores' variance (None where there are too few items).
    `error` is the standard error that the score owes to its repetitions alone; all the other intervals resample groups.
    """

    system: str
    condition: str
    metric: str
    scorer: str
    repetitions: int
    fewer: int
    score: Estimate
    alike: Estimate
    all_right: dict[int, Estimate]
    any_right: dict[int, Estimate]
    majority: Estimate
    variance: VarianceShares | None
    error: float | None

    def to_json(self) -> dict[str, Any]:
        """The fields as plain data; the parts of the variance as shares and as their sum."""
        shares = {} if self.variance is None else self.variance.shares
        return {
            "system": self.system,
            "condition": self.condition,
            "metric": self.metric,
            "scorer": self.scorer,
            "repetitions": self.repetitions,
            "fewer": self.fewer,
            "score": _json(self.score),
            "alike": _json(self.alike),
            "all_right": {str(k): _json(one) for k, one in self.all_right.items()},
            "any_right": {str(k): _json(one) for k, one in self.any_right.items()},
            "majority": _json(self.majority),
            "variance_shares": {name: _json(one) for name, one in shares.items()},
            "variance": None if self.variance is None else self.variance.total,
            "error_of_repetitions": self.error,
        }


def _json(estimate: Estimate) -> dict[str, Any]:
    return {
        "value": estimate.value,
        "ci_low": estimate.ci_low,
        "ci_high": estimate.ci_high,
        "n": estimate.n,
        "groups": estimate.groups,
    }


def consistency(
    run: Run, parts: Sequence[RunScores], answers: NDArray[np.int64], items: ItemTable, options: Options
) -> list[Consistency]:
    """The consistency of a run by each metric and scorer (`parts`) that has several repetitions, given its
    `repeated_answers`; empty for a run without."""
    return [_of(run, part, answers, items, options) for part in parts if part.repeated and part.scorer]


def _of(run: Run, part: RunScores, answers: NDArray[np.int64], items: ItemTable, options: Options) -> Consistency:
    metric, plan = part.metric, replace(options.plan(part.metric), shares=part.shares_of_hits)
    scores = np.stack([np.where(one.scorable, one.scores, np.nan) for one in part.repeated], axis=1)
    there = np.flatnonzero((~np.isnan(scores)).any(axis=1))
    scores, codes, groups = scores[there], answers[there], items.group[there]
    count = (~np.isnan(scores)).sum(axis=1)
    most = int(count.max(initial=0))
    shares = replace(plan, bounds=(0.0, 1.0), shares=True)

    def mean(values: NDArray[np.float64], how: Resampling) -> Estimate:
        known = ~np.isnan(values)
        return stats.mean_interval(values[known], groups[known], how)

    right = np.where(np.isnan(scores), np.nan, scores == _best(metric))
    in_all = {k: mean(stats.right_in_all(right, k), shares) for k in range(1, most + 1)}
    in_any = {k: mean(stats.right_in_any(right, k), shares) for k in range(2, most + 1)}
    return Consistency(
        system=run.system,
        condition=run.condition,
        metric=metric.name,
        scorer=part.scorer,
        repetitions=most,
        fewer=int((count < most).sum()),
        score=mean(np.nanmean(scores, axis=1) if len(scores) else np.zeros(0), plan),
        alike=mean(stats.same_answers(np.where(np.isnan(scores), NO_REPETITION, codes)), shares),
        all_right=in_all,
        any_right=({1: in_all[1]} if in_all else {}) | in_any,  # of one repetition both are the same
        majority=mean(stats.majority_scores(codes, scores, metric.worst), plan),
        variance=stats.variance_shares(scores, groups, plan),
        error=stats.repetition_error(scores),
    )


def _best(metric: Metric) -> float:
    return metric.high if metric.higher_is_better else metric.low


@dataclass(frozen=True)
class RepetitionNoise:
    """The difference of two runs beside the noise between repetitions: `error` is the standard error of the difference that
    repetitions alone make, and `ci_low` and `ci_high` its interval if the same items were answered again (normal, at
    `level`). `exceeded` says whether 0 lies outside: the difference is then no accident of these draws, though it may
    still be one of these items."""

    difference: float
    error: float
    ci_low: float
    ci_high: float
    level: float
    exceeded: bool


def repetition_noise(a: RunScores, b: RunScores, *, level: float = 0.95) -> RepetitionNoise | None:
    """The noise of the difference of two runs (first minus second) on the items that both have a score for. A run without
    repetitions has the other's noise per answer, as far as it is known. None where neither was repeated."""
    both = ~np.isnan(a.scores) & ~np.isnan(b.scores) & a.scorable & b.scorable
    if not np.any(both):
        return None
    found = difference_noise(a, b, both)
    if found is None:
        return None
    error = math.sqrt(found[1] / int(both.sum()))
    difference = float(np.mean(a.scores[both] - b.scores[both]))
    reach = NormalDist().inv_cdf((1 + level) / 2) * error
    low, high = difference - reach, difference + reach
    return RepetitionNoise(difference, error, low, high, level, exceeded=not low <= 0 <= high)


def difference_noise(a: RunScores, b: RunScores, both: NDArray[np.bool_]) -> tuple[float, float] | None:
    """The variance that repetitions add to the difference of two runs on one of `both` their items: of single answers, and of
    the answers that they have. A run without repetitions has the other's noise per answer. None where neither was
    repeated."""
    found = [_variances(one, both) for one in (a, b)]
    known = next((one for one in found if one is not None), None)
    if known is None:
        return None
    alone = known[0], known[0]  # of a run that was asked once
    (first, of_first), (second, of_second) = (one or alone for one in found)
    return first + second, of_first + of_second


def _variances(run: RunScores, both: NDArray[np.bool_]) -> tuple[float, float] | None:
    if not run.repeated:
        return None
    scores = [np.where(one.scorable, one.scores, np.nan)[both] for one in run.repeated]
    return stats.repetition_variances(np.stack(scores, axis=1))
