"""Orders: held against the right one, counted over many items, and made from many by exact consensus."""

from proctor.metrics.ordering.chance import order_chance
from proctor.metrics.ordering.comparison import Comparison, InvalidOrders, compare_orders
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
    PARTIAL,
    VALID,
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
    "PARTIAL",
    "RUN_METRICS",
    "TRACKING",
    "VALID",
    "WEIGHTS",
    "Comparison",
    "Consensus",
    "InvalidOrders",
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
