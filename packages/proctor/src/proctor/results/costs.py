"""What runs consumed: time (median and 90th percentile), tokens and money, and what all items would cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select

from proctor.core import Status
from proctor.results.arrays import ItemTable, load_outcomes
from proctor.runs import BASELINES, UNSUPPORTED, Run, Store, driver_rows, schema

TIMES = ("model", "media", "queue", "retry")
_CONSUMED = ("item", "status", "requests", "input_tokens", "output_tokens", "cached_tokens", "cost_usd")


@dataclass(frozen=True)
class Seconds:
    """The median and the 90th percentile of a duration over `n` answers, in seconds."""

    n: int
    median: float
    p90: float


@dataclass(frozen=True)
class Consumption:
    """The consumption of the answers of one run.

    `seconds` holds the parts of the time (`TIMES`) over answers that did not fail, without parts that took no time or
    were not measured. Tokens are None without recorded requests. `cost_usd` is the sum of the known prices (None: no
    price is known); `unpriced` answers have requests of unknown price, which the sum lacks.
    """

    seconds: dict[str, Seconds]
    requests: int
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cost_usd: float | None
    unpriced: int
    priced: int = 0
    """The answers whose price is known."""

    mean_s: float | None = None
    """The model's mean seconds over answers with requests, where the database adds up (`run_costs`)."""


@dataclass(frozen=True)
class RunCost:
    """What a run cost so far. `answers` were asked with requests, of `items` that its system supports."""

    system: str
    condition: str
    consumption: Consumption
    answers: int
    items: int

    @property
    def whole_usd(self) -> float | None:
        """The cost of all items, at the price of those asked so far; None if any price is unknown."""
        spent = self.consumption
        if spent.cost_usd is None or spent.unpriced or not spent.priced:
            return None
        return spent.cost_usd / spent.priced * self.items


def load_consumption(store: Store, run: Run, items: ItemTable) -> Consumption:
    """The consumption of one run's answers to these items."""
    table = schema.answers
    names = (*_CONSUMED, *(f"{name}_s" for name in TIMES))
    query = select(*(table.c[name] for name in names)).where(table.c.run == run.id).order_by(table.c.item)
    with store.reading() as connection:
        rows = driver_rows(connection, query)
    read = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(names, ())
    failed = np.array([status == Status.FAILED.value for status in read.pop("status")], dtype=np.bool_)
    known = {name: np.array(values, dtype=np.float64) for name, values in read.items()}  # None becomes NaN
    inside = items.row_of[known["item"].astype(np.int64)] >= 0
    asked = inside & (known["requests"] > 0)
    costs = known["cost_usd"][asked & ~np.isnan(known["cost_usd"])].tolist()
    timed = inside & ~np.isnan(known["model_s"]) & ~failed
    spent = np.stack([known[f"{name}_s"][timed] for name in TIMES], axis=1)

    def tokens(kind: str) -> int | None:
        return int(known[f"{kind}_tokens"][asked].sum()) if asked.any() else None

    return Consumption(
        seconds=_seconds(spent) if timed.any() else {},
        requests=int(known["requests"][asked].sum()),
        input_tokens=tokens("input"),
        output_tokens=tokens("output"),
        cached_tokens=tokens("cached"),
        cost_usd=sum(costs) if costs else None,
        unpriced=int(asked.sum()) - len(costs),
        priced=len(costs),
    )


def run_costs(store: Store, runs: Sequence[Run], items: ItemTable) -> tuple[RunCost, ...]:
    """What each run with requests to models cost, on these items. Where the table has all items of the benchmark, the
    database adds up, and times and tokens are left out."""
    spent = _spent(store, runs, items)
    if spent is None:
        spent = {run.id: load_consumption(store, run, items) for run in runs}
    found = []
    for run in runs:
        own = spent.get(run.id)
        if own is None or not own.requests:
            continue
        tells = run.system in BASELINES or run.settings.get(UNSUPPORTED)
        never = load_outcomes(store, run, items).unsupported if tells else np.zeros(0)
        supported = len(items) - int(np.sum(never))
        found.append(RunCost(run.system, run.condition, own, own.priced + own.unpriced, supported))
    return tuple(found)


def _spent(store: Store, runs: Sequence[Run], items: ItemTable) -> dict[int, Consumption] | None:
    """The consumption of each run with requests, without times and tokens; None if the benchmark has more items than
    these."""
    answers, known = schema.answers, schema.items
    mine = known.c.benchmark == items.names.benchmark
    sums = func.sum(answers.c.requests), func.sum(answers.c.cost_usd), func.count(), func.count(answers.c.cost_usd)
    mean = func.avg(answers.c.model_s).filter(answers.c.status != Status.FAILED.value)
    of_runs = answers.c.run.in_([run.id for run in runs]), answers.c.requests > 0
    query = select(answers.c.run, *sums, mean).where(*of_runs).group_by(answers.c.run)
    with store.reading() as connection:
        if connection.execute(select(func.count()).select_from(known).where(mine)).scalar_one() != len(items):
            return None
        rows = driver_rows(connection, query)
    return {
        run: Consumption({}, int(requests), None, None, None, usd, asked - priced, priced, mean_s)
        for run, requests, usd, asked, priced, mean_s in rows
    }


def _seconds(spent: NDArray[np.float64]) -> dict[str, Seconds]:
    found = {}
    for position, name in enumerate(TIMES):
        measured = spent[~np.isnan(spent[:, position]), position]
        if np.any(measured > 0):
            median, p90 = np.quantile(measured, (0.5, 0.9))
            found[name] = Seconds(len(measured), float(median), float(p90))
    return found
