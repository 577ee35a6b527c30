"""Texts by unknown authors, made fit to be kept: what no database, no file and no terminal takes is replaced."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, JsonValue

__all__ = ["KeptJson", "KeptObject", "KeptText", "kept_json", "kept_text"]

_UNFIT = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_MOST_DEPTH = 60
_MOST_BITS = 1024


def kept_text(text: str) -> str:
    """The text with a replacement character for each NUL and each half of a surrogate pair.

    >>> kept_text("B\\ud800 or\\x00 C") == "B\\ufffd or\\ufffd C"
    True
    """
    return text if text.isascii() and "\x00" not in text else _UNFIT.sub(_REPLACEMENT, text)


def kept_json(value: JsonValue) -> JsonValue:
    """The value with such texts in it; what is nested more than 60 deep, and whole numbers of more than 300 digits,
    become a text that says so.

    >>> kept_json({"a\\ud800": ["\\x00", 10**400]}) == {"a\\ufffd": ["\\ufffd", "a number of more than 300 digits"]}
    True
    """
    return _kept(value, 0)


def _kept(value: JsonValue, depth: int) -> JsonValue:
    if isinstance(value, str):
        return kept_text(value)
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return "a number of more than 300 digits"
    if isinstance(value, list | dict) and depth == _MOST_DEPTH:
        return "nested too deep"
    if isinstance(value, list):
        return [_kept(one, depth + 1) for one in value]
    if isinstance(value, dict):
        return {kept_text(key): _kept(one, depth + 1) for key, one in value.items()}
    return value


def _text_if_text(value: object) -> object:
    return kept_text(value) if isinstance(value, str) else value


def _json_if_json(value: object) -> object:
    return _kept(value, 0) if isinstance(value, str | int | list | dict) else value


KeptText = Annotated[str, BeforeValidator(_text_if_text)]
"""A text in a record: fit to be kept, whatever it was made from."""

KeptJson = Annotated[JsonValue, BeforeValidator(_json_if_json)]
"""A JSON value in a record, likewise."""

KeptObject = Annotated[dict[str, JsonValue], BeforeValidator(_json_if_json)]
"""A JSON object in a record, likewise."""
