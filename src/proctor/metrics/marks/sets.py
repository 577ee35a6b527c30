"""How far sets of classes agree, as a whole and class by class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

import numpy as np

from proctor.core import InputError, Metric
from proctor.metrics.marks.mark import Mark
from proctor.stats import mean_interval, sums_interval
from proctor.stats.clusters import Floats, Groups
from proctor.stats.options import Options
from proctor.stats.resampling import ratio

__all__ = ["SET_METRICS", "set_marks"]

JACCARD = Metric("jaccard", "Jaccard index", percent=True, formats=("classes",))
PRECISION = Metric("class_precision", "Precision of a class", percent=True, formats=("classes",))
RECALL = Metric("class_recall", "Recall of a class", percent=True, formats=("classes",))
F1 = Metric("class_f1", "F1 of a class", percent=True, formats=("classes",))
SET_METRICS = (JACCARD, PRECISION, RECALL, F1)


def set_marks(
    references: Sequence[Sequence[str]],
    predictions: Sequence[Sequence[str] | None],
    groups: Groups,
    **options: Unpack[Options],
) -> list[Mark]:
    """The mean Jaccard index of the answers, then precision, recall and F1 of every class that occurs.

    Jaccard: what both name over what either names; two empty sets agree wholly (1), None (late, missing,
    unreadable) agrees with nothing (0) and names no class (Jaccard 1901; for sets of labels: Tsoumakas and
    Katakis 2007, International Journal of Data Warehousing and Mining 3(3):1). Per class, with TP, FP and FN
    over all answers: precision TP/(TP+FP), recall TP/(TP+FN), F1 2TP/(2TP+FP+FN) (van Rijsbergen 1979,
    Information Retrieval, chapter 7).

    Edges: no items: Jaccard None and no class; a class never named has no precision, one never there no
    recall. Raises `InputError` where lengths differ.

    >>> marks = set_marks([["clip"], []], [["clip", "mesh"], []], ["a", "b"])
    >>> [(mark.metric.name, mark.part, mark.estimate.value) for mark in marks][:3]
    [('jaccard', '', 0.75), ('class_precision', 'clip', 1.0), ('class_recall', 'clip', 1.0)]
    """
    if not len(references) == len(predictions) == len(groups):
        found = f"{len(references)}, {len(predictions)} and {len(groups)}"
        raise InputError(None, "sets", found=found, expected="as many references as predictions and groups")
    share = Options(bounds=(0, 1))
    truths = [frozenset(one) for one in references]
    said = [None if one is None else frozenset(one) for one in predictions]
    agreement = [_jaccard(truth, answer) for truth, answer in zip(truths, said, strict=True)]
    marks = [Mark(JACCARD, mean_interval(agreement, groups, **(options | share)))]
    for name in sorted(frozenset().union(*truths, *(answer or () for answer in said))):
        columns = np.array(
            [
                (name in truth and named, named and name not in truth, name in truth and not named)
                for truth, answer in zip(truths, said, strict=True)
                for named in [answer is not None and name in answer]
            ],
            dtype=np.float64,
        )
        for metric, statistic in _PER_CLASS:
            marks.append(Mark(metric, sums_interval(columns, groups, statistic, **(options | share)), name))
    return marks


def _jaccard(truth: frozenset[str], answer: frozenset[str] | None) -> float:
    if answer is None:
        return 0.0
    either = truth | answer
    return len(truth & answer) / len(either) if either else 1.0


def _precision(sums: Floats) -> Floats:
    return ratio(sums[:, 0], sums[:, 0] + sums[:, 1])


def _recall(sums: Floats) -> Floats:
    return ratio(sums[:, 0], sums[:, 0] + sums[:, 2])


def _f1(sums: Floats) -> Floats:
    return ratio(2 * sums[:, 0], 2 * sums[:, 0] + sums[:, 1] + sums[:, 2])


_PER_CLASS: tuple[tuple[Metric, Callable[[Floats], Floats]], ...] = (
    (PRECISION, _precision),
    (RECALL, _recall),
    (F1, _f1),
)
