"""Graded metrics of single answers: overlap, relative error, error on a scale, common words.

They are scores per item like accuracy, so that results, comparisons and ranks support them. With several accepted
references, each metric is that of the best one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from pydantic import JsonValue

from proctor.core import Answer, Item, Metric, Score, formats
from proctor.metrics.accuracy import cause_of

if TYPE_CHECKING:
    from proctor.metrics.corpus import ItemSums
    from proctor.stats import Floats

_LOCATED = ("intervals", "boxes")

IOU = Metric("iou", "Intersection over union", percent=True, formats=_LOCATED)
RECALL_AT = {
    least: Metric(f"recall_at_{least:g}", f"Recall at IoU {least:g}", percent=True, formats=_LOCATED)
    for least in (0.3, 0.5, 0.7)
}
AVERAGE_PRECISION = Metric("average_precision", "Average precision (IoU 0.5 to 0.95)", percent=True, formats=_LOCATED)
RELATIVE_ERROR = Metric(
    "relative_error", "Relative error (at most 1)", higher_is_better=False, percent=True, formats=("quantity",)
)
JACCARD = Metric("jaccard_index", "Jaccard index", percent=True, formats=("choices",))
WORD_F1 = Metric("word_f1", "F1 of words", percent=True, formats=("short_text",))
SCALE_ERROR = Metric(
    "scale_error", "Error on the scale (share of its length)", higher_is_better=False, percent=True, formats=("scale",)
)
AP_LEAST = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))
"""The overlap thresholds of average precision: 0.5, 0.55 … 0.95."""

_Extents = list[tuple[float, ...]]
_Grade = Callable[[Item, JsonValue, JsonValue], float]
"""The value of a prediction (last argument) for one reference."""


def average_precision(reference: _Extents, prediction: _Extents, least: float) -> float:
    """The average precision of a ranked list of intervals or boxes (most certain first), 0 to 1.

    In order of rank, each prediction is matched with the remaining reference of highest overlap, if that is at least
    `least`. Average precision is the area under the interpolated precision-recall curve (Everingham et al. 2010,
    International Journal of Computer Vision 88:303), as computed by ActivityNet (Caba Heilbron et al. 2015, CVPR, 961)
    and QVHighlights (Lei et al. 2021, NeurIPS) for one query. Edges: 0 without predictions or references.

    >>> average_precision([(0, 10), (20, 30)], [(0, 9), (50, 60), (20, 30)], 0.5)
    0.8333333333333333
    """
    hits = np.array([hits_by_rank(reference, prediction, least)], dtype=np.float64).reshape(1, -1)
    found = _area(hits, 1 - hits, np.array([float(len(reference))]))
    return float(found[0]) if reference else 0.0


def hits_by_rank(reference: _Extents, prediction: _Extents, least: float) -> list[bool]:
    """Whether each prediction, in order of rank, is matched with a reference.

    >>> hits_by_rank([(0, 10)], [(0, 9), (0, 10)], 0.5)
    [True, False]
    """
    left = list(reference)
    hits = []
    for predicted in prediction:
        nearest = max(left, key=partial(formats.iou, predicted), default=None)
        hit = nearest is not None and formats.iou(predicted, nearest) >= least
        hits.append(hit)
        if hit and nearest is not None:
            left.remove(nearest)
    return hits


def _area(hits: Floats, misses: Floats, references: Floats) -> Floats:
    """The area under the interpolated precision-recall curve of each row; `hits` and `misses` are samples × ranks."""
    matched, named = np.cumsum(hits, axis=1), np.cumsum(hits + misses, axis=1)
    precision = np.divide(matched, named, out=np.zeros_like(matched), where=named > 0)
    best = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    return np.asarray((best * hits).sum(axis=1) / np.maximum(references, 1e-300), dtype=np.float64)


def _iou(_: Item, key: JsonValue, prediction: JsonValue) -> float:
    return formats.covered(formats.extents(key), formats.extents(prediction))


def _recall(least: float, _: Item, key: JsonValue, prediction: JsonValue) -> float:
    keys = formats.extents(key)
    return formats.matching(keys, formats.extents(prediction), least) / len(keys)


def _mean_precision(_: Item, key: JsonValue, prediction: JsonValue) -> float:
    keys, named = formats.extents(key), formats.extents(prediction)
    return float(np.mean([average_precision(keys, named, least) for least in AP_LEAST]))


def _relative_error(_: Item, key: JsonValue, prediction: JsonValue) -> float:
    """|prediction − reference| / |reference|, at most 1; for the reference 0 it is 1 unless equal."""
    right, number = float(str(key)), float(str(prediction))
    return min(1.0, abs(number - right) / abs(right)) if right else float(number != right)


def _scale_error(item: Item, key: JsonValue, prediction: JsonValue) -> float:
    """The distance in levels, divided by that between the lowest and the highest level."""
    form = item.answer
    length = form.high - form.low if form.kind == "scale" else 1
    return abs(float(str(prediction)) - float(str(key))) / length


_GRADES: dict[Metric, _Grade] = {
    IOU: _iou,
    **{metric: partial(_recall, least) for least, metric in RECALL_AT.items()},
    AVERAGE_PRECISION: _mean_precision,
    RELATIVE_ERROR: _relative_error,
    JACCARD: lambda _, key, said: formats.jaccard(key, said),
    WORD_F1: lambda _, key, said: formats.word_f1(str(key), str(said)),
    SCALE_ERROR: _scale_error,
}
GRADED_METRICS = tuple(_GRADES)
"""The metrics of `GradedScorer`, each with its formats."""


def graded_metrics(kinds: Iterable[str]) -> tuple[Metric, ...]:
    """The metrics of `GRADED_METRICS` for these formats, for a benchmark to declare.

    >>> [one.name for one in graded_metrics(["choice"])]
    []
    """
    named = set(kinds)
    return tuple(metric for metric in GRADED_METRICS if named & set(metric.formats))


class GradedScorer:
    """All metrics of `GRADED_METRICS` for the item's format. An answer without a value gets the worst value of each
    metric, with the cause as label. An `unanswerable` item has no grades: there an answer is right or wrong.

    >>> from proctor.core import Reference
    >>> from proctor.core.formats import IntervalsFormat
    >>> item = Item(id="q1", group="v1", question="When?", answer=IntervalsFormat(), reference=Reference(answer=[[0, 10]]))
    >>> found = GradedScorer().compute(item, Answer(item_id="q1", text="0-8 s", parsed=[[0.0, 8.0]]))
    >>> [(one.metric, one.value) for one in found[:2]]
    [('iou', 0.8), ('recall_at_0.3', 1.0)]
    """

    name = "code"
    metrics = GRADED_METRICS
    summary = "Overlap, relative error, error on a scale and common words, each for its formats"

    def applies(self, item: Item) -> bool:
        """Whether the item has a reference and a format of one of the metrics."""
        return item.reference is not None and not item.unanswerable and bool(graded_metrics([item.answer.kind]))

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """The scores of `score`, for the `Scorer` protocol."""
        return self.compute(item, answer)

    def compute(self, item: Item, answer: Answer) -> list[Score]:
        """Score an answer; empty for an item to which the scorer does not apply. Raises `ValueError` for a failed
        answer."""
        cause = cause_of(answer)
        if item.reference is None or item.unanswerable:
            return []
        scores = []
        for metric in graded_metrics([item.answer.kind]):
            keys = () if cause else (item.reference.answer, *item.reference.accepted)
            values = [_GRADES[metric](item, key, answer.parsed) for key in keys]
            best = (max if metric.higher_is_better else min)(values, default=metric.worst)
            scores.append(Score(item_id=item.id, metric=metric.name, value=best, scorer=self.name, label=cause))
        return scores


POOLED_PRECISION = Metric(
    "mean_average_precision", "Mean average precision over all answers", percent=True, formats=_LOCATED
)
MAX_RANKS = 10
"""The number of intervals or boxes per answer that count for pooled average precision (QVHighlights)."""


def located_sums(
    references: Sequence[JsonValue], predictions: Sequence[JsonValue], wrong: Sequence[bool] = ()
) -> list[ItemSums]:
    """The average precision of all answers, pooled: the mean over the thresholds 0.5, 0.55 … 0.95, and at 0.5 and 0.75.

    There is one precision-recall curve for all questions, as in detection benchmarks (see `average_precision`). Since
    answers in words have no scores, predictions are ranked by their position in the answer, and all predictions of
    equal rank are one step of the curve. None (late, missing, unreadable) predicts nothing. An answer that is `wrong`
    counts as if it predicted as many wrong intervals or boxes as the reference has. Edges: values None without items.

    >>> found = [one.estimate(["a", "b"]) for one in located_sums([[[0, 10]], [[0, 10]]], [[[0, 9]], None])]
    >>> [(one.part, one.estimate.value) for one in found][1:]
    [('IoU 0.5', 0.5), ('IoU 0.75', 0.5)]
    """
    from proctor.metrics.corpus import ItemSums

    keys = [formats.extents(reference) for reference in references]
    said = [formats.extents(prediction)[:MAX_RANKS] for prediction in predictions]
    bad = {int(row): min(MAX_RANKS, max(1, len(keys[row]))) for row in np.flatnonzero(wrong)}
    ranks = max([1, *map(len, said), *bad.values()])
    columns = np.zeros((len(keys), len(AP_LEAST), 2, ranks))
    for row, (key, named) in enumerate(zip(keys, said, strict=True)):
        for position, least in enumerate(AP_LEAST):
            hits = np.array(hits_by_rank(key, named, least), dtype=np.float64)
            columns[row, position, :, : len(named)] = hits, 1 - hits
    for row, count in bad.items():
        columns[row] = 0
        columns[row, :, 1, :count] = 1
    flat = np.concatenate(
        [
            columns.reshape(len(keys), len(AP_LEAST) * 2 * ranks),
            np.array([[float(len(key))] for key in keys]).reshape(-1, 1),
        ],
        axis=1,
    )
    parts = {"": range(len(AP_LEAST)), "IoU 0.5": [0], "IoU 0.75": [AP_LEAST.index(0.75)]}
    return [
        ItemSums(POOLED_PRECISION, flat, _pooled(ranks, list(positions)), part) for part, positions in parts.items()
    ]


def _pooled(ranks: int, positions: Sequence[int]) -> Callable[[Floats], Floats]:
    def statistic(sums: Floats) -> Floats:
        tables = sums[:, :-1].reshape(len(sums), len(AP_LEAST), 2, ranks)
        areas = [_area(tables[:, position, 0], tables[:, position, 1], sums[:, -1]) for position in positions]
        return np.where(sums[:, -1] > 0, np.mean(areas, axis=0), np.nan)

    return statistic
