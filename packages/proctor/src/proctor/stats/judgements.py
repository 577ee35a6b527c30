"""Which part of the variance of judges' scores lies between answers, between judges, in how judges differ by answer, and
between repeated judgements of the same answer by the same judge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proctor.stats import clusters
from proctor.stats.bootstrap import Estimate, Resampling
from proctor.stats.variance_intervals import FEWEST_GROUPS, jackknife_ends

Floats = NDArray[np.float64]

PARTS = ("answer", "judge", "judge_by_answer", "judgement")


@dataclass(frozen=True)
class JudgeVariance:
    """The variance of single judgements in its parts, and their shares of the sum (0 to 1) with intervals; no interval with
    fewer than six groups. With one judge there is no part of judges: both are 0 and have no share.

    >>> JudgeVariance(1.0, 0.2, 0.3, 0.5, answers=80, judges=2, judgements=3, groups=20, shares={}).total
    2.0
    """

    answer: float
    judge: float
    judge_by_answer: float
    judgement: float
    answers: int
    judges: int
    judgements: int
    groups: int
    shares: dict[str, Estimate]

    @property
    def total(self) -> float:
        """The sum of the parts."""
        return self.answer + self.judge + self.judge_by_answer + self.judgement


def judge_variance(scores: Floats, groups: clusters.Groups, plan: Resampling = Resampling()) -> JudgeVariance | None:
    """The parts of the variance of `scores` (answers × judges × judgements) in the crossed model score = mean + answer +
    judge + judge × answer + judgement, all random: from the mean squares of the analysis of variance, none negative
    (Brennan 2001, Generalizability Theory, section 3.2). Answers that lack a judgement are left out. None with fewer than
    two judgements or three whole answers.

    Intervals are those of `jackknife_ends`, over groups of answers; the judges are those that there are, so the share of
    judges says nothing of other judges.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(0, 2, (400, 1, 1)) + np.array([0.0, 1.0])[:, None] + rng.normal(0, 1, (400, 2, 3))
    >>> found = judge_variance(truth, np.arange(400) // 5)
    >>> round(found.answer, 1), round(found.judge, 1), round(found.judge_by_answer, 1), round(found.judgement, 1)
    (4.0, 0.5, 0.0, 1.0)
    """
    if scores.ndim != 3 or scores.shape[2] < 2:
        return None
    whole = ~np.isnan(scores).any(axis=(1, 2))
    if int(whole.sum()) < 3:
        return None
    code = np.unique(clusters.group_codes(groups, len(scores))[whole], return_inverse=True)[1]
    sums = _Sums.of(scores[whole], code)
    parts = _parts(sums, np.ones((1, len(sums.size))))[0]
    answer, judge, both, judgement = parts.tolist()
    return JudgeVariance(
        answer=answer,
        judge=judge,
        judge_by_answer=both,
        judgement=judgement,
        answers=int(whole.sum()),
        judges=scores.shape[1],
        judgements=scores.shape[2],
        groups=len(sums.size),
        shares=_shares(sums, parts, plan),
    )


@dataclass(frozen=True)
class _Sums:
    """Of each group of answers: its number of answers, the sum of the judges' means (judges), the sum of squares of those
    means (one number), the sum of squares of the answers' means, and the sum of squares between judgements."""

    size: Floats
    by_judge: Floats
    square: Floats
    answer_square: Floats
    within: Floats
    judgements: int

    @classmethod
    def of(cls, scores: Floats, code: NDArray[np.int64]) -> _Sums:
        number = int(code.max()) + 1
        means = scores.mean(axis=2)

        def added(values: Floats) -> Floats:
            return np.bincount(code, values, minlength=number).astype(np.float64)

        return cls(
            size=added(np.ones(len(means))),
            by_judge=np.stack([added(means[:, judge]) for judge in range(means.shape[1])], axis=1),
            square=added((means**2).sum(axis=1)),
            answer_square=added(means.mean(axis=1) ** 2),
            within=added(((scores - means[:, :, None]) ** 2).sum(axis=(1, 2))),
            judgements=scores.shape[2],
        )


def _parts(sums: _Sums, weights: Floats) -> Floats:
    """The parts of variance where each group is there `weights` times (draws × groups), as draws × parts."""
    n, judges, k = weights @ sums.size, sums.by_judge.shape[1], sums.judgements
    columns = weights @ sums.by_judge / n[:, None]
    mean = columns.mean(axis=1)
    judgement = weights @ sums.within / (n * judges * (k - 1))
    between_answers = judges * (weights @ sums.answer_square - n * mean**2)
    between_judges = n * ((columns - mean[:, None]) ** 2).sum(axis=1)
    both = weights @ sums.square - judges * n * mean**2 - between_answers - between_judges
    freedom = np.maximum(n - 1, 1)
    answer_square = k * between_answers / freedom
    if judges == 1:
        rest = (answer_square - judgement) / k
        none = np.zeros(len(n))
        parts = [rest, none, none, judgement]
    else:
        both_square = k * both / (freedom * (judges - 1))
        judge_square = k * between_judges / (judges - 1)
        parts = [
            (answer_square - both_square) / (judges * k),
            (judge_square - both_square) / (n * k),
            (both_square - judgement) / k,
            judgement,
        ]
    found: Floats = np.clip(np.stack(parts, axis=1), 0, None)
    return found


def _shares(sums: _Sums, parts: Floats, plan: Resampling) -> dict[str, Estimate]:
    """The share of each part with its interval."""
    n, number, judges = int(sums.size.sum()), len(sums.size), sums.by_judge.shape[1]
    chosen = [at for at, name in enumerate(PARTS) if judges > 1 or name in ("answer", "judgement")]
    if parts.sum() <= 0:
        return {PARTS[at]: Estimate(None, None, None, n, number) for at in chosen}
    shares = parts / parts.sum()
    if number < FEWEST_GROUPS:
        return {PARTS[at]: Estimate(float(shares[at]), None, None, n, number) for at in chosen}
    fewer = _parts(sums, 1 - np.eye(number))
    total = fewer.sum(axis=1, keepdims=True)
    without = np.divide(fewer, total, out=np.zeros(fewer.shape), where=total > 0)
    low, high = jackknife_ends(shares, without, plan.level)
    return {PARTS[at]: Estimate(float(shares[at]), float(low[at]), float(high[at]), n, number) for at in chosen}
