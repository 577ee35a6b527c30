"""Learning to rate answers of one language: many ridge regressions, the better ones averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.judges.embedded.answers import Answers
from proctor.judges.embedded.designs import Design, draw_designs
from proctor.judges.embedded.folds import Split, folds
from proctor.judges.embedded.views import Views, fit_views

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_LEAST_SLOPE = 0.05  # a calibration never turns the order round, however badly the learner did


@dataclass(frozen=True, slots=True)
class Recipe:
    """How is learned. `designs` are tried in `folds` folds of the training answers (whole encounters, unless
    not `grouped`), and the `kept` best ones averaged; `alone`: no answer is compared with other answers."""

    seed: int = 0
    folds: int = 5
    designs: int = 60
    kept: int = 20
    alone: bool = False
    grouped: bool = True


@dataclass(frozen=True)
class Learned:
    """A learned rater of one language: per view a matrix (columns × dimensions) whose products are summed,
    and `curve` per dimension an intercept and a slope of the logistic curve that makes ratings of them.

    `chosen` are the numbers of the averaged designs, best first; `figures` their mean figures in the inner
    folds.
    """

    dimensions: tuple[str, ...]
    views: Views
    weights: dict[str, Floats]
    offset: Floats
    curve: Floats
    chosen: tuple[int, ...]
    figures: tuple[float, ...]

    def rate(self, answers: Answers) -> Floats:
        """How good each answer is among those learned from, in their standard deviations (0: as their mean):
        rows × dimensions."""
        blocks = self.views.blocks(answers)
        total = sum((blocks[name] @ weights for name, weights in self.weights.items()), start=self.offset)
        return np.asarray(total, dtype=np.float64)

    def expected(self, rated: Floats) -> Floats:
        """The rating, 0 to 1 of each dimension's scale, that clinicians would give on average."""
        from scipy.special import expit

        return np.asarray(expit(self.curve[0] + self.curve[1] * rated), dtype=np.float64)


def relative(rated: Floats) -> Floats:
    """Scores between 0 and 1: an answer as good as the mean of those learned from gets 0.5, each standard
    deviation is 0.1.

    Expected ratings would be no better: their mean is that of the training ratings, so that scores from
    several folds, each with a mean of its own, would not be on one scale.

    >>> relative(np.array([0.0, 1.0, -9.0])).tolist()
    [0.5, 0.6, 0.0]
    """
    return np.asarray(np.clip(0.5 + 0.1 * rated, 0.0, 1.0), dtype=np.float64)


def learn(answers: Answers, ratings: Floats, dimensions: Sequence[str], split: Split, recipe: Recipe) -> Learned:
    """Learns from answers and their ratings (rows × dimensions, 0 to 1).

    Each design is judged by its mean figure over dimensions, its predictions for every inner fold coming
    from the other folds. Everything (views, standardisation, choice, calibration) is learned from these
    answers alone. Raises `InputError` for fewer encounters than folds, and for a dimension on which all
    ratings are the same.
    """
    return learn_each(answers, ratings, dimensions, split, recipe, (recipe.kept,))[0]


def learn_each(
    answers: Answers, ratings: Floats, dimensions: Sequence[str], split: Split, recipe: Recipe, numbers: Sequence[int]
) -> list[Learned]:
    """As `learn`, once for each number of designs that are averaged; the designs are tried only once."""
    for name, column in zip(dimensions, ratings.T, strict=True):
        if len(column) and np.ptp(column) == 0:
            raise InputError(None, f"ratings of {name!r}", found=f"all {column[0]:g}", expected="some that differ")
    designs = draw_designs(recipe.seed, recipe.designs, alone=recipe.alone)
    held_out = np.zeros((len(designs), *ratings.shape))
    for inside, outside in folds(split, recipe.folds, recipe.seed, "inner", grouped=recipe.grouped):
        held_out[:, outside] = _predictions(answers, ratings, inside, outside, designs, recipe)
    figures = np.array([_mean_figure(one, ratings) for one in held_out])
    order = np.argsort(-figures, kind="stable")
    rows = np.arange(len(answers), dtype=np.int64)
    views, blocks = fit_views(answers, rows, recipe.seed, alone=recipe.alone)
    products = {name: block @ block.T for name, block in blocks.items()}
    mean, spread = held_out.mean(axis=1), held_out.std(axis=1)
    spread = np.where(spread > 1e-9, spread, 1.0)
    found = []
    for number in numbers:
        chosen = order[:number]
        # The average of ridge regressions is one linear function of each view: their weights add up.
        dual = {name: np.zeros(ratings.shape) for name in blocks}
        for k in chosen:
            own = _dual(products, rows, designs[k], ratings) / spread[k] / len(chosen)
            for name, weight in designs[k].weights.items():
                dual[name] += weight * own
        weights = {name: blocks[name].T @ one for name, one in dual.items() if one.any()}
        averaged = ((held_out - mean[:, None]) / spread[:, None])[chosen].mean(axis=0)
        offset = -(mean / spread)[chosen].mean(axis=0)
        best = (tuple(chosen.tolist()), tuple(figures[chosen].tolist()))
        found.append(Learned(tuple(dimensions), views, weights, offset, _curve(averaged, ratings), *best))
    return found


