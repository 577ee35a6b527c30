"""Learning to rate answers of one language: many ridge regressions on views of the answers, the better ones
averaged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, count_of, generator
from proctor.judges.embedded.answers import FREE, OF_OTHERS, STACKED, VIEWS, Answers, Contrasts, Views, fit_views
from proctor.stats import Floats, Ints


@dataclass(frozen=True)
class Split:
    """What decides the folds of answers: the encounter and the dataset of each row, and whether nobody rated it (`weak`;
    empty: all were rated)."""

    groups: tuple[str, ...]
    datasets: tuple[str, ...]
    weak: tuple[bool, ...] = ()

    def part(self, rows: Sequence[int] | Ints) -> Split:
        """That of some rows."""
        weak = tuple(self.weak[k] for k in rows) if self.weak else ()
        return Split(tuple(self.groups[k] for k in rows), tuple(self.datasets[k] for k in rows), weak)

    @property
    def told(self) -> NDArray[np.bool_]:
        """The rows that people rated."""
        return ~np.array(self.weak or [False] * len(self.groups), dtype=np.bool_)


def fold_numbers(split: Split, count: int, seed: int, name: str, *, grouped: bool = True) -> Ints:
    """The fold of each row, 0 to `count` − 1. All rows of an encounter are in one fold, whatever the order
    of the rows; not `grouped`, every row is dealt out by itself. Ints that nobody rated decide nothing: they are in the
    fold of their encounter, and in none (−1) where nothing of it was rated.

    Raises `InputError` for fewer encounters than folds.

    >>> fold_numbers(Split(("a", "a", "b", "c"), ("d",) * 4), 3, 0, "example")[:2].tolist()
    [0, 0]
    """
    units = split.groups if grouped else tuple(f"{one}#{k}" for k, one in enumerate(split.groups))
    told = zip(units, split.datasets, split.told.tolist(), strict=True)
    dataset = {unit: where for unit, where, rated in told if rated}
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
    """For each fold the rows outside it, to learn from, and those in it that people rated (see `fold_numbers`)."""
    number = fold_numbers(split, count, seed, name, grouped=grouped)
    for k in range(count):
        yield np.flatnonzero(number != k), np.flatnonzero((number == k) & split.told)


def parted(split: Split, number: Ints) -> int:
    """How many encounters have answers in several folds.

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
    """A ridge regression on views. `weights` are the views' shares of the kernel; `penalty` is the ridge's
    per unit of weight, the larger the smoother; `shared` is how far each dimension is drawn to the mean of
    all (0: learned by itself)."""

    weights: Mapping[str, float]
    penalty: float
    shared: float

    @property
    def alpha(self) -> float:
        """The ridge's penalty. The views in `FREE` do not add to it: a design that has one weighs its few columns
        almost freely, and shrinks all else towards them."""
        return self.penalty * sum(weight for name, weight in self.weights.items() if name not in FREE)


