"""The orders of stored runs, held against the references: for what a mark per item does not say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from proctor.core import Answer, FailedPolicy, Item, Status
from proctor.core.formats import OrderingFormat
from proctor.metrics.marks import Mark
from proctor.metrics.ordering import (
    PARTIAL,
    WEIGHTS,
    Comparison,
    compared,
    order_marks,
    rationale_marks,
    tracking_mark,
)
from proctor.metrics.text import RATIONALE_F1, gives_rationales
from proctor.runs.report_data import load_answers
from proctor.runs.store import Run, Store
from proctor.runs.table import ItemTable, load_series

__all__ = ["OrderedRun", "load_orders"]


@dataclass(frozen=True)
class OrderedRun:
    """One run's orders by item (`compared`), each item's group, and where rationales were scored by code their F1 by
    scorer and item. `lacking` items failed or were not asked: under the policy "wrong" they hold no order (and their
    rationales are worth 0), under "exclude" they are `left_out`; `policy` is empty where nothing lacks. `has_rationales`
    says whether the run was asked for rationales, or kept some."""

    run: Run
    compared: dict[str, Comparison]
    groups: tuple[str, ...]
    f1: dict[str, dict[str, float]]
    lacking: int
    policy: str = ""
    has_rationales: bool = False

    @property
    def left_out(self) -> int:
        """Items that are in no figure."""
        return 0 if self.policy == FailedPolicy.WRONG else self.lacking

    def whole(self, *, draws: int = 2000, seed: int = 0) -> list[Mark]:
        """The metrics of orders over all of them, with intervals by group."""
        return order_marks(list(self._counted.values()), self.groups, draws=draws, seed=seed)

    @property
    def invalid(self) -> int:
        """How many of the orders miss, repeat or invent a label; they are wrong in every figure."""
        return sum(not one.valid and (one.answered or bool(one.unknown)) for one in self.compared.values())

    def partial(self, *, draws: int = 2000, seed: int = 0) -> Mark:
        """Pairwise accuracy with partial credit for invalid orders: the pairs that they have in order count."""
        mark = order_marks(list(self.compared.values()), self.groups, draws=draws, seed=seed)[1]
        return Mark(PARTIAL, mark.estimate)

    @property
    def _counted(self) -> dict[str, Comparison]:
        return {name: one.counted("wrong") for name, one in self.compared.items()}

    def with_rationales(
        self,
        scorer: str,
        *,
        weights: tuple[float, float] = WEIGHTS,
        draws: int = 2000,
        seed: int = 0,
    ) -> list[Mark]:
        """Mean F1, the overall score, and whether F1 goes with the order, by one of the scorers in `f1`."""
        f1, orders = self.f1[scorer], self._counted
        marks = rationale_marks(orders, self.groups, f1, weights=weights, draws=draws, seed=seed)
        return [*marks, tracking_mark(orders, self.groups, f1, draws=draws, seed=seed)]


def load_orders(
    store: Store,
    runs: Sequence[Run],
    table: ItemTable,
    items: Mapping[str, Item],
    policy: FailedPolicy = FailedPolicy.WRONG,
) -> list[OrderedRun]:
    """The runs that have an order which counts; `items` by id hold the references."""
    found = [_load(store, run, table, items, policy) for run in runs]
    return [one for one in found if one.compared]


def _load(
    store: Store, run: Run, table: ItemTable, items: Mapping[str, Item], policy: FailedPolicy
) -> OrderedRun:
    answers = load_answers(store, run, table, len(table.ids))
    orders: dict[str, Comparison] = {}
    groups, lacking = [], set()
    asked = [
        (place, name)
        for place, name in enumerate(table.ids)
        if isinstance(items[name].answer, OrderingFormat) and items[name].reference is not None
    ]
    if not any(place in answers for place, _ in asked):
        asked = []  # the run is one on other questions
    for place, name in asked:
        item, answer = items[name], answers.get(place)
        if answer is None or answer.status is Status.FAILED:
            lacking.add(name)
            if policy is FailedPolicy.EXCLUDE:
                continue
            answer = Answer(item_id=name)
        if item.reference is not None:
            orders[name] = compared(item.reference, answer)
        groups.append(item.group)
    f1 = {
        one.scorer: {
            table.ids[place]: float(one.values[place])
            for place in np.flatnonzero(one.marked)
            if table.ids[place] in orders
        }
        for one in load_series(store, run, table)
        if one.metric == RATIONALE_F1.name
    }
    scored = {
        name: by | dict.fromkeys(lacking & orders.keys(), RATIONALE_F1.worst) for name, by in f1.items() if by
    }
    return OrderedRun(
        run,
        orders,
        tuple(groups),
        scored,
        len(lacking),
        policy.value if lacking else "",
        gives_rationales(answers.values()),
    )
