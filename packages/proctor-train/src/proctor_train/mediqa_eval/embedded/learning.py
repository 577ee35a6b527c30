"""Learning to rate answers of one language: ridge regressions on views of the answers, the best of which are averaged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, count_of, generator
from proctor.stats import Floats, Ints
from proctor_train.mediqa_eval.embedded.answers import (
    FREE,
    OF_OTHERS,
    STACKED,
    VIEWS,
    Answers,
    Contrasts,
    Views,
    fit_views,
)


@dataclass(frozen=True)
class Split:
    """The encounter and dataset of each row, by which folds are made, and whether it has no rating by a person (`weak`;
    empty if all have)."""

    groups: tuple[str, ...]
    datasets: tuple[str, ...]
    weak: tuple[bool, ...] = ()

    def part(self, rows: Sequence[int] | Ints) -> Split:
        """The split of some rows."""
        weak = tuple(self.weak[k] for k in rows) if self.weak else ()
        return Split(tuple(self.groups[k] for k in rows), tuple(self.datasets[k] for k in rows), weak)

    @property
    def rated(self) -> NDArray[np.bool_]:
        """The mask of rows that people rated."""
        return ~np.array(self.weak or [False] * len(self.groups), dtype=np.bool_)


def fold_numbers(split: Split, count: int, seed: int, name: str, *, grouped: bool = True) -> Ints:
    """The fold of each row, 0 to `count` − 1. All rows of an encounter are in one fold, whatever the order of the rows;
    unless `grouped`, every row is assigned by itself. Rows without a person's rating do not influence the folds: they are
    in the fold of their encounter, or in none (−1) if nothing of it was rated.

    Raises `InputError` for fewer encounters than folds.

    >>> fold_numbers(Split(("a", "a", "b", "c"), ("d",) * 4), 3, 0, "example")[:2].tolist()
    [0, 0]
    """
    units = split.groups if grouped else tuple(f"{one}#{k}" for k, one in enumerate(split.groups))
    rows = zip(units, split.datasets, split.rated.tolist(), strict=True)
    dataset = {unit: where for unit, where, rated in rows if rated}
    if len(dataset) < count:
        raise InputError(
            "ratings",
            found=f"answers to {count_of(len(dataset), 'encounter')}",
            expected=f"{count} or more, one for each fold",
        )
    fold: dict[str, int] = {}
    for one in sorted(set(dataset.values())):
        inside = sorted(unit for unit in dataset if dataset[unit] == one)
        for k in generator(seed, "embedded-judge", "folds", name, one).permutation(len(inside)):
            fold[inside[k]] = len(fold) % count
    return np.array([fold.get(unit, -1) for unit in units], dtype=np.int64)


def folds(split: Split, count: int, seed: int, name: str, *, grouped: bool = True) -> Iterator[tuple[Ints, Ints]]:
    """For each fold the rows outside it, and the rows in it that people rated (see `fold_numbers`)."""
    number = fold_numbers(split, count, seed, name, grouped=grouped)
    for k in range(count):
        yield np.flatnonzero(number != k), np.flatnonzero((number == k) & split.rated)


def parted(split: Split, number: Ints) -> int:
    """The number of encounters with answers in several folds.

    >>> parted(Split(("a", "a", "b"), ("d",) * 3), np.array([0, 1, 1]))
    1
    """
    seen: dict[str, set[int]] = {}
    for group, one in zip(split.groups, number.tolist(), strict=True):
        seen.setdefault(group, set()).add(one)
    return sum(len(one) > 1 for one in seen.values())


_WEIGHTS = ((0.0, 0.5, 1.0, 2.0), (0.5, 0.15, 0.2, 0.15))
_FREEDOM = (0.5, 1.0, 2.0, 4.0)
_SHARED = (0.0, 0.3, 0.6, 0.9)


@dataclass(frozen=True, slots=True)
class Design:
    """A ridge regression on views. `weights` are the views' shares of the kernel, `penalty` the ridge penalty per unit of
    weight, `shared` how far each dimension is shrunk to the mean of all dimensions (0: not at all)."""

    weights: Mapping[str, float]
    penalty: float
    shared: float

    @property
    def alpha(self) -> float:
        """The ridge penalty. The views in `FREE` do not add to it, so that their few columns are hardly penalised, and
        everything else is shrunk towards them."""
        return self.penalty * sum(weight for name, weight in self.weights.items() if name not in FREE)


def draw_designs(seed: int, count: int, *, alone: bool = False, stacked: bool = False) -> tuple[Design, ...]:
    """Random designs, the same for the same seed. With `alone` none uses other answers; with `stacked` all use other
    judges' scores. Every design contains the measures and, with as much weight as all else, denial; every second one likeness, too.

    >>> draw_designs(0, 3) == draw_designs(0, 5)[:3], "measures" in draw_designs(0, 1)[0].weights
    (True, True)
    """
    rng = generator(seed, "embedded-judge", "designs")
    designs = []
    for number in range(count):
        drawn = {name: float(rng.choice(_WEIGHTS[0], p=_WEIGHTS[1])) for name in VIEWS if name not in FREE}
        drawn["measures"] = max(drawn["measures"], float(rng.choice(_WEIGHTS[0][1:])))
        penalty, shared = float(rng.choice(_FREEDOM)), float(rng.choice(_SHARED))
        kept = {name: w for name, w in drawn.items() if w and not (alone and name in OF_OTHERS)}
        free = ("denial", *(["likeness"] if number % 2 else []), *(["judges"] if stacked else []))
        kept |= dict.fromkeys(free, sum(kept.values()))
        designs.append(Design(kept, penalty, shared))
    return tuple(designs)


_WEAK = 0.3  # the weight of an answer with a judge's score instead of a rating
_MIN_SLOPE = 0.05  # a calibration never reverses the order, however poor the fit


@dataclass(frozen=True, slots=True)
class Recipe:
    """The settings of learning. `designs` are tried in `folds` folds of the training answers (of whole encounters, if
    `grouped`), and the `kept` best ones are averaged. With `alone`, no answer is compared with other answers. Each wording
    of changed answers counts as `contrast` answers (0: not at all)."""

    seed: int = 0
    folds: int = 5
    designs: int = 60
    kept: int = 20
    alone: bool = False
    grouped: bool = True
    contrast: int = 3


@dataclass(frozen=True)
class Learned:
    """A learned rater of one language: a weight matrix (columns × dimensions) for each view, and for each dimension the
    intercept and slope (`curve`) of the logistic curve from the sum to ratings.

    `chosen` are the numbers of the averaged designs, best first; `figures` their mean agreement in the inner folds.
    """

    dimensions: tuple[str, ...]
    views: Views
    weights: dict[str, Floats]
    offset: Floats
    curve: Floats
    chosen: tuple[int, ...]
    figures: tuple[float, ...]

    def rate(self, answers: Answers) -> Floats:
        """The quality of each answer relative to the training answers, in standard deviations (0: their mean): rows ×
        dimensions."""
        blocks = self.views.blocks(answers)
        total = sum((blocks[name] @ weights for name, weights in self.weights.items()), start=self.offset)
        return np.asarray(total, dtype=np.float64)

    def expected(self, rated: Floats) -> Floats:
        """The expected rating by clinicians, 0 to 1 of each dimension's scale."""
        from scipy.special import expit

        return np.asarray(expit(self.curve[0] + self.curve[1] * rated), dtype=np.float64)


