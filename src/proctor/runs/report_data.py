"""What a report asks of a store beyond its results: dates, single marks, and what answers consumed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from proctor.core import Answer, Score, Status
from proctor.runs import schema
from proctor.runs.rows import answer_from_row
from proctor.runs.store import Run, Store
from proctor.runs.table import ItemTable, Outcomes, load_outcomes

__all__ = [
    "Consumption",
    "Seconds",
    "load_answers",
    "load_consumption",
    "load_scores",
    "newest_run",
    "status_counts",
]

TIMES = ("model", "media", "queue", "retry")

_CONSUMED = ("item", "status", "requests", "input_tokens", "output_tokens", "cached_tokens", "cost_usd")
_CHUNK = 500  # items asked for in one query


@dataclass(frozen=True)
class Seconds:
    """How long something took over `n` answers: the median and the 90th percentile, in seconds."""

    n: int
    median: float
    p90: float


@dataclass(frozen=True)
class Consumption:
    """What the answers of one run consumed.

    `seconds` has a part of the time by name (`TIMES`), over answers that did not fail; a part that took
    none at all is absent, and so is every part where nothing was timed. Tokens are None where no request
    was recorded. `cost_usd` is the sum of the known prices, None where none is known; `unpriced` answers
    made requests whose price is not known, so that the sum is only a part.
    """

    seconds: dict[str, Seconds]
    requests: int
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cost_usd: float | None
    unpriced: int


def newest_run(store: Store, benchmark: str) -> str | None:
    """When the newest run of a benchmark was begun (ISO 8601, UTC); None without runs."""
    runs, benchmarks = schema.runs, schema.benchmarks
    query = (
        select(runs.c.created)
        .join(benchmarks, benchmarks.c.id == runs.c.benchmark)
        .where(benchmarks.c.name == benchmark)
    )
    with store.reading() as connection:
        return max(connection.scalars(query), default=None)


def load_answers(store: Store, run: Run, items: ItemTable, first: int) -> dict[int, Answer]:
    """The answers of one run to the first items of the table, by the item's place."""
    table = schema.answers
    found: dict[int, Answer] = {}
    with store.reading() as connection:
        for numbers in _chunks(items, first):
            query = select(table).where(table.c.run == run.id, table.c.item.in_(numbers))
            for row in connection.execute(query).mappings():
                place = int(items.row_of[row["item"]])
                found[place] = answer_from_row(items.ids[place], row)
    return found


def load_scores(store: Store, run: Run, items: ItemTable, first: int) -> dict[int, list[Score]]:
    """The scores of one run for the first items of the table, by the item's place; each item's by
    metric and scorer."""
    table = schema.scores
    found: dict[int, list[Score]] = {}
    with store.reading() as connection:
        for numbers in _chunks(items, first):
            query = (
                select(table)
                .where(table.c.run == run.id, table.c.item.in_(numbers))
                .order_by(table.c.metric, table.c.scorer)
            )
            for row in connection.execute(query):
                place = int(items.row_of[row.item])
                score = Score(
                    item_id=items.ids[place],
                    metric=row.metric,
                    value=row.value,
                    scorer=row.scorer,
                    label=row.label,
                    vote_key=row.vote_key,
                )
                found.setdefault(place, []).append(score)
    return found


def load_consumption(store: Store, run: Run, items: ItemTable) -> Consumption:
    """What the answers to these items consumed in one run."""
    table = schema.answers
    names = [f"{name}_s" for name in TIMES]
    columns = [table.c[name] for name in (*_CONSUMED, *names)]
    query = select(*columns).where(table.c.run == run.id).order_by(table.c.item)
    with store.reading() as connection:
        rows = [row for row in connection.execute(query) if items.row_of[row.item] >= 0]
    asked = [row for row in rows if row.requests]
    costs = [float(row.cost_usd) for row in asked if row.cost_usd is not None]
    timed = [row for row in rows if row.model_s is not None and row.status != Status.FAILED.value]
    spent = np.array([[getattr(row, name) for name in names] for row in timed], dtype=np.float64)
    return Consumption(
        seconds=_seconds(spent) if timed else {},
        requests=sum(int(row.requests) for row in asked),
        input_tokens=sum(int(row.input_tokens) for row in asked) if asked else None,
        output_tokens=sum(int(row.output_tokens) for row in asked) if asked else None,
        cached_tokens=sum(int(row.cached_tokens) for row in asked) if asked else None,
        cost_usd=sum(costs) if costs else None,
        unpriced=len(asked) - len(costs),
    )


def status_counts(store: Store, run: Run, items: ItemTable) -> dict[str, int]:
    """How asking ended in one run, every item once: `readable` and `unreadable` answers, those that a submission
    lacks (`not_submitted`), `refused`, `timed_out`, `error`, `failed`, and items that were `not_asked`."""
    outcomes: Outcomes = load_outcomes(store, run, items)
    answered = outcomes.where(Status.ANSWERED)
    return {
        "readable": int(np.sum(answered & outcomes.readable)),
        "unreadable": int(np.sum(answered & ~outcomes.readable & outcomes.submitted)),
        "not_submitted": int(np.sum(answered & ~outcomes.submitted)),
        "refused": int(np.sum(outcomes.where(Status.REFUSED))),
        "timed_out": int(np.sum(outcomes.where(Status.TIMED_OUT))),
        "error": int(np.sum(outcomes.where(Status.ERROR))),
        "failed": int(np.sum(outcomes.where(Status.FAILED))),
        "not_asked": int(np.sum(~outcomes.asked)),
    }


def _chunks(items: ItemTable, first: int) -> Iterator[list[int]]:
    """The store's numbers of the first items of the table, some at a time."""
    numbers = np.flatnonzero((items.row_of >= 0) & (items.row_of < first)).tolist()
    for start in range(0, len(numbers), _CHUNK):
        yield numbers[start : start + _CHUNK]


def _seconds(spent: NDArray[np.float64]) -> dict[str, Seconds]:
    found = {}
    for place, name in enumerate(TIMES):
        measured = spent[~np.isnan(spent[:, place]), place]
        if np.any(measured > 0):
            median, p90 = np.quantile(measured, (0.5, 0.9))
            found[name] = Seconds(len(measured), float(median), float(p90))
    return found
