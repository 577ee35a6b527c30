"""The profile of a metric: calibration, bias towards kinds of answers, and disagreement with the raters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from proctor.audits.agreement import CellName, CorrelationSettings, RatingCell, RatingCells, lengths, paired
from proctor.audits.ratings import ALL, Key, MetricScores, RatingsTable
from proctor.stats import Contrast, Estimate, Floats, Ints, Resamples, Sampled, average, contrast, slice_means

_MAX_BINS = 8
_MAX_LEVELS = 8


@dataclass(frozen=True, slots=True)
class ScoreBin:
    """The answers with scores from `low` to `high` (smallest and largest score): the mean score, and the mean rating with
    its clustered interval (see `slice_means`)."""

    low: float
    high: float
    score: float
    rating: Estimate


@dataclass(frozen=True, slots=True)
class RatedLevel:
    """The scores of the `n` answers rated from `low` to `high` (equal if ratings have few values): mean, quartiles, and the
    5 % and 95 % quantiles (`least`, `most`)."""

    low: float
    high: float
    n: int
    mean: float
    least: float
    q1: float
    median: float
    q3: float
    most: float


@dataclass(frozen=True)
class ScoreCalibration(CellName):
    """One cell's bins of scores and levels of ratings, lowest first; neither if there is a `reason`."""

    bins: tuple[ScoreBin, ...]
    levels: tuple[RatedLevel, ...]
    reason: str


def _calibration(cell: RatingCell, scores: Floats, reason: str, settings: CorrelationSettings) -> ScoreCalibration:
    """Up to eight bins of about equal size, with equal scores in one bin; and the levels of ratings, or up to eight bins of
    them. `reason` explains missing scores.
    """
    if reason:
        return ScoreCalibration(*cell.where, (), (), reason)
    return ScoreCalibration(*cell.where, _bins(cell, scores, settings), _levels(cell, scores), "")


def _bins(cell: RatingCell, scores: Floats, settings: CorrelationSettings) -> tuple[ScoreBin, ...]:
    code, count = _parts(scores, _MAX_BINS)
    means = slice_means(cell.values, cell.groups, code, count, settings.plan)
    found = []
    for row, mean in enumerate(means):
        inside = scores[code == row]
        plain = Estimate(mean.value, None, None, mean.n, mean.groups)
        shown = mean if settings.draws else plain
        found.append(ScoreBin(float(inside.min()), float(inside.max()), float(inside.mean()), shown))
    return tuple(found)


def _levels(cell: RatingCell, scores: Floats) -> tuple[RatedLevel, ...]:
    different = np.unique(cell.values)
    if len(different) <= _MAX_LEVELS:
        code, count = np.searchsorted(different, cell.values), len(different)
    else:
        code, count = _parts(cell.values, _MAX_LEVELS)
    found = []
    for row in range(count):
        rated, scored = cell.values[code == row], scores[code == row]
        ends = [float(one) for one in np.quantile(scored, (0.05, 0.25, 0.5, 0.75, 0.95))]
        found.append(RatedLevel(float(rated.min()), float(rated.max()), len(rated), float(scored.mean()), *ends))
    return tuple(found)


def _parts(values: Floats, max_parts: int) -> tuple[Ints, int]:
    """The part of each value, and the number of parts: of about equal size, equal values together, none empty."""
    edges = np.unique(np.quantile(values, np.arange(1, max_parts) / max_parts))
    code = np.unique(np.searchsorted(edges, values, side="right"), return_inverse=True)[1]
    return code.astype(np.int64), int(code.max()) + 1


_MAX_LENGTHS = 5


@dataclass(frozen=True, slots=True)
class Bias:
    """The mean residual of the score given the rating, in standard deviations of the score, for one kind of answer (`facet`
    "dataset", "system", "length" or "language", and its `value`). Above 0: over-scored, also where a lower rating is
    better (`RatingsTable.lower_is_better`). The difference of standardised score and rating would call every noisy metric
    biased.

    `dimension` is '' for the mean over a language's dimensions. `language` is '' for the facet "language", which is given
    for each dimension that several languages share. `n` counts ratings (of one dimension), `groups` their groups. The
    value is None, with the reason, where it is undefined.
    """

    language: str
    dimension: str
    facet: str
    value: str
    residual: Contrast
    n: int
    groups: int
    reason: str