def relative(rated: Floats) -> Floats:
    """Scores from 0 to 1: the mean training answer gets 0.5, and each standard deviation is 0.1. Unlike expected ratings,
    whose mean depends on the training fold, these scores are on one scale in all folds.

    >>> relative(np.array([0.0, 1.0, -9.0])).tolist()
    [0.5, 0.6, 0.0]
    """
    return np.asarray(np.clip(0.5 + 0.1 * rated, 0.0, 1.0), dtype=np.float64)


@dataclass(frozen=True)
class RatedAnswers:
    """Rated answers of one language. `ratings` (rows × dimensions) are scaled to 0 to 1 from the lowest to the highest
    level, which are `lowest` and `lowest` + `span`; `better` says whether more is better on each dimension (1 or −1).
    `contrasts` are changed answers, if any. `positions` are the rows' indices among the given cases; answers without a
    person's rating come last and have none."""

    answers: Answers
    dimensions: tuple[str, ...]
    ratings: Floats
    lowest: Floats
    span: Floats
    better: Floats
    split: Split
    positions: tuple[int, ...] = ()
    contrasts: Contrasts | None = None

    def part(self, rows: Ints) -> RatedAnswers:
        """Some rows, to learn from."""
        return replace(
            self,
            answers=self.answers.part(rows),
            ratings=self.ratings[rows],
            split=self.split.part(rows),
            positions=(),
            contrasts=None if self.contrasts is None else self.contrasts.part(rows),
        )

    def on(self, chosen: NDArray[np.bool_]) -> RatedAnswers:
        """The same answers on some dimensions."""
        return replace(
            self,
            dimensions=tuple(name for name, kept in zip(self.dimensions, chosen, strict=True) if kept),
            ratings=self.ratings[:, chosen],
            lowest=self.lowest[chosen],
            span=self.span[chosen],
            better=self.better[chosen],
        )


