"""Items: how many systems have each right, the hardest first; and one item with all answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from proctor.core import count_of, percent, plain_name
from proctor.results import RESULTS, AnswerFilter, items_at
from proctor.runs import BASELINES
from proctor_web.view.answers import PAGE_ROWS, filters
from proctor_web.view.query import ITEM_SORTS, path_of
from proctor_web.view.site import Asked, Page
from proctor_web.view.words import excerpt, key_of, without_beginning


def items(asked: Asked) -> Page:
    """The items, those that fewest runs have right first: there wrong keys hide. Systems and conditions of the address say
    which runs count (by default all that are no baselines, under the first condition), everything else which items are
    listed."""
    index, query, store = asked.state.index, asked.query, asked.view.store
    models = tuple(name for name in index.systems if name not in BASELINES)
    conditions = query.wanted.conditions or tuple(index.conditions[:1])
    of_runs = AnswerFilter(systems=query.wanted.systems or models, conditions=conditions)
    kept = index.mask(store, of_runs)
    listed = index.mask(store, replace(query.wanted, systems=(), conditions=(), with_unasked=True)).any(axis=1)
    right = _count(index.columns, kept, "right")
    wrong = _count(index.columns, kept, "wrong") + _count(index.columns, kept, "partial")
    missing = _count(index.columns, kept, "missing")
    decided = right + wrong
    share = np.divide(right, decided, out=np.full(len(right), np.nan), where=decided > 0)
    positions = np.flatnonzero(listed)
    sort = query.sort if query.sort in ITEM_SORTS else "hardest"
    keys = {"hardest": share, "easiest": -share, "split": np.abs(share - 0.5)}[sort][positions]
    positions = positions[np.argsort(np.where(np.isnan(keys), np.inf, keys), kind="stable")]
    start = int(query.after) if query.after.isdigit() else 0
    here = positions[start : start + PAGE_ROWS].tolist()
    known = items_at(store, index, here)
    questions = without_beginning([known[position].question for position in here])
    rows: list[dict[str, Any]] = [
        {
            "item": known[position].id,
            "group": known[position].group,
            "question": excerpt(question),
            "reference": excerpt(key_of(known[position]), 60),
            "right": int(right[position]),
            "wrong": int(wrong[position]),
            "missing": int(missing[position]),
            "share": percent(None if np.isnan(share[position]) else float(share[position])),
            "marks": [
                (name, int(count[position]))
                for name, count in (("right", right), ("wrong", wrong), ("missing", missing))
            ],
            "href": path_of("b", asked.state.name, "items", known[position].id),
            "flags": [plain_name(name) for name, values in index.items.flags.items() if values[position] == "yes"],
        }
        for position, question in zip(here, questions, strict=True)
    ]
    path = path_of("b", asked.state.name, "items")
    more = path + query.but(after=str(start + PAGE_ROWS)).text() if start + PAGE_ROWS < len(positions) else ""
    none_right = int(np.count_nonzero((right[positions] == 0) & (decided[positions] > 0)))
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
    plain = [{name: one for name, one in row.items() if name not in {"marks", "href"}} for row in rows]
    return Page("items", context, {"items": len(positions), "rows": plain}, plain, "items")


def _count(columns: Any, kept: Any, result: str) -> Any:
    """For each item, how many of the kept answers ended so."""
    total = np.zeros(len(kept), dtype=np.int64)
    for number, column in enumerate(columns):
        total += column.where(RESULTS[result]) & kept[:, number]
    return total
