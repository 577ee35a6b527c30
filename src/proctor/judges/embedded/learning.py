"""Learning to rate answers of one language: many ridge regressions on views of the answers, the better ones
averaged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, generator
from proctor.judges.embedded.answers import BESIDE_OTHERS, Answers, Part

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """What decides the folds of answers: the encounter and the dataset of each row."""

    groups: tuple[str, ...]
    datasets: tuple[str, ...]

    def part(self, rows: Sequence[int] | Rows) -> Split:
        """That of some rows."""
        return Split(tuple(self.groups[k] for k in rows), tuple(self.datasets[k] for k in rows))


def fold_numbers(split: Split, count: int, seed: int, name: str, *, grouped: bool = True) -> Rows:
    """The fold of each row, 0 to `count` − 1. All rows of an encounter are in one fold, whatever the order
    of the rows; not `grouped`, every row is dealt out by itself.

    Raises `InputError` for fewer encounters than folds.

    >>> fold_numbers(Split(("a", "a", "b", "c"), ("d",) * 4), 3, 0, "example")[:2].tolist()
    [0, 0]
    """
    units = split.groups if grouped else tuple(f"{one}#{k}" for k, one in enumerate(split.groups))
    dataset = dict(zip(units, split.datasets, strict=True))
    if len(dataset) < count:
        raise InputError(
            None,
            "ratings",
            found=f"answers to {len(dataset)} encounters",
            expected=f"{count} or more, one for each fold",
        )
    fold: dict[str, int] = {}
    for one in sorted(set(dataset.values())):
        inside = sorted(unit for unit in dataset if dataset[unit] == one)
        for k in generator(seed, "embedded-judge", "folds", name, one).permutation(len(inside)):
            fold[inside[k]] = len(fold) % count
    return np.array([fold[unit] for unit in units], dtype=np.int64)


def folds(split: Split, count: int, seed: int, name: str, *, grouped: bool = True) -> Iterator[tuple[Rows, Rows]]:
    """For each fold the rows outside it, to learn from, and those in it (see `fold_numbers`)."""
    number = fold_numbers(split, count, seed, name, grouped=grouped)
    for k in range(count):
        yield np.flatnonzero(number != k), np.flatnonzero(number == k)


def parted(split: Split, number: Rows) -> int:
    """How many encounters have answers in several folds.

    >>> parted(Split(("a", "a", "b"), ("d",) * 3), np.array([0, 1, 1]))
    1
    """
    seen: dict[str, set[int]] = {}
    for group, one in zip(split.groups, number.tolist(), strict=True):
        seen.setdefault(group, set()).add(one)
    return sum(len(one) > 1 for one in seen.values())


VIEWS = {
    "measures": "measures of the answer, each standardised",
    "bends": "the same, with bends and interactions (random Fourier features of a Gaussian kernel)",
    "wording": "n-grams of characters of the answer (TF-IDF)",
    "wording-apart": "how far they differ from those of the references",
    "wording-shared": "those that the references have too",
    "wording-of-references": "n-grams of the references",
    "wording-of-all": "n-grams of all answers to the question, on average",
    "wording-of-query": "n-grams of the question",
    "meaning": "embedding of the answer",
    "meaning-of-references": "mean embedding of the references",
    "meaning-of-query": "embedding of the question",
    "meaning-shared": "product of the answer's and the references' embeddings",
    "meaning-apart": "how far they differ",
    "likeness": "the mean of plain measures of likeness to the references (`LIKENESS`)",
}
"""What an answer is seen as, by name. Each view is a block of columns that a linear model weighs."""

OF_OTHERS = ("wording-of-all",)
"""Views that look at other answers to the same question (some measures do so too)."""

LIKENESS = ("rouge-1-mean", "bert-f1-mean")
"""Measures that are good metrics by themselves, whatever was learned."""

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
        """The ridge's penalty. The view `likeness` does not add to it: a design that has it weighs its single
        column almost freely, and shrinks all else towards it."""
        return self.penalty * sum(weight for name, weight in self.weights.items() if name != "likeness")


def draw_designs(seed: int, count: int, *, alone: bool = False) -> tuple[Design, ...]:
    """Designs drawn at random, the same for the same seed; `alone`: none looks at other answers.

    Every design has the measures in it, and every second one likeness, with as much weight as all else.

    >>> draw_designs(0, 3) == draw_designs(0, 5)[:3], "measures" in draw_designs(0, 1)[0].weights
    (True, True)
    """
    rng = generator(seed, "embedded-judge", "designs")
    designs = []
    for number in range(count):
        drawn = {name: float(rng.choice(_WEIGHTS[0], p=_WEIGHTS[1])) for name in VIEWS if name != "likeness"}
        drawn["measures"] = max(drawn["measures"], float(rng.choice(_WEIGHTS[0][1:])))
        penalty, shared = float(rng.choice(_FREEDOM)), float(rng.choice(_SHARED))
        kept = {name: w for name, w in drawn.items() if w and not (alone and name in OF_OTHERS)}
        if number % 2:
            kept["likeness"] = sum(kept.values())
        designs.append(Design(kept, penalty, shared))
    return tuple(designs)


Floats = NDArray[np.float64]

PARTS: tuple[Part, ...] = ("candidate", "references", "query")
"""The texts of an answer that have a vocabulary each."""

_FARTHEST = 4.0  # standardised measures are cut there
_WAVES = 400
_LEAST_TEXTS = 2  # n-grams of fewer training texts are left out


@dataclass(frozen=True)
class Views:
    """How answers become blocks of columns; everything in it was learned from training answers alone.

    `means` holds each view's mean of every column and `sizes` its block's size, so that every block has mean 0 and
    mean squared length 1 over the training answers.
    """

    columns: tuple[int, ...]
    centre: Floats
    spread: Floats
    waves: Floats
    phases: Floats
    grams: dict[str, tuple[str, ...]]
    rarity: dict[str, Floats]
    means: dict[str, Floats]
    sizes: dict[str, float]

    def blocks(self, answers: Answers) -> dict[str, Floats]:
        """The blocks of answers: rows × columns, by view."""
        return self.scaled(_raw(self, answers))

    def scaled(self, raw: dict[str, Floats]) -> dict[str, Floats]:
        """Blocks as they are, centred and of comparable size."""
        return {name: (raw[name] - mean) / self.sizes[name] for name, mean in self.means.items()}


def fit_views(answers: Answers, rows: Rows, seed: int, *, alone: bool = False) -> tuple[Views, dict[str, Floats]]:
    """Fits all views to these rows of answers, and gives the blocks of all rows; `alone` leaves out the
    measures that look at other answers."""
    columns = tuple(k for k, name in enumerate(answers.names) if not (alone and name.startswith(BESIDE_OTHERS)))
    training = answers.measured[rows][:, list(columns)]
    centre, spread = _moments(training)
    rng = generator(seed, "embedded-judge", "waves")
    # exp(−|x − y|² / 2n) for n measures: a Gaussian kernel of the width that random pairs are apart.
    waves = rng.standard_normal((len(columns), _WAVES)) / np.sqrt(len(columns))
    phases = rng.uniform(0, 2 * np.pi, _WAVES)
    grams: dict[str, tuple[str, ...]] = {}
    rarity: dict[str, Floats] = {}
    for part in PARTS:
        grams[part], rarity[part] = _vocabulary(answers, part, rows)
    views = Views(columns, centre, spread, waves, phases, grams, rarity, {}, {})
    raw = _raw(views, answers)
    for name, block in raw.items():
        views.means[name] = block[rows].mean(axis=0)
        size = float(np.sqrt(((block[rows] - views.means[name]) ** 2).sum(axis=1).mean()))
        views.sizes[name] = size if size > 1e-9 else 1.0
    return views, views.scaled(raw)


def _raw(views: Views, answers: Answers) -> dict[str, Floats]:
    measured = (answers.measured[:, list(views.columns)] - views.centre) / views.spread
    measured = np.clip(np.nan_to_num(measured, nan=0.0), -_FARTHEST, _FARTHEST)
    wording = _tfidf(answers, "candidate", views, "candidate")
    expected = _tfidf(answers, "references", views, "candidate")
    meaning, meant, asked = (answers.meanings[part] for part in ("candidate", "references", "query"))
    names = [answers.names[k] for k in views.columns]
    blocks = {
        "likeness": measured[:, [names.index(one) for one in LIKENESS]].mean(axis=1, keepdims=True),
        "measures": measured,
        "bends": np.cos(measured @ views.waves + views.phases),
        "wording": wording,
        "wording-apart": np.abs(wording - expected),
        "wording-shared": np.minimum(wording, expected),
        "wording-of-references": _tfidf(answers, "references", views, "references"),
        "wording-of-all": _mean_by(wording, answers.question),
        "wording-of-query": _tfidf(answers, "query", views, "query"),
        "meaning": meaning,
        "meaning-of-references": meant,
        "meaning-of-query": asked,
        "meaning-shared": meaning * meant,
        "meaning-apart": np.abs(meaning - meant),
    }
    return {name: blocks[name] for name in VIEWS}


def _moments(values: Floats) -> tuple[Floats, Floats]:
    """Mean and spread of each column over what is known of it; 0 and 1 where nothing is."""
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=0), 1)
    centre = np.where(known, values, 0.0).sum(axis=0) / count
    squares = np.where(known, (values - centre) ** 2, 0.0).sum(axis=0) / count
    spread = np.sqrt(squares)
    return centre, np.where(spread > 1e-9, spread, 1.0)


def _vocabulary(answers: Answers, part: Part, rows: Rows) -> tuple[tuple[str, ...], Floats]:
    """The n-grams of two or more of the rows' texts, sorted, and ln((1 + n) / (1 + texts with it)) + 1."""
    counts = answers.counts(part)
    having = np.asarray((counts.table[rows] > 0).sum(axis=0)).ravel()
    kept = sorted((name, k) for name, k in counts.column.items() if having[k] >= _LEAST_TEXTS)
    within = having[[k for _, k in kept]]
    return tuple(name for name, _ in kept), np.log((1 + len(rows)) / (1 + within)) + 1


