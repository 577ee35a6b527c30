"""What guessing by lot reaches on a benchmark's items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from proctor.build.audit.constants import chance_of
from proctor.core import ACCURACY, Item, Metric
from proctor.core.formats import OrderingFormat
from proctor.metrics.ordering import order_chance

__all__ = ["chance_level"]


def chance_level(metric: Metric, items: Sequence[Item]) -> float | None:
    """The mean that blind guessing reaches on those of the items that the metric marks: as the metric
    declares it, for metrics of orders as the numbers of frames give it (see `order_chance`), or for accuracy as the
    options do (see `chance_of`). None where one item has no such number, and without items."""
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
