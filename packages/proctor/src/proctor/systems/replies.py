"""Values written in their answer format, so that the format reads the same value back; and forms that replies are
requested in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, Field, JsonValue, create_model

from proctor.core import Answer, Item
from proctor.core.formats import AnswerFormat, StrictFormat


def format_value(form: AnswerFormat, value: JsonValue) -> str:
    """A canonical value as text: times to the millisecond (strict formats: to the second), percentages to 4 decimals.
    A strict format gets the value without "Answer:".

    >>> from proctor.core.formats import ClassesFormat, TimestampsFormat
    >>> format_value(TimestampsFormat(several=True), [30.0, 3665.25])
    'Answer: 00:00:30.000, 01:01:05.250'
    >>> format_value(ClassesFormat(classes=("clip", "sponge")), [])
    'Answer: none'
    """
    alone = form.kind in {"free_text", "pattern", "ratings"}
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
def order_form(labels: tuple[str, ...], rationale: Rationale = "", *, confidence: bool = False) -> type[BaseModel]:
    """The form of a reply with an order: a list of as many of the labels as there are, and where a rationale is asked for
    a text, in the position in which the prompt names it, since models write the fields in their order; with `confidence` at
    last a whole number.

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
    fields += [("confidence", (int, ...))] if confidence else []
    return create_model("OrderReply", __doc__="An order of labels, from first to last.", **dict(fields))


def asks_for_rationale(prompt: str, instruction: str) -> Rationale:
    """Where a prompt asks for a rationale (it contains the word), compared with its instruction for the answer."""
    asked = prompt.casefold()
    found = asked.find("rationale")
    if found < 0:
        return ""
    return "first" if found < asked.find(instruction.casefold()) else "last"
