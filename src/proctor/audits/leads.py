"""How far metrics are ahead of metrics that were named beforehand: on all answers, between groups, within them, and with
scores that tie as the ratings do.

Levels of agreement differ from one set of answers to the next; leads over the same simple metric differ less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from proctor.audits.agreement import CorrelationSettings, RatingCell, RatingCells, paired
from proctor.audits.ratings import ALL, MetricScores, RatingsTable
from proctor.core import InputError
from proctor.stats import Contrast, Estimate, Floats, Sampled, average, contrast, holm

Part = Literal["all", "between", "within", "tied"]
"""all: the mean of τ-b, r and ρ over all ratings. between: Pearson's r of the groups' means. within: Pearson's r of what
is left of scores and ratings once each group's mean is taken off. tied: as all, the scores mapped to the ratings' values
so that each value has the share that it has among the ratings."""

_ROUNDING = 1e-12

PARTS: tuple[Part, ...] = get_args(Part)

AS_GIVEN = "as given"
"""What a tied figure is also compared with: the same metric's own scores."""


@dataclass(frozen=True, slots=True)
class Lead:
    """How far a metric is ahead of `over`, with a clustered interval and p; `p_holm` is p adjusted for all metrics that
    are compared with `over` on the same part and dimension."""

    over: str
    difference: Contrast
    p_holm: float | None = None

    @property
    def significant(self) -> bool:
        """Whether it is above 0 at the level 0.05, adjusted."""
        return (self.difference.value or 0.0) > 0 and self.p_holm is not None and self.p_holm <= 0.05


@dataclass(frozen=True, slots=True)
class LeadRow:
    """A metric's figure on one part of a dimension's ratings on all datasets ('': the mean over a language's
    dimensions), and its leads. None, with the reason, where there is no figure."""

    metric: str
    language: str
    dimension: str
    part: Part
    figure: Estimate
    leads: tuple[Lead, ...]
    reason: str = ""

    def lead(self, over: str) -> Lead:
        """The lead over one metric. Raises `KeyError` where it was not compared with it."""
        return {one.over: one for one in self.leads}[over]


def leads(
    table: RatingsTable,
    metrics: Mapping[str, Sequence[MetricScores]],
    over: Sequence[str],
    settings: CorrelationSettings | None = None,
) -> tuple[LeadRow, ...]:
    """The figures of metrics and their leads over those that `over` names, by language, dimension and part.

    A metric may have several draws of scores (out of several draws of folds): its figure is the mean of theirs, in
    every bootstrap sample too. All metrics get the same samples of groups. Raises `InputError` for a name in `over`
    that is no metric, and for a missing score.

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
                why = next((one.reason for one in own if one.reason), "")
                figures.setdefault((part, ""), {})[name] = _Figure(average([one.sampled for one in own]), why)
        for part in PARTS:
            for dimension in ("", *(cell.dimension for cell in cells)):
                given = figures["all", dimension] if part == "tied" else {}
                rows += _rows((language, dimension, part), figures[part, dimension], over, given)
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure under every sample of groups, and why there is none."""

    sampled: Sampled
    reason: str


def _rows(
    where: tuple[str, str, Part], figures: Mapping[str, _Figure], over: Sequence[str], given: Mapping[str, _Figure]
) -> list[LeadRow]:
    """All metrics on one part of one dimension; `given` are their figures as given, where scores were tied."""
    found: dict[str, list[Lead]] = {name: [] for name in figures}
    for other in over:
        apart = {name: contrast(one.sampled, figures[other].sampled) for name, one in figures.items() if name != other}
        known = {name: one.p for name, one in apart.items() if one.p is not None}
        adjusted = dict(zip(known, holm(list(known.values())).tolist(), strict=True))
        for name, one in apart.items():
            found[name].append(Lead(other, one, adjusted.get(name)))
    for name, before in given.items():
        found[name].append(Lead(AS_GIVEN, contrast(figures[name].sampled, before.sampled)))
    return [
        LeadRow(name, *where, one.sampled.estimate(), tuple(found[name]), one.reason) for name, one in figures.items()
    ]


def _measured(frame: RatingCells, cell: RatingCell, draws: Sequence[MetricScores], part: Part) -> _Figure:
    """The mean figure of a metric's draws on one part of a cell."""
    found, reason = [], ""
    for one in draws:
        scores, out = paired(cell, one)
        if part in {"all", "tied"}:
            given = as_tied(scores, cell.values) if part == "tied" and not out else scores
            whole = frame.measure(cell, given, out)
            sampled, why = whole.mean, whole.reason
        else:
            given, rated, groups = parted(scores, cell.values, cell.groups, part)
            flat = not len(given) or np.ptp(given) <= _ROUNDING or np.ptp(rated) <= _ROUNDING
            why = out or ("nothing varies" if flat else "")
            given = np.zeros(len(given)) if why else given  # the sample says that there is no correlation
            sampled = frame.samples(cell).correlation("pearson", given, rated, groups)
        found.append(sampled)
        reason = reason or why
    return _Figure(average(found), reason)


def parted(
    scores: Floats, ratings: Floats, groups: Sequence[str], part: Part
) -> tuple[Floats, Floats, tuple[str, ...]]:
    """Scores and ratings between groups (their means, an entry a group) or within them (what is left of each once its
    group's mean is taken off; groups of one have nothing within).

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
    """Scores mapped to the values of the ratings, in their order, each value with the share that it has among the
    ratings as nearly as equal scores allow: they stay equal, and take the value at the middle of their ranks. It looks
    at how often each value was given, never at which answer got it.

    >>> as_tied(np.array([0.1, 0.7, 0.3, 0.9]), np.array([1.0, 1.0, 0.5, 0.0])).tolist()
    [0.0, 1.0, 0.5, 1.0]
    """
    from scipy.stats import rankdata

    ordered = np.sort(ratings)
    place = np.clip(np.round(rankdata(scores) - 1).astype(np.int64), 0, len(ordered) - 1)
    return np.asarray(ordered[place], dtype=np.float64)


def leading(rows: Iterable[LeadRow], over: str) -> list[str]:
    """The metrics whose mean over a language's dimensions is significantly ahead of `over`, with the language: all that
    may be claimed of the table.

    >>> leading([], "rouge-1-mean")
    []
    """
    return [
        f"{row.language}: {row.metric}"
        for row in rows
        if (row.part, row.dimension) == ("all", "") and any(one.over == over and one.significant for one in row.leads)
    ]
