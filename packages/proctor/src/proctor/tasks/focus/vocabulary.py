"""What the toolkit's labels mean: FOCUS's taxonomy of capabilities, the definition of foreign objects, answer formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import ascii_lowercase
from types import MappingProxyType
from typing import Any, TypedDict

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


class CapabilityGroup(TypedDict):
    """One of the five groups: its title, what it asks, and its leaves with their meanings."""

    title: str
    asks: str
    leaves: dict[str, str]


_TAXONOMY: dict[str, CapabilityGroup] = json.loads(files(__package__).joinpath("taxonomy.json").read_bytes())

GROUPS = MappingProxyType(_TAXONOMY)
"""The five groups by their name in the files."""

GROUP_OF = MappingProxyType({leaf: name for name, group in GROUPS.items() for leaf in group["leaves"]})
"""The group of each of the fifteen leaves."""

CAPABILITIES = tuple(GROUP_OF)
"""The fifteen leaves, in the order of the taxonomy."""

_CODES = MappingProxyType(
    {
        f"{number}{letter}": leaf
        for number, group in enumerate(GROUPS.values(), start=1)
        for letter, leaf in zip(ascii_lowercase, group["leaves"], strict=False)
    }
)


def leaf_of(label: str) -> str | None:
    """A leaf by its name, in any case and with hyphens or spaces for underscores, or by its code; None if unknown.

    >>> leaf_of("1a"), leaf_of("Temporal-Ordering"), leaf_of("aggregation")
    ('object_identification', 'temporal_ordering', None)
    """
    plain = label.strip().lower()
    name = plain.replace("-", "_").replace(" ", "_")
    return _CODES.get(plain.replace(" ", ""), name if name in GROUP_OF else None)


FOREIGN_OBJECT = (
    "Anything that is brought wholly into the body cavity during the procedure and has to be retrieved or accounted "
    "for, and tissue or a stone that has come loose in it and has to be taken out. Not meant are instruments that "
    "stay connected to the outside (graspers, scissors, trocars, staplers, cameras) and parts that come off an "
    "instrument, such as the anvil of a stapler."
)
"""The definition that all classes share, in our own words."""


MAX_CHARS = 300
"""The maximum length of free text where the reference has no `max_length`."""

PERCENT_TOLERANCE = 5.0
"""The tolerance in percentage points where the reference has no `threshold_pp`."""

TIME_TOLERANCE_S = 5.0
"""The tolerance in seconds where the reference has no `threshold_seconds`."""


@dataclass(frozen=True)
class FormQuestion:
    """What a format depends on: the question's arguments, its listed options, the known classes."""

    arguments: dict[str, Any]
    listed: Sequence[str]
    classes: tuple[str, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """The options of a multiple choice, possibly none."""
        return tuple(self.listed)

    def number(self, default: float, name: str) -> float:
        """The argument of this name, or the default."""
        return float(self.arguments.get(name, default))

    @property
    def max_chars(self) -> int:
        return int(self.arguments.get("max_length", MAX_CHARS))


def _texts(listed: object, what: str) -> tuple[str, ...]:
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise TypeError(f"{what} are no list of texts")
    return tuple(listed)


def lettered(options: Sequence[str]) -> str:
    """Options as in a question's text.

    >>> lettered(["left", "right"])
    'A) left; B) right.'
    """
    named = zip(option_letters(len(options)), options, strict=True)
    return "; ".join(f"{letter}) {option}" for letter, option in named) + "."


def time_tolerance(duration_s: float) -> float:
    """The tolerance in seconds of a time in the published rows: min(5, 1 + duration · 4 / 360).

    >>> time_tolerance(0), time_tolerance(180), time_tolerance(3600)
    (1.0, 3.0, 5.0)
    """
    return min(5.0, 1.0 + duration_s * 4 / 360)


def _classes(question: FormQuestion) -> AnswerFormat:
    given = question.arguments.get("valid_names")
    names = question.classes if given is None else _texts(given, "the valid names")
    return ClassesFormat(classes=names, strict=True)


def _time(question: FormQuestion) -> AnswerFormat:
    # the number of moments is part of the question, so the format must not reveal it
    tolerance = question.number(TIME_TOLERANCE_S, "threshold_seconds")
    return TimestampsFormat(tolerance=tolerance, several=True, strict=True)


def _free(question: FormQuestion) -> AnswerFormat:
    return FreeTextFormat(max_chars=question.max_chars, strict=True)


def _pattern(question: FormQuestion) -> AnswerFormat:
    pattern = str(question.arguments.get("pattern", ""))
    return PatternFormat(pattern=pattern, max_chars=question.max_chars, strict=True)


FORMATS: dict[str, tuple[tuple[str, ...], Callable[[FormQuestion], AnswerFormat]]] = {
    "binary": ((), lambda _: BinaryFormat(strict=True)),
    "number": ((), lambda _: CountFormat(strict=True)),
    "percentage": (
        ("threshold_pp",),
        lambda asked: PercentageFormat(tolerance=asked.number(PERCENT_TOLERANCE, "threshold_pp"), strict=True),
    ),
    "fo_class": (("valid_names",), _classes),
    "time": (("threshold_seconds",), _time),
    "open_ended": (("max_length",), _free),
    "matching": (("pattern", "max_length"), _pattern),
    # options that are only in the question's text can't be compared by code: a judge decides
    "multiple_choice": (("max_length",), lambda asked: ChoiceFormat(strict=True) if asked.options else _free(asked)),
}
"""By the toolkit's name of a format its arguments and its constructor."""


UNKNOWN = "unknown"
"""The answer format of a question without reference whose request names none."""
