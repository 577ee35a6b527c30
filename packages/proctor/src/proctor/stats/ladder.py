"""The optimism of leaderboards: how far the best of many scores on the same hidden questions exceeds its true accuracy,
by luck or by an attack by least squares, if all scores are shown or only those of the ladder mechanism.

The ladder (Blum and Hardt 2015, ICML, 1006) shows a submission's score only if it is better than the last shown one.
Here "better" means that the clustered interval of the paired difference lies above 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray

from proctor.core import InputError, generator
from proctor.stats.special import ndtr, stdtrit

ShownBy = Literal["all", "ladder"]
"""Which scores are shown: all, or those that are significantly better than the last shown one."""

_RULES: tuple[ShownBy, ...] = get_args(ShownBy)
_DRAWS = 400
_MOST_ALIKE = 0.9  # intraclass correlation
_Z95 = 1.645  # of a one-sided bound
_STEPS = 500  # of the fixed point; about ten are needed, more where nearly all is known
_NODES, _NODE_WEIGHTS = hermegauss(80)
_NODE_WEIGHTS = _NODE_WEIGHTS / np.sqrt(2 * np.pi)
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

    @classmethod
    def of(cls, right: NDArray[np.float64], groups: NDArray[np.int64]) -> HiddenSet:
        """The hidden set on which a system has these scores (0 to 1) in these groups: groups of the mean size, the mean
        (kept within 0.01 and 0.99), and the intraclass correlation by analysis of variance from the means of the groups
        (Fisher 1925; for unequal groups Donner 1986, International Statistical Review 54:67), from 0 to 0.9.

        >>> HiddenSet.of(np.array([1.0, 1, 1, 0, 0, 0, 0, 1]), np.repeat([0, 1], 4)).icc  # 3 of 4, 1 of 4
        0.2
        """
        _, code, size = np.unique(groups, return_inverse=True, return_counts=True)
        n, accuracy = len(right), float(right.mean())
        means = np.bincount(code, right) / size
        within = float(((right - means[code]) ** 2).sum())
        between = float(((right - accuracy) ** 2).sum()) - within
        icc = 0.0
        if len(size) > 1 and n > len(size):
            msb, msw = between / (len(size) - 1), within / (n - len(size))
            typical = (n - float((size**2).sum()) / n) / (len(size) - 1)
            total = msb + (typical - 1) * msw
            icc = (msb - msw) / total if total > 0 else 0.0
        shown = min(0.99, max(0.01, accuracy))
        return cls(
            max(2, len(size)), max(1, round(n / max(2, len(size)))), shown, round(min(_MOST_ALIKE, max(0.0, icc)), 3)
        )


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


@dataclass(frozen=True, slots=True)
class ShownMeans:
    """The means that each result shows. `weights` (means × questions) are the weights of the questions in each, with sum
    1; `options` are the numbers of answers to each question, of which one is right; the means are rounded to `digits`.
    `numbers` is how many numbers there are for each mean: 3 with the two ends of an interval.

    Raises `InputError` for other shapes and for fewer than two options.

    >>> ShownMeans.of_all([2, 2, 4, 4]).chance
    0.375
    """

    options: NDArray[np.int64]
    weights: NDArray[np.float64]
    digits: int = 3
    numbers: int = 3

    def __post_init__(self) -> None:
        if self.weights.ndim != 2 or self.weights.shape[1] != len(self.options) or not len(self.options):
            found = f"{' × '.join(map(str, self.weights.shape))} and {len(self.options)}"
            raise InputError("weights and options", found=found, expected="means × questions, and questions")
        if self.options.min() < 2:
            raise InputError("options", found=str(self.options.min()), expected="at least 2")

    @classmethod
    def of_all(cls, options: Sequence[int], digits: int = 3, numbers: int = 3) -> ShownMeans:
        """The plain mean over all questions."""
        return cls(np.array(options, dtype=np.int64), np.full((1, len(options)), 1 / len(options)), digits, numbers)

    @property
    def chance(self) -> float:
        """The expected first mean of random answers."""
        return float(self.weights[0] @ (1 / self.options))


@dataclass(frozen=True, slots=True)
class LeastSquaresGain:
    """What an attack by least squares gets above chance: on average from the means alone (`value`), and at most in 95 of
    100 attacks if every other number of a result revealed as much as a mean (`high`).

    >>> LeastSquaresGain(0.1, 0.2).high
    0.2
    """

    value: float
    high: float


def least_squares(
    shown: ShownMeans, submissions: int, rule: ShownBy = "all", *, groups: int = 2, draws: int = _DRAWS, seed: int = 0
) -> LeastSquaresGain:
    """What the results of a phase give away to least squares, which needs no model.

    All submissions but the last are random answers. Each of their means is a linear equation for the unknown right
    answers (one indicator for each option of each question). The last submission gives to each question the answer with
    the highest value in the linear estimate of least mean squared error (of equal weights: the solution of least norm).
    Its true accuracy is chance, so what it scores above it is what the results revealed. `value` and `high` are the
    largest over the means (boards).

    For n questions with two options and one mean, and all results shown, the expected gain after k random submissions is
    Φ(√(k / (n − k))) − ½, which is 50 points from k = n on. With m options there are n (m − 1) unknowns instead of n;
    ρ² = k / (n (m − 1)) of the estimate's variance is signal, and the right option is ahead of the others by ρ √(m / (1 −
    ρ²)) standard deviations of the noise. For unequal weights and options and for several means, ρ² of each question is
    the fixed point of the linear estimate's error (Tse and Hanly 1999, IEEE Transactions on Information Theory 45:641;
    rounding is noise). No draws are needed for `rule` "all", and results are exact for many questions.

    Under the ladder, which of the random submissions are shown is drawn, for questions in `groups` of equal size; those
    that are shown tell more, as they are the better ones.

    This is no bound for other attacks: the bits of one mean per result would allow 40 points after ten results on 133
    yes-or-no questions. See docs/tasks/host-a-challenge.md. Raises `InputError` as `luck` does.

    >>> found = least_squares(ShownMeans.of_all([2] * 133), submissions=30)
    >>> round(found.value, 3), round(found.high, 3)
    (0.201, 0.455)
    """
    _check(submissions, rule, draws)
    if rule == "all":
        known = np.array([float(submissions - 1)])
    else:
        known = _told_by_ladder(shown, submissions - 1, groups, draws, seed)
    of_means = [_gains(shown, equations)[0] for equations in known]
    of_all, errors = zip(*(_gains(shown, shown.numbers * equations) for equations in known), strict=True)
    reach = np.mean(of_all, axis=0) + _Z95 * np.hypot(np.mean(errors, axis=0), np.std(of_all, axis=0))
    most = np.where(np.mean(of_all, axis=0) > 0, np.minimum(reach, 1 - shown.weights @ (1 / shown.options)), 0.0)
    return LeastSquaresGain(float(np.mean(of_means, axis=0).max()), float(most.max()))


def _gains(shown: ShownMeans, equations: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The expected excess over chance of each mean, and its standard deviation, after this many equations for each mean."""
    kinds, of_question = np.unique(np.vstack([shown.options, shown.weights]), axis=1, return_inverse=True)
    times = np.bincount(of_question.ravel()).astype(np.float64)
    options, weights = kinds[0], kinds[1:]
    right = _chance_right(options, _signal(options, weights, times, equations, shown.digits))
    gain = (weights * times) @ (right - 1 / options)
    return gain, np.sqrt((weights**2 * times) @ (right * (1 - right)))


