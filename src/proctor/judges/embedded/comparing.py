"""The judge's out-of-fold scores held against the ratings, beside the best of other metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.audit import Board, CorrelationSettings, Key, MetricScores, RatingsTable, audit, compare
from proctor.core import InputError
from proctor.judges.embedded.validation import Floats, RatedAnswers
from proctor.stats import Contrast, Estimate

__all__ = ["Held", "beside_best", "best_metric", "scores_of"]


@dataclass(frozen=True, slots=True)
class Held:
    """The task's figure (mean of Kendall, Pearson and Spearman on all datasets) of the judge and of another
    metric on one dimension, or ('') on the mean over a language's dimensions, and the difference."""

    language: str
    dimension: str
    judge: Estimate
    other: str
    beside: Estimate
    difference: Contrast


def scores_of(
    name: str, keys: Sequence[tuple[str, str]], found: Sequence[tuple[RatedAnswers, Floats]]
) -> MetricScores:
    """Scores as an audit takes them; `keys` are item and system of each case that was read."""
    scores: dict[Key, float | None] = {}
    for known, table in found:
        for place, row in zip(known.places, table.tolist(), strict=True):
            scores |= {(*keys[place], name): value for name, value in zip(known.dimensions, row, strict=True)}
    return MetricScores(name, scores)


def best_metric(table: RatingsTable, metrics: Sequence[MetricScores], language: str) -> MetricScores:
    """The metric with the highest mean over a language's dimensions. It is chosen on the very ratings that it
    is held against, which flatters it, not the judge. Raises `InputError` where none has a figure."""
    found: dict[float, MetricScores] = {}
    for metric in metrics:
        for one in audit(table, metric, CorrelationSettings(draws=0)).aggregates:
            if one.language == language and one.mean.value is not None:
                found.setdefault(one.mean.value, metric)
    if not found:
        raise InputError(None, f"metrics on {language!r}", found="none with a figure", expected="one or more")
    return found[max(found)]


def beside_best(
    table: RatingsTable, judge: MetricScores, metrics: Sequence[MetricScores], settings: CorrelationSettings
) -> tuple[Held, ...]:
    """The judge beside the best of the metrics in each language: the mean over its dimensions first."""
    rows = []
    for language in dict.fromkeys(language for language, _ in table.dimensions):
        best = best_metric(table, metrics, language)
        boards = compare(table, [judge, best], settings)
        rows += [_held(board, judge.name, best.name) for board in boards if board.language == language]
    return tuple(rows)


def _held(board: Board, judge: str, other: str) -> Held:
    means = {place.metric: place.mean for place in board.places}
    pair = board.comparisons[0]
    difference = pair.difference if pair.first == judge else pair.difference.reversed()
    return Held(board.language, board.dimension, means[judge], other, means[other], difference)
