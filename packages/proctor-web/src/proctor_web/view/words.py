"""How values are written on the pages of a view."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from pydantic import JsonValue

from proctor.core import DASH, Item, count_of, seconds, shorten
from proctor.core.formats import ChoiceFormat, option_letters
from proctor.results import AnswerState, RunColumn

MARKS = {
    AnswerState.RIGHT: "✓",
    AnswerState.PARTIAL: "◐",
    AnswerState.WRONG: "✗",
    AnswerState.ABSTAINED: "✗",
    AnswerState.CUT_OFF: "✗",
    AnswerState.UNREADABLE: "✗",
    AnswerState.REFUSED: "✗",
    AnswerState.TIMED_OUT: "✗",
    AnswerState.ERROR: "✗",
    AnswerState.NOT_SUBMITTED: "✗",
}
"""The sign of each state; of what is missing it is ○."""

NOT_COUNTED = {
    AnswerState.FAILED: "failed, not counted as wrong",
    AnswerState.UNSCORED: "not scored yet",
    AnswerState.NOT_ASKED: "not asked yet",
    AnswerState.UNSUPPORTED: "not supported",
}

_LEAST_PREFIX = 24


def mark_of(state: AnswerState) -> str:
    """The sign of a state."""
    return MARKS.get(state, "○")


def kind_of(state: AnswerState) -> str:
    """The class of a state on a page: right, partial, wrong or missing."""
    if state in {AnswerState.RIGHT, AnswerState.PARTIAL}:
        return state.value
    return "wrong" if state in MARKS else "missing"


def state_words(state: AnswerState) -> str:
    """A state in words: what counts as wrong by the system's own fault says so."""
    if state in NOT_COUNTED:
        return NOT_COUNTED[state]
    wrong = kind_of(state) == "wrong" and state is not AnswerState.WRONG
    return f"{state.label}, counts as wrong" if wrong else state.label


def said(value: JsonValue) -> str:
    """A parsed value or a reference.

    >>> said("B"), said(["A", "C"]), said(None), said({"start": 1.5})
    ('B', 'A, C', '–', '{"start": 1.5}')
    """
    if value is None:
        return DASH
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value, ensure_ascii=False)


def key_of(item: Item) -> str:
    """The reference of an item, with others that are accepted."""
    if item.reference is None or not item.has_answer:
        return ""
    return " or ".join(said(one) for one in (item.reference.answer, *item.reference.accepted))


def options_of(item: Item) -> list[tuple[str, str, bool]]:
    """The options of an item: letter, text, whether it is right."""
    keys: set[str] = set()
    if isinstance(item.answer, ChoiceFormat) and item.reference is not None:
        keys = {str(one) for one in (item.reference.answer, *item.reference.accepted)}
    letters = option_letters(len(item.options))
    return [(letter, option, letter in keys) for letter, option in zip(letters, item.options, strict=True)]


def without_beginning(texts: Sequence[str]) -> list[str]:
    """Texts without the beginning that all share, at a word, so that what differs is seen.

    >>> without_beginning(["You see frames of a procedure: which?", "You see frames of a procedure: when?"])
    ['… which?', '… when?']
    >>> without_beginning(["Which?", "When?"])
    ['Which?', 'When?']
    """
    if len(set(texts)) < 2:
        return list(texts)
    first, last = min(texts), max(texts)  # what these two share, all share
    alike = next(
        (position for position, both in enumerate(zip(first, last, strict=False)) if both[0] != both[1]), len(first)
    )
    shared = first[:alike].rpartition(" ")[0]
    if len(shared) < _LEAST_PREFIX:
        return list(texts)
    return [f"… {text[len(shared) :].strip()}" for text in texts]


def duration(amount: float | None) -> str:
    """Seconds until something is done, roughly.

    >>> duration(None), duration(20), duration(200), duration(9000)
    ('', 'less than 1 min left', '4 min left', '2 h 30 min left')
    """
    if amount is None:
        return ""
    minutes = math.ceil(amount / 60)
    if amount < 45:
        return "less than 1 min left"
    return f"{minutes} min left" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min left"


def seconds_or_dash(amount: float | None) -> str:
    """Seconds, or a dash where they are not known."""
    return DASH if amount is None else seconds(amount)


def excerpt(text: str, limit: int = 140) -> str:
    """The beginning of a text in one line."""
    return shorten(" ".join(text.split()), limit)


def groups_words(items: int, groups: int) -> str:
    """Items and groups in words."""
    return f"{count_of(items, 'item')} in {count_of(groups, 'group')}"


def column_words(column: RunColumn) -> list[str]:
    """A run's repetition in words."""
    again = [f"repetition {column.repetition + 1}"] if column.repetition else []
    return [column.run.system, column.run.condition, *again]
