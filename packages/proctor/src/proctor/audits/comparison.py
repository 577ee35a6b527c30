"""Several metrics against the same ratings: ranked, their leads over named metrics, and bounds on agreement.

Levels of agreement differ from one set of answers to the next; leads over the same simple metric differ less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from proctor.audits.agreement import (
    KINDS,
    Correlations,
    CorrelationSettings,
    RatingCell,
    RatingCells,
    aggregated,
    paired,
)
from proctor.audits.ratings import ALL, Key, MetricScores, RatingsTable
from proctor.core import InputError, generator
from proctor.stats import Contrast, Estimate, Floats, Sampled, average, contrast, holm_known, ordered_ranks, tie_groups


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """The difference `first` − `second` of the mean correlations, with a clustered interval and p; `p_holm` is adjusted
    for all pairs of the board."""

    first: str
    second: str
    difference: Contrast
    p_holm: float | None


@dataclass(frozen=True, slots=True)
class RankedMetric:
    """A metric on a board. `rank` is 1 + the number of significantly better metrics, and never better than the rank of a
    metric with a higher correlation; None, with the reason, without a correlation. Metrics that share a number in `ties`
    do not differ significantly (see `tie_groups`). `note` explains a missing interval and p: too few groups vary.
    `kendall`, `pearson` and `spearman` are given on boards of one dimension."""

    metric: str
    mean: Estimate
    kendall: float | None
    pearson: float | None
    spearman: float | None
    rank: int | None
    ties: tuple[int, ...]
    reason: str
    note: str = ""


@dataclass(frozen=True)
class MetricRanking:
    """The metrics on all datasets of a language, best first, and all pairs. `dimension` is '' for the mean over all
    dimensions."""

    language: str
    dimension: str
    metrics: tuple[RankedMetric, ...]
    comparisons: tuple[MetricComparison, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A metric on one board; `kinds` (in the order of `KINDS`) only on a board of one dimension."""

    metric: str
    sampled: Sampled
    reason: str
    note: str
    kinds: tuple[float | None, ...] = (None,) * len(KINDS)

    def ranked(self, rank: int | None, ties: Sequence[int]) -> RankedMetric:
        kendall, pearson, spearman = self.kinds
        mean = self.sampled.estimate()
        return RankedMetric(self.metric, mean, kendall, pearson, spearman, rank, tuple(ties), self.reason, self.note)


def compare(
    table: RatingsTable,
    metrics: Sequence[MetricScores],
    settings: CorrelationSettings | None = None,
    *,
    alpha: float = 0.05,
) -> tuple[MetricRanking, ...]:
    """Ranks metrics per language: by the mean over its dimensions, and by each dimension.

    A metric is significantly better if its mean correlation is higher and the paired clustered test (see `contrast`),
    adjusted by Holm over all pairs of the board, gives p ≤ `alpha`. All metrics get the same samples. Raises `InputError`
    for a repeated name and for a missing score.
    """
    names = [metric.name for metric in metrics]
    if len(set(names)) != len(names):
        raise InputError("metrics", found=", ".join(names), expected="each name once")
    every = RatingCells(table, settings or CorrelationSettings())
    cells = [cell for cell in every.cells if cell.dataset == ALL]
    measured = [[every.measure(cell, *paired(cell, metric)) for cell in cells] for metric in metrics]
    boards = []
    for language in dict.fromkeys(cell.language for cell in cells):
        overall = []
        for name, row in zip(names, measured, strict=True):
            mean, _, reason, note = aggregated(cells, row, language)
            overall.append(_Entry(name, mean, reason, note))
        boards.append(_board(language, "", overall, alpha))
        for k, cell in enumerate(cells):
            if cell.language == language:
                entries = [_entry(name, row[k]) for name, row in zip(names, measured, strict=True)]
                boards.append(_board(language, cell.dimension, entries, alpha))
    return tuple(boards)


def _entry(name: str, measured: Correlations) -> _Entry:
    kinds = tuple(kind.observed if kind.defined else None for kind in measured.kinds)
    return _Entry(name, measured.mean, measured.reason, measured.note, kinds)


