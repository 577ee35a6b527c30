"""Graded metrics of single answers: overlap, relative error, error on a scale, shared words.

They are scores like accuracy, so that results, comparisons and ranks take them. Of several accepted references, each
metric takes the one that is best for the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np
from pydantic import JsonValue

from proctor.core import Answer, Item, Metric, Score
from proctor.core.formats import ScaleFormat, covered, extents, iou, jaccard, matching, word_f1
from proctor.metrics.accuracy import cause_of
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
"""The overlaps over which average precision is averaged: 0.5, 0.55 … 0.95."""

_Extents = list[tuple[float, ...]]
_Grade = Callable[[Item, JsonValue, JsonValue], float]
"""The value of a prediction (last) by one reference."""


def average_precision(reference: _Extents, prediction: _Extents, least: float) -> float:
    """The average precision of one ranked list of intervals or boxes, the surest first, 0 to 1.

    From the first on, each finds the reference that it overlaps most among those not found yet, if by at least
    `least`. The area under the interpolated curve of precision over recall (Everingham et al. 2010, International
    Journal of Computer Vision 88:303), as ActivityNet (Caba Heilbron et al. 2015, CVPR, 961) and QVHighlights (Lei et
    al. 2021, NeurIPS) compute it for one query. Edges: no prediction, or no reference: 0.

    >>> average_precision([(0, 10), (20, 30)], [(0, 9), (50, 60), (20, 30)], 0.5)
    0.8333333333333333
    """
    hits = np.array([hits_by_rank(reference, prediction, least)], dtype=np.float64).reshape(1, -1)
    found = _area(hits, 1 - hits, np.array([float(len(reference))]))
    return float(found[0]) if reference else 0.0


def hits_by_rank(reference: _Extents, prediction: _Extents, least: float) -> list[bool]:
    """Of each prediction, in their order, whether it finds a reference.

    >>> hits_by_rank([(0, 10)], [(0, 9), (0, 10)], 0.5)
    [True, False]
    """
    left = list(reference)
    found = []
    for said in prediction:
        nearest = max(left, key=partial(iou, said), default=None)
        hit = nearest is not None and iou(said, nearest) >= least
        found.append(hit)
        if hit and nearest is not None:
            left.remove(nearest)
    return found


def _area(hits: Floats, misses: Floats, references: Floats) -> Floats:
    """The area under the interpolated curve of each row: `hits` and `misses` are samples × ranks."""
    found, named = np.cumsum(hits, axis=1), np.cumsum(hits + misses, axis=1)
    precision = np.divide(found, named, out=np.zeros_like(found), where=named > 0)
    best = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    return np.asarray((best * hits).sum(axis=1) / np.maximum(references, 1e-300), dtype=np.float64)


def _iou(_: Item, key: JsonValue, said: JsonValue) -> float:
    return covered(extents(key), extents(said))


def _recall(least: float, _: Item, key: JsonValue, said: JsonValue) -> float:
    keys = extents(key)
    return matching(keys, extents(said), least) / len(keys)


def _mean_precision(_: Item, key: JsonValue, said: JsonValue) -> float:
    keys, named = extents(key), extents(said)
    return float(np.mean([average_precision(keys, named, least) for least in AP_LEAST]))


def _relative_error(_: Item, key: JsonValue, said: JsonValue) -> float:
    """|said − key| / |key|, at most 1; of the reference 0 everything else is 1 off."""
    right, number = float(str(key)), float(str(said))
    return min(1.0, abs(number - right) / abs(right)) if right else float(number != right)


def _scale_error(item: Item, key: JsonValue, said: JsonValue) -> float:
    """The levels between the two over those between the lowest and the highest."""
    form = item.answer
    length = form.high - form.low if isinstance(form, ScaleFormat) else 1
    return abs(float(str(said)) - float(str(key))) / length


_GRADES: dict[Metric, _Grade] = {
    IOU: _iou,
    **{metric: partial(_recall, least) for least, metric in RECALL_AT.items()},
    AVERAGE_PRECISION: _mean_precision,
    RELATIVE_ERROR: _relative_error,
    JACCARD: lambda _, key, said: jaccard(key, said),
    WORD_F1: lambda _, key, said: word_f1(str(key), str(said)),
    SCALE_ERROR: _scale_error,
}
GRADED_METRICS = tuple(_GRADES)
"""What `GradedScorer` gives, each for the formats that it names."""


def graded_metrics(kinds: Iterable[str]) -> tuple[Metric, ...]:
    """The metrics of `GRADED_METRICS` for these formats, for a benchmark to declare.

    >>> [one.name for one in graded_metrics(["choice"])]
    []
    """
    named = set(kinds)
    return tuple(metric for metric in GRADED_METRICS if named & set(metric.formats))


class GradedScorer:
    """Every metric of `GRADED_METRICS` for the item's format. An answer without a value gets each metric's worst value,
    with the cause as its label.

    >>> from proctor.core import Reference
    >>> from proctor.core.formats import IntervalsFormat
    >>> item = Item(id="q1", group="v1", question="When?", answer=IntervalsFormat(), reference=Reference(answer=[[0, 10]]))
    >>> found = GradedScorer().mark(item, Answer(item_id="q1", text="0-8 s", parsed=[[0.0, 8.0]]))
    >>> [(one.metric, one.value) for one in found[:2]]
    [('iou', 0.8), ('recall_at_0.3', 1.0)]
    """

    name = "code"
    metrics = GRADED_METRICS

    def applies(self, item: Item) -> bool:
        """To the formats that one of the metrics names, with a reference."""
        return item.reference is not None and bool(graded_metrics([item.answer.kind]))

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """The scores of `mark`, as the `Scorer` protocol wants it."""
        return self.mark(item, answer)

    def mark(self, item: Item, answer: Answer) -> list[Score]:
        """Scores one answer; empty for an item that this scorer does not apply to. Raises `ValueError` for a failed
        one."""
        cause = cause_of(answer)
        if item.reference is None:
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
"""As many intervals or boxes of an answer count for the pooled average precision (QVHighlights)."""


def located_sums(
    references: Sequence[JsonValue], predictions: Sequence[JsonValue], wrong: Sequence[bool] = ()
) -> list[ItemSums]:
    """The average precision of all answers together: over the overlaps 0.5, 0.55 … 0.95, then at 0.5 and at 0.75.

    One curve of precision over recall for all questions, as detection benchmarks compute it (see `average_precision`).
    Detectors rank all their predictions by their scores; answers in words have no scores, so that here the first
    interval of every answer comes before the second of any, and all of one rank are one step of the curve. None (late,
    missing, unreadable) names nothing and finds nothing; an answer that is `wrong` counts as if it named as many wrong
    intervals or boxes as the reference has. Edges: no items: values None.

    >>> found = [one.estimate(["a", "b"]) for one in located_sums([[[0, 10]], [[0, 10]]], [[[0, 9]], None])]
    >>> [(one.part, one.estimate.value) for one in found][1:]
    [('IoU 0.5', 0.5), ('IoU 0.75', 0.5)]
    """
    keys = [extents(one) for one in references]
    said = [extents(one)[:MAX_RANKS] for one in predictions]
    bad = {int(row): min(MAX_RANKS, max(1, len(keys[row]))) for row in np.flatnonzero(wrong)}
    ranks = max([1, *map(len, said), *bad.values()])
    columns = np.zeros((len(keys), len(AP_LEAST), 2, ranks))
    for row, (key, named) in enumerate(zip(keys, said, strict=True)):
        for place, least in enumerate(AP_LEAST):
            hits = np.array(hits_by_rank(key, named, least), dtype=np.float64)
            columns[row, place, :, : len(named)] = hits, 1 - hits
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
    return [ItemSums(POOLED_PRECISION, flat, _pooled(ranks, list(places)), part) for part, places in parts.items()]


def _pooled(ranks: int, places: Sequence[int]) -> Callable[[Floats], Floats]:
    def statistic(sums: Floats) -> Floats:
        tables = sums[:, :-1].reshape(len(sums), len(AP_LEAST), 2, ranks)
        areas = [_area(tables[:, place, 0], tables[:, place, 1], sums[:, -1]) for place in places]
        return np.where(sums[:, -1] > 0, np.mean(areas, axis=0), np.nan)

    return statistic
