"""Orders: held against the right one, counted over many items, and made from many by exact consensus."""

from proctor.metrics.ordering.comparison import Comparison, compare_orders
from proctor.metrics.ordering.consensus import (
    MOST_LABELS,
    Consensus,
    Repair,
    kemeny,
    kemeny_of_votes,
    nearest_order,
)
from proctor.metrics.ordering.marks import (
    ORDERING_METRICS,
    PAIR_CHANCE,
    exact_chance,
    order_marks,
    overall_score,
    place_confusion,
)
from proctor.metrics.ordering.scorer import NEIGHBOURS, RUN_METRICS, OrderingScorer

__all__ = [
    "MOST_LABELS",
    "NEIGHBOURS",
    "ORDERING_METRICS",
    "PAIR_CHANCE",
    "RUN_METRICS",
    "Comparison",
    "Consensus",
    "OrderingScorer",
    "Repair",
    "compare_orders",
    "exact_chance",
    "kemeny",
    "kemeny_of_votes",
    "nearest_order",
    "order_marks",
    "overall_score",
    "place_confusion",
]