def _tfidf(answers: Answers, texts: Part, views: Views, vocabulary: Part) -> Floats:
    """TF-IDF (1 + ln of counts, times rarity) of a part's texts, each row of length 1, or 0 without n-grams."""
    counts = answers.counts(texts)
    names = views.grams[vocabulary]
    found = np.zeros((len(answers), len(names)))
    places = [(k, counts.column[name]) for k, name in enumerate(names) if name in counts.column]
    if places:
        here, there = (np.array(one) for one in zip(*places, strict=True))
        times = counts.table[:, there].astype(np.float64)
        times.data = (np.log(times.data) + 1) * views.rarity[vocabulary][here[times.indices]]
        length = np.sqrt(np.asarray(times.power(2).sum(axis=1)).ravel())
        times.data /= np.repeat(length, np.diff(times.indptr))
        found[:, here] = times.toarray()
    return found


def _mean_by(values: Floats, group: Sequence[int] | Rows) -> Floats:
    """Each row's mean over the rows of its group."""
    code = np.asarray(group)
    sums = np.zeros((int(code.max()) + 1, values.shape[1]))
    np.add.at(sums, code, values)
    return np.asarray(sums[code] / np.bincount(code)[code][:, None], dtype=np.float64)


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
            own = _dual(products, rows, designs[k], _targets(ratings, designs[k].shared)) / spread[k] / len(chosen)
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


def _predictions(
    answers: Answers, ratings: Floats, inside: Rows, outside: Rows, designs: Sequence[Design], recipe: Recipe
) -> Floats:
    """What each design, fitted to some rows, predicts for others: designs × rows × dimensions."""
    _, blocks = fit_views(answers, inside, recipe.seed, alone=recipe.alone)
    both = np.concatenate([inside, outside])
    products = {name: block[both] @ block[inside].T for name, block in blocks.items()}
    here = np.arange(len(inside))
    there = np.arange(len(inside), len(both))
    targets = {shared: _targets(ratings[inside], shared) for shared in {one.shared for one in designs}}
    found = []
    for design in designs:
        dual = _dual(products, here, design, targets[design.shared])
        found.append(_mixed(products, there, design) @ dual)
    return np.array(found)


def _dual(products: dict[str, Floats], rows: Rows, design: Design, targets: Floats) -> Floats:
    """The ridge regression's dual coefficients: answers × dimensions."""
    from scipy.linalg import solve

    kernel = _mixed(products, rows, design)
    kernel.flat[:: len(kernel) + 1] += design.alpha
    return np.asarray(solve(kernel, targets, assume_a="pos", overwrite_a=True, check_finite=False), dtype=np.float64)


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
