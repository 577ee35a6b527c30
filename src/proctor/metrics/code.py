"""All scorers that ask no model, as a run uses them."""

from __future__ import annotations

from proctor.core import Scorer
from proctor.metrics.accuracy import AccuracyScorer
from proctor.metrics.ordering.scorer import OrderingScorer

__all__ = ["code_scorers"]


def code_scorers() -> list[Scorer]:
    """Every scorer that marks answers the moment they come; each applies to the formats that it knows.

    >>> [type(scorer).__name__ for scorer in code_scorers()]
    ['AccuracyScorer', 'OrderingScorer']
    """
    return [AccuracyScorer(), OrderingScorer()]
