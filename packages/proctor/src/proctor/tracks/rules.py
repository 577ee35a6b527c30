"""Rules that turn an annotated video into candidate questions, with the wording of any benchmark.

A rule offers a question only if the annotation settles its answer: times are far enough apart, and nothing is half
covered at the time in question. `balance` selects among the candidates of all videos.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise

from pydantic import JsonValue

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
from proctor.tracks.annotation import Sighting, Timeline


def plural(phrase: str) -> str:
    """The plural of a phrase.

    >>> plural("mesh"), plural("white gauze sponge")
    ('meshes', 'white gauze sponges')
    """
    return phrase + ("es" if phrase.endswith(("sh", "ch", "s", "x")) else "s")


def with_article(phrase: str) -> str:
    """A phrase with its indefinite article.

    >>> with_article("external drain"), with_article("needle")
    ('an external drain', 'a needle')
    """
    return f"{'an' if phrase[0].casefold() in 'aeiou' else 'a'} {phrase}"


_APART = 1.0  # least seconds between two events whose order is asked for


@dataclass(frozen=True)
class CandidateQuestion:
    """A question that could be asked.

    `answer` is in the format's canonical form; for a choice, the right option's text. `key` is the answer for balancing
    (a time as its quarter of the video); `cue` is what the question's text reveals (a class, a time of the video), which
    must not predict the key. `mentions` are the classes in the text, `choices` those in the options. `rule` is the name
    of its rule, `at` the second that the text names. The video is shown from `start` to `end` (None: its end); the question
    is asked at `end`.
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
    at: int | None = None


def third(time: float, end: float) -> str:
    """The third of a video that contains a time."""
    return f"third {int(3 * time / end)}"


def apart(times: list[float]) -> bool:
    """Whether all times are at least a second apart."""
    ordered = sorted(times)
    return all(b - a >= _APART for a, b in pairwise(ordered))


@dataclass(frozen=True)
class QuestionTemplates:
    """The wording of a benchmark: its classes, a phrase for each, and the text of every rule.

    Placeholders in texts are `{a}`, `{b}` (the phrase of a class), `{an_a}`, `{an_b}` (with article) and `{many}` (the
    plural of a). `most` is the largest count in an answer. `attributes` are the values of annotators' own attributes, by
    class and name. `measured_s` is the tolerance of times that annotators' differences give (None: that of the video's
    length), and `share_tolerance` that of shares that are estimated by watching, in percentage points.
    """

    names: tuple[str, ...]
    phrases: Mapping[str, str]
    texts: Mapping[str, str]
    most: int = 4
    attributes: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    measured_s: float | None = None
    share_tolerance: float = 5.0

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
        """Choices among four classes: one for every three of the others."""
        for three in combinations(others, 3):
            yield self.among(question, right, (right, *three))

    def among(self, question: str, right: str, names: tuple[str, ...]) -> CandidateQuestion:
        """A choice among classes, the right one first."""
        options = tuple(self.phrase(name) for name in names)
        return CandidateQuestion(question, ChoiceFormat(), self.phrase(right), right, options=options, choices=names)

    def kinds(self, question: str, names: set[str], cue: str = "") -> CandidateQuestion:
        answer: list[JsonValue] = [str(name) for name in sorted(names)]
        form = ClassesFormat(classes=self.names)
        return CandidateQuestion(question, form, answer, "+".join(sorted(names)) or "none", cue)

    def count(
        self, question: str, answer: int, cue: str = "", mentions: tuple[str, ...] = ()
    ) -> Iterator[CandidateQuestion]:
        """A question with a count, if it is at most `most`."""
        if answer <= self.most:
            yield CandidateQuestion(question, CountFormat(), answer, str(answer), cue, mentions=mentions)

    def when(
        self, question: str, end: float, times: list[float], mentions: tuple[str, ...], *, several: bool = False
    ) -> CandidateQuestion:
        """A question for a time, or `several`."""
        form = TimestampsFormat(tolerance=self.tolerance(end), several=several)
        key = f"{len(times)} times" if several else f"quarter {int(4 * times[0] / end)}"
        return CandidateQuestion(question, form, self.moments(times), key, mentions=mentions)

    def tolerance(self, end: float) -> float:
        """The tolerance of times in a video of `end` seconds: as measured, else 1 s, plus 4 s per 6 minutes, up to 5 s."""
        return round(min(5.0, 1 + end * 4 / 360), 2) if self.measured_s is None else self.measured_s

    def moments(self, times: list[float]) -> list[JsonValue]:
        """Times as in an answer: to a tenth of a second."""
        return [round(time, 1) for time in times]

    def order(self, question: str, times: dict[str, float]) -> Iterator[CandidateQuestion]:
        """Questions for the order of three or four classes; the labels are in alphabetical order."""
        for some in orders(times):
            right = sorted(some, key=lambda name: times[name])
            answer: list[JsonValue] = [str(name) for name in right]
            form = OrderingFormat(labels=tuple(sorted(some)))
            yield CandidateQuestion(question, form, answer, right[0], "+".join(sorted(some)))


