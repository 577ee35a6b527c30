"""Values written in their answer format, so that the format reads the same value back; forms that replies are requested
in; and rationales in replies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, Field, JsonValue, create_model

from proctor.core import Answer, Item
from proctor.core.formats import (
    AnswerFormat,
    FreeTextFormat,
    PatternFormat,
    RatingsFormat,
    StrictFormat,
    json_values,
    without_thoughts,
)


def format_value(form: AnswerFormat, value: JsonValue) -> str:
    """A canonical value as text: times to the millisecond (strict formats: to the second), percentages to 4 decimals.
    A strict format gets the value without "Answer:".

    >>> from proctor.core.formats import ClassesFormat, TimestampsFormat
    >>> say(TimestampsFormat(several=True), [30.0, 3665.25])
    'Answer: 00:00:30.000, 01:01:05.250'
    >>> say(ClassesFormat(classes=("clip", "sponge")), [])
    'Answer: none'
    """
    alone = isinstance(form, FreeTextFormat | PatternFormat | RatingsFormat)
    if alone or (isinstance(form, StrictFormat) and form.strict):
        return form.write(value)
    return f"Answer: {form.write(value)}"


def reply(item: Item, value: JsonValue, **extra: JsonValue) -> Answer:
    """The answer that states `value`, parsed by the item's format. Raises `ParseError` for a value of another format."""
    text = format_value(item.answer, value)
    parsed = item.answer.parse(text, item.options)
    return Answer(item_id=item.id, text=text, parsed=parsed, extra=extra)


Rationale = Literal["", "first", "last"]
"""Where a prompt asks for a rationale: not at all, before the answer, or after it."""


def order_instruction(labels: Sequence[str]) -> str:
    """How to write an order of these labels as JSON. There is no example order: models repeat it."""
    return (
        f"Give all {len(labels)} labels ({', '.join(labels)}) from first to last, each once, "
        'as the list "order" of a JSON object.'
    )


@lru_cache(maxsize=4096)
def order_form(labels: tuple[str, ...], rationale: Rationale = "") -> type[BaseModel]:
    """The form of a reply with an order: a list of as many of the labels as there are, and where a rationale is asked for
    a text, in the place in which the prompt names it, since models write the fields in their order.

    It is requested, and never used to read: a server may ignore it. That no label comes twice can't be requested, since
    servers refuse schemas with `uniqueItems`.
    """
    size = len(labels)
    items: dict[str, JsonValue] = {"type": "string", "enum": [*dict.fromkeys(labels)]}
    fields: list[tuple[str, Any]] = [
        ("order", (list[str], Field(min_length=size, max_length=size, json_schema_extra={"items": items})))
    ]
    if rationale:
        fields.insert(0 if rationale == "first" else 1, ("rationale", (str, ...)))
    return create_model("OrderReply", __doc__="An order of labels, from first to last.", **dict(fields))


def asks_for_rationale(prompt: str, instruction: str) -> Rationale:
    """Where a prompt asks for a rationale (it contains the word), compared with its instruction for the answer."""
    asked = prompt.casefold()
    found = asked.find("rationale")
    if found < 0:
        return ""
    return "first" if found < asked.find(instruction.casefold()) else "last"


_MARK = r"[*_#`> \t]*"
_RATIONALE = re.compile(
    rf"^{_MARK}(?:rationale|reasoning|explanation|reasons?){_MARK}[:：][*_`]*", re.IGNORECASE | re.MULTILINE
)
_ANSWER = re.compile(rf"^{_MARK}(?:final\s+|correct\s+)?(?:answer|order){_MARK}[:：]", re.IGNORECASE | re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]{2,}")
_MIN_WORDS = 3
_MAX_READ = 20_000  # characters, the same limit as in answer formats
_KEYS = ("rationale", "reasoning", "explanation", "reason")
_HALF = re.compile("[\ud800-\udfff]")  # of a character, which can't be stored


def rationale_in(text: str) -> str:
    """The rationale of a reply with an order; "" where there is only an order.

    The text after "Rationale:" up to the answer's line; else the text around that line; in a JSON object, also in one
    that is cut off, its field `rationale`. Thoughts do not count, nor does a text of fewer than three words.

    >>> rationale_in("Rationale: the chest is bared before the pads are placed.\\nAnswer: B > A")
    'the chest is bared before the pads are placed.'
    >>> rationale_in("Answer: B > A\\nFirst the pads are placed.")
    'First the pads are placed.'
    >>> rationale_in('{"rationale": "The pads come last.", "order": ["B", "A"]}')
    'The pads come last.'
    >>> rationale_in("Answer: B > A")
    ''
    """
    visible = without_thoughts(text)[:_MAX_READ]
    stated = _of_json(visible)
    if stated is not None:
        return _HALF.sub("", stated)
    start = _RATIONALE.search(visible)
    if start is not None:
        rest = visible[start.end() :]
        end = _ANSWER.search(rest)
        found = rest[: end.start()] if end is not None else rest
    else:
        found = _without_answer(visible)
    words = found.strip().rstrip("*_#` \n")
    return words if len(_WORD.findall(words)) >= _MIN_WORDS else ""


def _without_answer(text: str) -> str:
    """The text without the last line that states an answer."""
    lines = list(_ANSWER.finditer(text))
    if not lines:
        return text
    before = text[: lines[-1].start()]
    _, _, after = text[lines[-1].end() :].lstrip().partition("\n")
    return "\n".join(part.strip() for part in (before, after) if part.strip())


def _of_json(text: str) -> str | None:
    """The rationale in a reply with a JSON object, whole or cut off; None for a text without one."""
    objects = [value for value in json_values(text) if isinstance(value, dict)]
    for value in reversed(objects):
        given = {key.casefold(): one for key, one in value.items()}
        if (stated := next((given[key] for key in _KEYS if key in given), None)) is not None:
            return _joined(stated)
    alone = re.sub(r"^```(?:json)?\s*", "", text)
    return "" if objects and alone.startswith("{") else None


def _joined(value: JsonValue) -> str:
    """A rationale in parts, picture by picture, as one text."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(_joined, value)))
    if isinstance(value, dict):
        return "\n".join(f"{name}: {said}" for name, one in value.items() if (said := _joined(one)))
    return value.strip() if isinstance(value, str) else ""
