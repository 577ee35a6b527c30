"""From the toolkit's answer formats to those of `proctor.core.formats`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    option_letters,
)

__all__ = [
    "ARGUMENTS",
    "FORMATS",
    "MAX_CHARS",
    "PERCENT_TOLERANCE",
    "TIME_TOLERANCE_S",
    "Question",
    "lettered",
    "time_tolerance",
]

MAX_CHARS = 300
"""The longest free text where the reference names no `max_length`."""

PERCENT_TOLERANCE = 5.0
"""Percentage points that a percentage may be off where the reference names no `threshold_pp`."""

TIME_TOLERANCE_S = 5.0
"""Seconds that a time may be off where the reference names no `threshold_seconds`."""

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "binary": (),
    "number": (),
    "percentage": ("threshold_pp", "tolerance"),
    "fo_class": ("valid_names",),
    "time": ("threshold_seconds",),
    "open_ended": ("max_length",),
    "matching": ("pattern", "max_length"),
    "pattern": ("pattern", "max_length"),
    "multiple_choice": ("max_length", "options", "choices"),
}
"""The arguments of each format: the toolkit's, and `tolerance`, `options`, `choices` and the format `pattern`, which
earlier versions of `build focus` wrote."""


class Question:
    """What a format depends on: the question's own arguments, its options, the known classes."""

    def __init__(
        self, arguments: dict[str, Any], options: Sequence[str] = (), classes: tuple[str, ...] = ()
    ) -> None:
        self.arguments = arguments
        self.classes = classes
        self._options = options

    @property
    def options(self) -> tuple[str, ...]:
        """The options of a multiple choice; empty where the file lists none. Raises `TypeError` for what is no
        list of texts."""
        listed = self.arguments.get("options", self.arguments.get("choices", list(self._options)))
        return _texts(listed, "the options")

    def number(self, default: float, *names: str) -> float:
        """The argument under the first of the names that is there."""
        return float(next((self.arguments[name] for name in names if name in self.arguments), default))

    @property
    def max_chars(self) -> int:
        """The longest text of an answer."""
        return int(self.arguments.get("max_length", MAX_CHARS))


def _texts(listed: object, what: str) -> tuple[str, ...]:
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise TypeError(f"{what} are no list of texts")
    return tuple(listed)


def lettered(options: Sequence[str]) -> str:
    """Options as they stand in a question's text.

    >>> lettered(["left", "right"])
    'A) left; B) right.'
    """
    named = zip(option_letters(len(options)), options, strict=True)
    return "; ".join(f"{letter}) {option}" for letter, option in named) + "."


def time_tolerance(duration_s: float) -> float:
    """Seconds that a time of the published rows may be off: min(5, 1 + duration · 4 / 360).

    >>> time_tolerance(0), time_tolerance(180), time_tolerance(3600)
    (1.0, 3.0, 5.0)
    """
    return min(5.0, 1.0 + duration_s * 4 / 360)


def _classes(question: Question) -> AnswerFormat:
    given = question.arguments.get("valid_names")
    names = question.classes if given is None else _texts(given, "the valid names")
    return ClassesFormat(classes=names, strict=True)


def _time(question: Question) -> AnswerFormat:
    # How many moments there are is part of the question, so the format does not give it away.
    tolerance = question.number(TIME_TOLERANCE_S, "threshold_seconds")
    return TimestampsFormat(tolerance=tolerance, several=True, strict=True)


def _percentage(question: Question) -> AnswerFormat:
    tolerance = question.number(PERCENT_TOLERANCE, "threshold_pp", "tolerance")
    return PercentageFormat(tolerance=tolerance, strict=True)


def _free(question: Question) -> AnswerFormat:
    return FreeTextFormat(max_chars=question.max_chars, strict=True)


def _pattern(question: Question) -> AnswerFormat:
    pattern = str(question.arguments.get("pattern", ""))
    return PatternFormat(pattern=pattern, max_chars=question.max_chars, strict=True)


def _choice(question: Question) -> AnswerFormat:
    # Options that stand in the question alone can't be compared by code: a judge decides.
    return ChoiceFormat(strict=True) if question.options else _free(question)


FORMATS: dict[str, Callable[[Question], AnswerFormat]] = {
    "binary": lambda question: BinaryFormat(strict=True),  # noqa: ARG005 - all take the question
    "number": lambda question: CountFormat(strict=True),  # noqa: ARG005
    "percentage": _percentage,
    "fo_class": _classes,
    "time": _time,
    "open_ended": _free,
    "matching": _pattern,
    "pattern": _pattern,
    "multiple_choice": _choice,
}
"""The toolkit's names with what makes the format of a question."""
