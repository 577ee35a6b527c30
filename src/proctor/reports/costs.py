"""What runs cost, in words."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.core import DASH, count_of, dollars, thousands
from proctor.results import Consumption, RunCost


def cost_words(consumption: Consumption) -> str:
    """The cost of a run, if known.

    >>> cost_words(Consumption({}, 3, 10, 10, 0, None, 3))
    'unknown'
    """
    if not consumption.requests:
        return DASH
    if consumption.cost_usd is None:
        return "unknown"
    partly = f" and unknown for {count_of(consumption.unpriced, 'answer')}" if consumption.unpriced else ""
    return f"{dollars(consumption.cost_usd)}{partly}"


def cost_lines(costs: Sequence[RunCost]) -> list[str]:
    """What each run cost so far, and about what all of its items will cost, for people.

    >>> spent = Consumption({}, 3, 14_000, 360, 0, 0.0021, 0, 3)
    >>> cost_lines([RunCost("m", "video", spent, 3, 100)])
    ['Cost of m / video: $0.0021 for 3 answers; all 100: about $0.0700.']
    """
    lines = []
    for one in costs:
        so_far = f"Cost of {one.system} / {one.condition}: {cost_words(one.consumption)} for {count_of(one.answers, 'answer')}"
        rest = one.items > one.answers and one.whole_usd is not None
        whole = f"; all {thousands(one.items)}: about {dollars(one.whole_usd or 0.0)}" if rest else ""
        lines.append(f"{so_far}{whole}.")
    return lines
