"""Yes or no, and choices: what is left when guessing by frequency is worth nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

import numpy as np
from pydantic import JsonValue

from proctor.core import InputError, Metric
from proctor.metrics.marks.mark import Mark
from proctor.stats import sums_interval
from proctor.stats.clusters import Floats, Groups
from proctor.stats.options import Options
from proctor.stats.resampling import ratio

__all__ = ["NOMINAL_METRICS", "nominal_marks"]

BALANCED = Metric("balanced_accuracy", "Balanced accuracy", percent=True, formats=("binary", "choice"))
MCC = Metric("mcc", "Matthews correlation", low=-1.0, formats=("binary", "choice"))
NOMINAL_METRICS = (BALANCED, MCC)


def nominal_marks(
    references: Sequence[JsonValue],
    predictions: Sequence[JsonValue],
    groups: Groups,
    **options: Unpack[Options],
) -> list[Mark]:
    """Balanced accuracy and Matthews' correlation coefficient, in this order.

    Balanced accuracy is the mean over the classes of the references of each one's recall (Brodersen et al. 2010,
    International Conference on Pattern Recognition, 3121). Matthews' correlation in its form for several
    classes is R_K of Gorodkin (2004, Computational Biology and Chemistry 28:367): with the table of
    references and predictions, (c · s − Σ t_k p_k) / √((s² − Σ p_k²)(s² − Σ t_k²)), c right ones of s, t_k
    references and p_k predictions of class k; about 0 for guessing, 1 at best. None as a prediction (late,
    missing, unreadable) is a class of its own, always wrong. In a sample that lacks a class of the references
    the balanced accuracy is the mean over the classes that it has.

    Edges: no items: values None; one class alone in references, or in predictions: no correlation.
    Raises `InputError` where lengths differ.

    >>> marks = nominal_marks([True, True, True, False], [True, True, True, True], list("abcd"), draws=100)
    >>> [(mark.metric.name, mark.estimate.value) for mark in marks]
    [('balanced_accuracy', 0.5), ('mcc', None)]
    """
    if not len(references) == len(predictions) == len(groups):
        found = f"{len(references)}, {len(predictions)} and {len(groups)}"
        raise InputError(
            None, "answers", found=found, expected="as many references as predictions and groups"
        )
    names = sorted({str(one) for one in (*references, *predictions) if one is not None})
    place = {name: number for number, name in enumerate(names)}
    k = len(names) + 1  # the last is: no answer
    columns = np.zeros((len(references), k * k))
    for row, (truth, said) in enumerate(zip(references, predictions, strict=True)):
        answered = place[str(said)] if said is not None else k - 1
        columns[row, place[str(truth)] * k + answered] = 1
    return [
        Mark(BALANCED, sums_interval(columns, groups, _balanced(k), **(options | Options(bounds=(0, 1))))),
        Mark(MCC, sums_interval(columns, groups, _matthews(k), **(options | Options(bounds=(-1, 1))))),
    ]


def _balanced(k: int) -> Callable[[Floats], Floats]:
    def statistic(sums: Floats) -> Floats:
        tables = sums.reshape(len(sums), k, k)
        there = tables.sum(axis=2)
        right = np.diagonal(tables, axis1=1, axis2=2)
        recall = np.divide(right, there, out=np.zeros_like(there), where=there > 0)
        classes = (there > 0).sum(axis=1)
        return ratio(recall.sum(axis=1), classes.astype(np.float64))

    return statistic


def _matthews(k: int) -> Callable[[Floats], Floats]:
    def statistic(sums: Floats) -> Floats:
        tables = sums.reshape(len(sums), k, k)
        truth, said = tables.sum(axis=2), tables.sum(axis=1)
        right, s = np.trace(tables, axis1=1, axis2=2), truth.sum(axis=1)
        spread = (s**2 - (said**2).sum(axis=1)) * (s**2 - (truth**2).sum(axis=1))
        return ratio(right * s - (truth * said).sum(axis=1), np.sqrt(spread))

    return statistic
