"""A question that could be asked, and the few shapes that questions have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from pydantic import JsonValue

from proctor.build.tracks.vocabulary import plural, with_article
from proctor.core.formats import (
    AnswerFormat,
    BinaryFormat,
    ChoiceFormat,
    ClassesFormat,
    CountFormat,
    OrderingFormat,
    TimestampsFormat,
)

__all__ = ["Dialect", "Offer", "apart", "clock", "third"]

_APART = 1.0  # seconds between two events of which a question asks which came first


@dataclass(frozen=True)
class Offer:
    """A question that could be asked.

    `answer` is in the format's canonical form, for a choice the right option's text. `key` is the answer as
    it is to be balanced (a time as its quarter of the video), `cue` is what the question's text tells, and so
    must not go together with a key: a class, a time of the video. `mentions` are the classes that the text
    names, `choices` those that its options name. `rule` says which rule made it, `start` and `end` what of the video is
    shown (None: to its end); it is asked at `end`.
    """

    question: str
    format: AnswerFormat
    answer: JsonValue
    key: str
    cue: str = ""
    options: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    rule: str = ""
    end: float | None = None
    start: float = 0.0


def clock(seconds: float) -> str:
    """A whole second as hh:mm:ss.

    >>> clock(75)
    '00:01:15'
    """
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def third(time: float, end: float) -> str:
    """In which third of a video a time lies."""
    return f"third {int(3 * time / end)}"


def apart(times: list[float]) -> bool:
    """Whether all times are clearly one after another."""
    ordered = sorted(times)
    return all(b - a >= _APART for a, b in pairwise(ordered))


@dataclass(frozen=True)
class Dialect:
    """How a benchmark asks: the classes it knows, each with the phrase for it, and the text of every rule.

    Texts name classes as `{a}`, `{b}` (the phrase), `{an_a}`, `{an_b}` (with its article) and `{many}` (the plural
    of a). `most` is the largest count that is asked for. `attributes` are annotators' own, by class and name, with their
    values.
    """

    names: tuple[str, ...]
    phrases: Mapping[str, str]
    texts: Mapping[str, str]
    most: int = 4
    attributes: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    def phrase(self, name: str) -> str:
        """How questions call a class."""
        return self.phrases[name]

    def text(self, rule: str, a: str = "", b: str = "", **more: str) -> str:
        """The question of a rule, about the classes a and b."""
        words = dict(more)
        for letter, name in (("a", a), ("b", b)):
            if name:
                words |= {letter: self.phrase(name), f"an_{letter}": with_article(self.phrase(name))}
        if a:
            words["many"] = plural(self.phrase(a))
        return self.texts[rule].format(**words)

    def yes_no(self, question: str, answer: bool, cue: str, mentions: tuple[str, ...]) -> Offer:
        """A question for yes or no."""
        return Offer(question, BinaryFormat(), answer, "yes" if answer else "no", cue, mentions=mentions)

    def choice(self, question: str, right: str, others: list[str]) -> Iterator[Offer]:
        """A choice among four classes, for every three others that there are."""
        for three in combinations(others, 3):
            yield self.among(question, right, (right, *three))

    def among(self, question: str, right: str, names: tuple[str, ...]) -> Offer:
        """A choice among these classes, the right one first."""
        options = tuple(self.phrase(name) for name in names)
        return Offer(question, ChoiceFormat(), self.phrase(right), right, options=options, choices=names)

    def kinds(self, question: str, names: set[str], cue: str = "") -> Offer:
        """Which classes."""
        answer: list[JsonValue] = [str(name) for name in sorted(names)]
        form = ClassesFormat(classes=self.names)
        return Offer(question, form, answer, "+".join(sorted(names)) or "none", cue)

    def count(
        self, question: str, answer: int, cue: str = "", mentions: tuple[str, ...] = ()
    ) -> Iterator[Offer]:
        """How many, where that is a number that can be asked for."""
        if answer <= self.most:
            yield Offer(question, CountFormat(), answer, str(answer), cue, mentions=mentions)

    def when(
        self,
        question: str,
        end: float,
        times: list[float],
        mentions: tuple[str, ...],
        *,
        several: bool = False,
    ) -> Offer:
        """At which time, or times; right within a tolerance that grows with the video: 1 s and 4 s per 6 minutes."""
        form = TimestampsFormat(tolerance=self.tolerance(end), several=several)
        key = f"{len(times)} times" if several else f"quarter {int(4 * times[0] / end)}"
        return Offer(question, form, self.moments(times), key, mentions=mentions)

    def tolerance(self, end: float) -> float:
        """Seconds that a time may be off in a video of `end` seconds."""
        return round(min(5.0, 1 + end * 4 / 360), 2)

    def moments(self, times: list[float]) -> list[JsonValue]:
        """Times as they stand in an answer: to a tenth of a second."""
        return [round(time, 1) for time in times]

    def order(self, question: str, times: dict[str, float]) -> Iterator[Offer]:
        """Three or four classes in the order of their times; the labels come in alphabetical order."""
        for some in orders(times):
            right = sorted(some, key=lambda name: times[name])
            answer: list[JsonValue] = [str(name) for name in right]
            form = OrderingFormat(labels=tuple(sorted(some)))
            yield Offer(question, form, answer, right[0], "+".join(sorted(some)))


def orders(times: dict[str, float]) -> Iterator[tuple[str, ...]]:
    """All threes and fours of classes whose times are clearly one after another."""
    for size in (3, 4):
        for some in combinations(times, size):
            if apart([times[name] for name in some]):
                yield some
