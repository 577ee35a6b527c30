"""Limits of what one session of a run may cost and how long it may take. Both stop a run as Ctrl-C does: answers under way
come in and are kept, and the same command goes on later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from proctor.core import ConfigurationError, Usage, dollars

_ROUNDING = 1e-9  # of sums of dollars: ten answers at 0.01 are 0.1


class Spending:
    """What one session has spent on answers, also on those that are not kept, with the limit in US dollars (None: none).

    >>> spending = Spending(0.02)
    >>> spending.add(Usage(requests=1, cost_usd=0.015)), spending.add(Usage(requests=1, cost_usd=0.015))
    ('', 'stopped at $0.0300, --max-cost $0.0200')
    """

    def __init__(self, limit_usd: float | None) -> None:
        self._limit = limit_usd
        self._spent = 0.0

    def add(self, usage: Usage) -> str:
        """Counts an answer. Returns why the session stops, "" while it goes on. Raises `ConfigurationError` for an unknown
        cost: the limit can't be kept then."""
        if self._limit is None or not usage.requests:
            return ""
        if usage.cost_usd is None:
            raise ConfigurationError(
                "the cost of an answer is unknown, so that --max-cost can't be kept: give --price INPUT/OUTPUT (answers "
                "under way are kept)"
            )
        self._spent += usage.cost_usd
        if self._spent < self._limit * (1 - _ROUNDING):
            return ""
        return f"stopped at {dollars(self._spent)}, --max-cost {dollars(self._limit)}"


def over_limit(usage: Usage, limit_usd: float | None) -> str:
    """Why a pass of a judge stops, by what it has used so far; "" while it goes on. An unknown cost stops it, too: the limit
    can't be kept then.

    >>> over_limit(Usage(requests=3, cost_usd=0.3), 0.5), over_limit(Usage(requests=3, cost_usd=0.6), 0.5)
    ('', 'stopped at $0.6000, --max-cost $0.5000')
    """
    if limit_usd is None or not usage.requests:
        return ""
    if usage.cost_usd is None:
        return (
            "stopped: the cost of a judgement is unknown, so that --max-cost can't be kept: give --price INPUT/OUTPUT"
        )
    over = usage.cost_usd >= limit_usd * (1 - _ROUNDING)
    return f"stopped at {dollars(usage.cost_usd)}, --max-cost {dollars(limit_usd)}" if over else ""


async def stop_after(seconds: float | None, stop: Callable[[str], None]) -> None:
    """Calls `stop` with the reason after this many seconds; never for None."""
    if seconds is not None:
        await asyncio.sleep(seconds)
        stop(f"stopped after {seconds:g} s (--max-time)")
