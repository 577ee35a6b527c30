"""Data of a report beyond results: dates, single answers and scores, consumption, and orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select

from proctor.core import Answer, FailedPolicy, Item, Score, Status
from proctor.core.formats import OrderingFormat
from proctor.metrics import MetricEstimate
from proctor.metrics.ordering import (
    PARTIAL,
    WEIGHTS,
    OrderComparison,
    compared,
    order_estimates,
    rationale_estimates,
    tracking_estimate,
)
from proctor.metrics.text import RATIONALE_F1, gives_rationales
from proctor.runs import schema
from proctor.runs.bulk import driver_rows, in_parts
from proctor.runs.schema import answer_from_row
from proctor.runs.settings import UNSUPPORTED
from proctor.runs.store import Run, Store
from proctor.runs.table import BASELINES, ItemTable, Outcomes, load_outcomes, load_series
from proctor.stats import Resampling

TIMES = ("model", "media", "queue", "retry")

_ENDINGS = (Status.REFUSED, Status.TIMED_OUT, Status.ERROR, Status.FAILED)
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


def newest_run(store: Store, benchmark: str) -> str | None:
    """The start of a benchmark's newest run (ISO 8601, UTC); None without runs."""
    runs, benchmarks = schema.runs, schema.benchmarks
    query = (
        select(runs.c.created)
        .join(benchmarks, benchmarks.c.id == runs.c.benchmark)
        .where(benchmarks.c.name == benchmark)
    )
    with store.reading() as connection:
        return max(connection.scalars(query), default=None)


def load_answers(store: Store, run: Run, items: ItemTable, first: int) -> dict[int, Answer]:
    """The answers of one run to the `first` items of the table, by the item's place."""
    table, names = schema.answers, schema.answers.c.keys()
    found: dict[int, Answer] = {}
    with store.reading() as connection:
        for numbers in _chunks(items, first):
            query = select(table).where(table.c.run == run.id, table.c.item.in_(numbers))
            for values in driver_rows(connection, query):
                row = dict(zip(names, values, strict=True))
                position = int(items.row_of[row["item"]])
                found[position] = answer_from_row(items.ids[position], row)
    return found


def load_scores(store: Store, run: Run, items: ItemTable, first: int) -> dict[int, list[Score]]:
    """The scores of one run for the `first` items of the table, by the item's place, in the order of metric and scorer."""
    table, names = schema.scores, ("metric", "value", "scorer", "label", "vote_key")
    found: dict[int, list[Score]] = {}
    with store.reading() as connection:
        for numbers in _chunks(items, first):
            query = (
                select(table.c.item, *(table.c[name] for name in names))
                .where(table.c.run == run.id, table.c.item.in_(numbers))
                .order_by(table.c.metric, table.c.scorer)
            )
            for number, *values in driver_rows(connection, query):
                position = int(items.row_of[number])
                score = Score(item_id=items.ids[position], **dict(zip(names, values, strict=True)))
                found.setdefault(position, []).append(score)
    return found


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
    database adds up, and times are left out."""
    spent = _spent(store, items)
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


def _spent(store: Store, items: ItemTable) -> dict[int, Consumption] | None:
    """The consumption of each run with requests, without times; None if the benchmark has more items than these."""
    answers, known = schema.answers, schema.items
    mine = known.c.benchmark == items.names.benchmark
    sums = [func.sum(answers.c[name]) for name in ("requests", "input_tokens", "output_tokens", "cached_tokens")]
    query = (
        select(answers.c.run, *sums, func.sum(answers.c.cost_usd), func.count(), func.count(answers.c.cost_usd))
        .join(schema.runs, schema.runs.c.id == answers.c.run)
        .where(schema.runs.c.benchmark == items.names.benchmark, answers.c.requests > 0)
        .group_by(answers.c.run)
    )
    with store.reading() as connection:
        if connection.execute(select(func.count()).select_from(known).where(mine)).scalar_one() != len(items):
            return None
        rows = driver_rows(connection, query)
    return {
        run: Consumption({}, int(requests), int(into), int(out), int(cached), usd, asked - priced, priced)
        for run, requests, into, out, cached, usd, asked, priced in rows
    }


def status_counts(store: Store, run: Run, items: ItemTable) -> dict[str, int]:
    """The number of items of one run by outcome: `readable` and `unreadable` answers, those that a submission lacks
    (`not_submitted`), `refused`, `timed_out`, `error`, `failed`, `not_asked`, and `unsupported` (the system
    does not support them)."""
    outcomes: Outcomes = load_outcomes(store, run, items)
    answered = outcomes.where(Status.ANSWERED)
    return {
        "readable": int(np.sum(answered & outcomes.readable)),
        "unreadable": int(np.sum(answered & ~outcomes.readable & outcomes.submitted)),
        "not_submitted": int(np.sum(answered & ~outcomes.submitted)),
        **{status.value: int(np.sum(outcomes.where(status))) for status in _ENDINGS},
        "not_asked": int(np.sum(~outcomes.asked & ~outcomes.unsupported)),
        "unsupported": int(np.sum(outcomes.unsupported)),
    }


def _chunks(items: ItemTable, first: int) -> Iterator[Sequence[int]]:
    """The store's numbers of the first items of the table, in parts."""
    numbers: list[int] = np.flatnonzero((items.row_of >= 0) & (items.row_of < first)).tolist()
    return in_parts(numbers)


