"""One item with what every run said to it."""

from __future__ import annotations

from proctor.results import STATES, AnswerState, items_at, load_excerpts
from proctor_web.view.answers import excerpt_data
from proctor_web.view.one_answer import facets_of
from proctor_web.view.query import answer_path
from proctor_web.view.site import Asked, Page
from proctor_web.view.words import (
    column_words,
    excerpt,
    key_of,
    kind_of,
    mark_of,
    options_of,
    said,
    seconds_or_dash,
    state_words,
)


def one_item(asked: Asked) -> Page:
    """One item. Raises `InputError` for an unknown id."""
    index, store = asked.state.index, asked.view.store
    position = index.item_position(asked.segments[3])
    item = items_at(store, index, [position])[position]
    numbers = [
        number
        for number, column in enumerate(index.columns)
        if STATES[int(column.state[position])] is not AnswerState.UNSUPPORTED
    ]
    found = load_excerpts(store, index, [index.row(position, number) for number in numbers])
    lines = [
        {
            "kind": kind_of(one.state),
            "mark": mark_of(one.state),
            "words": state_words(one.state),
            "system": " / ".join(column_words(one.column)),
            "said": excerpt(said(one.parsed), 80),
            "text": excerpt(one.text or one.reason, 200),
            "seconds": seconds_or_dash(one.seconds),
            "href": answer_path(item.id, one.column),
        }
        for one in found
    ]
    values = [one.parsed for one in found]
    options = [
        (letter, text, right, sum(letter in one if isinstance(one, list) else one == letter for one in values))
        for letter, text, right in options_of(item)
    ]
    context = {
        "item": item,
        "lines": lines,
        "options": options,
        "key": key_of(item),
        "facets": facets_of(asked, position),
        "asked": len([one for one in found if one.state is not AnswerState.NOT_ASKED]),
    }
    rows = [excerpt_data(one) for one in found]
    return Page("item", context, {"item": item.model_dump(mode="json"), "answers": rows}, rows, "items")
