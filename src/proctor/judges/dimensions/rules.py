"""What the task lays down about scores: their grid, and how they hang together."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

__all__ = ["ABOVE_BOTH", "ABOVE_HALF", "rule_breaks", "snapped"]

ABOVE_BOTH = "overall-above-both"
"""Rule break: overall is above completeness and above factual accuracy."""

ABOVE_HALF = "overall-above-half"
"""Rule break: overall is above 0.5, while completeness or factual accuracy is not."""

_STEPS = 20  # the grid of 0.05


def snapped(value: float) -> float:
    """The nearest multiple of 0.05; halfway between two, the even one (as the task's formula rounds).

    >>> snapped(0.87), snapped(0.88), snapped(0.025), snapped(0.075), snapped(1.0)
    (0.85, 0.9, 0.0, 0.1, 1.0)
    """
    return round(Fraction(repr(value)) * _STEPS) / _STEPS


def rule_breaks(values: Mapping[str, float]) -> tuple[str, ...]:
    """The rules that scores break; none where they are not about overall.

    >>> rule_breaks({"overall": 0.8, "completeness": 0.7, "factual-accuracy": 0.5})
    ('overall-above-both', 'overall-above-half')
    >>> rule_breaks({"overall": 0.6, "completeness": 0.5, "factual-accuracy": 0.9})
    ('overall-above-half',)
    >>> rule_breaks({"overall": 0.5, "completeness": 0.5, "factual-accuracy": 0.0})
    ()
    """
    needed = ("overall", "completeness", "factual-accuracy")
    if any(name not in values for name in needed):
        return ()
    overall, *parts = (values[name] for name in needed)
    breaks = {ABOVE_BOTH: overall > max(parts), ABOVE_HALF: min(parts) <= 0.5 < overall}
    return tuple(name for name, broken in breaks.items() if broken)