@dataclass(frozen=True, slots=True)
class LengthSlope:
    """The rise of the score, in standard deviations, per doubling of the answer's length (in words; characters where a
    script has no spaces) at equal rating. Otherwise as `Bias`."""

    language: str
    dimension: str
    slope: Contrast
    n: int
    groups: int
    reason: str


def _biases(every: RatingCells, metric: MetricScores) -> tuple[tuple[Bias, ...], tuple[LengthSlope, ...]]:
    """A metric's biases, and its slopes over length, with clustered intervals (see `contrast`).

    A rating is not the true quality: if long answers are better and ratings are coarse, a metric that resolves quality
    more finely than the raters' levels has a slope above 0, too. `LengthBias.excess` does not condition on ratings.
    """
    known, reversed_ = lengths(every.table), every.table.lower_is_better
    found: list[Bias] = []
    slopes: list[LengthSlope] = []
    for language in dict.fromkeys(cell.language for cell in every.cells):
        cells = [cell for cell in every.cells if (cell.dataset, cell.language) == (ALL, language)]
        cut = _cuts([known[answer] for answer in dict.fromkeys(key[:2] for cell in cells for key in cell.keys)])
        parts = [_Part(cell, every.samples(cell), metric, cell.dimension in reversed_) for cell in cells]
        of_length = [np.log2(1.0 + np.array([known[key[:2]] for key in cell.keys])) for cell in cells]
        slopes += _slopes(parts, of_length)
        kinds: dict[str, list[Sequence[str]]] = {
            "dataset": [[rating.dataset for rating in cell.ratings] for cell in cells],
            "system": [[rating.system for rating in cell.ratings] for cell in cells],
            "length": [[_length_name(known[key[:2]], cut) for key in cell.keys] for cell in cells],
        }
        for facet, names in kinds.items():
            found += _by_facet(parts, facet, names, _ordered(facet, names, cut))
    return (*found, *_by_language(every, metric)), tuple(slopes)


