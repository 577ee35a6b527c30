"""What a list of answers shows of each: read for the rows of one page alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue
from sqlalchemy import func, select

from proctor.core import Item
from proctor.results.answer_index import AnswerIndex, RunColumn
from proctor.results.answer_states import STATES, AnswerState
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


def items_at(store: Store, index: AnswerIndex, positions: Iterable[int]) -> dict[int, Item]:
    """The items at these positions of an index, by position."""
    numbers = {int(index.items.number[position]): position for position in positions}
    table, found = schema.items, dict[int, Item]()
    with store.reading() as connection:
        for part in in_parts(sorted(numbers)):
            for number, body in driver_rows(connection, select(table.c.id, table.c.body).where(table.c.id.in_(part))):
                found[numbers[number]] = Item.model_validate_json(body)
    return found


def load_excerpts(store: Store, index: AnswerIndex, rows: Sequence[int]) -> list[AnswerExcerpt]:
    """The answers at these rows of an index, in their order; one that is not there has no text."""
    located = {row: index.located(row) for row in rows}
    items = items_at(store, index, {position for position, _ in located.values()})
    by_column: dict[int, dict[int, int]] = {}
    for row, (position, number) in located.items():
        by_column.setdefault(number, {})[int(index.items.number[position])] = row
    table = schema.answers
    columns = [table.c[name] for name in ("item", "parsed", "reason", "problem", "model_s")]
    query, known = select(*columns, func.substr(table.c.text, 1, _TEXT)), dict[int, list[Any]]()
    with store.reading() as connection:
        for number, by_item in by_column.items():
            column = index.columns[number]
            own = schema.repetition_of(table, column.run.id, column.repetition)
            for part in in_parts(sorted(by_item)):
                for item, *rest in driver_rows(connection, query.where(own, table.c.item.in_(part))):
                    known[by_item[item]] = rest
    found = []
    for row, (position, number) in located.items():
        column = index.columns[number]
        parsed, reason, problem, seconds, text = known.get(row, ("null", "", "", None, ""))
        value = float(column.value[position])
        found.append(
            AnswerExcerpt(
                row=row,
                item=items[position],
                column=column,
                state=STATES[int(column.state[position])],
                value=None if value != value else value,  # noqa: PLR0124 - NaN
                parsed=json.loads(parsed),
                text=text,
                reason=reason or problem,
                seconds=seconds,
            )
        )
    return found


def parsed_values(store: Store, index: AnswerIndex, position: int) -> dict[int, JsonValue]:
    """What every run's answer to the item at a position was read as, by column; None where it can't be read."""
    table = schema.answers
    runs = sorted({column.run.id for column in index.columns})
    own = table.c.run.in_(runs), table.c.item == int(index.items.number[position])
    with store.reading() as connection:
        rows = driver_rows(connection, select(table.c.run, table.c.repetition, table.c.parsed).where(*own))
    known = {(run, repetition): json.loads(parsed) for run, repetition, parsed in rows}
    return {
        number: known[column.run.id, column.repetition]
        for number, column in enumerate(index.columns)
        if (column.run.id, column.repetition) in known
    }
