"""Orders: held against the right one, counted over many items, and made from many by exact consensus."""

from proctor.metrics.ordering.chance import order_chance
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
from proctor.metrics.ordering.overall import OVERALL, TRACKING, WEIGHTS, rationale_marks, tracking_mark
from proctor.metrics.ordering.scorer import NEIGHBOURS, RUN_METRICS, OrderingScorer, compared

__all__ = [
    "MOST_LABELS",
    "NEIGHBOURS",
    "ORDERING_METRICS",
    "OVERALL",
    "PAIR_CHANCE",
    "RUN_METRICS",
    "TRACKING",
    "WEIGHTS",
    "Comparison",
    "Consensus",
    "OrderingScorer",
    "Repair",
    "compare_orders",
    "compared",
    "exact_chance",
    "kemeny",
    "kemeny_of_votes",
    "nearest_order",
    "order_chance",
    "order_marks",
    "overall_score",
    "place_confusion",
    "rationale_marks",
    "tracking_mark",
]
