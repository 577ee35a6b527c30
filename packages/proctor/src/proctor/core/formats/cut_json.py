"""JSON objects that were cut off: what stands in them until there."""

from __future__ import annotations

import json
import re
from collections import deque

from pydantic import JsonValue

_OPENS = re.compile(r"\s*(?:```(?:json)?\s*)?(?=\{\s*\"[^\"\\\n]{1,60}\"\s*:)", re.IGNORECASE)
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],]', re.DOTALL)
_HALF_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?\Z")
_HALF_WORD = re.compile(r"(?:t|tr|tru|f|fa|fal|fals|n|nu|nul|-?\d*\.?\d*(?:[eE][+-]?)?)\Z")
_LONGEST_WORD = 40
_TRIES = 8
_CLOSES = {"{": "}", "[": "]"}


def cut_object(text: str) -> dict[str, JsonValue] | None:
    """The members of a JSON object that begins a text and is cut off, also within a member; None for any other text, such
    as a whole object, or one that is no JSON before its end.

    >>> cut_object('{"order": ["B", "A"], "rationale": "the pads come')
    {'order': ['B', 'A'], 'rationale': 'the pads come'}
    >>> cut_object('{"rationale": "the pads come first", "ord')
    {'rationale': 'the pads come first'}
    >>> cut_object('{"order": ["B", "A"]}') is cut_object('{"order": [B, A') is None
    True
    """
    start = _OPENS.match(text)
    if start is None:
        return None
    bare = _HALF_ESCAPE.sub(r"\1", text[start.end() :].rstrip())
    try:
        json.JSONDecoder(strict=False).raw_decode(bare + " ")  # an escape at the very end counts as a wrong one
    except json.JSONDecodeError as error:
        in_string = error.msg.startswith("Unterminated string")
        half = _HALF_WORD.search(bare, max(0, len(bare) - _LONGEST_WORD))
        if not in_string and error.pos < (len(bare) if half is None else half.start()):
            return None
        return _closed(bare, error.pos if in_string else len(bare), in_string)
    except (ValueError, RecursionError):  # thousands of digits, or of brackets
        pass
    return None


def _closed(bare: str, end: int, in_string: bool) -> dict[str, JsonValue]:
    """The object that is left when what is incomplete at its end is closed, or left out."""
    open_now: list[str] = []
    ends: deque[tuple[int, list[str]]] = deque(maxlen=_TRIES)
    for token in _TOKENS.finditer(bare, 0, end):
        sign, position = token[0], token.end()
        if sign in _CLOSES:
            open_now.append(_CLOSES[sign])
        elif sign in "}]":
            open_now.pop()
        elif sign == ",":  # what stands before it is whole
            position = token.start()
        ends.append((position, [*open_now]))
    if in_string and end + 1 < len(bare):  # more than its opening quote
        bare += '"'
        ends.append((len(bare), open_now))
    for position, closing in reversed(ends):
        try:
            value = json.loads(bare[:position] + "".join(reversed(closing)), strict=False)
        except ValueError:
            continue
        if isinstance(value, dict):
            return value
    return {}
