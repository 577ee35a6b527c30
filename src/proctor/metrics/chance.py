"""The chance level: what random guessing scores on a benchmark's items."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from proctor.core import ACCURACY, Item, Metric
from proctor.core.formats import BinaryFormat, ChoiceFormat, OrderingFormat
from proctor.metrics.ordering.chance import order_chance

__all__ = ["chance_level", "chance_of"]


def chance_of(item: Item) -> float | None:
    """The expected accuracy of a random guess at one item; None for formats whose values are not equally
    likely (a number, a set of classes, a time), and for a choice without a reference.

    >>> from proctor.core import Item, Reference
    >>> from proctor.core.formats import BinaryFormat
    >>> chance_of(Item(id="q", group="g", question="?", answer=BinaryFormat(), reference=Reference(answer=True)))
    0.5
    """
    if isinstance(item.answer, ChoiceFormat) and item.reference is not None:
        return len({str(item.reference.answer), *map(str, item.reference.accepted)}) / len(item.options)
    if isinstance(item.answer, BinaryFormat):
        return 0.5
    if isinstance(item.answer, OrderingFormat):
        return 1 / math.factorial(len(item.answer.labels))
    return None


def chance_level(metric: Metric, items: Sequence[Item]) -> float | None:
    """The mean that random guessing reaches on those of the items that the metric scores: as the metric
    declares it, for metrics of orders as the numbers of frames give it (see `order_chance`), or for accuracy as
    the options do (see `chance_of`). None where one item has no such number, and without items.

    >>> from proctor.core import ACCURACY
    >>> chance_level(ACCURACY, []) is None
    True
    """
    marked = [item for item in items if metric.marks(item.answer.kind)]
    if not marked or metric.chance is not None:
        return metric.chance if marked else None
    if metric.name != ACCURACY.name:
        formats = [item.answer for item in marked]
        frames = [len(one.labels) for one in formats if isinstance(one, OrderingFormat)]
        return order_chance(metric.name, frames) if len(frames) == len(marked) else None
    chances = [chance_of(item) for item in marked]
    known = [chance for chance in chances if chance is not None]
    return float(np.mean(known)) if len(known) == len(marked) else None
