"""The list of answers, with one of them opened beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proctor.core import InputError, count_of, plain_name, seconds, thousands
from proctor.results import REPETITION_DIFFERENCES, RESULTS, SORTS, AnswerExcerpt, AnswerIndex, Selected, load_excerpts
from proctor_web.view.one_answer import open_answer
from proctor_web.view.query import Query, answer_path, facet_name, path_of
from proctor_web.view.site import Asked, Page
from proctor_web.view.words import (
    column_words,
    excerpt,
    groups_words,
    key_of,
    kind_of,
    mark_of,
    said,
    state_words,
    without_beginning,
)

PAGE_ROWS = 50
_MOST_ROWS = 5000  # of data


@dataclass(frozen=True)
class Row:
    """One line of the list."""

    key: str
    href: str
    mark: str
    kind: str
    question: str
    said: str
    key_text: str
    about: str
    words: str


def answers(asked: Asked) -> Page:
    """The list of answers; with an item, system, condition and repetition in the address, that one opened beside it."""
    index, query, store = asked.state.index, asked.query, asked.view.store
    chosen = index.select(store, query.wanted, query.sort if query.sort in SORTS else "item")
    current = _addressed(asked)
    start = _start(index, chosen, query, current)
    rows = chosen.rows[start : start + PAGE_ROWS].tolist()
    excerpts = load_excerpts(store, index, rows)
    if current is None and rows and asked.value("part") != "rows":
        current = rows[0]
    opened = None if current is None or asked.value("part") == "rows" else open_answer(asked, chosen, current)
    lines = row_lines(asked, excerpts)
    after = row_key(index, rows[-1]) if start + PAGE_ROWS < len(chosen) and rows else ""
    context = {
        "rows": lines,
        "current": "" if current is None else row_key(index, current),
        "chosen": chosen,
        "count": count_words(chosen),
        "more": path_of("b", asked.state.name, "answers") + query.but(after=after).text() if after else "",
        "filters": filters(asked),
        "opened": opened,
        "is_one": _addressed(asked) is not None,
        "start": start,
        "list_href": path_of("b", asked.state.name, "answers") + query.but().text(),
    }
    data_rows = (
        load_excerpts(store, index, chosen.rows[start : start + _data_limit(asked)].tolist())
        if asked.value("format")
        else []
    )
    data = {
        "answers": len(chosen),
        "of": chosen.total,
        "items": chosen.items,
        "groups": chosen.groups,
        "rows": [excerpt_data(one) for one in data_rows],
        "opened": None if opened is None or not asked.segments[3:] else opened.data,
    }
    return Page("answers", context, data, data["rows"], "answers")  # type: ignore[arg-type]


def _data_limit(asked: Asked) -> int:
    return _MOST_ROWS if asked.value("format") else PAGE_ROWS


def count_words(chosen: Selected) -> str:
    """How many answers a filter keeps."""
    if not len(chosen):
        return "No answer fits. Loosen a filter, or clear all."
    return (
        f"{thousands(len(chosen))} of {count_of(chosen.total, 'answer')} · {groups_words(chosen.items, chosen.groups)}"
    )


def row_key(index: AnswerIndex, row: int) -> str:
    """A row in an address, which stays what it is while others are added: the item's number, the run's and the
    repetition."""
    position, number = index.located(row)
    column = index.columns[number]
    return f"{int(index.items.number[position])}.{column.run.id}.{column.repetition}"


def row_of(index: AnswerIndex, key: str) -> int | None:
    """The row of such a key; None where there is none."""
    try:
        number, run, repetition = (int(part) for part in key.split("."))
        position = int(index.items.row_of[number]) if 0 <= number < len(index.items.row_of) else -1
    except ValueError:
        return None
    for column, one in enumerate(index.columns):
        if position >= 0 and (one.run.id, one.repetition) == (run, repetition):
            return index.row(position, column)
    return None


def _start(index: AnswerIndex, chosen: Selected, query: Query, current: int | None) -> int:
    """Where the page of the list begins: after a row, or so that the opened one is on it."""
    row = row_of(index, query.after) if query.after else None
    position = None if row is None else chosen.position(row)
    if position is not None:
        return position + 1
    here = None if current is None else chosen.position(current)
    return 0 if here is None else here // PAGE_ROWS * PAGE_ROWS


def _addressed(asked: Asked) -> int | None:
    """The row in the address: …/answers/ITEM/SYSTEM/CONDITION/K."""
    rest = asked.segments[3:]
    if not rest:
        return None
    index = asked.state.index
    if len(rest) != 4 or not rest[3].isdigit():
        raise InputError("address", found="/".join(rest)[:80], expected="ITEM/SYSTEM/CONDITION/REPETITION")
    return index.row(index.item_position(rest[0]), index.column(rest[1], rest[2], int(rest[3])))


def row_lines(asked: Asked, excerpts: list[AnswerExcerpt]) -> list[Row]:
    """The lines of a list."""
    index, query = asked.state.index, asked.query.but()
    questions = without_beginning([one.item.question for one in excerpts])
    return [
        Row(
            key=row_key(index, one.row),
            href=answer_path(one.item.id, one.column) + query.text(),
            mark=mark_of(one.state),
            kind=kind_of(one.state),
            question=excerpt(question),
            said=excerpt(said(one.parsed) if one.parsed is not None else one.text or "–", 60),
            key_text=excerpt(key_of(one.item), 60) if kind_of(one.state) in {"wrong", "partial"} else "",
            about=" · ".join(filter(None, [one.item.id, *column_words(one.column), _seconds(one.seconds)])),
            words=state_words(one.state),
        )
        for one, question in zip(excerpts, questions, strict=True)
    ]


def _seconds(amount: float | None) -> str:
    return "" if amount is None else f"{seconds(amount)} s"


def excerpt_data(one: AnswerExcerpt) -> dict[str, Any]:
    """One answer of a list as data."""
    return {
        "item": one.item.id,
        "group": one.item.group,
        "system": one.column.run.system,
        "condition": one.column.run.condition,
        "repetition": one.column.repetition,
        "state": one.state.value,
        "value": one.value,
        "parsed": one.parsed if isinstance(one.parsed, str | int | float | None) else said(one.parsed),
        "reference": key_of(one.item),
        "reason": one.reason,
        "model_s": one.seconds,
        "text": one.text,
    }


@dataclass(frozen=True)
class Choice:
    """One way to filter: the name in the address, what it is called, its values (each with its words), and which one is
    set."""

    name: str
    label: str
    values: tuple[tuple[str, str], ...]
    chosen: str
    others: tuple[str, ...] = ()


def filters(asked: Asked) -> list[Choice]:
    """The filters of a list of answers; those that are set first among facets."""
    index, wanted = asked.state.index, asked.query.wanted
    several = len(index.systems) > 1 or wanted.systems
    found = []
    if several:
        found.append(_choice("system", "system", [(one, one) for one in index.systems], wanted.systems))
    if len(index.conditions) > 1 or wanted.conditions:
        found.append(_choice("condition", "condition", [(one, one) for one in index.conditions], wanted.conditions))
    states = [(name, name.replace("_", " ")) for name in RESULTS if name in wanted.results or _there(index, name)]
    found.append(_choice("result", "result", states, wanted.results))
    if index.repeated or wanted.differ:
        found.append(
            _choice("differ", "repetitions", list(REPETITION_DIFFERENCES.items()), tuple(filter(None, [wanted.differ])))
        )
    known = dict(wanted.facets)
    for name in sorted(index.facets, key=lambda name: name not in known):
        values = [(value, value) for value in index.facets[name]]
        found.append(_choice(facet_name(name), plain_name(name), values, tuple(filter(None, [known.get(name, "")]))))
    return found


def _there(index: AnswerIndex, result: str) -> bool:
    return any(column.count(*RESULTS[result]) for column in index.columns)


def _choice(name: str, label: str, values: list[tuple[str, str]], chosen: tuple[str, ...]) -> Choice:
    return Choice(name, label, tuple(values), chosen[0] if chosen else "", chosen[1:])
