"""From an annotated video to questions: rules that need nothing but boxes and moments, in anybody's words.

A rule offers a question only where the annotation settles it: times far enough apart, nothing half covered
at the moment asked for. Which of the offers are asked is decided elsewhere (`balance`), so that answers are
balanced over all videos.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from pydantic import JsonValue

from proctor.construction.annotation import Sighting, Timeline
from proctor.core import clock_text
from proctor.core.formats import (
    AnswerFormat,
    BinaryFormat,
    ChoiceFormat,
    ClassesFormat,
    CountFormat,
    OrderingFormat,
    TimestampsFormat,
)


def plural(phrase: str) -> str:
    """More than one of something.

    >>> plural("mesh"), plural("white gauze sponge")
    ('meshes', 'white gauze sponges')
    """
    return phrase + ("es" if phrase.endswith(("sh", "ch", "s", "x")) else "s")


def with_article(phrase: str) -> str:
    """One of something.

    >>> with_article("external drain"), with_article("needle")
    ('an external drain', 'a needle')
    """
    return f"{'an' if phrase[0].casefold() in 'aeiou' else 'a'} {phrase}"


_APART = 1.0  # seconds between two events of which a question asks which came first


@dataclass(frozen=True)
class CandidateQuestion:
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


def third(time: float, end: float) -> str:
    """In which third of a video a time lies."""
    return f"third {int(3 * time / end)}"


def apart(times: list[float]) -> bool:
    """Whether all times are clearly one after another."""
    ordered = sorted(times)
    return all(b - a >= _APART for a, b in pairwise(ordered))


@dataclass(frozen=True)
class QuestionTemplates:
    """How a benchmark asks: the classes it knows, each with the phrase for it, and the text of every rule.

    Texts name classes as `{a}`, `{b}` (the phrase), `{an_a}`, `{an_b}` (with its article) and `{many}` (the plural
    of a). `most` is the largest count that is asked for. `attributes` are annotators' own, by class and name, with
    their values.
    """

    names: tuple[str, ...]
    phrases: Mapping[str, str]
    texts: Mapping[str, str]
    most: int = 4
    attributes: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    def phrase(self, name: str) -> str:
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

    def yes_no(self, question: str, answer: bool, cue: str, mentions: tuple[str, ...]) -> CandidateQuestion:
        return CandidateQuestion(question, BinaryFormat(), answer, "yes" if answer else "no", cue, mentions=mentions)

    def choice(self, question: str, right: str, others: list[str]) -> Iterator[CandidateQuestion]:
        """A choice among four classes, for every three others that there are."""
        for three in combinations(others, 3):
            yield self.among(question, right, (right, *three))

    def among(self, question: str, right: str, names: tuple[str, ...]) -> CandidateQuestion:
        """A choice among these classes, the right one first."""
        options = tuple(self.phrase(name) for name in names)
        return CandidateQuestion(question, ChoiceFormat(), self.phrase(right), right, options=options, choices=names)

    def kinds(self, question: str, names: set[str], cue: str = "") -> CandidateQuestion:
        answer: list[JsonValue] = [str(name) for name in sorted(names)]
        form = ClassesFormat(classes=self.names)
        return CandidateQuestion(question, form, answer, "+".join(sorted(names)) or "none", cue)

    def count(
        self, question: str, answer: int, cue: str = "", mentions: tuple[str, ...] = ()
    ) -> Iterator[CandidateQuestion]:
        """How many, where that is a number that can be asked for."""
        if answer <= self.most:
            yield CandidateQuestion(question, CountFormat(), answer, str(answer), cue, mentions=mentions)

    def when(
        self, question: str, end: float, times: list[float], mentions: tuple[str, ...], *, several: bool = False
    ) -> CandidateQuestion:
        """At which time, or times; right within a tolerance that grows with the video: 1 s and 4 s per 6 minutes."""
        form = TimestampsFormat(tolerance=self.tolerance(end), several=several)
        key = f"{len(times)} times" if several else f"quarter {int(4 * times[0] / end)}"
        return CandidateQuestion(question, form, self.moments(times), key, mentions=mentions)

    def tolerance(self, end: float) -> float:
        """Seconds that a time may be off in a video of `end` seconds."""
        return round(min(5.0, 1 + end * 4 / 360), 2)

    def moments(self, times: list[float]) -> list[JsonValue]:
        """Times as they stand in an answer: to a tenth of a second."""
        return [round(time, 1) for time in times]

    def order(self, question: str, times: dict[str, float]) -> Iterator[CandidateQuestion]:
        """Three or four classes in the order of their times; the labels come in alphabetical order."""
        for some in orders(times):
            right = sorted(some, key=lambda name: times[name])
            answer: list[JsonValue] = [str(name) for name in right]
            form = OrderingFormat(labels=tuple(sorted(some)))
            yield CandidateQuestion(question, form, answer, right[0], "+".join(sorted(some)))


def orders(times: dict[str, float]) -> Iterator[tuple[str, ...]]:
    """All threes and fours of classes whose times are clearly one after another."""
    for size in (3, 4):
        for some in combinations(times, size):
            if apart([times[name] for name in some]):
                yield some


Rule = Callable[[Timeline, QuestionTemplates], Iterator[CandidateQuestion]]

QUADRANTS = ("upper left", "upper right", "lower left", "lower right")

_PLAINLY = 0.85  # from this visible share on the middle of the box is the middle of the object


# Presence
def _seen(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    first = line.first_in()
    for name in say.names:
        yield say.yes_no(say.text("seen", name), name in first, name, (name,))


def _seen_at(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for second in line.times_to_ask():
        shown = {seen.class_name for seen in line.in_view(second)}
        for name in say.names:
            question = say.text("seen-at", name, time=clock_text(second))
            yield say.yes_no(question, name in shown, third(second, line.end), (name,))


def _kinds_seen(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    yield say.kinds(say.text("kinds-seen"), set(line.first_in()))


def _kinds_seen_at(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for second in line.times_to_ask():
        shown = {seen.class_name for seen in line.in_view(second)}
        yield say.kinds(say.text("kinds-seen-at", time=clock_text(second)), shown, third(second, line.end))


def _never(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    first = line.first_in()
    for name in say.names:
        if name not in first:
            yield from say.choice(say.text("never"), name, list(first))


# Counting
def _how_many(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in say.names:
        found = line.insertions(name)
        if all(line.plain(moment.instance) for moment in found):
            yield from say.count(say.text("how-many", name), len(found), name, (name,))


def _how_many_at(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for second in line.times_to_ask():
        question = say.text("how-many-at", time=clock_text(second))
        yield from say.count(question, len(line.in_view(second)), third(second, line.end))


def _how_many_out(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    if not line.returned():  # of what went out and came back nobody can say whether it "has been taken out"
        yield from say.count(say.text("how-many-out"), len(line.outside()))


def _plural(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    times = {name: len(line.insertions(name)) for name in say.names}
    several = [name for name in say.names if times[name] > 1]
    if len(several) == 1:
        others = [name for name in say.names if times[name] <= 1]
        yield from say.choice(say.text("plural"), several[0], others)


# Timing
def _when_seen(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name, time in line.first_in().items():
        if line.plain(line.insertions(name)[0].instance):
            yield say.when(say.text("when-seen", name), line.end, [time], (name,))


def _when_each(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in line.first_in():
        found = line.insertions(name)
        if len(found) <= 3 and all(line.plain(moment.instance) for moment in found):
            times = [moment.time for moment in found]
            yield say.when(say.text("when-each", name), line.end, times, (name,), several=True)


def _when_out(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in line.first_out():
        out = line.retrievals(name)
        if len(out) == 1:
            yield say.when(say.text("when-out", name), line.end, [out[0].time], (name,))


# Sequence
def _before(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    first = line.first_in()
    for one, other in combinations(first, 2):
        for a, b in ((one, other), (other, one)):
            if apart([first[a], first[b]]):
                yield say.yes_no(say.text("before", a, b), first[a] < first[b], a, (a, b))


def _first(question: str, times: dict[str, float], say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    """Which of four classes is the first; those to which it never happens are options too."""
    for four in combinations(say.names, 4):
        known = [times[name] for name in four if name in times]
        if len(known) >= 2 and apart(known):
            right = next(name for name in four if times.get(name) == min(known))
            yield say.among(question, right, (right, *(name for name in four if name != right)))


def _first_seen(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    yield from _first(say.text("first-seen"), line.first_in(), say)


def _order_seen(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    yield from say.order(say.text("order-seen"), line.first_in())


def _order_out(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    yield from say.order(say.text("order-out"), line.first_out())


# Retrieval
def _out(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    gone = line.first_out()
    for name in line.first_there():
        yield say.yes_no(say.text("out", name), name in gone, name, (name,))


def _kinds_out(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    yield say.kinds(say.text("kinds-out"), set(line.first_out()))


def _first_out(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    yield from _first(say.text("first-out"), line.first_out(), say)


# Location
def _where(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for second in line.times_to_ask():
        for name in say.names:
            quadrant = _quadrant(line, second, name)
            if quadrant is not None:
                options = (quadrant, *(other for other in QUADRANTS if other != quadrant))
                question = say.text("where", name, time=clock_text(second))
                yield CandidateQuestion(question, ChoiceFormat(), quadrant, quadrant, name, options, mentions=(name,))


def only_one(line: Timeline, second: int, name: str) -> Sighting | None:
    """The only instance of a class in view at a second, where all of it shows."""
    shown = [seen for seen in line.in_view(second) if seen.class_name == name]
    if len(shown) != 1 or (shown[0].visibility is not None and shown[0].visibility < _PLAINLY):
        return None
    return shown[0]


def _quadrant(line: Timeline, second: int, name: str) -> str | None:
    """The quarter in which the only instance of a class is clearly to be seen."""
    seen = only_one(line, second, name)
    return None if seen is None else quadrant_of(line, seen)


def quadrant_of(line: Timeline, seen: Sighting) -> str | None:
    """The quarter of the picture in which a sighting's middle lies; None too near to a border of two, and where not
    all of it shows."""
    if seen.box is None or (seen.visibility is not None and seen.visibility < _PLAINLY):
        return None
    x, y = seen.box.centre[0] / line.annotation.video.width, seen.box.centre[1] / line.annotation.video.height
    if min(abs(x - 0.5), abs(y - 0.5)) < 0.06:
        return None
    return QUADRANTS[2 * int(y > 0.5) + int(x > 0.5)]


def rules_by_name(*rules: Rule) -> dict[str, Rule]:
    """The rules by the names of their functions: `_how_many` is "how-many"."""
    return {rule.__name__.strip("_").replace("_", "-"): rule for rule in rules}


TRACK_RULES = rules_by_name(
    _seen, _seen_at, _kinds_seen, _kinds_seen_at, _never, _how_many, _how_many_at, _plural, _how_many_out,
    _when_seen, _when_each, _when_out, _before, _first_seen, _order_seen, _order_out, _out, _kinds_out, _first_out,
    _where,
)  # fmt: skip
"""The rules by name."""