@dataclass(frozen=True)
class _Fit:
    """The weighted rows of the ridge regressions: by view the columns of answers, and below them the changes by wordings."""

    views: Views
    blocks: dict[str, Floats]
    inside: dict[str, Floats]
    changes: Floats
    better: Floats
    rated: NDArray[np.bool_]

    def targets(self, ratings: Floats, shared: float) -> Floats:
        """The targets of each row: rows × dimensions. A judge's scores are standardised apart from ratings."""
        own = np.zeros(ratings.shape)
        for rows, weight in ((self.rated, 1.0), (~self.rated, float(np.sqrt(_WEAK)))):
            if rows.any():
                own[rows] = weight * _targets(ratings[rows], shared)
        return np.concatenate([own, self.changes[:, None] * self.better])


def _fit(training: RatedAnswers, inside: Ints, recipe: Recipe) -> _Fit:
    views, blocks = fit_views(training.answers, inside, recipe.seed, alone=recipe.alone)
    rated = training.split.rated[inside]
    weighed = np.where(rated, 1.0, float(np.sqrt(_WEAK)))[:, None]
    own = {name: block[inside] for name, block in blocks.items()}
    rows = {name: weighed * block for name, block in own.items()}
    contrasts = None if training.contrasts is None or not recipe.contrast else training.contrasts.part(inside)
    if contrasts is None or not contrasts.kinds:
        return _Fit(views, blocks, rows, np.zeros(0), training.better, rated)
    weigh = np.sqrt(recipe.contrast)
    changed = views.blocks(contrasts.answers)
    for name, block in own.items():
        rows[name] = np.concatenate([rows[name], weigh * contrasts.differences(changed[name], block)])
    return _Fit(views, blocks, rows, weigh * contrasts.expected, training.better, rated)


def learn(training: RatedAnswers, recipe: Recipe) -> Learned:
    """As `learn_each`, for the recipe's number of designs."""
    return learn_each(training, recipe, (recipe.kept,))[0]


def learn_each(training: RatedAnswers, recipe: Recipe, numbers: Sequence[int]) -> list[Learned]:
    """Learns from rated answers, once for each number of averaged designs; the designs are tried only once.

    Designs are compared by the mean agreement over dimensions of their cross-validated predictions in inner folds.
    Everything (views, standardisation, choice, calibration) is fitted on these answers alone. Raises `InputError` for
    fewer encounters than folds, and for constant ratings on a dimension.
    """
    ratings, rated = training.ratings, training.split.rated
    for name, column in zip(training.dimensions, ratings[rated].T, strict=True):
        if len(column) and np.ptp(column) == 0:
            raise InputError(f"ratings of {name!r}", found=f"all {column[0]:g}", expected="some that differ")
    stacked = any(name.startswith(STACKED) for name in training.answers.names)
    designs = draw_designs(recipe.seed, recipe.designs, alone=recipe.alone, stacked=stacked)
    held_out = np.zeros((len(designs), *ratings.shape))
    for inside, outside in folds(training.split, recipe.folds, recipe.seed, "inner", grouped=recipe.grouped):
        held_out[:, outside] = _predictions(training, inside, outside, designs, recipe)
    held_out = held_out[:, rated]
    figures = np.array([_mean_figure(one, ratings[rated]) for one in held_out])
    order = np.argsort(-figures, kind="stable")
    fit = _fit(training, np.arange(len(ratings), dtype=np.int64), recipe)
    products = {name: block @ block.T for name, block in fit.inside.items()}
    rows = np.arange(len(fit.inside["measures"]), dtype=np.int64)
    mean, spread = held_out.mean(axis=1), held_out.std(axis=1)
    spread = np.where(spread > 1e-9, spread, 1.0)
    found = []
    for number in numbers:
        chosen = order[:number]
        # An average of ridge regressions is one linear function of each view, so their weights are added.
        dual = {name: np.zeros((len(rows), len(training.dimensions))) for name in fit.inside}
        for k in chosen:
            targets = fit.targets(ratings, designs[k].shared)
            own = _dual(products, rows, designs[k], targets) / spread[k] / len(chosen)
            for name, weight in designs[k].weights.items():
                dual[name] += weight * own
        weights = {name: fit.inside[name].T @ one for name, one in dual.items() if one.any()}
        averaged = ((held_out - mean[:, None]) / spread[:, None])[chosen].mean(axis=0)
        offset = -(mean / spread)[chosen].mean(axis=0)
        best = (tuple(chosen.tolist()), tuple(figures[chosen].tolist()))
        found.append(Learned(training.dimensions, fit.views, weights, offset, _curve(averaged, ratings[rated]), *best))
    return found


