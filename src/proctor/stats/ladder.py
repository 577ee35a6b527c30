"""The optimism of leaderboards: how far the best of many scores on the same hidden questions exceeds its true accuracy,
by luck or by an attack, if all scores are shown or only those of the ladder mechanism.

The ladder (Blum and Hardt 2015, ICML, 1006) shows a submission's score only if it is better than the last shown one.
Here "better" means that the clustered interval of the paired difference lies above 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, generator
from proctor.stats.special import stdtrit

ShownBy = Literal["all", "ladder"]
"""Which scores are shown: all, or those that are significantly better than the last shown one."""

_RULES: tuple[ShownBy, ...] = get_args(ShownBy)
_DRAWS = 400
_CHUNK = 2_000_000  # elements of one working array

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Optimism:
    """The mean excess of the shown score over the true accuracy (`value`), with its Monte Carlo standard error.

    >>> Optimism(0.02, 0.001).value
    0.02
    """

    value: float
    error: float


@dataclass(frozen=True, slots=True)
class HiddenSet:
    """A hidden set of questions: `groups` (such as videos) with `questions` questions each, the true `accuracy` of the
    systems, and the intraclass correlation `icc` of their answers within a group, from 0 to below 1.

    Raises `InputError` for values out of range.

    >>> HiddenSet(groups=20, questions=60).size
    1200
    >>> HiddenSet(groups=20, questions=60, accuracy=1.5)
    Traceback (most recent call last):
    proctor.core.errors.InputError: accuracy: found 1.5, expected a share between 0 and 1
    """

    groups: int
    questions: int
    accuracy: float = 0.5
    icc: float = 0.0

    def __post_init__(self) -> None:
        if self.groups < 2 or self.questions < 1:
            found = f"{self.groups} and {self.questions}"
            raise InputError("groups and questions", found=found, expected="at least 2, and at least 1")
        if not 0 < self.accuracy < 1:
            raise InputError("accuracy", found=str(self.accuracy), expected="a share between 0 and 1")
        if not 0 <= self.icc < 1:
            raise InputError("icc", found=str(self.icc), expected="from 0 to below 1")

    @property
    def size(self) -> int:
        """The total number of questions."""
        return self.groups * self.questions


def luck(hidden: HiddenSet, submissions: int, rule: ShownBy = "all", *, draws: int = _DRAWS, seed: int = 0) -> Optimism:
    """The optimism of the best shown score of independent systems of equal accuracy, which is due to luck alone.

    With `rule` "all" it is E[max] − accuracy, with the ladder E[last shown score] − accuracy. It is 0 for one
    submission. Raises `InputError` for fewer than one submission, an unknown rule, or fewer than two draws.

    >>> optimism = luck(HiddenSet(groups=20, questions=20), submissions=10, draws=200)
    >>> 0.03 < optimism.value < 0.05 and optimism.error < 0.002
    True
    """
    _check(submissions, rule, draws)
    rng = generator(seed, "optimism by luck", rule)
    step = max(1, _CHUNK // (submissions * hidden.groups))
    best: list[NDArray[np.float64]] = []
    for start in range(0, draws, step):
        shape = (min(step, draws - start), submissions, hidden.groups)
        right = rng.binomial(hidden.questions, _shares(rng, hidden, shape), shape)
        best.append(_last_shown(right, hidden) if rule == "ladder" else right.sum(axis=2).max(axis=1) / hidden.size)
    return _optimism(np.concatenate(best), hidden.accuracy)


def boosting(
    hidden: HiddenSet, submissions: int, options: int = 2, rule: ShownBy = "all", *, draws: int = _DRAWS, seed: int = 0
) -> Optimism:
    """The optimism of a boosting attack, which needs no model (Blum and Hardt 2015, section 4).

    All submissions but the last are random answers to questions with this many `options`. The last one takes, for each
    question, the most frequent answer among the submissions that scored above chance (under the ladder: among those
    that were shown). Its true accuracy is chance, so its excess is what the scores revealed. `accuracy` and `icc` of
    the hidden set are ignored.

    For large sets of n questions with two options, all scores shown, it is Φ(√(k / (π n))) − ½ after k random
    submissions. Raises `InputError` as `luck` does, and for fewer than two options.

    >>> boosting(HiddenSet(groups=10, questions=10), submissions=1, draws=500).value < 0.01
    True
    >>> boosting(HiddenSet(groups=10, questions=10), submissions=101, draws=50).value > 0.15
    True
    """
    _check(submissions, rule, draws)
    if options < 2:
        raise InputError("options", found=str(options), expected="at least 2")
    rng = generator(seed, "optimism by boosting", rule)
    chance = HiddenSet(hidden.groups, hidden.questions, 1 / options)
    scores = np.array([_boosted(rng, chance, submissions - 1, options, rule) for _ in range(draws)])
    return _optimism(scores, 1 / options)


def _boosted(rng: np.random.Generator, hidden: HiddenSet, probes: int, options: int, rule: ShownBy) -> float:
    """The score of one attack; option 0 is right for all questions."""
    answers = rng.integers(0, options, size=(probes, hidden.size))
    right = answers == 0
    if rule == "ladder":
        by_group = right.reshape(probes, hidden.groups, hidden.questions).sum(axis=2)
        kept = _climbed(by_group[None].astype(np.int64), hidden)[0]
    else:
        kept = right.mean(axis=1) > 1 / options
    votes = np.stack([(answers[kept] == option).sum(axis=0) for option in range(options)])
    level = votes.max(axis=0) == votes  # ties are broken at random
    return float((level[0] / level.sum(axis=0)).mean())


def _shares(rng: np.random.Generator, hidden: HiddenSet, shape: tuple[int, ...]) -> NDArray[np.float64] | float:
    """The accuracy in each group: constant, or drawn from a beta distribution with this intraclass correlation."""
    if hidden.icc == 0:
        return hidden.accuracy
    spread = (1 - hidden.icc) / hidden.icc
    return rng.beta(hidden.accuracy * spread, (1 - hidden.accuracy) * spread, size=shape)


def _climbed(right: Counts, hidden: HiddenSet) -> NDArray[np.bool_]:
    """Which submissions the ladder shows; `right` is draws × submissions × groups. The interval is Student's t interval
    of the differences between groups, which have equal size."""
    draws, submissions, groups = right.shape
    shown = np.zeros((draws, submissions), dtype=np.bool_)
    if not submissions:
        return shown
    shown[:, 0] = True
    best = right[:, 0].copy()
    width = float(stdtrit(groups - 1, 0.975)) / np.sqrt(groups)
    for number in range(1, submissions):
        apart = (right[:, number] - best) / hidden.questions
        better = apart.mean(axis=1) - width * apart.std(axis=1, ddof=1) > 0
        shown[:, number] = better
        best[better] = right[better, number]
    return shown


def _last_shown(right: Counts, hidden: HiddenSet) -> NDArray[np.float64]:
    shown = _climbed(right, hidden)
    last = shown.shape[1] - 1 - np.argmax(shown[:, ::-1], axis=1)
    scores: NDArray[np.float64] = right[np.arange(len(right)), last].sum(axis=1) / hidden.size
    return scores


def _optimism(scores: NDArray[np.float64], truth: float) -> Optimism:
    return Optimism(float(scores.mean() - truth), float(scores.std(ddof=1) / np.sqrt(len(scores))))


def _check(submissions: int, rule: ShownBy, draws: int) -> None:
    if submissions < 1:
        raise InputError("submissions", found=str(submissions), expected="at least 1")
    if rule not in _RULES:
        raise InputError("rule", found=repr(rule), expected=f"one of {', '.join(_RULES)}")
    if draws < 2:
        raise InputError("draws", found=str(draws), expected="at least 2")
