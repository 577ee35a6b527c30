"""Data of a report beyond results: dates, single answers and scores, consumption, and orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import select

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
from proctor.results.arrays import ItemTable, Outcomes, load_repeated_outcomes, load_series
from proctor.runs import Run, Store, answer_from_row, driver_rows, in_parts, repeats_of, schema
from proctor.stats import Resampling

_ENDINGS = (Status.REFUSED, Status.TIMED_OUT, Status.ERROR, Status.FAILED)
"""The statuses that are counted by their own name, besides `abstained`."""


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


def load_answers(store: Store, run: Run, items: ItemTable, indices: range) -> dict[int, Answer]:
    """The answers of one run to the items at these positions of the table, by position."""
    table, names = schema.answers, schema.answers.c.keys()
    found: dict[int, Answer] = {}
    with store.reading() as connection:
        for numbers in _chunks(items, indices):
            query = select(table).where(schema.repetition_of(table, run.id), table.c.item.in_(numbers))
            for values in driver_rows(connection, query):
                row = dict(zip(names, values, strict=True))
                position = int(items.row_of[row["item"]])
                found[position] = answer_from_row(items.ids[position], row)
    return found


def load_scores(store: Store, run: Run, items: ItemTable, rows: range) -> dict[int, list[Score]]:
    """The scores of one run for the items at these positions of the table, by position, in the order of metric and scorer."""
    table, names = schema.scores, ("metric", "value", "scorer", "label", "judgement_key")
    found: dict[int, list[Score]] = {}
    with store.reading() as connection:
        for numbers in _chunks(items, rows):
            query = (
                select(table.c.item, *(table.c[name] for name in names))
                .where(schema.repetition_of(table, run.id), table.c.item.in_(numbers))
                .order_by(table.c.metric, table.c.scorer)
            )
            for number, *values in driver_rows(connection, query):
                position = int(items.row_of[number])
                score = Score(item_id=items.ids[position], **dict(zip(names, values, strict=True)))
                found.setdefault(position, []).append(score)
    return found


def status_counts(store: Store, run: Run, items: ItemTable) -> dict[str, int]:
    """The number of answers of one run, of all repetitions, by outcome: `readable` and `unreadable` answers, those that a submission lacks
    (`not_submitted`), `refused`, `timed_out`, `error`, `failed`, `not_asked`, `abstained`, and `unsupported` (the system
    does not support them)."""
    asked, total = repeats_of(run.settings), Counter[str]()
    for number, outcomes in enumerate(load_repeated_outcomes(store, run, items)):
        found = _status_counts(outcomes)
        later = {"not_asked": 0, "unsupported": 0} if number >= max(1, asked) else {}  # there, and no longer asked for
        total.update(found | later)
    return dict(total)


def _status_counts(outcomes: Outcomes) -> dict[str, int]:
    answered = outcomes.where(Status.ANSWERED)
    return {
        "readable": int(np.sum(answered & outcomes.readable)),
        "unreadable": int(np.sum(answered & ~outcomes.readable & outcomes.submitted)),
        "not_submitted": int(np.sum(answered & ~outcomes.submitted)),
        **{status.value: int(np.sum(outcomes.where(status))) for status in _ENDINGS},
        "not_asked": int(np.sum(~outcomes.asked & ~outcomes.unsupported)),
        "abstained": int(np.sum(outcomes.where(Status.ABSTAINED))),
        "unsupported": int(np.sum(outcomes.unsupported)),
    }


def _chunks(items: ItemTable, rows: range) -> Iterator[Sequence[int]]:
    """The store's numbers of the items at these positions of the table, in parts."""
    numbers: list[int] = np.flatnonzero((items.row_of >= rows.start) & (items.row_of < rows.stop)).tolist()
    return in_parts(numbers)


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
        score = order_estimates(list(self.compared.values()), self.groups, plan=Resampling(draws=draws, seed=seed))[1]
        return MetricEstimate(PARTIAL, score.estimate)

    @property
    def _counted(self) -> dict[str, OrderComparison]:
        return {name: one.counted("wrong") for name, one in self.compared.items()}

    def with_rationales(
        self, scorer: str, *, weights: tuple[float, float] = WEIGHTS, draws: int = 2000, seed: int = 0
    ) -> list[MetricEstimate]:
        """Mean F1 by one of the scorers in `f1`, the overall score, and the association of F1 with the order."""
        f1, orders = self.f1[scorer], self._counted
        scores = rationale_estimates(orders, self.groups, f1, weights=weights, plan=Resampling(draws=draws, seed=seed))
        return [*scores, tracking_estimate(orders, self.groups, f1, plan=Resampling(draws=draws, seed=seed))]


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
    answers = load_answers(store, run, table, range(len(table.ids)))
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
            for position in np.flatnonzero(series.scored)
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
