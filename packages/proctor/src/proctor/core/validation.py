"""The base class of records and settings, and field types that clean untrusted text for storage."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue

_UNFIT = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_MOST_DEPTH = 60
_MOST_BITS = 1024
_JSON = (str, int, list, dict)


class FrozenModel(BaseModel):
    """A pydantic model that can't be changed and refuses unknown fields, NaN and infinity.

    >>> class Point(FrozenModel):
    ...     x: float
    >>> Point(x=0.5)
    Point(x=0.5)
    >>> Point(x=float("nan"))
    Traceback (most recent call last):
    pydantic_core._pydantic_core.ValidationError: ...
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid", allow_inf_nan=False)


def kept_text(text: str) -> str:
    """The text with each NUL and each lone surrogate replaced by the replacement character.

    >>> kept_text("B\\ud800 or\\x00 C") == "B\\ufffd or\\ufffd C"
    True
    """
    return text if text.isascii() and "\x00" not in text else _UNFIT.sub(_REPLACEMENT, text)


def unfit(text: str) -> str:
    """The first character in a text that can't be stored, in words; empty if there is none.

    >>> unfit("q\\x00"), unfit("q1")
    ('a NUL character', '')
    """
    hit = _UNFIT.search(text)
    if hit is None:
        return ""
    return "a NUL character" if hit[0] == "\x00" else "half a character (a lone surrogate)"


def kept_json(value: JsonValue) -> JsonValue:
    """The JSON value with all texts cleaned by `kept_text`. Values nested more than 60 deep, and integers of more than
    300 digits, are replaced by a text that says so.

    >>> kept_json({"a\\ud800": ["\\x00", 10**400]}) == {"a\\ufffd": ["\\ufffd", "a number of more than 300 digits"]}
    True
    """
    return _kept(value, 0)


def _kept(value: JsonValue, depth: int) -> JsonValue:
    if isinstance(value, str):
        return kept_text(value)
    if isinstance(value, int):
        return value if value.bit_length() <= _MOST_BITS else "a number of more than 300 digits"
    if depth == _MOST_DEPTH and isinstance(value, (list, dict)):
        return "nested too deep"
    if isinstance(value, list):
        return [_kept(entry, depth + 1) for entry in value]
    if isinstance(value, dict):
        return {kept_text(key): _kept(entry, depth + 1) for key, entry in value.items()}
    return value


def _text_if_text(value: object) -> object:
    return kept_text(value) if isinstance(value, str) else value


def _json_if_json(value: object) -> object:
    return _kept(value, 0) if isinstance(value, _JSON) else value


KeptText = Annotated[str, BeforeValidator(_text_if_text)]
"""A text in a record, cleaned by `kept_text`."""

KeptJson = Annotated[JsonValue, BeforeValidator(_json_if_json)]
"""A JSON value in a record, cleaned by `kept_json`."""

KeptObject = Annotated[dict[str, JsonValue], BeforeValidator(_json_if_json)]
"""A JSON object in a record, cleaned by `kept_json`."""