class _Part:
    """One cell: its ratings, and its standardised scores; higher is better in both."""

    def __init__(self, cell: RatingCell, samples: Resamples, metric: MetricScores, reversed_: bool) -> None:
        self.cell, self.samples = cell, samples
        scores, self.reason = paired(cell, metric)
        spread = float(scores.std()) if len(scores) else 0.0
        if not self.reason and spread <= 1e-12:
            self.reason = f"all scores are {scores[0]:g}"
        sign = -1.0 if reversed_ else 1.0
        self.scores: Floats = sign * (scores - scores.mean()) / (spread or 1.0)
        self.ratings: Floats = sign * cell.values
        self.unit: Ints = samples.units(cell.groups)

    def summed(self, *columns: Floats) -> list[Floats]:
        """The weighted sum of each column under every row of weights."""
        per_unit = [np.bincount(self.unit, column, minlength=self.samples.n_units) for column in columns]
        return list((self.samples.weights @ np.stack(per_unit, axis=1)).T)

    def sampled(self, values: Floats, inside: NDArray[np.bool_] | None = None) -> Sampled:
        """A statistic of the ratings inside (None: all), with its values under every row of weights."""
        part = np.ones(len(self.unit), dtype=np.bool_) if inside is None else inside
        groups = {group for group, there in zip(self.cell.groups, part, strict=True) if there}
        return self.samples.sampled(values, self.unit[part], n=int(part.sum()), groups=len(groups))

    def residual(self, inside: NDArray[np.bool_]) -> Sampled:
        """The mean residual of the ratings inside, with the regression on all ratings repeated in every sample."""
        count, score, rating, product, square = self.summed(
            np.ones(len(self.unit)), self.scores, self.ratings, self.scores * self.ratings, self.ratings**2
        )
        own_count, own_score, own_rating = self.summed(
            inside.astype(np.float64), inside * self.scores, inside * self.ratings
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = square / count - (rating / count) ** 2
            together = product / count - score * rating / count**2
            rise = np.where(spread > 1e-12, together / spread, 0.0)
            apart = own_score / own_count - score / count - rise * (own_rating / own_count - rating / count)
        return self.sampled(np.where(own_count > 0, apart, np.nan), inside)

    def slope(self, length: Floats) -> Sampled:
        """The coefficient of length beside the rating; undefined if the rating determines the length."""
        columns = (self.ratings, length, self.scores)
        products = [one * other for row, one in enumerate(columns) for other in columns[row:]]
        count, *sums = self.summed(np.ones(len(self.unit)), *columns, *products)
        with np.errstate(divide="ignore", invalid="ignore"):
            rating, size, score = (sum_ / count for sum_ in sums[:3])
            rr, rl, rs, ll, ls, _ = (sum_ / count for sum_ in sums[3:])
            rr, rl, rs = rr - rating**2, rl - rating * size, rs - rating * score
            ll, ls = ll - size**2, ls - size * score
            flat = rr <= 1e-12
            room = np.where(flat, ll, ll - rl**2 / rr)
            slope = np.where(flat, ls, ls - rl * rs / rr) / room
        return self.sampled(np.where(room > 1e-9, slope, np.nan))


_Found = tuple[Contrast, int, int, str]
"""A statistic compared with 0, the numbers of ratings and groups, and the reason of a missing value."""


def _known(sampled: Sampled) -> _Found:
    nothing = replace(sampled, observed=0.0, drawn=np.zeros_like(sampled.drawn), without=np.zeros_like(sampled.without))
    return contrast(sampled, nothing), sampled.n, sampled.groups, ""


def _unknown(why: str) -> _Found:
    return Contrast(None, None, None, None), 0, 0, why


def _mean(sampled: Sequence[Sampled | None], rows: Sequence[Bias] | Sequence[LengthSlope], parts: int) -> _Found:
    """The mean over a language's dimensions, if each of them has the statistic."""
    why = "; ".join(f"{row.dimension}: {row.reason}" for row in rows if row.reason)
    if why or len(rows) < parts:
        return _unknown(why or "not rated on every dimension")
    return _known(average([one for one in sampled if one is not None]))


def _by_facet(parts: Sequence[_Part], facet: str, names: Sequence[Sequence[str]], values: Sequence[str]) -> list[Bias]:
    if len(values) < 2:
        return []
    found = []
    for value in values:
        inside = [np.array([one == value for one in row], dtype=np.bool_) for row in names]
        rows = [_one(part, facet, value, there) for part, there in zip(parts, inside, strict=True) if there.any()]
        own = [row for row, _ in rows]
        found += own
        if len(parts) > 1:
            mean = _mean([one for _, one in rows], own, len(parts))
            found.append(Bias(parts[0].cell.language, "", facet, value, *mean))
    return found


def _one(part: _Part, facet: str, value: str, inside: NDArray[np.bool_]) -> tuple[Bias, Sampled | None]:
    sampled = None if part.reason else part.residual(inside)
    found = _unknown(part.reason) if sampled is None else _known(sampled)
    return Bias(part.cell.language, part.cell.dimension, facet, value, *found), sampled


def _slopes(parts: Sequence[_Part], of_length: Sequence[Floats]) -> list[LengthSlope]:
    found: list[LengthSlope] = []
    defined: list[Sampled] = []
    for part, length in zip(parts, of_length, strict=True):
        sampled = None if part.reason else part.slope(length)
        if sampled is None or not sampled.defined:
            one = _unknown(part.reason or "lengths differ too little")
        else:
            one = _known(sampled)
            defined.append(sampled)
        found.append(LengthSlope(part.cell.language, part.cell.dimension, *one))
    if len(parts) < 2:
        return found
    return [*found, LengthSlope(parts[0].cell.language, "", *_mean(defined, found, len(parts)))]


def _by_language(every: RatingCells, metric: MetricScores) -> list[Bias]:
    """The bias towards languages, for each dimension that several languages share."""
    cells = [cell for cell in every.cells if cell.dataset == ALL]
    samples = every.samples_of(every.table.ratings)
    found = []
    for dimension in dict.fromkeys(cell.dimension for cell in cells):
        own = [cell for cell in cells if cell.dimension == dimension]
        if len(own) < 2:
            continue
        languages = [cell.language for cell in own for _ in cell.keys]
        both = _joined(own)
        part = _Part(both, samples, metric, dimension in every.table.lower_is_better)
        for language in dict.fromkeys(languages):
            inside = np.array([one == language for one in languages], dtype=np.bool_)
            found.append(_one(part, "language", language, inside)[0])
    return found


def _joined(cells: Sequence[RatingCell]) -> RatingCell:
    """The ratings of several languages as one cell, of the language ''."""
    return replace(cells[0], language="", ratings=tuple(rating for cell in cells for rating in cell.ratings))


def _cuts(known: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges of lengths with about equal numbers of answers."""
    length = np.array(known)
    edges = np.unique(np.quantile(length, np.arange(1, _MAX_LENGTHS) / _MAX_LENGTHS, method="lower"))
    code = np.searchsorted(edges, length, side="left")
    return [(int(length[code == one].min()), int(length[code == one].max())) for one in np.unique(code)]


def _length_name(length: int, cuts: Sequence[tuple[int, int]]) -> str:
    low, high = next((low, high) for low, high in cuts if low <= length <= high)
    return str(low) if low == high else f"{low} to {high}"


def _ordered(facet: str, names: Sequence[Sequence[str]], cuts: Sequence[tuple[int, int]]) -> list[str]:
    there = {name for row in names for name in row if name}
    if facet != "length":
        return sorted(there)
    return [name for low, _ in cuts if (name := _length_name(low, cuts)) in there]


def rank_discrepancies(table: RatingsTable, metric: MetricScores) -> dict[Key, float]:
    """The difference between an answer's rank by score and by mean rating, among all answers of its language and dimension,
    as a share of their number: −1 to 1; above 0 the score ranks higher.

    Equal scores, and equal ratings, share a range of ranks. The discrepancy is the gap between the two ranges, and 0 if
    they touch: a metric that orders answers as the raters do has none, however many ratings are equal. Dimensions that
    the metric opted out of, or scored with a constant, are left out.

    >>> from proctor.audits import Rating
    >>> values = {"e1": 0.0, "e2": 0.5, "e3": 0.5, "e4": 1.0}
    >>> table = RatingsTable(tuple(Rating(e, "…", "s", "overall", "r", v) for e, v in values.items()))
    >>> scores = {(e, "s", "overall"): s for e, s in zip(values, [0.9, 0.3, 0.2, 0.7])}
    >>> list(rank_discrepancies(table, MetricScores("mine", scores)).values())
    [0.75, 0.0, -0.25, -0.25]
    """
    found: dict[Key, float] = {}
    for cell in RatingCells(table, CorrelationSettings(draws=0)).cells:
        if cell.dataset != ALL:
            continue
        answers = cell.rater_mean()
        scores, reason = paired(answers, metric)
        if reason or np.ptp(scores) == 0:
            continue
        (low, high), (least, most) = _rank_ranges(scores), _rank_ranges(answers.values)
        above, below = np.maximum(low - most, 0), np.maximum(least - high, 0)
        gaps = (above - below) / len(scores)
        found |= dict(zip(answers.keys, gaps.tolist(), strict=True))
    return found


def _rank_ranges(values: Floats) -> tuple[Floats, Floats]:
    """The first and the last rank of each value, from 0."""
    ordered = np.sort(values)
    low = np.searchsorted(ordered, values, side="left").astype(np.float64)
    return low, np.searchsorted(ordered, values, side="right").astype(np.float64) - 1


@dataclass(frozen=True)
class MetricProfile:
    """The calibration and the biases of one metric."""

    metric: str
    calibration: tuple[ScoreCalibration, ...]
    bias: tuple[Bias, ...]
    length_slopes: tuple[LengthSlope, ...]


def profile(table: RatingsTable, metric: MetricScores, settings: CorrelationSettings | None = None) -> MetricProfile:
    """Calibration and bias of a metric, on all datasets of each language. Raises `InputError` where the metric
    has no score for a rated answer.

    >>> from proctor.audits import Rating
    >>> rows = [Rating(f"e{k}", "a " * k, "s1", "overall", "r1", k % 2) for k in range(1, 9)]
    >>> metric = MetricScores("long", {one.key: k / 8 for k, one in enumerate(rows, start=1)})
    >>> found = profile(RatingsTable(tuple(rows)), metric, CorrelationSettings(draws=100))
    >>> [(level.low, level.median) for level in found.calibration[0].levels]
    [(0.0, 0.625), (1.0, 0.5)]
    >>> found.length_slopes[0].slope.value > 0.5
    True
    """
    every = RatingCells(table, settings or CorrelationSettings())
    cells = [cell for cell in every.cells if cell.dataset == ALL]
    calibration = tuple(_calibration(cell, *paired(cell, metric), every.settings) for cell in cells)
    return MetricProfile(metric.name, calibration, *_biases(every, metric))
