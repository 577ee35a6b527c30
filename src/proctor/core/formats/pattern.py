"""A text of a given shape: a code, a name, a place on the clock face."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field, JsonValue, field_validator

from proctor.core.errors import ParseError
from proctor.core.formats.base import MAX_ANSWER_CHARS, Format

__all__ = ["PatternFormat"]

_MOST_CHARS = 300  # what is matched is short, so that no pattern takes long on a hostile text


class PatternFormat(Format):
    """A text that the regular expression `pattern` matches as a whole, in any case. Two are equal where
    they differ in case and white space alone.

    >>> PatternFormat(pattern=r"[1-4]/[1-4]").parse(" 2/3 ")
    '2/3'
    >>> PatternFormat(pattern=r"[1-4]/[1-4]").parse("two of three")
    Traceback (most recent call last):
    proctor.core.errors.ParseError: expected a text of the form [1-4]/[1-4], found 'two of three'
    """

    kind: Literal["pattern"] = "pattern"
    pattern: str = Field(min_length=1)

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        return pattern

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        return f"Reply with a text of the form {self.pattern} (a regular expression) and nothing else."

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        del options
        said = " ".join(text[:MAX_ANSWER_CHARS].split())
        if len(said) > _MOST_CHARS or not re.fullmatch(self.pattern, said, re.IGNORECASE):
            raise ParseError(expected=f"a text of the form {self.pattern}", found=text)
        return said

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        return self.parse(value if isinstance(value, str) else "", options)

    def match(self, reference: JsonValue, prediction: JsonValue) -> bool:
        return str(reference).casefold() == str(prediction).casefold()