def orders(times: dict[str, float]) -> Iterator[tuple[str, ...]]:
    """All sets of three or four classes whose times are at least a second apart."""
    for size in (3, 4):
        for some in combinations(times, size):
            if apart([times[name] for name in some]):
                yield some


Rule = Callable[[Timeline, QuestionTemplates], Iterator[CandidateQuestion]]

QUADRANTS = ("upper left", "upper right", "lower left", "lower right")

_PLAINLY = 0.85  # from this visible share on, the centre of the box is the centre of the object


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
            yield replace(say.yes_no(question, name in shown, third(second, line.end), (name,)), at=second)


def _kinds_seen_at(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for second in line.times_to_ask():
        shown = {seen.class_name for seen in line.in_view(second)}
        asked = say.kinds(say.text("kinds-seen-at", time=clock_text(second)), shown, third(second, line.end))
        yield replace(asked, at=second)


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
        for asked in say.count(question, len(line.in_view(second)), third(second, line.end)):
            yield replace(asked, at=second)


def _how_many_out(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    if not line.returned():  # whether what came back "has been taken out" is ambiguous
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
    """Which of four classes is the first; at least two of them have a time."""
    for four in combinations(say.names, 4):
        known = [times[name] for name in four if name in times]
        if len(known) >= 2 and apart(known):
            right = next(name for name in four if times.get(name) == min(known))
            yield say.among(question, right, (right, *(name for name in four if name != right)))


# Retrieval
def _out(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    gone = line.first_out()
    for name in line.first_there():
        yield say.yes_no(say.text("out", name), name in gone, name, (name,))


# Location
def _where(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for second in line.times_to_ask():
        for name in say.names:
            seen = only_one(line, second, name)
            quadrant = None if seen is None else quadrant_of(line, seen)
            if quadrant is not None:
                options = (quadrant, *(other for other in QUADRANTS if other != quadrant))
                question = say.text("where", name, time=clock_text(second))
                asked = CandidateQuestion(question, ChoiceFormat(), quadrant, quadrant, name, options, mentions=(name,))
                yield replace(asked, at=second)


def only_one(line: Timeline, second: int, name: str) -> Sighting | None:
    """The only instance of a class in view at a second, if it is fully visible."""
    shown = [seen for seen in line.in_view(second) if seen.class_name == name]
    if len(shown) != 1 or (shown[0].visibility is not None and shown[0].visibility < _PLAINLY):
        return None
    return shown[0]


def quadrant_of(line: Timeline, seen: Sighting) -> str | None:
    """The quadrant of the frame with a sighting's centre; None near a border of two, or if it is not fully visible."""
    if seen.box is None or (seen.visibility is not None and seen.visibility < _PLAINLY):
        return None
    x, y = seen.box.centre[0] / line.annotation.video.width, seen.box.centre[1] / line.annotation.video.height
    if min(abs(x - 0.5), abs(y - 0.5)) < 0.06:
        return None
    return QUADRANTS[2 * int(y > 0.5) + int(x > 0.5)]


def rules_by_name(*rules: Rule) -> dict[str, Rule]:
    """Rules by the names of their functions: `_how_many` is "how-many"."""
    return {rule.__name__.strip("_").replace("_", "-"): rule for rule in rules}


TRACK_RULES: dict[str, Rule] = {
    "seen": _seen,
    "seen-at": _seen_at,
    "kinds-seen": lambda line, say: iter([say.kinds(say.text("kinds-seen"), set(line.first_in()))]),
    "kinds-seen-at": _kinds_seen_at,
    "never": _never,
    "how-many": _how_many,
    "how-many-at": _how_many_at,
    "plural": _plural,
    "how-many-out": _how_many_out,
    "when-seen": _when_seen,
    "when-each": _when_each,
    "when-out": _when_out,
    "before": _before,
    "first-seen": lambda line, say: _first(say.text("first-seen"), line.first_in(), say),
    "order-seen": lambda line, say: say.order(say.text("order-seen"), line.first_in()),
    "order-out": lambda line, say: say.order(say.text("order-out"), line.first_out()),
    "out": _out,
    "kinds-out": lambda line, say: iter([say.kinds(say.text("kinds-out"), set(line.first_out()))]),
    "first-out": lambda line, say: _first(say.text("first-out"), line.first_out(), say),
    "where": _where,
}
"""All rules by name."""
