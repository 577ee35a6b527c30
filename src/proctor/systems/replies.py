"""A value said in the words of its answer format, so that the format reads the same value back."""

from __future__ import annotations

import json
import re

from pydantic import JsonValue

from proctor.core import Answer, Item
from proctor.core.formats import AnswerFormat, FreeTextFormat, PatternFormat, RatingsFormat, StrictFormat


def say(form: AnswerFormat, value: JsonValue) -> str:
    """The text that states a canonical value; times to the millisecond (strict ones to the second),
    percentages to 4 decimals. A strict format gets the value alone.

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
    """The answer that states `value`, with the value that the item's format reads from its text.

    Raises `ParseError` where the value is not of the item's format.
    """
    text = say(item.answer, value)
    parsed = item.answer.parse(text, item.options)
    return Answer(item_id=item.id, text=text, parsed=parsed, extra=extra)


_MARK = r"[*_#`> \t]*"
_RATIONALE = re.compile(
    rf"^{_MARK}(?:rationale|reasoning|explanation|reasons?){_MARK}[:：][*_`]*", re.IGNORECASE | re.MULTILINE
)
_ANSWER = re.compile(rf"^{_MARK}(?:final\s+|correct\s+)?(?:answer|order){_MARK}[:：]", re.IGNORECASE | re.MULTILINE)
_THOUGHT_BEGINS = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2,}")
_LEAST_WORDS = 3
_MOST_READ = 20_000  # characters: as much of a reply as an answer format reads
_KEYS = ("rationale", "reasoning", "explanation", "reason")


def asks_for_rationale(prompt: str) -> bool:
    """Whether a prompt asks for one: it uses the word."""
    return "rationale" in prompt.casefold()


def rationale_in(text: str) -> str:
    """The words with which a reply explains its order; "" where it states an order and nothing more.

    What follows "Rationale:" up to the line of the answer; else what stands around that line; of a JSON object its
    `rationale`. Private thoughts (`<think>`) are left out, and so is a rest of fewer than three words.

    >>> rationale_in("Rationale: the chest is bared before the pads are placed.\\nAnswer: B > A")
    'the chest is bared before the pads are placed.'
    >>> rationale_in("Answer: B > A\\nFirst the pads are placed.")
    'First the pads are placed.'
    >>> rationale_in("Answer: B > A")
    ''
    """
    said = _without_thoughts(text[:_MOST_READ])
    stated = _of_json(said)
    if stated is not None:
        return stated
    begins = _RATIONALE.search(said)
    if begins is not None:
        rest = said[begins.end() :]
        ends = _ANSWER.search(rest)
        found = rest[: ends.start()] if ends is not None else rest
    else:
        found = _without_answer(said)
    words = found.strip().rstrip("*_#` \n")
    return words if len(_WORD.findall(words)) >= _LEAST_WORDS else ""


def _without_thoughts(text: str) -> str:
    """What follows the last closing tag (some servers drop the opening one), up to one that is never closed."""
    begins = max((tag.end() for tag in _THOUGHT_ENDS.finditer(text)), default=0)
    unclosed = _THOUGHT_BEGINS.search(text, begins)
    return text[begins : unclosed.start() if unclosed is not None else None].strip()


def _without_answer(said: str) -> str:
    """The text without the line (the last one of its kind) that states the answer."""
    lines = list(_ANSWER.finditer(said))
    if not lines:
        return said
    before = said[: lines[-1].start()]
    _, _, after = said[lines[-1].end() :].lstrip().partition("\n")
    return "\n".join(part.strip() for part in (before, after) if part.strip())


def _of_json(said: str) -> str | None:
    """The rationale of a reply that is one JSON object, in a code fence or not; None for another text."""
    bare = re.sub(r"^```(?:json)?\s*|\s*```$", "", said)
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
