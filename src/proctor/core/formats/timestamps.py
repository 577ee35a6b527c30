"""One or several moments of a video."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field, JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import StrictFormat, bare, final_answer

__all__ = ["TimestampsFormat"]

_BARE = re.compile(r"(\d{2}):(\d{2}):(\d{2})")  # digits of any script, as in the toolkit
_CLOCK = re.compile(r"(?<![\d:])(?:(\d{1,2}):)?(\d{1,2}):(\d{2})(?:\.(\d+))?(?![\d:])")


class TimestampsFormat(StrictFormat):
    """Times as hh:mm:ss or mm:ss, kept as seconds in ascending order.

    Right when there are as many as in the reference and, both in order, each lies within
    `tolerance` seconds of its counterpart. Strict: times as hh:mm:ss alone, separated by commas, empty
    parts not counted; a time that is named twice counts twice.

    >>> TimestampsFormat(tolerance=2, several=True).parse("First at 00:01:05, then at 00:00:30.")
    [30.0, 65.0]
    """

    kind: Literal["timestamps"] = "timestamps"
    tolerance: float = Field(default=1.0, ge=0)
    several: bool = False

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        if self.strict:
            named = "times as hh:mm:ss, separated by commas," if self.several else "time as hh:mm:ss"
            return f"Reply with the {named} and nothing else."
        times = "times, separated by commas," if self.several else "time"
        return f'Start your reply with "Answer: " and the {times} as hh:mm:ss.'

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        del options
        if self.strict:
            return self._listed(text)
        said = final_answer(text)
        found: set[float] = set()
        for hours, minutes, seconds, fraction in _CLOCK.findall(said):
            if int(seconds) > 59 or (hours and int(minutes) > 59):
                raise ParseError(expected="a time as hh:mm:ss", found=text)
            found.add(int(hours or 0) * 3600 + int(minutes) * 60 + float(f"{seconds}.{fraction or 0}"))
        if not found or (len(found) > 1 and not self.several):
            raise ParseError(
                expected="times as hh:mm:ss" if self.several else "one time as hh:mm:ss", found=text
            )
        return [float(moment) for moment in sorted(found)]

    def _listed(self, text: str) -> JsonValue:
        parts = [part.strip() for part in bare(text).split(",") if part.strip()]
        found = [tuple(map(int, one.groups())) for part in parts if (one := _BARE.fullmatch(part))]
        clear = len(found) == len(parts) and all(minute < 60 and second < 60 for _, minute, second in found)
        if not found or not clear or (len(found) > 1 and not self.several):
            times = "times as hh:mm:ss, separated by commas," if self.several else "one time as hh:mm:ss"
            raise ParseError(expected=f"{times} and nothing else", found=text)
        return [float(one) for one in sorted(3600 * h + 60 * m + s for h, m, s in found)]

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        if isinstance(value, list) and value and all(_is_time(moment) for moment in value):
            return [float(str(moment)) for moment in sorted(value, key=lambda moment: float(str(moment)))]
        raise ParseError(expected="a list of times in seconds", found=str(value))

    def match(self, reference: JsonValue, prediction: JsonValue) -> bool:
        error = self.distance(reference, prediction)
        return error is not None and error <= self.tolerance

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """The largest absolute error in seconds of the two in order; None where their numbers differ."""
        if not isinstance(reference, list) or not isinstance(prediction, list):
            return None
        if len(reference) != len(prediction):
            return None
        return max(abs(float(str(a)) - float(str(b))) for a, b in zip(reference, prediction, strict=True))


def _is_time(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
