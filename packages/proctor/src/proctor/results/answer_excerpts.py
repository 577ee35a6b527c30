"""What a list of answers shows of each: read for the rows of one page alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue
from sqlalchemy import func, select, tuple_

from proctor.core import Item
from proctor.results.answer_index import STATES, AnswerIndex, AnswerState, RunColumn
from proctor.runs import Store, driver_rows, in_parts, schema

_TEXT = 240


@dataclass(frozen=True)
class AnswerExcerpt:
    """One answer in a list: its row in the index, the item, the run and repetition, how it ended, the parsed value, the
    beginning of the reply, the reason or problem, and the model's seconds (None: not measured)."""

    row: int
    item: Item
    column: RunColumn
    state: AnswerState
    value: float | None
    parsed: JsonValue
    text: str
    reason: str
    seconds: float | None


def items_at(store: Store, index: AnswerIndex, places: Iterable[int]) -> dict[int, Item]:
    """The items at these places of an index, by place."""
    numbers = {int(index.items.number[place]): place for place in places}
    table, found = schema.items, dict[int, Item]()
    with store.reading() as connection:
        for part in in_parts(sorted(numbers)):
            for number, body in driver_rows(connection, select(table.c.id, table.c.body).where(table.c.id.in_(part))):
                found[numbers[number]] = Item.model_validate_json(body)
    return found


def load_excerpts(store: Store, index: AnswerIndex, rows: Sequence[int]) -> list[AnswerExcerpt]:
    """The answers at these rows of an index, in their order; one that is not there has no text."""
    located = {row: index.located(row) for row in rows}
    items = items_at(store, index, {place for place, _ in located.values()})
    keys = {
        (column.run.id, int(index.items.number[place]), column.repetition): row
        for row, (place, number) in located.items()
        for column in [index.columns[number]]
    }
    table = schema.answers
    columns = [table.c[name] for name in ("run", "item", "repetition", "parsed", "reason", "problem", "model_s")]
    known = {}
    with store.reading() as connection:
        for part in in_parts(sorted(keys), 200):
            query = select(*columns, func.substr(table.c.text, 1, _TEXT)).where(
                tuple_(table.c.run, table.c.item, table.c.repetition).in_(part)
            )
            for run, item, repetition, *rest in driver_rows(connection, query):
                known[keys[run, item, repetition]] = rest
    found = []
    for row, (place, number) in located.items():
        column = index.columns[number]
        parsed, reason, problem, seconds, text = known.get(row, ("null", "", "", None, ""))
        value = float(column.value[place])
        found.append(
            AnswerExcerpt(
                row=row,
                item=items[place],
                column=column,
                state=STATES[int(column.state[place])],
                value=None if value != value else value,  # noqa: PLR0124 - NaN
                parsed=json.loads(parsed),
                text=text,
                reason=reason or problem,
                seconds=seconds,
            )
        )
    return found
