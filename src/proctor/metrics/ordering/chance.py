"""What orders by lot reach."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import permutations
from math import factorial

from proctor.metrics.ordering.comparison import compare_orders

__all__ = ["order_chance"]

_MOST_COUNTED = 8  # frames: of more, no one counts the runs of all orders


def order_chance(metric: str, frames: Sequence[int]) -> float | None:
    """The mean that orders by lot reach on items of so many frames, by the name of a metric of `ORDERING_METRICS`
    or of `RUN_METRICS`.

    1/n! for the exact order, 2/n! for it up to reversal, 1/n for the first and for the last frame, 1/2 for neighbours,
    0 for tau; for the longest run the mean over all n! orders, which is counted for up to 8 frames. None for another
    metric, without items, and where it is not counted.

    >>> order_chance("up_to_reversal", [4]) == 2 / 24, order_chance("first_right", [4, 6]) == (1 / 4 + 1 / 6) / 2
    (True, True)
    >>> round(order_chance("longest_run", [4]), 4), order_chance("longest_run", [9]), order_chance("accuracy", [])
    (0.5729, None, None)
    """
    found = [_of_one(metric, count) for count in frames]
    known = [one for one in found if one is not None]
    return sum(known) / len(known) if known and len(known) == len(found) else None


def _of_one(metric: str, frames: int) -> float | None:
    if metric == "longest_run":
        return _run(frames) if frames <= _MOST_COUNTED else None
    shares = {
        "accuracy": 1 / factorial(frames),
        "task_accuracy": 1 / factorial(frames),
        "up_to_reversal": 2 / factorial(frames),
        "first_right": 1 / frames,
        "last_right": 1 / frames,
        "pairwise_accuracy": 0.5,
        "pairwise_partial": 0.5,
        "kendall_tau": 0.0,
    }
    return shares.get(metric)


@cache
def _run(frames: int) -> float:
    labels = range(frames)
    key = [str(one) for one in labels]
    runs = sum(compare_orders(key, [str(one) for one in order]).longest_run for order in permutations(labels))
    return runs / factorial(frames) / frames
