"""From the toolkit's answer formats to those of `proctor.core.formats`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proctor.core.formats import (
    AnswerFormat,
    BinaryFormat,
    ChoiceFormat,
    ClassesFormat,
    CountFormat,
    FreeTextFormat,
    PatternFormat,
    PercentageFormat,
    TimestampsFormat,
)

__all__ = ["FORMATS", "MAX_CHARS", "PERCENT_TOLERANCE", "Question", "time_tolerance"]

MAX_CHARS = 300
"""The longest free text."""

PERCENT_TOLERANCE = 1.0
"""Percentage points that a percentage may be off where the reference names no `tolerance`."""


class Question:
    """What a format depends on: the question's own arguments, its duration in seconds, the known classes."""

    def __init__(self, arguments: dict[str, Any], duration_s: float, classes: tuple[str, ...]) -> None:
        self.arguments = arguments
        self.duration_s = duration_s
        self.classes = classes

    @property
    def options(self) -> tuple[str, ...]:
        """The options of a multiple choice; empty where the file lists none. Raises `TypeError` for what is no
        list of texts."""
        listed = self.arguments.get("options", self.arguments.get("choices", []))
        if not isinstance(listed, list) or not all(isinstance(option, str) for option in listed):
            raise TypeError("the options are no list of texts")
        return tuple(listed)


def time_tolerance(duration_s: float) -> float:
    """Seconds that a time may be off: min(5, 1 + duration · 4 / 360).

    >>> time_tolerance(0), time_tolerance(180), time_tolerance(3600)
    (1.0, 3.0, 5.0)
    """
    return min(5.0, 1.0 + duration_s * 4 / 360)


def _time(question: Question) -> AnswerFormat:
    given = question.arguments.get("threshold_seconds")
    tolerance = time_tolerance(question.duration_s) if given is None else float(given)
    # How many moments there are is part of the question, so the format does not give it away.
    return TimestampsFormat(tolerance=tolerance, several=True, strict=True)


def _choice(question: Question) -> AnswerFormat:
    # Options that stand in the question alone can't be compared by code: a judge decides.
    return ChoiceFormat(strict=True) if question.options else FreeTextFormat(max_chars=MAX_CHARS)


FORMATS: dict[str, Callable[[Question], AnswerFormat]] = {
    "binary": lambda question: BinaryFormat(strict=True),  # noqa: ARG005 - all take the question
    "number": lambda question: CountFormat(strict=True),  # noqa: ARG005
    "percentage": lambda question: PercentageFormat(
        tolerance=float(question.arguments.get("tolerance", PERCENT_TOLERANCE)), strict=True
    ),
    "fo_class": lambda question: ClassesFormat(classes=question.classes, strict=True),
    "time": _time,
    "open_ended": lambda question: FreeTextFormat(max_chars=MAX_CHARS),  # noqa: ARG005
    "pattern": lambda question: PatternFormat(pattern=str(question.arguments.get("pattern", ""))),
    "multiple_choice": _choice,
}
"""The toolkit's names with what makes the format of a question."""