def _signal(
    options: NDArray[np.float64],
    weights: NDArray[np.float64],
    times: NDArray[np.float64],
    equations: float,
    digits: int,
) -> NDArray[np.float64]:
    """ρ² / (1 − ρ²) of each kind of question. A question's options are m − 1 unknowns of variance 1/m, and so are the
    entries of an equation: with weights u an unknown has the variance u uᵀ / m² in it."""
    scale = 1 / np.maximum(weights.max(axis=1), 1e-300)
    u = weights * scale[:, None] / options
    rounding = np.diag((scale * 10.0**-digits) ** 2 / 12 + 1e-12)
    signal = np.zeros(len(options))
    for _ in range(_STEPS):
        rest = (u * (times * (options - 1) / (1 + signal))) @ u.T + rounding
        found = equations * np.einsum("ij,ij->j", u, np.linalg.solve(rest, u))
        if np.allclose(found, signal, rtol=1e-6, atol=1e-12):
            break
        signal = found
    return signal


def _chance_right(options: NDArray[np.float64], signal: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability that the right option has the highest of `options` normal values, ahead by √(m · signal)."""
    lead = np.sqrt(options * signal)[:, None]
    right: NDArray[np.float64] = (ndtr(_NODES + lead) ** (options[:, None] - 1)) @ _NODE_WEIGHTS
    return right


def _told_by_ladder(shown: ShownMeans, probes: int, groups: int, draws: int, seed: int) -> NDArray[np.float64]:
    """The squared standardized scores of the random submissions that the ladder shows, summed, in each draw: as much as
    that number of equations tells."""
    if probes < 1:
        return np.zeros(draws)
    rng = generator(seed, "optimism by least squares", "ladder")
    hidden = HiddenSet(max(2, groups), max(1, round(len(shown.options) / max(2, groups))), shown.chance)
    right = rng.binomial(hidden.questions, hidden.accuracy, (draws, probes, hidden.groups))
    spread = np.sqrt(hidden.accuracy * (1 - hidden.accuracy) / hidden.size)
    z = (right.sum(axis=2) / hidden.size - hidden.accuracy) / spread
    told: NDArray[np.float64] = np.where(_climbed(right, hidden), z**2, 0.0).sum(axis=1)
    return told


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
