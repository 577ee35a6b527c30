"""The judge's out-of-fold scores compared with the ratings, beside the best of other metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.audits import ALL, CorrelationSettings, Frame, Key, MetricScores, RatingsTable, audit, paired
from proctor.core import InputError
from proctor.judges.embedded.validation import Floats, RatedAnswers
from proctor.stats import Contrast, Estimate, average, contrast


@dataclass(frozen=True, slots=True)
class Held:
    """The task's figure (mean of Kendall, Pearson and Spearman on all datasets) of the judge and of another
    metric on one dimension, or ('') on the mean over a language's dimensions, and the difference. The judge's
    figure is the mean of its figures in several draws of the folds, `judge` with the interval of that mean."""

    language: str
    dimension: str
    judge: Estimate
    other: str
    beside: Estimate
    difference: Contrast


def scores_of(name: str, keys: Sequence[tuple[str, str]], found: Sequence[tuple[RatedAnswers, Floats]]) -> MetricScores:
    """Scores as an audit takes them; `keys` are item and system of each case that was read."""
    scores: dict[Key, float | None] = {}
    for known, table in found:
        for place, row in zip(known.places, table.tolist(), strict=True):
            scores |= {(*keys[place], name): value for name, value in zip(known.dimensions, row, strict=True)}
    return MetricScores(name, scores)


def best_metric(table: RatingsTable, metrics: Sequence[MetricScores], language: str) -> MetricScores:
    """The metric with the highest mean over a language's dimensions. It is chosen on the very ratings that it
    is compared with, which flatters it, not the judge. Raises `InputError` where none has a figure."""
    found: dict[float, MetricScores] = {}
    for metric in metrics:
        for one in audit(table, metric, CorrelationSettings(draws=0)).aggregates:
            if one.language == language and one.mean.value is not None:
                found.setdefault(one.mean.value, metric)
    if not found:
        raise InputError(None, f"metrics on {language!r}", found="none with a figure", expected="one or more")
    return found[max(found)]


def beside_best(
    table: RatingsTable, judge: Sequence[MetricScores], metrics: Sequence[MetricScores], settings: CorrelationSettings
) -> tuple[Held, ...]:
    """The judge beside the best of the metrics in each language: the mean over its dimensions first.

    `judge` holds its scores from each draw of the folds. Figures are averaged, not scores (which would be an
    ensemble of judges): in every bootstrap sample of encounters the mean figure is taken over the draws.
    """
    frame = Frame(table, settings)
    rows = []
    for language in dict.fromkeys(language for language, _ in table.dimensions):
        best = best_metric(table, metrics, language)
        cells = [cell for cell in frame.cells if (cell.dataset, cell.language) == (ALL, language)]
        own = [average([frame.measure(cell, *paired(cell, one)).mean for one in judge]) for cell in cells]
        other = [frame.measure(cell, *paired(cell, best)).mean for cell in cells]
        names = ("", *(cell.dimension for cell in cells))
        rows += [
            Held(language, name, mine.estimate(), best.name, its.estimate(), contrast(mine, its))
            for name, mine, its in zip(names, [average(own), *own], [average(other), *other], strict=True)
        ]
    return tuple(rows)
