"""Items: how many systems have each right, the hardest first; and one item with all answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import count_of, percent, plain_name
from proctor.results import RESULTS, AnswerFilter, items_at
from proctor.runs import BASELINES
from proctor_web.view.answers import PAGE_ROWS, filters
from proctor_web.view.query import ITEM_SORTS, path_of
from proctor_web.view.site import Asked, Page
from proctor_web.view.words import excerpt, key_of, without_beginning

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Counts:
    """For each item, how many of the runs that count have it right, not right, or lack it."""

    right: Ints
    wrong: Ints
    missing: Ints

    @cached_property
    def share(self) -> NDArray[np.float64]:
        """The share that has it right, of those with a result; NaN without one."""
        decided = self.right + self.wrong
        shares: NDArray[np.float64] = np.full(len(decided), np.nan)
        np.divide(self.right, decided, out=shares, where=decided > 0)
        return shares

    def ordered(self, positions: Ints, sort: str) -> Ints:
        """Items in an order of `ITEM_SORTS`; those without a result last."""
        keys = {"hardest": self.share, "easiest": -self.share, "split": np.abs(self.share - 0.5)}[sort][positions]
        return positions[np.argsort(np.where(np.isnan(keys), np.inf, keys), kind="stable")]


def items(asked: Asked) -> Page:
    """The items, those that fewest runs have right first: there wrong keys hide. Systems and conditions of the address say
    which runs count (by default all that are no baselines, under the first condition), everything else which items are
    listed."""
    index, query, store = asked.state.index, asked.query, asked.view.store
    models = tuple(name for name in index.systems if name not in BASELINES)
    conditions = query.wanted.conditions or tuple(index.conditions[:1])
    kept = index.mask(store, AnswerFilter(systems=query.wanted.systems or models, conditions=conditions))
    listed = index.mask(store, replace(query.wanted, systems=(), conditions=(), with_unasked=True)).any(axis=1)
    wrong = _count(index.columns, kept, "wrong") + _count(index.columns, kept, "partial")
    counts = Counts(_count(index.columns, kept, "right"), wrong, _count(index.columns, kept, "missing"))
    sort = query.sort if query.sort in ITEM_SORTS else "hardest"
    positions = counts.ordered(np.flatnonzero(listed), sort)
    start = int(query.after) if query.after.isdecimal() else 0
    rows = _rows(asked, positions[start : start + PAGE_ROWS].tolist(), counts)
    path = path_of("b", asked.state.name, "items")
    more = path + query.but(after=str(start + PAGE_ROWS)).text() if start + PAGE_ROWS < len(positions) else ""
    none_right = int(np.count_nonzero(counts.share[positions] == 0))
    systems = ", ".join(query.wanted.systems) or (count_of(len(models), "system") if models else "baselines")
    counted = f"{systems} under {', '.join(conditions)}" if conditions else "no run"
    context = {
        "rows": rows,
        "more": more,
        "filters": [one for one in filters(asked) if one.name != "result"],
        "sort": sort,
        "sorts": ITEM_SORTS,
        "count": f"{count_of(len(positions), 'item')}; {count_of(none_right, 'item')} that none has right. Counted: {counted}",
    }
    plain = [{name: one for name, one in row.items() if name != "href"} for row in rows]
    return Page("items", context, {"items": len(positions), "rows": plain}, plain, "items")


def _rows(asked: Asked, positions: list[int], counts: Counts) -> list[dict[str, Any]]:
    """The lines of the items at these positions."""
    index = asked.state.index
    known = items_at(asked.view.store, index, positions)
    questions = without_beginning([known[position].question for position in positions])
    return [
        {
            "item": known[position].id,
            "group": known[position].group,
            "question": excerpt(question),
            "reference": excerpt(key_of(known[position]), 60),
            "right": int(counts.right[position]),
            "wrong": int(counts.wrong[position]),
            "missing": int(counts.missing[position]),
            "share": percent(None if np.isnan(counts.share[position]) else float(counts.share[position])),
            "href": path_of("b", asked.state.name, "items", known[position].id),
            "flags": [plain_name(name) for name, values in index.items.flags.items() if values[position] == "yes"],
        }
        for position, question in zip(positions, questions, strict=True)
    ]


def _count(columns: Any, kept: Any, result: str) -> Any:
    """For each item, how many of the kept answers ended so."""
    total = np.zeros(len(kept), dtype=np.int64)
    for number, column in enumerate(columns):
        total += column.where(RESULTS[result]) & kept[:, number]
    return total