def _seconds(spent: NDArray[np.float64]) -> dict[str, Seconds]:
    found = {}
    for position, name in enumerate(TIMES):
        measured = spent[~np.isnan(spent[:, position]), position]
        if np.any(measured > 0):
            median, p90 = np.quantile(measured, (0.5, 0.9))
            found[name] = Seconds(len(measured), float(median), float(p90))
    return found


@dataclass(frozen=True)
class OrderedRun:
    """One run's orders by item (`compared`), each item's group, and the F1 of rationales by scorer and item, if code scored
    them. `lacking` items failed or were not asked: under the policy "wrong" they have no order and their rationales score
    0, under "exclude" they are `left_out`; `policy` is empty without lacking items. `has_rationales`: the run was asked
    for rationales, or stored some. `references_have_them`: some reference has a rationale to compare with."""

    run: Run
    compared: dict[str, OrderComparison]
    groups: tuple[str, ...]
    f1: dict[str, dict[str, float]]
    lacking: int
    policy: str = ""
    has_rationales: bool = False
    references_have_them: bool = True

    @property
    def left_out(self) -> int:
        """The number of items left out of all figures."""
        return 0 if self.policy == FailedPolicy.WRONG else self.lacking

    def metrics(self, *, draws: int = 2000, seed: int = 0) -> list[MetricEstimate]:
        """The metrics of orders over all items, with intervals by group."""
        return order_estimates(list(self._counted.values()), self.groups, plan=Resampling(draws=draws, seed=seed))

    @property
    def invalid(self) -> int:
        """The number of orders that miss, repeat or invent a label; they are wrong in every figure."""
        return sum(
            not order_comparison.valid and (order_comparison.answered or bool(order_comparison.unknown))
            for order_comparison in self.compared.values()
        )

    def partial(self, *, draws: int = 2000, seed: int = 0) -> MetricEstimate:
        """Pairwise accuracy with partial credit for invalid orders: their correctly ordered pairs count."""
        mark = order_estimates(list(self.compared.values()), self.groups, plan=Resampling(draws=draws, seed=seed))[1]
        return MetricEstimate(PARTIAL, mark.estimate)

    @property
    def _counted(self) -> dict[str, OrderComparison]:
        return {name: one.counted("wrong") for name, one in self.compared.items()}

    def with_rationales(
        self, scorer: str, *, weights: tuple[float, float] = WEIGHTS, draws: int = 2000, seed: int = 0
    ) -> list[MetricEstimate]:
        """Mean F1 by one of the scorers in `f1`, the overall score, and the association of F1 with the order."""
        f1, orders = self.f1[scorer], self._counted
        marks = rationale_estimates(orders, self.groups, f1, weights=weights, plan=Resampling(draws=draws, seed=seed))
        return [*marks, tracking_estimate(orders, self.groups, f1, plan=Resampling(draws=draws, seed=seed))]


def load_orders(
    store: Store,
    runs: Sequence[Run],
    table: ItemTable,
    items: Mapping[str, Item],
    policy: FailedPolicy = FailedPolicy.WRONG,
) -> list[OrderedRun]:
    """The runs with orders; `items` by id hold the references."""
    found = [_load(store, run, table, items, policy) for run in runs]
    return [ordered_run for ordered_run in found if ordered_run.compared]


def _load(store: Store, run: Run, table: ItemTable, items: Mapping[str, Item], policy: FailedPolicy) -> OrderedRun:
    answers = load_answers(store, run, table, len(table.ids))
    orders: dict[str, OrderComparison] = {}
    groups, lacking = [], set()
    asked = [
        (position, name)
        for position, name in enumerate(table.ids)
        if isinstance(items[name].answer, OrderingFormat) and items[name].reference is not None
    ]
    if not any(position in answers for position, _ in asked):
        asked = []  # the run has only other questions
    for position, name in asked:
        item, answer = items[name], answers.get(position)
        if answer is None or answer.status is Status.FAILED:
            lacking.add(name)
            if policy is FailedPolicy.EXCLUDE:
                continue
            answer = Answer(item_id=name)
        if item.reference is not None:
            orders[name] = compared(item.reference, answer)
        groups.append(item.group)
    f1 = {
        series.scorer: {
            table.ids[position]: float(series.values[position])
            for position in np.flatnonzero(series.marked)
            if table.ids[position] in orders
        }
        for series in load_series(store, run, table)
        if series.metric == RATIONALE_F1.name
    }
    scored = {name: by | dict.fromkeys(lacking & orders.keys(), RATIONALE_F1.worst) for name, by in f1.items() if by}
    return OrderedRun(
        run,
        orders,
        tuple(groups),
        scored,
        len(lacking),
        policy.value if lacking else "",
        gives_rationales(answers.values()),
        any(reference.rationale.strip() for _, name in asked if (reference := items[name].reference) is not None),
    )