def _board(language: str, dimension: str, entries: Sequence[_Entry], alpha: float) -> MetricRanking:
    ordered = sorted(
        entries,
        key=lambda entry: (
            not entry.sampled.defined,
            -entry.sampled.observed if entry.sampled.defined else 0.0,
            entry.metric,
        ),
    )
    pairs = list(combinations(ordered, 2))
    differences = [contrast(one.sampled, other.sampled) for one, other in pairs]
    adjusted = holm_known([difference.p for difference in differences])
    comparisons = tuple(
        MetricComparison(one.metric, other.metric, apart, p)
        for (one, other), apart, p in zip(pairs, differences, adjusted, strict=True)
    )
    # The first of a pair is never below the second, since they are ordered.
    numbers = combinations(range(len(ordered)), 2)
    significant = [pair for pair, p in zip(numbers, adjusted, strict=True) if p is not None and p <= alpha]
    groups = tie_groups(sum(entry.sampled.defined for entry in ordered), significant)
    counts = np.ones(len(ordered))
    for _, lower in significant:
        counts[lower] += 1
    defined = [entry for entry in ordered if entry.sampled.defined]  # these come first
    ranks = ordered_ranks(counts[: len(defined)], np.array([entry.sampled.observed for entry in defined]))
    ranked = tuple(
        entry.ranked(
            int(ranks[row]) if entry.sampled.defined else None,
            [number for number, group in enumerate(groups, start=1) if row in group],
        )
        for row, entry in enumerate(ordered)
    )
    return MetricRanking(language, dimension, ranked, comparisons)


Part = Literal["all", "between", "within", "tied"]
"""all: the mean of τ-b, r and ρ over all ratings. between: Pearson's r of the groups' means. within: Pearson's r of
scores and ratings centred by group. tied: as all, with the scores mapped to the values of the ratings (see `as_tied`)."""

_ROUNDING = 1e-12

PARTS: tuple[Part, ...] = get_args(Part)

AS_GIVEN = "as given"
"""The name under which a tied figure is compared with that of the untied scores."""


@dataclass(frozen=True, slots=True)
class Lead:
    """The difference of a metric and `over`, with a clustered interval and p; `p_holm` is adjusted for all metrics that are
    compared with `over` on the same part and dimension."""

    over: str
    difference: Contrast
    p_holm: float | None = None

    @property
    def significant(self) -> bool:
        """Whether it is above 0 at the adjusted level of 0.05."""
        return (self.difference.value or 0.0) > 0 and self.p_holm is not None and self.p_holm <= 0.05


@dataclass(frozen=True, slots=True)
class LeadRow:
    """A metric's correlation on one part of a dimension's ratings ('': the mean over a language's dimensions), and its
    leads. The figure is None, with the reason, where it is undefined."""

    metric: str
    language: str
    dimension: str
    part: Part
    figure: Estimate
    leads: tuple[Lead, ...]
    reason: str = ""

    def lead(self, over: str) -> Lead:
        """The lead over one metric. Raises `KeyError` where they were not compared."""
        return {lead.over: lead for lead in self.leads}[over]


def leads(
    table: RatingsTable,
    metrics: Mapping[str, Sequence[MetricScores]],
    over: Sequence[str],
    settings: CorrelationSettings | None = None,
) -> tuple[LeadRow, ...]:
    """The figures of metrics, and their leads over the metrics in `over`, by language, dimension and part.

    A metric may have several sets of scores (from several draws of folds): its figure is their mean, in every bootstrap
    sample too. All metrics get the same samples of groups. Raises `InputError` for an unknown name in `over`, and for a
    missing score.

    >>> from proctor.audits import Rating
    >>> values = {f"e{k}": value for k, value in enumerate([0.0, 0.5, 1.0, 1.0])}
    >>> table = RatingsTable(tuple(Rating(e, "…", "s", "overall", "r", v) for e, v in values.items()))
    >>> ranks = {(e, "s", "overall"): float(k) for k, e in enumerate(values)}
    >>> up, down = MetricScores("up", ranks), MetricScores("down", {key: -score for key, score in ranks.items()})
    >>> found = leads(table, {"up": [up], "down": [down]}, ["down"])
    >>> [round(row.lead("down").difference.value, 2) for row in found if (row.metric, row.part) == ("up", "all")]
    [1.87, 1.87]
    """
    for name in over:
        if name not in metrics:
            raise InputError("lead over", found=repr(name), expected=f"one of {', '.join(metrics)}")
    frame = RatingCells(table, settings or CorrelationSettings())
    rows: list[LeadRow] = []
    for language in dict.fromkeys(language for language, _ in table.dimensions):
        cells = [cell for cell in frame.cells if (cell.dataset, cell.language) == (ALL, language)]
        figures: dict[tuple[Part, str], dict[str, _Figure]] = {}
        for part in PARTS:
            for name, draws in metrics.items():
                own = [_measured(frame, cell, draws, part) for cell in cells]
                for cell, one in zip(cells, own, strict=True):
                    figures.setdefault((part, cell.dimension), {})[name] = one
                why = next((figure.reason for figure in own if figure.reason), "")
                figures.setdefault((part, ""), {})[name] = _Figure(average([figure.sampled for figure in own]), why)
        for part in PARTS:
            for dimension in ("", *(cell.dimension for cell in cells)):
                given = figures["all", dimension] if part == "tied" else {}
                rows += _rows((language, dimension, part), figures[part, dimension], over, given)
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure under every sample of groups, or the reason why there is none."""

    sampled: Sampled
    reason: str


def _rows(
    where: tuple[str, str, Part], figures: Mapping[str, _Figure], over: Sequence[str], given: Mapping[str, _Figure]
) -> list[LeadRow]:
    """All metrics on one part of one dimension; `given` are the figures of the untied scores."""
    found: dict[str, list[Lead]] = {name: [] for name in figures}
    for other in over:
        apart = {name: contrast(one.sampled, figures[other].sampled) for name, one in figures.items() if name != other}
        adjusted = holm_known([one.p for one in apart.values()])
        for (name, one), p in zip(apart.items(), adjusted, strict=True):
            found[name].append(Lead(other, one, p))
    for name, before in given.items():
        found[name].append(Lead(AS_GIVEN, contrast(figures[name].sampled, before.sampled)))
    return [
        LeadRow(name, *where, one.sampled.estimate(), tuple(found[name]), one.reason) for name, one in figures.items()
    ]


def _measured(frame: RatingCells, cell: RatingCell, draws: Sequence[MetricScores], part: Part) -> _Figure:
    """The mean figure of a metric's sets of scores on one part of a cell."""
    found, reason = [], ""
    for draw in draws:
        scores, out = paired(cell, draw)
        if part in {"all", "tied"}:
            given = as_tied(scores, cell.values) if part == "tied" and not out else scores
            whole = frame.measure(cell, given, out)
            sampled, why = whole.mean, whole.reason
        else:
            given, rated, groups = parted(scores, cell.values, cell.groups, part)
            flat = not len(given) or np.ptp(given) <= _ROUNDING or np.ptp(rated) <= _ROUNDING
            why = out or ("nothing varies" if flat else "")
            given = np.zeros(len(given)) if why else given  # constant scores: the correlation is undefined
            sampled = frame.samples(cell).correlation("pearson", given, rated, groups)
        found.append(sampled)
        reason = reason or why
    return _Figure(average(found), reason)


