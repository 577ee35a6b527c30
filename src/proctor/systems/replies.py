"""Values written in their answer format, so that the format reads the same value back; and rationales in replies."""

from __future__ import annotations

import json
import re

from pydantic import JsonValue

from proctor.core import Answer, Item
from proctor.core.formats import (
    AnswerFormat,
    FreeTextFormat,
    PatternFormat,
    RatingsFormat,
    StrictFormat,
    without_thoughts,
)


def say(form: AnswerFormat, value: JsonValue) -> str:
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
    text = say(item.answer, value)
    parsed = item.answer.parse(text, item.options)
    return Answer(item_id=item.id, text=text, parsed=parsed, extra=extra)


_MARK = r"[*_#`> \t]*"
_RATIONALE = re.compile(
    rf"^{_MARK}(?:rationale|reasoning|explanation|reasons?){_MARK}[:：][*_`]*", re.IGNORECASE | re.MULTILINE
)
_ANSWER = re.compile(rf"^{_MARK}(?:final\s+|correct\s+)?(?:answer|order){_MARK}[:：]", re.IGNORECASE | re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]{2,}")
_MIN_WORDS = 3
_MAX_READ = 20_000  # characters, the same limit as in answer formats
_KEYS = ("rationale", "reasoning", "explanation", "reason")


def asks_for_rationale(prompt: str) -> bool:
    """Whether a prompt asks for a rationale: it contains the word."""
    return "rationale" in prompt.casefold()


def rationale_in(text: str) -> str:
    """The rationale of a reply with an order; "" where there is only an order.

    The text after "Rationale:" up to the answer's line; else the text around that line; in a JSON object its field
    `rationale`. Thoughts do not count, nor does a text of fewer than three words.

    >>> rationale_in("Rationale: the chest is bared before the pads are placed.\\nAnswer: B > A")
    'the chest is bared before the pads are placed.'
    >>> rationale_in("Answer: B > A\\nFirst the pads are placed.")
    'First the pads are placed.'
    >>> rationale_in("Answer: B > A")
    ''
    """
    visible = without_thoughts(text)[:_MAX_READ]
    stated = _of_json(visible)
    if stated is not None:
        return stated
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
    """The rationale in a reply that is one JSON object, in a code fence or not; None for another text."""
    bare = re.sub(r"^```(?:json)?\s*|\s*```$", "", text)
    if not bare.startswith("{"):
        return None
    try:
        found = json.loads(bare)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    given = {key.casefold(): value for key, value in found.items()}
    return next((one.strip() for key in _KEYS if isinstance(one := given.get(key), str)), "")
