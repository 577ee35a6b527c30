"""Orders: compared with the right one, counted over many items, and made from many by exact consensus."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.metrics.ordering.consensus import MOST_LABELS, Consensus, kemeny, kemeny_of_votes, nearest_order
    from proctor.metrics.ordering.order_estimates import order_estimates, rationale_estimates, tracking_estimate
    from proctor.metrics.ordering.orders import (
        NEIGHBOURS,
        ORDERING_METRICS,
        OVERALL,
        PAIR,
        PARTIAL,
        RUN_METRICS,
        WEIGHTS,
        InvalidOrders,
        OrderComparison,
        compare_orders,
        compared,
        order_chance,
        overall_score,
        position_confusion,
    )
else:
    export_lazily(__name__)

__all__ = [
    "MOST_LABELS", "NEIGHBOURS", "ORDERING_METRICS", "OVERALL", "PAIR", "PARTIAL", "RUN_METRICS", "WEIGHTS",
    "Consensus", "InvalidOrders", "OrderComparison", "compare_orders", "compared", "kemeny", "kemeny_of_votes",
    "nearest_order", "order_chance", "order_estimates", "overall_score", "position_confusion", "rationale_estimates",
    "tracking_estimate",
]  # fmt: skip
