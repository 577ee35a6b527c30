"""A question that could be asked, and the few shapes that questions have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

from pydantic import JsonValue

from proctor.build.simulate.looks import CLASSES, class_named
from proctor.build.simulate.truth import Truth
from proctor.core.formats import (
    AnswerFormat,
    BinaryFormat,
    ChoiceFormat,
    ClassesFormat,
    CountFormat,
    OrderingFormat,
    TimestampsFormat,
)

__all__ = [
    "NAMES",
    "Offer",
    "apart",
    "choice",
    "clock",
    "count",
    "kinds",
    "order",
    "phrase",
    "third",
    "when",
    "yes_no",
]

NAMES = tuple(kind.name for kind in CLASSES)

_APART = 1.0  # seconds between two events of which a question asks which came first
_MOST = 4  # counts beyond this are not asked for


@dataclass(frozen=True)
class Offer:
    """A question that could be asked.

    `answer` is in the format's canonical form, for a choice the right option's text. `key` is the answer as
    it is to be balanced (a time as its quarter of the video), `cue` is what the question's text tells, and so
    must not go together with a key: a class, a time of the video. `rule` says which rule made it.
    """

    question: str
    format: AnswerFormat
    answer: JsonValue
    key: str
    cue: str = ""
    options: tuple[str, ...] = ()
    rule: str = ""

    @property
    def mentions(self) -> tuple[str, ...]:
        """The classes that the question's text names."""
        return tuple(name for name in NAMES if phrase(name) in self.question)

    @property
    def choices(self) -> tuple[str, ...]:
        """The classes that its options name."""
        return tuple(name for name in NAMES if phrase(name) in self.options)


def clock(seconds: float) -> str:
    """A whole second as hh:mm:ss.

    >>> clock(75)
    '00:01:15'
    """
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def phrase(name: str) -> str:
    """How questions call a class."""
    return class_named(name).phrase


def third(truth: Truth, time: float) -> str:
    """In which third of the video a time lies."""
    return f"third {int(3 * time / truth.log.seconds)}"


def apart(times: list[float]) -> bool:
    """Whether all times are clearly one after another."""
    ordered = sorted(times)
    return all(b - a >= _APART for a, b in pairwise(ordered))


def yes_no(question: str, answer: bool, cue: str) -> Offer:
    """A question for yes or no."""
    return Offer(question, BinaryFormat(), answer, "yes" if answer else "no", cue)


def choice(question: str, right: str, others: list[str]) -> Iterator[Offer]:
    """A choice among four classes, for every three others that there are."""
    for three in combinations(others, 3):
        options = tuple(phrase(name) for name in (right, *three))
        yield Offer(question, ChoiceFormat(), options[0], right, options=options)


def kinds(question: str, names: set[str], cue: str = "") -> Offer:
    """Which classes."""
    answer: list[JsonValue] = [str(name) for name in sorted(names)]
    return Offer(question, ClassesFormat(classes=NAMES), answer, "+".join(sorted(names)) or "none", cue)


def count(question: str, answer: int, cue: str = "") -> Iterator[Offer]:
    """How many, where that is a number at a glance."""
    if answer <= _MOST:
        yield Offer(question, CountFormat(), answer, str(answer), cue)


def when(question: str, truth: Truth, times: list[float], *, several: bool = False) -> Offer:
    """At which time, or times; right within a tolerance that grows with the video: 1 s and 4 s per 6 minutes."""
    tolerance = round(min(5.0, 1 + truth.log.seconds * 4 / 360), 2)
    form = TimestampsFormat(tolerance=tolerance, several=several)
    key = f"{len(times)} times" if several else f"quarter {int(4 * times[0] / truth.log.seconds)}"
    answer: list[JsonValue] = [round(time, 1) for time in times]
    return Offer(question, form, answer, key)


def order(question: str, times: dict[str, float]) -> Iterator[Offer]:
    """Three or four classes in the order of their times; the labels come in alphabetical order."""
    for size in (3, 4):
        for some in combinations(times, size):
            if apart([times[name] for name in some]):
                right = sorted(some, key=lambda name: times[name])
                answer: list[JsonValue] = [str(name) for name in right]
                form = OrderingFormat(labels=tuple(sorted(some)))
                yield Offer(question, form, answer, right[0], "+".join(sorted(some)))