def parted(
    scores: Floats, ratings: Floats, groups: Sequence[str], part: Part
) -> tuple[Floats, Floats, tuple[str, ...]]:
    """Scores and ratings "between" groups (the groups' means) or "within" them (centred by group, without groups of one).

    >>> parted(np.array([1.0, 3.0, 5.0]), np.array([0.0, 1.0, 1.0]), ["a", "a", "b"], "within")[0].tolist()
    [-1.0, 1.0]
    """
    labels, code = np.unique(np.asarray(groups, dtype=object).astype(str), return_inverse=True)
    count = np.bincount(code, minlength=len(labels))
    means = [np.bincount(code, values, minlength=len(labels)) / count for values in (scores, ratings)]
    if part == "between":
        return means[0], means[1], tuple(labels.tolist())
    inside = count[code] > 1
    apart = [(values - mean[code])[inside] for values, mean in zip((scores, ratings), means, strict=True)]
    return apart[0], apart[1], tuple(one for one, kept in zip(groups, inside, strict=True) if kept)


def as_tied(scores: Floats, ratings: Floats) -> Floats:
    """Scores mapped to the values of the ratings by rank: each value is as frequent as among the ratings, except that equal
    scores stay equal (they take the value at the middle of their ranks). Only the frequencies of ratings are used.

    >>> as_tied(np.array([0.1, 0.7, 0.3, 0.9]), np.array([1.0, 1.0, 0.5, 0.0])).tolist()
    [0.0, 1.0, 0.5, 1.0]
    """
    from scipy.stats import rankdata

    ordered = np.sort(ratings)
    row = np.clip(np.round(rankdata(scores) - 1).astype(np.int64), 0, len(ordered) - 1)
    return np.asarray(ordered[row], dtype=np.float64)


def leading(rows: Iterable[LeadRow], over: str) -> list[str]:
    """The metrics whose mean over a language's dimensions is significantly ahead of `over`, as "language: metric".

    >>> leading([], "rouge-1-mean")
    []
    """
    return [
        f"{row.language}: {row.metric}"
        for row in rows
        if (row.part, row.dimension) == ("all", "")
        and any(lead.over == over and lead.significant for lead in row.leads)
    ]


ORDER = "perfect order, equal ratings in random order"

OTHERS = "the same answer's ratings on the other dimensions"

SIBLINGS = "the mean rating of the other answers to the question"

TRUE_BETWEEN = "the true mean of each group, the judge's order within it"

TRUE_WITHIN = "the judge's mean of each group, the true order within it"

_DRAWS = 10
_RIDGE = 1e-6