def task_figure(scores: Floats, ratings: Floats) -> float:
    """The task's figure of one dimension: the mean of Kendall's τ-b, Pearson's r and Spearman's ρ; 0 where
    there is no correlation, since a learner that tells nothing apart has learned nothing.

    >>> round(task_figure(np.array([0.1, 0.4, 0.3]), np.array([0.0, 1.0, 0.5])), 3)
    0.994
    """
    from scipy.stats import kendalltau, pearsonr, rankdata

    if np.ptp(scores) < 1e-12 or np.ptp(ratings) == 0:
        return 0.0
    ranks = pearsonr(rankdata(scores), rankdata(ratings)).statistic
    found = (kendalltau(scores, ratings).statistic, pearsonr(scores, ratings).statistic, ranks)
    return float(np.mean(found))


def _mean_figure(scores: Floats, ratings: Floats) -> float:
    return float(np.mean([task_figure(one, other) for one, other in zip(scores.T, ratings.T, strict=True)]))


def _predictions(
    answers: Answers, ratings: Floats, inside: Rows, outside: Rows, designs: Sequence[Design], recipe: Recipe
) -> Floats:
    """What each design, fitted to some rows, predicts for others: designs × rows × dimensions."""
    _, blocks = fit_views(answers, inside, recipe.seed, alone=recipe.alone)
    both = np.concatenate([inside, outside])
    products = {name: block[both] @ block[inside].T for name, block in blocks.items()}
    here = np.arange(len(inside))
    there = np.arange(len(inside), len(both))
    found = []
    for design in designs:
        dual = _dual(products, here, design, ratings[inside])
        found.append(_mixed(products, there, design) @ dual)
    return np.array(found)


def _dual(products: dict[str, Floats], rows: Rows, design: Design, ratings: Floats) -> Floats:
    """The ridge regression's dual coefficients: answers × dimensions."""
    from sklearn.kernel_ridge import KernelRidge

    ridge = KernelRidge(alpha=design.alpha, kernel="precomputed")
    ridge.fit(_mixed(products, rows, design), _targets(ratings, design.shared))
    return np.asarray(ridge.dual_coef_, dtype=np.float64)


def _mixed(products: dict[str, Floats], rows: Rows, design: Design) -> Floats:
    total = sum(weight * products[name][rows] for name, weight in design.weights.items())
    return np.asarray(total, dtype=np.float64)


def _targets(ratings: Floats, shared: float) -> Floats:
    """Standardised ratings, each dimension drawn to what all have in common, with its own sign (the more
    a clinician disagrees, the lower all else)."""
    spread = ratings.std(axis=0)
    alike = (ratings - ratings.mean(axis=0)) / np.where(spread > 1e-9, spread, 1.0)
    common = np.linalg.eigh(alike.T @ alike)[1][:, -1]
    signs = np.where(common * np.sign(common.sum() or 1.0) < 0, -1.0, 1.0)
    mean = (alike * signs).mean(axis=1, keepdims=True)
    return np.asarray((1 - shared) * alike + shared * signs * mean, dtype=np.float64)


def _curve(scores: Floats, ratings: Floats) -> Floats:
    """Intercepts and slopes (2 × dimensions) of logistic curves from scores to ratings (Platt 1999): each
    answer counts as a yes to the extent of its rating, and as a no to the rest."""
    from sklearn.linear_model import LogisticRegression

    found = []
    yes = np.repeat([1, 0], len(scores))
    for one, rating in zip(scores.T, ratings.T, strict=True):
        weigh = np.concatenate([rating, 1 - rating])
        fitted = LogisticRegression().fit(np.tile(one, 2)[:, None], yes, sample_weight=weigh)
        found.append((float(fitted.intercept_[0]), max(_LEAST_SLOPE, float(fitted.coef_[0, 0]))))
    return np.array(found).T
