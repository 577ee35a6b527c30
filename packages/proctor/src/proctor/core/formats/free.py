"""Answer formats for free text, scored by judges, and for ratings on dimensions."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import Format, StrictFormat, cell_quantity, listed
from proctor.core.formats.reply import MAX_ANSWER_CHARS, json_values
from proctor.core.formats.thoughts import without_thoughts
from proctor.core.text import deferred

_NUMERAL = deferred(r"[-+]?[0-9]{1,9}(?:\.[0-9]{1,9})?")
_ANSWER = deferred(r"<answer>(.*)</answer>", re.IGNORECASE | re.DOTALL)


class FreeTextFormat(StrictFormat):
    """Free text, to be scored by a judge: `match` only compares for equality. Thoughts in tags and an `<answer>` tag
    around the whole text are removed. Strict: the text is unchanged.

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
        answer = text.strip() if self.strict else _untagged(without_thoughts(text))
        if not answer:
            raise ParseError(expected="a text", found=text)
        limit = self.max_chars or MAX_ANSWER_CHARS
        if len(answer) > limit:
            raise ParseError(expected=f"at most {limit} characters", found=f"{len(answer)} characters: {answer}")
        return answer

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        if isinstance(value, str) and value.strip():
            return value.strip()
        raise ParseError(expected="a text", found=str(value))

    any_text: ClassVar[bool] = True

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """The whole text."""
        return self.check(text, options)

    def chance(self, accepted: Sequence[JsonValue], options: Sequence[str] = ()) -> float | None:
        """None: texts can't be drawn at random."""
        del accepted, options
        return None


class RatingsFormat(Format):
    """A number from `low` to `high` for each of the `dimensions`, as a JSON object: the last one with all dimensions.
    Other keys, and quotes around numbers, are accepted.

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
        names = set(self.dimensions)
        found = [value for value in json_values(_within(without_thoughts(text))) if isinstance(value, dict)]
        whole = [{str(key).strip(): one for key, one in value.items()} for value in found]
        whole += [one for value in whole for one in value.values() if isinstance(one, dict)]
        rated = [{name: _number(value[name]) for name in self.dimensions} for value in whole if names <= value.keys()]
        if not rated:
            raise ParseError(expected=f"an object with the keys {', '.join(self.dimensions)}", found=text)
        return self.check(rated[-1], options)

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        if not isinstance(value, dict) or set(value) != set(self.dimensions):
            raise ParseError(expected=f"an object with the keys {', '.join(self.dimensions)}", found=str(value))
        for name, number in value.items():
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise ParseError(expected=f"a number for {name!r}", found=str(number))
            if not self.low <= number <= self.high:
                raise ParseError(expected=f"{self.low:g} to {self.high:g} for {name!r}", found=str(number))
        return {name: float(str(value[name])) for name in self.dimensions}

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """Parse numbers by dimension, "accuracy: 0.5, safety: 1" (or with "=", in any order), or a JSON object."""
        pairs = [[side.strip() for side in re.split(r"[:=]", part, maxsplit=1)] for part in listed(text)]
        if any(len(pair) < 2 for pair in pairs) or len({pair[0] for pair in pairs}) < len(pairs):
            raise ParseError(expected=", ".join(f"{name}: number" for name in self.dimensions), found=text)
        return self.check({pair[0]: cell_quantity(pair[1], f"a number for {pair[0]!r}") for pair in pairs}, options)

    def write(self, value: JsonValue) -> str:
        """The JSON object."""
        return json.dumps(value)

    def chance(self, accepted: Sequence[JsonValue], options: Sequence[str] = ()) -> float | None:
        """None: ratings are compared with raters instead of being right or wrong."""
        del accepted, options
        return None

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """The mean absolute error over the dimensions."""
        if not isinstance(reference, dict) or not isinstance(prediction, dict):
            return None
        errors = [abs(float(str(reference[name])) - float(str(prediction[name]))) for name in self.dimensions]
        return sum(errors) / len(errors)


def _untagged(text: str) -> str:
    hit = _ANSWER.fullmatch(text)
    return hit[1].strip() if hit else text


def _within(text: str) -> str:
    half = MAX_ANSWER_CHARS // 2
    return text if len(text) <= MAX_ANSWER_CHARS else text[:half] + "\n" + text[-half:]


def _number(value: JsonValue) -> JsonValue:
    """The number in a text; any other value unchanged."""
    if isinstance(value, str) and _NUMERAL.fullmatch(value.strip()):
        return float(value)
    return value
