"""From an order to the answer that states it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from proctor.core import Answer, Item, ParseError, Usage
from proctor.systems.keyframes.labels import read_labels
from proctor.systems.keyframes.shown import ordering_labels
from proctor.systems.wording import say

__all__ = ["MOST_RATIONALE", "clipped", "in_turn", "order_answer"]

MOST_RATIONALE = 8000
"""Characters of a rationale; what is longer is cut, and ends with "…"."""


def clipped(text: str, most: int = 300) -> str:
    """The text in one line, at most so long.

    >>> clipped("hands  on\\nthe chest", 8)
    'hands o…'
    """
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def in_turn(order: Sequence[str], seen: Mapping[str, str], steps: Mapping[str, str]) -> str:
    """A rationale put together from notes: of each label in turn what is seen, and which step that is.

    >>> in_turn(["B", "A"], {"B": "Hands on the chest.", "A": ""}, {"B": "compressions"})
    'First B: Hands on the chest (compressions). Then A: nothing was noted.'
    """
    turns = []
    for place, label in enumerate(order):
        words, step = seen.get(label, "").strip().rstrip("."), steps.get(label, "")
        shown = f"{words} ({step})" if words and step else words or step or "nothing was noted"
        turns.append(f"{'Then' if place else 'First'} {label}: {shown}.")
    return " ".join(turns)


def order_answer(
    item: Item, order: Sequence[str], *, rationale: str, usage: Usage, extra: Mapping[str, JsonValue]
) -> Answer:
    """The answer that states `order` as it is: what it misses, repeats or invents stays so.

    The rationale stands in `extra["rationale"]`, where recorded predictions have it, too, and is "" where the method
    has none; faults of the order in
    `extra["labels"]`. An order of fewer than two labels states none: then `parsed` is None, and `problem` says so.
    """
    faults = read_labels(order, ordering_labels(item)).faults()
    kept = rationale.strip()
    kept = kept if len(kept) <= MOST_RATIONALE else kept[: MOST_RATIONALE - 1] + "…"
    more: dict[str, JsonValue] = {
        "rationale": kept,
        **({"labels": faults} if faults else {}),
        **extra,
    }
    text, parsed, problem = _stated(item, list(order))
    return Answer(item_id=item.id, text=text, parsed=parsed, problem=problem, usage=usage, extra=more)


def _stated(item: Item, order: list[str]) -> tuple[str, JsonValue, str]:
    """Text, value, and why there is no value; labels that spell no label are told as JSON, which keeps them."""
    value: JsonValue = [*order]
    text = say(item.answer, value)
    try:
        parsed = item.answer.parse(text)
    except ParseError as error:
        return text, None, str(error)
    if parsed == value:
        return text, value, ""
    return json.dumps(order, ensure_ascii=False), value, ""
