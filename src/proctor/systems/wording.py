"""A value said in the words of its answer format, so that the format reads the same value back."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import JsonValue

from proctor.core import Answer, Item
from proctor.core.formats import (
    AnswerFormat,
    BinaryFormat,
    FreeTextFormat,
    OrderingFormat,
    PatternFormat,
    PercentageFormat,
    RatingsFormat,
    StrictFormat,
    TimestampsFormat,
)

__all__ = ["reply", "say"]


def say(form: AnswerFormat, value: JsonValue) -> str:
    """The text that states a canonical value; times to the millisecond (strict ones to the second),
    percentages to 4 decimals. A strict format gets the value alone.

    >>> from proctor.core.formats import ClassesFormat
    >>> say(TimestampsFormat(several=True), [30.0, 3665.25])
    'Answer: 00:00:30.000, 01:01:05.250'
    >>> say(ClassesFormat(classes=("clip", "sponge")), [])
    'Answer: none'
    """
    if isinstance(form, FreeTextFormat | PatternFormat):
        return str(value)
    if isinstance(form, RatingsFormat):
        return json.dumps(value)
    if isinstance(form, StrictFormat) and form.strict:
        return _words(form, value)
    return f"Answer: {_words(form, value)}"


def reply(item: Item, value: JsonValue, **extra: JsonValue) -> Answer:
    """The answer that states `value`, with the value that the item's format reads from its text.

    Raises `ParseError` where the value is not of the item's format.
    """
    text = say(item.answer, value)
    parsed = item.answer.parse(text, item.options)
    return Answer(item_id=item.id, text=text, parsed=parsed, extra=extra)


def _words(form: AnswerFormat, value: JsonValue) -> str:
    if isinstance(form, BinaryFormat):
        return "yes" if value else "no"
    if isinstance(form, PercentageFormat):
        return f"{float(str(value)):.4f}".rstrip("0").rstrip(".") + "%"
    if isinstance(value, list):
        if isinstance(form, TimestampsFormat):
            clocks = [_clock(float(str(moment))) for moment in value]
            return ", ".join(clock[:8] if form.strict else clock for clock in clocks)
        return _listed(value, " > " if isinstance(form, OrderingFormat) else ", ")
    return str(value)


def _listed(names: Sequence[JsonValue], joint: str) -> str:
    return joint.join(str(name) for name in names) or "none"


def _clock(seconds: float) -> str:
    whole, millis = divmod(round(seconds * 1000), 1000)
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02d}:{minute:02d}:{second:02d}.{millis:03d}"
