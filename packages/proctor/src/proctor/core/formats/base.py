"""The base class of answer formats, and parsing helpers that several formats share."""

from __future__ import annotations

import json
import math
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from pydantic import JsonValue, SerializerFunctionWrapHandler, model_serializer

from proctor.core.errors import ParseError
from proctor.core.text import deferred
from proctor.core.validation import FrozenModel


class Format(FrozenModel, ABC):
    """How an item is to be answered: the instruction for the model, parsing and matching."""

    @abstractmethod
    def instruction(self, options: Sequence[str] = ()) -> str:
        """One or two sentences for the model on how to write its answer."""

    @abstractmethod
    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """Parse a model's text. Raises `ParseError` if it states no value or several."""

    @abstractmethod
    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        """A reference value in canonical form. Raises `ParseError` for an invalid value."""

    @abstractmethod
    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """Parse text that is a bare value, as in spreadsheets or from `write`, into canonical form. Raises `ParseError`
        with what was expected and found."""

    any_text: ClassVar[bool] = False
    """Whether every text is a valid value; then a bar always separates values, and brackets are not JSON."""

    def read_reference(self, value: JsonValue, options: Sequence[str] = ()) -> tuple[JsonValue, ...]:
        """Parse the right answer, and other accepted answers after it, from a spreadsheet cell or JSON field.

        In text, accepted answers are separated by bars ("2 | 3"; a literal bar is escaped with a backslash), and lists
        and objects may be JSON. Any other JSON value is one answer in canonical form (see `check`). Raises `ParseError`
        for an empty cell and for invalid values; nothing is guessed.
        """
        if not isinstance(value, str):
            return (self.check(value, options),)
        text = value.strip()
        if not text or len(text) > MOST_CELL_CHARS:
            found = f"{len(text)} characters: {text}" if text else "an empty cell"
            raise ParseError(expected=f"a reference of the format {getattr(self, 'kind', '')}", found=found)
        parts = alternatives(text)
        if len(parts) > 1 and not self.any_text:
            try:
                return (self._one(text, options),)
            except ParseError:
                pass  # several answers
        values: list[JsonValue] = []
        for part in parts:
            one = self._one(part, options)
            values += [] if one in values else [one]
        return tuple(values)

    def _one(self, text: str, options: Sequence[str]) -> JsonValue:
        given = None if self.any_text else cell_json(text)
        return self.from_cell(text, options) if given is None else self.check(given, options)

    def write(self, value: JsonValue) -> str:
        """A canonical value as text, from which `from_cell` and `parse` restore it."""
        return str(value)

    def chance(self, accepted: Sequence[JsonValue], options: Sequence[str] = ()) -> float | None:
        """None: values are not equally likely, so there is no single chance level."""
        del accepted, options
        return None

    def match(self, reference: JsonValue, prediction: JsonValue) -> bool:
        """Whether a parsed prediction is right; both arguments in canonical form."""
        return reference == prediction

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """The distance of a prediction from the reference (0 is right), or None if the format has no distance."""
        del reference, prediction
        return None


class StrictFormat(Format):
    """A format with two ways of parsing: from free wording, or `strict`, from the bare value.

    With `strict`, text with more than the value ("7 sponges") is invalid. Strict parsing is that of the FOCUS toolkit
    (orena-focus 0.4.0): surrounding whitespace and one final full stop are ignored. `strict` is omitted from JSON if
    false, which keeps fingerprints stable.
    """

    strict: bool = False

    @model_serializer(mode="wrap")
    def _written(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        fields: dict[str, JsonValue] = handler(self)
        if not self.strict:
            fields.pop("strict", None)
        return fields


_MOST_ALONE = 1_000


def alone(text: str) -> str:
    """Text for strict parsing: `bare`, with at most 1,000 characters. Raises `ParseError` for longer text.

    >>> alone(" B. ")
    'B'
    """
    if len(text) > _MOST_ALONE:
        raise ParseError(expected="the answer and nothing else", found=f"{len(text)} characters: {text[:60]}")
    return bare(text)


def bare(text: str) -> str:
    """Text without surrounding whitespace and one final full stop.

    >>> bare(" 00:12:30 . ")
    '00:12:30'
    """
    stripped = text.strip()
    return stripped.removesuffix(".").rstrip() if stripped.endswith(".") else stripped


MOST_CELL_CHARS = 32_767
"""The maximum number of characters in an Excel cell."""

_BAR = deferred(r"(?<!\\)\|")
_LIST = deferred(r"(?:(?<!\s)\s+)?(?:;|,(?!\d)|(?<!\d),|\n)\s*")
_NUMBER = deferred(r"(?P<sign>[-+]?)(?P<whole>\d{1,15})(?:[.,](?P<part>\d{1,15}))?(?P<power>[eE][-+]?\d{1,2})?")
_GROUPED = deferred(r"[-+]?\d{1,3},\d{3}")
_MINUS = str.maketrans("\u2212\u2013\ufe63\uff0d", "----")


def alternatives(text: str) -> list[str]:
    """The parts of a cell separated by bars; a literal bar is escaped with a backslash.

    >>> alternatives("liver | hepar"), alternatives(r"a\\|b")
    (['liver', 'hepar'], ['a|b'])
    """
    return [part.replace(r"\|", "|").strip() for part in _BAR.split(text)]


def listed(text: str) -> list[str]:
    """The parts of a list separated by semicolons, lines and commas. A comma between digits separates only if there is
    no other separator.

    >>> listed("clip, sponge; mesh"), listed("0:30,1:05"), listed("1,5; 2")
    (['clip', 'sponge', 'mesh'], ['0:30', '1:05'], ['1,5', '2'])
    """
    parts = _LIST.split(text.strip())
    parts = parts if len(parts) > 1 else text.split(",")
    return [part.strip() for part in parts if part.strip()]


def cell_quantity(text: str, expected: str) -> float:
    """Parse a number: digits of any script, with a decimal point or comma. Raises `ParseError` for anything else, and
    for "1,000", which is ambiguous between countries.

    >>> cell_quantity("37,5", "a number"), cell_quantity("-2", "a number")
    (37.5, -2.0)
    >>> cell_quantity("1,000", "a number")
    Traceback (most recent call last):
    proctor.core.errors.ParseError: expected a number (1000 or 1.0: a comma before three digits may mean either), found '1,000'
    """
    plain = unicodedata.normalize("NFKC", text).translate(_MINUS).strip()
    if _GROUPED.fullmatch(plain):
        raise ParseError(expected=f"{expected} (1000 or 1.0: a comma before three digits may mean either)", found=text)
    if not _NUMBER.fullmatch(plain):
        raise ParseError(expected=expected, found=text)
    value = float(plain.replace(",", "."))
    if not math.isfinite(value):
        raise ParseError(expected=expected, found=text)
    return value


def cell_json(text: str) -> JsonValue:
    """The JSON list or object in a cell; None for anything else, including NaN and infinity.

    >>> cell_json('["A", "B"]'), cell_json("A, B")
    (['A', 'B'], None)
    """
    if text[:1] not in {"[", "{"} or len(text) > MOST_CELL_CHARS:
        return None
    try:
        value: JsonValue = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    return value


def _refused(constant: str) -> float:
    raise ValueError(constant)


def plain_words(text: str) -> str:
    """Text with case, character width and whitespace normalised.

    >>> plain_words("  Left  KIDNEY ")
    'left kidney'
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