def task_figure(scores: Floats, ratings: Floats) -> float:
    """The task's measure on one dimension: the mean of Kendall's τ-b, Pearson's r and Spearman's ρ; 0 for constant scores
    or ratings.

    >>> round(task_figure(np.array([0.1, 0.4, 0.3]), np.array([0.0, 1.0, 0.5])), 3)
    0.994
    """
    from scipy.stats import kendalltau, rankdata

    if np.ptp(scores) < 1e-12 or np.ptp(ratings) == 0:
        return 0.0
    ranks = _pearson(rankdata(scores), rankdata(ratings))
    return float(kendalltau(scores, ratings).statistic + _pearson(scores, ratings) + ranks) / 3


def _pearson(floats: Floats, other: Floats) -> float:
    """Pearson's r without a p-value, which makes SciPy's function many times slower."""
    first, second = floats - floats.mean(), other - other.mean()
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))


def _mean_figure(scores: Floats, ratings: Floats) -> float:
    return float(np.mean([task_figure(one, other) for one, other in zip(scores.T, ratings.T, strict=True)]))


def _predictions(
    training: RatedAnswers, inside: Ints, outside: Ints, designs: Sequence[Design], recipe: Recipe
) -> Floats:
    """The predictions of each design, fitted to the rows `inside`, for the rows `outside`: designs × rows × dimensions."""
    fit = _fit(training, inside, recipe)
    products = {name: np.concatenate([own, fit.blocks[name][outside]]) @ own.T for name, own in fit.inside.items()}
    here = np.arange(len(inside) + len(fit.changes))
    there = np.arange(len(here), len(here) + len(outside))
    targets = {shared: fit.targets(training.ratings[inside], shared) for shared in {one.shared for one in designs}}
    found = []
    for design in designs:
        dual = _dual(products, here, design, targets[design.shared])
        found.append(_mixed(products, there, design) @ dual)
    return np.array(found)


def _dual(products: dict[str, Floats], rows: Ints, design: Design, targets: Floats) -> Floats:
    """The dual coefficients of the ridge regression: answers × dimensions."""
    from scipy.linalg import solve

    kernel = _mixed(products, rows, design)
    kernel.flat[:: len(kernel) + 1] += design.alpha
    return np.asarray(solve(kernel, targets, assume_a="pos", overwrite_a=True, check_finite=False), dtype=np.float64)


def _mixed(products: dict[str, Floats], rows: Ints, design: Design) -> Floats:
    total = sum(weight * products[name][rows] for name, weight in design.weights.items())
    return np.asarray(total, dtype=np.float64)


def _targets(ratings: Floats, shared: float) -> Floats:
    """Standardised ratings, each dimension shrunk to the common component of all, with its own sign (disagreement is high
    where the other dimensions are low)."""
    spread = ratings.std(axis=0)
    alike = (ratings - ratings.mean(axis=0)) / np.where(spread > 1e-9, spread, 1.0)
    common = np.linalg.eigh(alike.T @ alike)[1][:, -1]
    signs = np.where(common * np.sign(common.sum() or 1.0) < 0, -1.0, 1.0)
    mean = (alike * signs).mean(axis=1, keepdims=True)
    return np.asarray((1 - shared) * alike + shared * signs * mean, dtype=np.float64)


def _curve(scores: Floats, ratings: Floats) -> Floats:
    """Intercepts and slopes (2 × dimensions) of logistic curves from scores to ratings (Platt 1999): an answer counts as
    positive with the weight of its rating, and as negative with the rest."""
    from sklearn.linear_model import LogisticRegression

    found = []
    yes = np.repeat([1, 0], len(scores))
    for one, rating in zip(scores.T, ratings.T, strict=True):
        weigh = np.concatenate([rating, 1 - rating])
        fitted = LogisticRegression().fit(np.tile(one, 2)[:, None], yes, sample_weight=weigh)
        found.append((float(fitted.intercept_[0]), max(_MIN_SLOPE, float(fitted.coef_[0, 0]))))
    return np.array(found).T
