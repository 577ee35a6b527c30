"""Does a metric favour a kind of answer: long ones, one system's, one dataset's, one language's?

A metric that only follows the ratings gives answers with the same rating the same score on average, whatever
kind of answer they are. So the score is regressed on the rating within a dimension, and what the rating does not
say (the residual, in standard deviations of the score) is averaged over each kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from proctor.audits.frames import ALL, Cell, Frame, paired
from proctor.audits.length import lengths
from proctor.audits.ratings import MetricScores
from proctor.stats import Contrast, Floats, Ints, Resamples, Sampled, average, contrast

_MOST_LENGTHS = 5


@dataclass(frozen=True, slots=True)
class Bias:
    """How far the scores of one kind of answer (`facet` "dataset", "system", "length" or "language", and its
    `value`) stand above what their ratings let expect, in standard deviations of the score; below 0: under it.

    `dimension` is '' for the mean over a language's dimensions; where a lower rating is the better one
    (`RatingsTable.lower_is_better`) the sign is turned, so that above 0 always means favoured. `language` is
    '' for the facet "language", which is given for each dimension that several languages share. `n` counts
    ratings (of one dimension, for the mean over them), `groups` their groups. The value is None, with the
    reason, where it can't be known.
    """

    language: str
    dimension: str
    facet: str
    value: str
    favour: Contrast
    n: int
    groups: int
    reason: str


@dataclass(frozen=True, slots=True)
class LengthSlope:
    """By how many standard deviations the score rises from an answer to one that is twice as long (in words;
    characters where a script has no spaces) and has the same rating. Otherwise as `Bias`."""

    language: str
    dimension: str
    slope: Contrast
    n: int
    groups: int
    reason: str


def biases(frame: Frame, metric: MetricScores) -> tuple[tuple[Bias, ...], tuple[LengthSlope, ...]]:
    """All of a metric's biases, and its slopes over length, with clustered intervals (see `contrast`).

    The rating of an answer is not its true quality: where long answers are better and ratings are coarse, a
    metric that sees quality finer than the raters' levels has a slope above 0 too. `LengthBias.excess` does not
    hold ratings fixed, and tells the other half.
    """
    known, reversed_ = lengths(frame.table), frame.table.lower_is_better
    found: list[Bias] = []
    slopes: list[LengthSlope] = []
    for language in dict.fromkeys(cell.language for cell in frame.cells):
        cells = [cell for cell in frame.cells if (cell.dataset, cell.language) == (ALL, language)]
        cut = _cuts([known[item, system] for item, system in _answers(cells)])
        parts = [_Part(cell, frame.samples(cell), metric, cell.dimension in reversed_) for cell in cells]
        of_length = [np.log2(1.0 + np.array([known[key[:2]] for key in cell.keys])) for cell in cells]
        slopes += _slopes(parts, of_length)
        kinds: dict[str, list[Sequence[str]]] = {
            "dataset": [cell.datasets for cell in cells],
            "system": [[system for _, system, _ in cell.keys] for cell in cells],
            "length": [[_length_name(known[key[:2]], cut) for key in cell.keys] for cell in cells],
        }
        for facet, names in kinds.items():
            found += _by_facet(parts, facet, names, _ordered(facet, names, cut))
    return (*found, *_by_language(frame, metric)), tuple(slopes)


class _Part:
    """One cell: its ratings, and its scores in standard deviations, better ones higher in both."""

    def __init__(self, cell: Cell, samples: Resamples, metric: MetricScores, reversed_: bool) -> None:
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
        """Of each column its weighted sum under every row of weights."""
        per_unit = [np.bincount(self.unit, column, minlength=self.samples.n_units) for column in columns]
        return list((self.samples.weights @ np.stack(per_unit, axis=1)).T)

    def sampled(self, values: Floats, inside: NDArray[np.bool_] | None = None) -> Sampled:
        """A statistic of the ratings inside (all, where none are named), known under every row of weights."""
        part = np.ones(len(self.unit), dtype=np.bool_) if inside is None else inside
        groups = {group for group, there in zip(self.cell.groups, part, strict=True) if there}
        return self.samples.sampled(values, self.unit[part], n=int(part.sum()), groups=len(groups))

    def favoured(self, inside: NDArray[np.bool_]) -> Sampled:
        """The mean residual of the ratings inside, the regression on all of them repeated in every sample."""
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
        """The coefficient of length beside that of the rating; not defined where lengths say nothing more."""
        columns = (self.ratings, length, self.scores)
        products = [one * other for place, one in enumerate(columns) for other in columns[place:]]
        count, *sums = self.summed(np.ones(len(self.unit)), *columns, *products)
        with np.errstate(divide="ignore", invalid="ignore"):
            rating, size, score = (one / count for one in sums[:3])
            rr, rl, rs, ll, ls, _ = (one / count for one in sums[3:])
            rr, rl, rs = rr - rating**2, rl - rating * size, rs - rating * score
            ll, ls = ll - size**2, ls - size * score
            flat = rr <= 1e-12
            room = np.where(flat, ll, ll - rl**2 / rr)
            slope = np.where(flat, ls, ls - rl * rs / rr) / room
        return self.sampled(np.where(room > 1e-9, slope, np.nan))


def _told(sampled: Sampled) -> Contrast:
    """A statistic compared with 0."""
    nothing = replace(sampled, whole=0.0, drawn=np.zeros_like(sampled.drawn), without=np.zeros_like(sampled.without))
    return contrast(sampled, nothing)


_UNKNOWN = Contrast(None, None, None, None)


def _by_facet(parts: Sequence[_Part], facet: str, names: Sequence[Sequence[str]], values: Sequence[str]) -> list[Bias]:
    if len(values) < 2:
        return []
    language = parts[0].cell.language
    found = []
    for value in values:
        inside = [np.array([one == value for one in row], dtype=np.bool_) for row in names]
        rows = [_one(part, facet, value, there) for part, there in zip(parts, inside, strict=True) if there.any()]
        found += [row for row, _ in rows]
        if len(parts) < 2:
            continue
        why = "; ".join(f"{row.dimension}: {row.reason}" for row, _ in rows if row.reason)
        sampled = [one for _, one in rows if one is not None]
        if why or len(rows) < len(parts):
            why = why or "not rated on every dimension"
            found.append(Bias(language, "", facet, value, _UNKNOWN, 0, 0, why))
        else:
            mean = average(sampled)
            found.append(Bias(language, "", facet, value, _told(mean), mean.n, mean.groups, ""))
    return found


def _one(part: _Part, facet: str, value: str, inside: NDArray[np.bool_]) -> tuple[Bias, Sampled | None]:
    where = (part.cell.language, part.cell.dimension, facet, value)
    if part.reason:
        return Bias(*where, _UNKNOWN, 0, 0, part.reason), None
    sampled = part.favoured(inside)
    return Bias(*where, _told(sampled), sampled.n, sampled.groups, ""), sampled


def _slopes(parts: Sequence[_Part], of_length: Sequence[Floats]) -> list[LengthSlope]:
    found: list[LengthSlope] = []
    defined: list[Sampled] = []
    for part, length in zip(parts, of_length, strict=True):
        where = (part.cell.language, part.cell.dimension)
        sampled = None if part.reason else part.slope(length)
        if sampled is None or not sampled.defined:
            why = part.reason or "lengths differ too little"
            found.append(LengthSlope(*where, _UNKNOWN, 0, 0, why))
            continue
        defined.append(sampled)
        found.append(LengthSlope(*where, _told(sampled), sampled.n, sampled.groups, ""))
    if len(parts) < 2:
        return found
    language = parts[0].cell.language
    why = "; ".join(f"{one.dimension}: {one.reason}" for one in found if one.reason)
    if why:
        return [*found, LengthSlope(language, "", _UNKNOWN, 0, 0, why)]
    mean = average(defined)
    return [*found, LengthSlope(language, "", _told(mean), mean.n, mean.groups, "")]


def _by_language(frame: Frame, metric: MetricScores) -> list[Bias]:
    """For each dimension of several languages, these against each other."""
    cells = [cell for cell in frame.cells if cell.dataset == ALL]
    samples = Resamples(
        [one.cluster for one in frame.table.ratings], drawing=frame.settings.draws > 0, **frame.settings.options
    )
    found = []
    for dimension in dict.fromkeys(cell.dimension for cell in cells):
        own = [cell for cell in cells if cell.dimension == dimension]
        if len(own) < 2:
            continue
        languages = [cell.language for cell in own for _ in cell.keys]
        both = _joined(own)
        part = _Part(both, samples, metric, dimension in frame.table.lower_is_better)
        for language in dict.fromkeys(languages):
            inside = np.array([one == language for one in languages], dtype=np.bool_)
            found.append(_one(part, "language", language, inside)[0])
    return found


def _joined(cells: Sequence[Cell]) -> Cell:
    """The ratings of several languages as one cell, of the language ''."""
    return replace(
        cells[0],
        language="",
        values=np.concatenate([cell.values for cell in cells]),
        keys=tuple(key for cell in cells for key in cell.keys),
        groups=tuple(group for cell in cells for group in cell.groups),
        raters=tuple(rater for cell in cells for rater in cell.raters),
        datasets=tuple(dataset for cell in cells for dataset in cell.datasets),
    )


def _answers(cells: Sequence[Cell]) -> Mapping[tuple[str, str], None]:
    return dict.fromkeys(key[:2] for cell in cells for key in cell.keys)


def _cuts(known: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges of lengths, both ends met, with about as many answers in each."""
    length = np.array(known)
    edges = np.unique(np.quantile(length, np.arange(1, _MOST_LENGTHS) / _MOST_LENGTHS, method="lower"))
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