def draw_designs(seed: int, count: int, *, alone: bool = False, stacked: bool = False) -> tuple[Design, ...]:
    """Designs drawn at random, the same for the same seed; `alone`: none looks at other answers; `stacked`: all look at
    the scores of other judges.

    Every design has the measures in it, and every second one likeness, with as much weight as all else.

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
        free = (*(["likeness"] if number % 2 else []), *(["judges"] if stacked else []))
        kept |= dict.fromkeys(free, sum(kept.values()))
        designs.append(Design(kept, penalty, shared))
    return tuple(designs)


_WEAK = 0.3  # what an answer counts that a judge scored and nobody rated
_LEAST_SLOPE = 0.05  # a calibration never turns the order round, however badly the learner did


@dataclass(frozen=True, slots=True)
class Recipe:
    """How is learned. `designs` are tried in `folds` folds of the training answers (whole encounters, unless
    not `grouped`), and the `kept` best ones averaged; `alone`: no answer is compared with other answers. Each wording of
    changed answers counts as much as `contrast` answers (0: nothing is learned from them)."""

    seed: int = 0
    folds: int = 5
    designs: int = 60
    kept: int = 20
    alone: bool = False
    grouped: bool = True
    contrast: int = 3


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


@dataclass(frozen=True)
class RatedRows:
    """What is learned from: answers, their ratings (rows × dimensions, 0 to 1), of each dimension whether more is better
    (1, or −1), which rows people rated (the others have a judge's scores, and count less), and changed answers, if
    any."""

    answers: Answers
    ratings: Floats
    better: Floats
    told: NDArray[np.bool_]
    contrasts: Contrasts | None = None

    def part(self, rows: Ints) -> RatedRows:
        """That of some rows."""
        contrasts = None if self.contrasts is None else self.contrasts.part(rows)
        return RatedRows(self.answers.part(rows), self.ratings[rows], self.better, self.told[rows], contrasts)

    def on(self, dimensions: NDArray[np.bool_]) -> RatedRows:
        """That of some dimensions."""
        return replace(self, ratings=self.ratings[:, dimensions], better=self.better[dimensions])


@dataclass(frozen=True)
class _Fit:
    """The rows that ridge regressions are fitted to: by view the answers' columns, and below them the changes that
    wordings make, weighed."""

    views: Views
    blocks: dict[str, Floats]
    inside: dict[str, Floats]
    changes: Floats
    better: Floats
    told: NDArray[np.bool_]

    def targets(self, ratings: Floats, shared: float) -> Floats:
        """Of each row what is to be predicted: rows × dimensions. A judge's scores have a mean and spread of their
        own."""
        own = np.zeros(ratings.shape)
        for rows, weigh in ((self.told, 1.0), (~self.told, _weak_weight())):
            if rows.any():
                own[rows] = weigh * _targets(ratings[rows], shared)
        return np.concatenate([own, self.changes[:, None] * self.better])


def _weak_weight() -> float:
    """What rows that nobody rated are multiplied with."""
    return float(np.sqrt(_WEAK))


def _fit(training: RatedRows, inside: Ints, recipe: Recipe) -> _Fit:
    views, blocks = fit_views(training.answers, inside, recipe.seed, alone=recipe.alone)
    told = training.told[inside]
    weighed = np.where(told, 1.0, _weak_weight())[:, None]
    own = {name: block[inside] for name, block in blocks.items()}
    rows = {name: weighed * block for name, block in own.items()}
    contrasts = None if training.contrasts is None or not recipe.contrast else training.contrasts.part(inside)
    if contrasts is None or not contrasts.kinds:
        return _Fit(views, blocks, rows, np.zeros(0), training.better, told)
    weigh = np.sqrt(recipe.contrast)
    changed = views.blocks(contrasts.answers)
    for name, block in own.items():
        rows[name] = np.concatenate([rows[name], weigh * contrasts.differences(changed[name], block)])
    return _Fit(views, blocks, rows, weigh * contrasts.expected, training.better, told)


def learn(training: RatedRows, dimensions: Sequence[str], split: Split, recipe: Recipe) -> Learned:
    """As `learn_each`, of the recipe's number of designs."""
    return learn_each(training, dimensions, split, recipe, (recipe.kept,))[0]


def learn_each(
    training: RatedRows, dimensions: Sequence[str], split: Split, recipe: Recipe, numbers: Sequence[int]
) -> list[Learned]:
    """Learns from rated answers, once for each number of designs that are averaged; the designs are tried only once.

    Each design is judged by its mean figure over dimensions, its predictions for every inner fold coming
    from the other folds. Everything (views, standardisation, choice, calibration) is learned from these
    answers alone. Raises `InputError` for fewer encounters than folds, and for a dimension on which all
    ratings are the same.
    """
    ratings, told = training.ratings, training.told
    for name, column in zip(dimensions, ratings[told].T, strict=True):
        if len(column) and np.ptp(column) == 0:
            raise InputError(f"ratings of {name!r}", found=f"all {column[0]:g}", expected="some that differ")
    stacked = any(name.startswith(STACKED) for name in training.answers.names)
    designs = draw_designs(recipe.seed, recipe.designs, alone=recipe.alone, stacked=stacked)
    held_out = np.zeros((len(designs), *ratings.shape))
    for inside, outside in folds(split, recipe.folds, recipe.seed, "inner", grouped=recipe.grouped):
        held_out[:, outside] = _predictions(training, inside, outside, designs, recipe)
    held_out = held_out[:, told]
    figures = np.array([_mean_figure(one, ratings[told]) for one in held_out])
    order = np.argsort(-figures, kind="stable")
    fit = _fit(training, np.arange(len(ratings), dtype=np.int64), recipe)
    products = {name: block @ block.T for name, block in fit.inside.items()}
    rows = np.arange(len(fit.inside["measures"]), dtype=np.int64)
    mean, spread = held_out.mean(axis=1), held_out.std(axis=1)
    spread = np.where(spread > 1e-9, spread, 1.0)
    found = []
    for number in numbers:
        chosen = order[:number]
        # The average of ridge regressions is one linear function of each view: their weights add up.
        dual = {name: np.zeros((len(rows), len(dimensions))) for name in fit.inside}
        for k in chosen:
            targets = fit.targets(ratings, designs[k].shared)
            own = _dual(products, rows, designs[k], targets) / spread[k] / len(chosen)
            for name, weight in designs[k].weights.items():
                dual[name] += weight * own
        weights = {name: fit.inside[name].T @ one for name, one in dual.items() if one.any()}
        averaged = ((held_out - mean[:, None]) / spread[:, None])[chosen].mean(axis=0)
        offset = -(mean / spread)[chosen].mean(axis=0)
        best = (tuple(chosen.tolist()), tuple(figures[chosen].tolist()))
        found.append(Learned(tuple(dimensions), fit.views, weights, offset, _curve(averaged, ratings[told]), *best))
    return found


def task_figure(scores: Floats, ratings: Floats) -> float:
    """The task's figure of one dimension: the mean of Kendall's τ-b, Pearson's r and Spearman's ρ; 0 where
    there is no correlation, since a learner that tells nothing apart has learned nothing.

    >>> round(task_figure(np.array([0.1, 0.4, 0.3]), np.array([0.0, 1.0, 0.5])), 3)
    0.994
    """
    from scipy.stats import kendalltau, rankdata

    if np.ptp(scores) < 1e-12 or np.ptp(ratings) == 0:
        return 0.0
    ranks = _pearson(rankdata(scores), rankdata(ratings))
    return float(kendalltau(scores, ratings).statistic + _pearson(scores, ratings) + ranks) / 3


def _pearson(one: Floats, other: Floats) -> float:
    """Pearson's r of what differs; SciPy's works out a p-value with it, which costs many times as much."""
    first, second = one - one.mean(), other - other.mean()
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))


def _mean_figure(scores: Floats, ratings: Floats) -> float:
    return float(np.mean([task_figure(one, other) for one, other in zip(scores.T, ratings.T, strict=True)]))


def _predictions(training: RatedRows, inside: Ints, outside: Ints, designs: Sequence[Design], recipe: Recipe) -> Floats:
    """What each design, fitted to some rows, predicts for others: designs × rows × dimensions."""
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
    """The ridge regression's dual coefficients: answers × dimensions."""
    from scipy.linalg import solve

    kernel = _mixed(products, rows, design)
    kernel.flat[:: len(kernel) + 1] += design.alpha
    return np.asarray(solve(kernel, targets, assume_a="pos", overwrite_a=True, check_finite=False), dtype=np.float64)


def _mixed(products: dict[str, Floats], rows: Ints, design: Design) -> Floats:
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
