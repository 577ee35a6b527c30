"""Rationales in replies with an order: which part of the reply gives the reasons."""

from __future__ import annotations

import re

from pydantic import JsonValue

from proctor.core.formats.reply import json_values
from proctor.core.formats.thoughts import without_thoughts
from proctor.core.text import deferred

_MARK = r"[*_#`> \t]*"
_RATIONALE = deferred(
    rf"^{_MARK}(?:rationale|reasoning|explanation|reasons?){_MARK}[:：][*_`]*", re.IGNORECASE | re.MULTILINE
)
_ANSWER = deferred(rf"^{_MARK}(?:final\s+|correct\s+)?(?:answer|order){_MARK}[:：]", re.IGNORECASE | re.MULTILINE)
_WORD = deferred(r"[^\W\d_]{2,}")
_MIN_WORDS = 3
_MAX_READ = 20_000  # characters, the same limit as in answer formats
_KEYS = ("rationale", "reasoning", "explanation", "reason")
_HALF = deferred("[\ud800-\udfff]")  # of a character, which can't be stored


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
