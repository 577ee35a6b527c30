"""Right answers that occur again in the same group: who has read the other questions knows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from proctor.build.audit.features import phrases_of, rows_by_group, words
from proctor.build.audit.records import Repeats
from proctor.core import Item
from proctor.core.formats import ChoiceFormat, FreeTextFormat, option_letters

__all__ = ["find_repeats"]


def find_repeats(items: Sequence[Item]) -> tuple[Repeats, ...]:
    """The items, in their order, whose right answer occurs in another item of the group."""
    answers = [_right_answer(item) for item in items]
    found: dict[int, Repeats] = {}
    for rows in rows_by_group(items).values():
        right = Counter(answers[row] for row in rows if answers[row])
        sizes = {len(answer.split()) for answer in right}
        wrong = {row: _options(items[row]) - {answers[row]} for row in rows}
        asked = {row: phrases_of(items[row].question, sizes) & right.keys() for row in rows}
        offered = Counter(phrase for phrases in wrong.values() for phrase in phrases)
        mentioned = Counter(phrase for phrases in asked.values() for phrase in phrases)
        for row in rows:
            answer = answers[row]
            repeats = Repeats(
                item_id=items[row].id,
                as_right=right[answer] - 1,
                as_wrong=offered[answer],
                in_question=mentioned[answer] - (answer in asked[row]),
            )
            if answer and (repeats.as_right or repeats.as_wrong or repeats.in_question):
                found[row] = repeats
    return tuple(found[row] for row in sorted(found))


def _right_answer(item: Item) -> str:
    """Its words, joined by spaces; empty where the format's answers are no words of the item's own."""
    if item.reference is None:
        return ""
    key = item.reference.answer
    if isinstance(item.answer, ChoiceFormat):
        return _plain(item.options[option_letters(len(item.options)).index(str(key))])
    return _plain(str(key)) if isinstance(item.answer, FreeTextFormat) else ""


def _options(item: Item) -> set[str]:
    return {_plain(option) for option in item.options}


def _plain(text: str) -> str:
    return " ".join(words(text))
