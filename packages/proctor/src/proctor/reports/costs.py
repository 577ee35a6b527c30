"""What runs cost, in words, and about what all of their items will cost."""

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

    Several runs of unknown cost share a line:

    >>> free = Consumption({}, 3, 14_000, 360, 0, None, 3)
    >>> cost_lines([RunCost("m", "video", free, 3, 100), RunCost("n", "video", free, 4, 100)])
    ['Cost of 2 runs: unknown for 7 answers.']
    """
    unknown = [one for one in costs if one.consumption.requests and one.consumption.cost_usd is None]
    together = unknown if len(unknown) > 1 else []
    lines = []
    for one in costs:
        if one in together:
            continue
        so_far = f"Cost of {one.system} / {one.condition}: {cost_words(one.consumption)} for {count_of(one.answers, 'answer')}"
        rest = one.items > one.answers and one.whole_usd is not None
        whole = f"; all {thousands(one.items)}: about {dollars(one.whole_usd or 0.0)}" if rest else ""
        lines.append(f"{so_far}{whole}.")
    if together:
        answers = count_of(sum(one.answers for one in together), "answer")
        lines.append(f"Cost of {len(together)} runs: unknown for {answers}.")
    return lines
