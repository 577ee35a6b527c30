"""How runs stand, as a table and in lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.core import DASH, dollars, plain_table, thousands

if TYPE_CHECKING:
    from proctor.core import Table
    from proctor.runs import RunStatus


def status_table(found: Sequence[RunStatus], rates: Sequence[float | None] = ()) -> Table:
    """A row for each run; with `rates` (answers per second, None: unknown) a column of them."""
    several = len({one.benchmark for one in found}) > 1
    heads = (*(["Benchmark"] if several else []), "System", "Condition", "State", ">Answered", ">Failed")
    heads += (*([">Per second"] if rates else []), ">Cost", "By, or why")
    rows = [
        (
            *([one.benchmark] if several else []),
            *(one.system, one.condition, one.state, _answered(one), thousands(one.failed)),
            *([DASH if (rate := rates[row]) is None else f"{rate:.1f}"] if rates else []),
            *(_cost(one), _remark(one)),
        )
        for row, one in enumerate(found)
    ]
    title = "Runs" if several or not found else found[0].benchmark
    return plain_table(title, heads, rows)


def status_line(one: RunStatus, rate: float | None = None) -> str:
    """A run in one line."""
    parts = [one.state, f"{_answered(one)} answered", f"{thousands(one.failed)} failed"]
    parts += [] if rate is None else [f"{rate:.1f}/s"]
    cost = _cost(one)
    parts += [] if cost == DASH else [f"cost {cost}"]
    parts += [remark] if (remark := _remark(one)) else []
    return f"{one.benchmark}: {one.system} / {one.condition}: {', '.join(parts)}"


def _answered(one: RunStatus) -> str:
    return thousands(one.answered) if one.wanted is None else f"{thousands(one.answered)} of {thousands(one.wanted)}"


def _cost(one: RunStatus) -> str:
    """The cost so far; a dash where nothing was asked for money."""
    if one.cost_usd is None:
        return "unknown" if one.unpriced else DASH
    return f"{dollars(one.cost_usd)}{' and unknown' if one.unpriced else ''}"


def _remark(one: RunStatus) -> str:
    since = f"since {one.since}" if one.since else ""
    again = f"{thousands(one.requeued)} asked again by a person" if one.requeued else ""
    return "; ".join(part for part in (one.by, since, one.why, again) if part)
