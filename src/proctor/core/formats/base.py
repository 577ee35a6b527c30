"""What every answer format offers, and the few readings that several of them share."""

from __future__ import annotations

import json
import math
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, JsonValue, SerializerFunctionWrapHandler, model_serializer

from proctor.core.errors import ParseError
from proctor.core.text import deferred


class Format(BaseModel, ABC):
    """How an item is to be answered: what the model is told, and how its text is read and marked."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid", allow_inf_nan=False)

    @abstractmethod
    def instruction(self, options: Sequence[str] = ()) -> str:
        """One or two sentences that tell a model how to write its answer."""

    @abstractmethod
    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """The value that a text states. Raises `ParseError` where it states none, or several."""

    @abstractmethod
    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        """A reference value in canonical form. Raises `ParseError` where it is not of this format."""

    @abstractmethod
    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """The one value that a text states which is nothing else, in canonical form: what `write` gives, and the
        forms that people use in spreadsheets. Raises `ParseError`, which names what was expected and what came."""

    any_text: ClassVar[bool] = False
    """Whether every text is a value: then a bar always parts two of them, and brackets are no JSON."""

    def read_reference(self, value: JsonValue, options: Sequence[str] = ()) -> tuple[JsonValue, ...]:
        """The right answer that a cell of a spreadsheet, or a field of a JSON file, states, in canonical form; further
        ones that are accepted follow it.

        A text is read as a cell: several accepted answers stand in it with bars between them ("2 | 3"; a bar that
        belongs to an answer has a backslash before it); a list or an object may be JSON. Any other JSON value is one
        answer in canonical form (see `check`). Nothing is guessed: raises `ParseError` for an empty cell, and for one
        that states something else.
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
                pass  # not one answer with a bar in it: several
        values: list[JsonValue] = []
        for part in parts:
            one = self._one(part, options)
            values += [] if one in values else [one]
        return tuple(values)

    def _one(self, text: str, options: Sequence[str]) -> JsonValue:
        given = None if self.any_text else cell_json(text)
        return self.from_cell(text, options) if given is None else self.check(given, options)

    def write(self, value: JsonValue) -> str:
        """A canonical value in words, which `from_cell` and `parse` read as the same value."""
        return str(value)

    def chance(self, accepted: Sequence[JsonValue], options: Sequence[str] = ()) -> float | None:
        """None: the values are not equally likely, so that a random guess has no one chance to be right."""
        del accepted, options
        return None

    def match(self, reference: JsonValue, prediction: JsonValue) -> bool:
        """Whether a parsed prediction is right; both in canonical form."""
        return reference == prediction

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """How far off a prediction is (0 is right), or None where the format knows no distance."""
        del reference, prediction
        return None


class StrictFormat(Format):
    """A format that can be read in two ways: in the words of a model, or as the bare value alone.

    With `strict`, a text that holds more than the value ("7 sponges") states none. The strict reading is that
    of the FOCUS toolkit (orena-focus 0.4.0): white space around the value and one final full stop do not
    count. A format that is not strict is written down without the word, so that its items keep their
    fingerprint.
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
    """A text as the strict reading of the formats takes it: `bare`, and of at most 1,000 characters. Raises
    `ParseError` for a longer one.

    >>> alone(" B. ")
    'B'
    """
    if len(text) > _MOST_ALONE:
        raise ParseError(expected="the answer and nothing else", found=f"{len(text)} characters: {text[:60]}")
    return bare(text)


def bare(text: str) -> str:
    """A text without the white space around it and without one final full stop.

    >>> bare(" 00:12:30 . ")
    '00:12:30'
    """
    said = text.strip()
    return said.removesuffix(".").rstrip() if said.endswith(".") else said


MOST_CELL_CHARS = 32_767
"""As many characters as a cell of Excel holds."""

_BAR = deferred(r"(?<!\\)\|")
_LIST = deferred(r"\s*(?:;|,(?!\d)|(?<!\d),|\n)\s*")
_NUMBER = deferred(r"(?P<sign>[-+]?)(?P<whole>\d{1,15})(?:[.,](?P<part>\d{1,15}))?(?P<power>[eE][-+]?\d{1,2})?")
_GROUPED = deferred(r"[-+]?\d{1,3},\d{3}")
_MINUS = str.maketrans("\u2212\u2013\ufe63\uff0d", "----")


def alternatives(text: str) -> list[str]:
    """The parts of a cell between bars; a bar that belongs to the text is written with a backslash before it.

    >>> alternatives("liver | hepar"), alternatives(r"a\\|b")
    (['liver', 'hepar'], ['a|b'])
    """
    return [part.replace(r"\|", "|").strip() for part in _BAR.split(text)]


def listed(text: str) -> list[str]:
    """The parts of a list: between semicolons, lines and commas. A comma between two digits parts only where no other
    sign does.

    >>> listed("clip, sponge; mesh"), listed("0:30,1:05"), listed("1,5; 2")
    (['clip', 'sponge', 'mesh'], ['0:30', '1:05'], ['1,5', '2'])
    """
    parts = _LIST.split(text.strip())
    parts = parts if len(parts) > 1 else text.split(",")
    return [part.strip() for part in parts if part.strip()]


def cell_quantity(text: str, expected: str) -> float:
    """The number that a text is: digits of any script, with a decimal point or comma. Raises `ParseError` for anything
    else, and for "1,000", which is a thousand in one country and one in another.

    >>> cell_quantity("37,5", "a number"), cell_quantity("-2", "a number")
    (37.5, -2.0)
    >>> cell_quantity("1,000", "a number")
    Traceback (most recent call last):
    proctor.core.errors.ParseError: expected a number (1000 or 1.0: a comma before three digits may mean either), found '1,000'
    """
    said = unicodedata.normalize("NFKC", text).translate(_MINUS).strip()
    if _GROUPED.fullmatch(said):
        raise ParseError(expected=f"{expected} (1000 or 1.0: a comma before three digits may mean either)", found=text)
    if not _NUMBER.fullmatch(said):
        raise ParseError(expected=expected, found=text)
    value = float(said.replace(",", "."))
    if not math.isfinite(value):
        raise ParseError(expected=expected, found=text)
    return value


def cell_json(text: str) -> JsonValue:
    """The JSON list or object that a whole cell is; None where it is something else. NaN and infinity are none.

    >>> cell_json('["A", "B"]'), cell_json("A, B")
    (['A', 'B'], None)
    """
    if text[:1] not in {"[", "{"} or len(text) > MOST_CELL_CHARS:
        return None
    try:
        found: JsonValue = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    return found


def _refused(constant: str) -> float:
    raise ValueError(constant)


def plain_words(text: str) -> str:
    """A text in which case, width and white space make no difference.

    >>> plain_words("  Left  KIDNEY ")
    'left kidney'
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