def bounds(
    table: RatingsTable, judge: Sequence[MetricScores] = (), *, seed: int = 0
) -> dict[str, tuple[MetricScores, ...]]:
    """Bounds on agreement: the scores of oracles that use part of the ratings, in the form that `leads` takes. They show
    where a metric could improve. With `judge` (its sets of scores) also of the judge with the true means of groups, or
    with the true order within them.

    The perfect order is that of the ratings, with ties in random order (10 draws): no scores without ties do better. The
    ratings on other dimensions predict by least squares, fitted without the answer's group; there are none in a language
    with one dimension, and the cell's mean replaces missing ones. A judge's scores are first scaled to the mean and
    spread of the ratings. The mean rating counts where an answer was rated several times.

    >>> from proctor.audits import Rating
    >>> table = RatingsTable(tuple(Rating(e, "…", s, "overall", "r", v) for e, s, v in [("a", "x", 1), ("a", "y", 0), ("b", "x", 1)]))
    >>> list(bounds(table)[SIBLINGS][0].scores.values())
    [0.0, 1.0, 0.6666666666666666]
    """
    frame = RatingCells(table, CorrelationSettings(draws=0))
    cells = [cell.rater_mean() for cell in frame.cells if cell.dataset == ALL]
    found: dict[str, list[dict[Key, float | None]]] = {ORDER: [{} for _ in range(_DRAWS)], OTHERS: [{}], SIBLINGS: [{}]}
    for cell in cells:
        for draw in range(_DRAWS):
            found[ORDER][draw] |= _scores(cell, _random_ties(cell, seed, draw))
        siblings = [
            rating_cell
            for rating_cell in cells
            if rating_cell.language == cell.language and rating_cell.dimension != cell.dimension
        ]
        found[OTHERS][0] |= _scores(cell, _from_others(cell, siblings))
        found[SIBLINGS][0] |= _scores(cell, _without_own(cell))
    for name in (TRUE_BETWEEN, TRUE_WITHIN) if judge else ():
        found[name] = [
            {
                key: value
                for cell in cells
                for key, value in _scores(cell, _half_true(cell, metric_scores, name == TRUE_BETWEEN)).items()
            }
            for metric_scores in judge
        ]
    return {name: tuple(MetricScores(name, one) for one in draws) for name, draws in found.items()}


def _scores(cell: RatingCell, values: Floats | None) -> dict[Key, float | None]:
    return dict.fromkeys(cell.keys) if values is None else dict(zip(cell.keys, values.tolist(), strict=True))


def _random_ties(cell: RatingCell, seed: int, draw: int) -> Floats:
    """The ratings, with ties broken at random."""
    shuffled = generator(seed, "bounds", *cell.where, str(draw)).permutation(len(cell.values))
    return np.asarray(cell.values + np.ptp(cell.values) * 1e-6 * shuffled / len(shuffled), dtype=np.float64)


def _from_others(cell: RatingCell, others: Sequence[RatingCell]) -> Floats | None:
    """Least-squares predictions from the same answer's other ratings, fitted on other groups."""
    if not others:
        return None
    groups = np.array(cell.groups)
    columns = []
    for rating_cell in others:
        known = {key[:2]: value for key, value in zip(rating_cell.keys, rating_cell.values.tolist(), strict=True)}
        columns.append(np.array([known.get(key[:2], float(rating_cell.values.mean())) for key in cell.keys]))
    design = np.stack(columns, axis=1)
    predicted = np.zeros(len(groups))
    for group in np.unique(groups):
        out = groups == group
        given, rated = design[~out] - design[~out].mean(axis=0), cell.values[~out] - cell.values[~out].mean()
        products = given.T @ given + _RIDGE * np.eye(design.shape[1])  # constant columns add nothing
        # Centred on the mean of all: the mean of the other groups falls as the group's own ratings rise.
        predicted[out] = (design[out] - design.mean(axis=0)) @ np.linalg.solve(products, given.T @ rated)
    return predicted


def _by_group(cell: RatingCell, values: Floats) -> tuple[Floats, Floats]:
    """For each answer the sum and the number of its group's values."""
    code = np.unique(np.array(cell.groups), return_inverse=True)[1]
    return np.asarray(np.bincount(code, values)[code], dtype=np.float64), np.bincount(code)[code].astype(np.float64)


def _without_own(cell: RatingCell) -> Floats:
    total, count = _by_group(cell, cell.values)
    alone = count == 1
    others = (total - cell.values) / np.where(alone, 1.0, count - 1)
    return np.where(alone, cell.values.mean(), others)


def _half_true(cell: RatingCell, judge: MetricScores, between: bool) -> Floats | None:
    """The judge's scores with the true means of groups, or the true differences within groups."""
    scores, out = paired(cell, judge)
    if out:
        return None
    spread = float(scores.std()) or 1.0
    scaled = cell.values.mean() + cell.values.std() * (scores - scores.mean()) / spread
    (of_judge, count), (of_raters, _) = _by_group(cell, scaled), _by_group(cell, cell.values)
    apart = (of_raters - of_judge) / count
    return scaled + apart if between else cell.values - apart
