"""Words that a judge marks, and ratings on named dimensions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from pydantic import Field, JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import MAX_ANSWER_CHARS, Format, StrictFormat

__all__ = ["FreeTextFormat", "RatingsFormat"]


class FreeTextFormat(StrictFormat):
    """A short text. Whether it is right is for a judge: `match` only knows identical texts.

    >>> FreeTextFormat().parse("  The probe slides caudally. ")
    'The probe slides caudally.'
    """

    kind: Literal["free_text"] = "free_text"
    max_chars: int | None = Field(default=None, gt=0)

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        limit = f" in at most {self.max_chars} characters" if self.max_chars else " in one to three sentences"
        return f"Answer{limit}."

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        del options
        said = text.strip()
        if not said:
            raise ParseError(expected="a text", found=text)
        limit = self.max_chars or MAX_ANSWER_CHARS
        if len(said) > limit:
            raise ParseError(expected=f"at most {limit} characters", found=f"{len(said)} characters: {said}")
        return said

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        if isinstance(value, str) and value.strip():
            return value.strip()
        raise ParseError(expected="a text", found=str(value))


class RatingsFormat(Format):
    """A number from `low` to `high` for each of the `dimensions`, as a JSON object.

    >>> RatingsFormat(dimensions=("accuracy",)).parse('Here: {"accuracy": 0.5}')
    {'accuracy': 0.5}
    """

    kind: Literal["ratings"] = "ratings"
    dimensions: tuple[str, ...] = Field(min_length=1)
    low: float = 0.0
    high: float = 1.0

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        names = ", ".join(f'"{name}"' for name in self.dimensions)
        return f"Reply with one JSON object with the keys {names} and a number from {self.low:g} to {self.high:g} each."

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        said = text[:MAX_ANSWER_CHARS]
        start, end = said.find("{"), said.rfind("}")
        try:
            value = json.loads(said[start : end + 1]) if 0 <= start < end else None
        except ValueError as error:
            raise ParseError(expected="one JSON object", found=text) from error
        return self.check(value, options)

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        if not isinstance(value, dict) or set(value) != set(self.dimensions):
            raise ParseError(
                expected=f"an object with the keys {', '.join(self.dimensions)}", found=str(value)
            )
        for name, number in value.items():
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise ParseError(expected=f"a number for {name!r}", found=str(number))
            if not self.low <= number <= self.high:
                raise ParseError(expected=f"{self.low:g} to {self.high:g} for {name!r}", found=str(number))
        return {name: float(str(value[name])) for name in self.dimensions}

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """The mean absolute error over the dimensions."""
        if not isinstance(reference, dict) or not isinstance(prediction, dict):
            return None
        errors = [abs(float(str(reference[name])) - float(str(prediction[name]))) for name in self.dimensions]
        return sum(errors) / len(errors)
