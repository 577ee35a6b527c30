"""Yes or no, how many, how much."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field, JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import StrictFormat, bare
from proctor.core.formats.quantities import read_quantity
from proctor.core.formats.reply import Statement, first_sentence, read_reply

__all__ = ["BinaryFormat", "CountFormat", "PercentageFormat"]

# Above this no count or percentage means anything, and a float no longer holds each whole number.
_MOST = 10**15
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%?")  # digits of any script, as in the toolkit
_SURE = r"(?:(?:i (?:think|believe|would say)|probably|likely|most likely|definitely|it is|it's|that is|that's|is)\s(?:so,? )?){0,2}"
_HEAD_YES = re.compile(
    rf"[\W_]{{0,6}}{_SURE}(?:yes|yep|yeah|true|correct(?!ion))\b"
    r"|[\W_]{0,6}(?:是的?|有的?|对的?|正确|存在|可见|能)(?=[\s,.!;)\]\"']|$)",
    re.IGNORECASE,
)
_NO = (
    r"no\b(?!\.\s?\d)(?=\s?(?:[.,;:!?()\]}\"'>|-]|$|\n)"
    r"|\s+(?:the|there|it|they|he|she|because|since|as|this|that|these|those|i|we|all|not|none|nothing|at|in)\b)"
)
_HEAD_NO = re.compile(
    rf"[\W_]{{0,6}}{_SURE}(?:false\b|incorrect\b|nope\b|{_NO})"
    r"|[\W_]{0,6}(?:否|不是|没有|不对|错误|不存在|不可见|不能|不|无|没)(?=[\s,.!;)\]\"']|$)",
    re.IGNORECASE,
)
_YES = re.compile(r"\b(?:yes|yep|yeah|true)\b|是的", re.IGNORECASE)
_NOT = re.compile(rf"\b(?:{_NO}|nope\b|false\b)|不是", re.IGNORECASE)
_EITHER = r"(?:\bor\b|/|\band\b|\||>)"
_BOTH = re.compile(
    rf"\b(?:yes|true)\b[^.\n]{{0,12}}{_EITHER}[^.\n]{{0,8}}\b(?:no|false)\b"
    rf"|\b(?:no|false)\b[^.\n]{{0,12}}{_EITHER}[^.\n]{{0,8}}\b(?:yes|true)\b|是否"
    r"|\byes\b[^\n]{0,20}[/|]\s?no\b|\bno\b[^\n]{0,20}[/|]\s?yes\b"
    r"|\b(?:yes|no)\b[^\n]{0,20}\b(?:wait|actually|scratch that|correction)\b[^\n]{0,20}\b(?:yes|no)\b",
    re.IGNORECASE,
)
_TWO_LINES = re.compile(r"\W*(?:yes\W*\n\W*no|no\W*\n\W*yes)\W*", re.IGNORECASE)
_UNDONE = re.compile(
    r"\b(?:not|isn't|never|whether|if)\s(?:\w+\s){0,3}(?:yes|no|true|false|correct)\b", re.IGNORECASE
)
_CONCLUDES = re.compile(
    r"\b(?:so|thus|therefore|hence|overall|in short),?\s(yes|no)\b\s?(?:[.,;!]|$)", re.IGNORECASE
)
_COUNT_KEYS = ("count", "number", "total", "n", "quantity", "num")
_SHARE_KEYS = ("percentage", "percent", "share", "proportion", "estimate")


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
        return read_reply(text, _yes_or_no, expected="yes or no")

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
        return read_reply(text, _count, expected=_COUNT, keys=_COUNT_KEYS)

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
        return read_reply(text, _share, expected=_PERCENTAGE, keys=_SHARE_KEYS)

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


def _yes_or_no(statement: Statement) -> bool | None:
    if isinstance(statement.value, bool):
        return statement.value
    text = statement.text
    start = first_sentence(text)
    if _BOTH.search(start) or _TWO_LINES.fullmatch(text):
        raise ParseError(expected="yes or no", found=text)
    for pattern, value in ((_HEAD_YES, True), (_HEAD_NO, False)):
        if pattern.match(text):
            return value
    concluded = _CONCLUDES.findall(text)
    if concluded:
        return bool(concluded[-1].casefold() == "yes")
    said = start if statement.sure else text
    yes, no = bool(_YES.search(said)), bool(_NOT.search(said))
    return None if yes == no or _UNDONE.search(said) else yes


_COUNT = "one whole number of 0 or more"
_PERCENTAGE = "one percentage from 0 to 100"


def _count(statement: Statement) -> int | None:
    value = read_quantity(statement, _COUNT, share=False)
    if value is None:
        return None
    if value != value // 1 or not 0 <= value < _MOST:
        raise ParseError(expected=_COUNT, found=statement.text)
    return int(value)


def _share(statement: Statement) -> float | None:
    value = read_quantity(statement, _PERCENTAGE, share=True)
    if value is not None and not 0 <= value <= 100:
        raise ParseError(expected=_PERCENTAGE, found=statement.text)
    return value


def _absolute_error(reference: JsonValue, prediction: JsonValue) -> float | None:
    if isinstance(reference, int | float) and isinstance(prediction, int | float):
        return abs(float(reference) - float(prediction))
    return None
