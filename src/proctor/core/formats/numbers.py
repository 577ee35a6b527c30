"""Yes or no, how many, how much."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field, JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import StrictFormat, bare, final_answer

__all__ = ["BinaryFormat", "CountFormat", "PercentageFormat"]

_NUMBER = re.compile(r"(?<![\w.,:])[-+]?\d+(?:[.,]\d+)?(?![\w:])")
_WORDS = dict(
    zip(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ],
        range(13),
        strict=True,
    )
)
_MOST = (
    10**15
)  # above this no count or percentage means anything, and a float no longer holds each whole number
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%?")  # digits of any script, as in the toolkit
_YES = re.compile(r"\b(?:yes|true)\b", re.IGNORECASE)
_NO = re.compile(r"\b(?:no|false)\b", re.IGNORECASE)


class BinaryFormat(StrictFormat):
    """Yes or no. Strict: the one word in any case, with or without a full stop.

    >>> BinaryFormat().parse("Yes, all sponges are out.")
    True
    >>> BinaryFormat(strict=True).parse("Yes, all sponges are out.")
    Traceback (most recent call last):
    proctor.core.errors.ParseError: expected yes or no and nothing else, found 'Yes, all sponges are out.'
    """

    kind: Literal["binary"] = "binary"

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        if self.strict:
            return "Reply with yes or no and nothing else."
        return 'Start your reply with "Answer: yes" or "Answer: no".'

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        del options
        if self.strict:
            word = bare(text).lower()
            if word not in {"yes", "no"}:
                raise ParseError(expected="yes or no and nothing else", found=text)
            return word == "yes"
        said = final_answer(text)
        first = re.match(r"\W*(yes|no|true|false)\b", said, re.IGNORECASE)
        if first:
            return first[1].casefold() in {"yes", "true"}
        yes, no = bool(_YES.search(said)), bool(_NO.search(said))
        if yes == no:
            raise ParseError(expected="yes or no", found=text)
        return yes

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        if isinstance(value, bool):
            return value
        raise ParseError(expected="true or false", found=str(value))


class CountFormat(StrictFormat):
    """A non-negative integer. Strict: its digits alone.

    >>> CountFormat().parse("There are three needles.")
    3
    """

    kind: Literal["count"] = "count"

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        if self.strict:
            return "Reply with a whole number in digits and nothing else."
        return 'Start your reply with "Answer: N", where N is a whole number in digits.'

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        del options
        if self.strict:
            return _digits(text)
        values = _numbers(final_answer(text))
        if len(values) != 1 or values[0] < 0 or values[0] != int(values[0]):
            raise ParseError(expected="one whole number of 0 or more", found=text)
        return int(values[0])

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        raise ParseError(expected="a whole number of 0 or more", found=str(value))

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """The absolute error."""
        return _absolute_error(reference, prediction)


class PercentageFormat(StrictFormat):
    """A number from 0 to 100, right within `tolerance` percentage points. Strict: the number, with or
    without a per cent sign; it may lie above 100, and is right there within the tolerance.

    >>> PercentageFormat(tolerance=5).match(40.0, 44.0)
    True
    """

    kind: Literal["percentage"] = "percentage"
    tolerance: float = Field(default=0.0, ge=0)

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        if self.strict:
            return "Reply with a number from 0 to 100 and nothing else."
        return 'Start your reply with "Answer: N%", where N is a number from 0 to 100.'

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        del options
        if self.strict:
            share = _SHARE.fullmatch(bare(text))
            if share is None or float(share[1]) > _MOST:
                raise ParseError(expected="a number of 0 or more and nothing else", found=text)
            return float(share[1])
        said = final_answer(text)
        signed = [
            _float(hit) for hit in re.findall(r"([-+]?\d+(?:[.,]\d+)?)\s*(?:%|percent\b|per cent\b)", said)
        ]
        values = signed or _numbers(said)
        if len(values) != 1 or not 0 <= values[0] <= 100:
            raise ParseError(expected="one percentage from 0 to 100", found=text)
        return float(values[0])

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        highest = _MOST if self.strict else 100
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= highest:
            return float(value)
        raise ParseError(expected="a number from 0 to 100", found=str(value))

    def match(self, reference: JsonValue, prediction: JsonValue) -> bool:
        error = self.distance(reference, prediction)
        return error is not None and error <= self.tolerance

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """The absolute error in percentage points."""
        return _absolute_error(reference, prediction)


def _digits(text: str) -> int:
    """The whole number that digits of any script state, and nothing else."""
    said = bare(text)
    try:
        value = int(said) if said.isdecimal() else _MOST
    except ValueError:  # Python reads no whole number of more than 4,300 digits, and neither does the toolkit
        value = _MOST
    if value >= _MOST:
        raise ParseError(expected="a whole number of 0 or more in digits and nothing else", found=text)
    return value


def _numbers(text: str) -> list[float]:
    """The distinct numbers of a text, in digits; in words only where there are none in digits."""
    digits = [_float(hit) for hit in _NUMBER.findall(text)]
    found = digits or [
        float(_WORDS[word]) for word in re.findall(r"[a-z]+", text.casefold()) if word in _WORDS
    ]
    return list(dict.fromkeys(found))


def _float(text: str) -> float:
    return float(text.replace(",", "."))


def _absolute_error(reference: JsonValue, prediction: JsonValue) -> float | None:
    if isinstance(reference, int | float) and isinstance(prediction, int | float):
        return abs(float(reference) - float(prediction))
    return None
