"""The answer format for yes or no: which words of a reply say it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import StrictFormat, bare, plain_words
from proctor.core.formats.declarations import first_sentence
from proctor.core.formats.reply import Statement, read_reply
from proctor.core.text import deferred

_SURE = (
    r"(?:(?:i (?:think|believe|would say)|probably|likely|most likely|definitely|it is|it's|that is|that's"
    r"|is)\s(?:so,? )?){0,2}"
)
_HEAD_YES = deferred(
    rf"[\W_]{{0,6}}{_SURE}(?:yes|yep|yeah|true|correct(?!ion))\b"
    r"|[\W_]{0,6}(?:是的?|有的?|对的?|没错|正确|存在|可见|能|はい|ja|oui|sí|sì|sim|да|نعم|예|네|evet|tak)(?=[\s,.!;)\]\"']|$)",
    re.IGNORECASE,
)
_NO = (
    r"no\b(?!\.\s?\d)(?=\s?(?:[.,;:!?()\]}\"'>|-]|$|\n)"
    r"|\s+(?:the|there|it|they|he|she|because|since|as|this|that|these|those|i|we|all|not|none|nothing|at|in)\b)"
)
_HEAD_NO = deferred(
    rf"[\W_]{{0,6}}{_SURE}(?:false\b|incorrect\b|nope\b|{_NO})"
    r"|[\W_]{0,6}(?:否|不是|没有|不对|错误|不存在|不可见|不能|不|无|没|いいえ|nein|non|não|нет|لا|아니요|아니오|hayır|nie)(?=[\s,.!;)\]\"']|$)",
    re.IGNORECASE,
)
_YES = deferred(r"\b(?:yes|yep|yeah|true)\b|是的", re.IGNORECASE)
_NOT = deferred(rf"\b(?:{_NO}|nope\b|false\b)|不是", re.IGNORECASE)
_EITHER = r"(?:\bor\b|/|\band\b|\||>)"
_BOTH = deferred(
    rf"\b(?:yes|true)\b[^.\n]{{0,12}}{_EITHER}[^.\n]{{0,8}}\b(?:no|false)\b"
    rf"|\b(?:no|false)\b[^.\n]{{0,12}}{_EITHER}[^.\n]{{0,8}}\b(?:yes|true)\b|是否"
    r"|\byes\b[^\n]{0,20}[/|]\s?no\b|\bno\b[^\n]{0,20}[/|]\s?yes\b"
    r"|\b(?:yes|no)\b[^\n]{0,20}\b(?:wait|actually|scratch that|correction)\b[^\n]{0,20}\b(?:yes|no)\b",
    re.IGNORECASE,
)
_TWO_LINES = deferred(r"\W*(?:yes[^\w\n]*\n\W*no|no[^\w\n]*\n\W*yes)\W*", re.IGNORECASE)
_ASKED = deferred(r"\W*(?:yes|no)\s?\?\s+\w", re.IGNORECASE)
_UNDONE = deferred(r"\b(?:not|isn't|never|whether|if)\s(?:\w+\s){0,3}(?:yes|no|true|false|correct)\b", re.IGNORECASE)
_CONCLUDES = deferred(r"\b(?:so|thus|therefore|hence|overall|in short),?\s(yes|no)\b\s?(?:[.,;!]|$)", re.IGNORECASE)


class BinaryFormat(StrictFormat):
    """Yes or no. Strict: only the word, in any case, with or without a full stop.

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

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """yes or no, true or false, in either case."""
        del options
        known = {"yes": True, "true": True, "no": False, "false": False}
        if plain_words(text) not in known:
            raise ParseError(expected="yes or no", found=text)
        return known[plain_words(text)]

    def write(self, value: JsonValue) -> str:
        """yes or no."""
        return "yes" if value else "no"

    def chance(self, accepted: Sequence[JsonValue], options: Sequence[str] = ()) -> float | None:
        """One half."""
        del accepted, options
        return 0.5


def _yes_or_no(statement: Statement) -> bool | None:
    if isinstance(statement.value, bool):
        return statement.value
    text = statement.text
    start = first_sentence(text)
    if _BOTH.search(start) or _TWO_LINES.fullmatch(text) or _ASKED.match(text):
        raise ParseError(expected="yes or no", found=text)
    for pattern, value in ((_HEAD_YES, True), (_HEAD_NO, False)):
        if pattern.match(text):
            return value
    concluded = _CONCLUDES.findall(text)
    if concluded:
        return bool(concluded[-1].casefold() == "yes")
    part = start if statement.sure else text
    yes, no = bool(_YES.search(part)), bool(_NOT.search(part))
    return None if yes == no or _UNDONE.search(part) else yes
