"""The rules of FOCUS alone: what is left inside, when it was last seen, how long, which one; an instance identified by
its time of insertion; what happens at a moment; and annotators' attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from proctor.core import clock_text
from proctor.core.formats import (
    BinaryFormat,
    ChoiceFormat,
    CountFormat,
    PatternFormat,
    PercentageFormat,
    TimestampsFormat,
)
from proctor.tracks import (
    QUADRANTS,
    STAYING,
    TRACK_RULES,
    AnnotatedMoment,
    Annotation,
    CandidateQuestion,
    QuestionTemplates,
    Rule,
    Sighting,
    Timeline,
    official_name,
    only_one,
    quadrant_of,
    rules_by_name,
    third,
)

_APART_S = 6.0  # between two insertions of a class, so that a time in hh:mm:ss identifies one of them
_ALONE_S = 5.0  # around a moment in which nothing else happens to its class
_GONE_S = 3.0  # an object seen this shortly before the end may still be in view

HAPPENINGS = (
    "one is brought into the patient",
    "one is taken out of the patient",
    "at least one is in view, and none is brought in or taken out",
    "none is in view, and none is brought in or taken out",
)
"""What may happen to a class at a time."""


def _clock(time: float) -> str:
    return clock_text(int(time + 0.5))


def brought_in(line: Timeline, name: str) -> list[AnnotatedMoment]:
    """The insertions of a class that a time identifies: of instances inserted once, far from all others."""
    moments = line.insertions(name)
    once = [moment for moment in moments if sum(other.instance == moment.instance for other in moments) == 1]
    return [
        annotated_moment
        for annotated_moment in once
        if all(
            abs(other.time - annotated_moment.time) >= _APART_S for other in moments if other is not annotated_moment
        )
    ]


def _one_out(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in line.first_in():
        gone = set(line.outside(name))
        for moment in brought_in(line, name):
            question = say.text("one-out", name, time=_clock(moment.time))
            yield say.yes_no(question, moment.instance in gone, name, (name,))


def _retrieval(line: Timeline, moment: AnnotatedMoment) -> float | None:
    """The time at which the inserted instance left; None unless it left exactly once."""
    went = [retrieval.time for retrieval in line.retrievals(moment.class_name) if retrieval.instance == moment.instance]
    return went[0] if len(went) == 1 and went[0] > moment.time else None


def _one_when_out(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in line.first_in():
        for moment in brought_in(line, name):
            went = _retrieval(line, moment)
            if went is not None:
                question = say.text("one-when-out", name, time=_clock(moment.time))
                yield say.when(question, line.end, [went], (name,))


def _one_stay(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in line.first_in():
        for moment in brought_in(line, name):
            went = _retrieval(line, moment)
            if went is not None:
                yield _duration(
                    line, say, say.text("one-stay", name, time=_clock(moment.time)), went - moment.time, name
                )


def _duration(line: Timeline, say: QuestionTemplates, question: str, seconds: float, name: str) -> CandidateQuestion:
    form = TimestampsFormat(tolerance=2 * say.tolerance(line.end))  # of two moments either may be off
    key = f"quarter {int(4 * seconds / (line.end + 1))}"
    return CandidateQuestion(question, form, say.moments([seconds]), key, name, mentions=(name,))


def _one_where(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    """Only for classes with several instances: a single one would be identified by its class."""
    for name in line.first_in():
        moments = brought_in(line, name)
        if len({insertion.instance for insertion in line.insertions(name)}) < 2:
            continue
        for second in line.times_to_ask():
            clear = {sighting.instance: sighting for sighting in line.in_view(second) if sighting.class_name == name}
            for moment in moments:
                seen = clear.get(moment.instance)
                if seen is not None:
                    question = say.text("one-where", name, time=_clock(moment.time), later=clock_text(second))
                    yield from _located(line, question, seen, name)


def _last_location(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in line.first_there():
        seen = last_sighting(line, name)
        if seen is not None:
            yield from _located(line, say.text("last-location", name), seen, name)


def last_sighting(line: Timeline, name: str) -> Sighting | None:
    """The last sighting of the only instance of a class that is still inside; None where it is still in view, where
    several are inside, and where the last sighting is unclear or of another instance."""
    inside, shown = line.inside(name), line.shown(name)
    if len(inside) != 1 or not shown or shown[-1] > line.end - _GONE_S or max(line.unseen, default=-1) > shown[-1]:
        return None
    last = [sighting for sighting in line.in_view(shown[-1]) if sighting.class_name == name]
    return last[0] if len(last) == 1 and last[0].instance == inside[0] else None


def _located(line: Timeline, question: str, seen: Sighting, name: str) -> Iterator[CandidateQuestion]:
    quadrant = quadrant_of(line, seen)
    if quadrant is not None:
        options = (quadrant, *(other for other in QUADRANTS if other != quadrant))
        yield CandidateQuestion(question, ChoiceFormat(), quadrant, quadrant, name, options, mentions=(name,))


# What happens


def _happens(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in line.first_in():
        moments = [*line.insertions(name), *line.retrievals(name)]
        found = [
            (int(moment.time + 0.5), 0 if moment.kind == "insertion" else 1)
            for moment in moments
            if _alone(moment, moments)
        ]
        for second in line.times_to_ask():
            if all(abs(moment.time - second) >= _ALONE_S for moment in moments):
                there = any(sighting.class_name == name for sighting in line.in_view(second))
                found.append((second, 2 if there else 3))
        for second, which in found:
            if second < line.end - 1:
                right = HAPPENINGS[which]
                options = (right, *(other for other in HAPPENINGS if other != right))
                question = say.text("happens", name, time=clock_text(second))
                cue = third(second, line.end)
                yield CandidateQuestion(question, ChoiceFormat(), right, f"{which}", cue, options, mentions=(name,))


def _alone(moment: AnnotatedMoment, moments: list[AnnotatedMoment]) -> bool:
    return all(
        annotated_moment is moment or abs(annotated_moment.time - moment.time) >= _ALONE_S
        for annotated_moment in moments
    )


def _which_happens(
    line: Timeline, say: QuestionTemplates, rule: str, moments: list[AnnotatedMoment]
) -> Iterator[CandidateQuestion]:
    """Which class is inserted or retrieved; the other options are not, around that time."""
    every = [*line.insertions(), *line.retrievals()]
    for moment in moments:
        if not _alone(moment, every) or moment.time > line.end - 1:
            continue
        others = [name for name in say.names if name != moment.class_name]
        for three in combinations(others, 3):
            question = say.text(rule, time=_clock(moment.time))
            yield say.among(question, moment.class_name, (moment.class_name, *three))


def _which_in(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    yield from _which_happens(line, say, "which-in", line.insertions())


def _which_away(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    yield from _which_happens(line, say, "which-away", line.retrievals())


def _must_leave(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    if line.first_there():
        yield say.kinds(say.text("must-leave"), {name for name in _temporary(say.names) if line.inside(name)})


def _left_behind(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    if line.first_there():
        left = sum(len(line.inside(name)) for name in _temporary(say.names))
        yield from say.count(say.text("left-behind"), left)


def _temporary(names: Iterable[str]) -> list[str]:
    """The classes that must not stay in the body."""
    return [name for name in names if official_name(name) not in STAYING]


INSTANCE_RULES = rules_by_name(
    _one_out, _one_when_out, _one_stay, _one_where, _last_location, _happens, _which_in, _which_away, _must_leave,
    _left_behind,
)  # fmt: skip
"""These rules by name."""


MEANINGS: Mapping[str, frozenset[str]] = {
    "site": frozenset({"location", "situs", "site", "anatomy", "region"}),
    "use": frozenset({"purpose", "usage", "use"}),
    "action": frozenset({"action", "interaction", "activity"}),
    "holder": frozenset({"held_by", "holder", "instrument"}),
}
"""Names of attributes for the location of an object in the body, its use, what is done with it, and what holds it. All other
attributes are properties of the object."""

_YES_NO = {"true", "false"}
_MAX_VALUES = 12  # an attribute with more values is a free remark
_OPTIONS = 4


def known_attributes(annotations: Sequence[Annotation]) -> dict[tuple[str, str], tuple[str, ...]]:
    """By class and name, the attributes with two to twelve values, and these values."""
    found: dict[tuple[str, str], set[str]] = {}
    for annotation in annotations:
        for seen in annotation.sightings:
            for name, value in seen.attributes.items():
                found.setdefault((seen.class_name, name), set()).add(value)
    return {key: tuple(sorted(some)) for key, some in found.items() if 2 <= len(some) <= _MAX_VALUES}


def _meaning(attribute: str) -> str:
    folded = attribute.casefold().replace(" ", "_")
    return next((meaning for meaning, names in MEANINGS.items() if folded in names), "property")


def _steady(line: Timeline, second: int, seen: Sighting, attribute: str) -> str | None:
    """The value of an attribute; None unless it is the same a second before and after."""
    around = [
        sighting.attributes.get(attribute)
        for other in (second - 1, second + 1)
        for sighting in line.in_view(other)
        if sighting.instance == seen.instance
    ]
    value = seen.attributes.get(attribute)
    return value if value is not None and all(one == value for one in around) else None


def _choices(question: str, key: tuple[str, str], value: str, values: tuple[str, ...]) -> Iterator[CandidateQuestion]:
    """A choice among the values; where there are more than four, one question for every three others."""
    name, attribute = key
    others = [one for one in values if one != value]
    for some in combinations(others, min(_OPTIONS - 1, len(others))):
        cue = f"{name} {attribute}"
        yield CandidateQuestion(question, ChoiceFormat(), value, value, cue, (value, *some), mentions=(name,))


def _at_a_time(line: Timeline, say: QuestionTemplates, meaning: str) -> Iterator[CandidateQuestion]:
    """Questions on the only instance of a class in view at a second."""
    for (name, attribute), values in say.attributes.items():
        yes_no = set(values) == _YES_NO
        if _meaning(attribute) != meaning or (yes_no and meaning != "property"):
            continue
        words = attribute.replace("_", " ")
        for second in line.times_to_ask():
            seen = only_one(line, second, name)
            value = None if seen is None else _steady(line, second, seen, attribute)
            if value is None:
                continue
            if yes_no:
                question = say.text("is-property", name, time=clock_text(second), attribute=words)
                yield say.yes_no(question, value == "true", f"{name} {attribute}", (name,))
            else:
                question = say.text(meaning, name, time=clock_text(second), attribute=words)
                yield from _choices(question, (name, attribute), value, values)


def _rule(meaning: str, *, yes_no: bool = False) -> Rule:
    """The rule for attributes of a meaning, either those that are true or false, or the others."""

    def rule(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
        for candidate in _at_a_time(line, say, meaning):
            if isinstance(candidate.format, BinaryFormat) is yes_no:
                yield candidate

    return rule


def _sites(say: QuestionTemplates) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for (name, attribute), values in say.attributes.items():
        if _meaning(attribute) == "site" and set(values) != _YES_NO:
            yield name, attribute, values


def _one_site(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    """The site at which the object inserted at a time was last seen."""
    for name, attribute, values in _sites(say):
        for moment in brought_in(line, name):
            seen = line.last_clear(moment.instance)
            value = None if seen is None else _steady(line, seen.second, seen, attribute)
            if value is not None:
                question = say.text("one-site", name, time=_clock(moment.time))
                yield from _choices(question, (name, attribute), value, values)


def _last_site(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    """The site at which the only remaining object, now out of view, was last seen."""
    for name, attribute, values in _sites(say):
        seen = last_sighting(line, name)
        value = None if seen is None else _steady(line, seen.second, seen, attribute)
        if value is not None:
            yield from _choices(say.text("last-site", name), (name, attribute), value, values)


ATTRIBUTE_RULES: dict[str, Rule] = {
    "property": _rule("property"),
    "is-property": _rule("property", yes_no=True),
    **{meaning: _rule(meaning) for meaning in MEANINGS},
    **rules_by_name(_one_site, _last_site),
}
"""These rules by name."""


_ORDINALS = ("first", "second", "third", "fourth", "fifth")
_COUNTED_TOLERANCE = 1.0  # percentage points, for a share of a count
_LINES_APART = 0.04  # of the picture's size: closer to a line of the grid the cell is ambiguous
_A_WHILE_S = 5  # an object seen again sooner is usually the same one
_UNSURE = 3.0  # percentage points that half-hidden objects may account for
_ALIKE = frozenset({"Clip"})  # many are placed and all look alike: numbering them is only counting


def _part_of_the_video(time: float, line: Timeline) -> str:
    return third(min(time, line.end - 1), line.end)


# What is left
def _remain(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in say.names:
        yield from say.count(say.text("remain", name), len(line.inside(name)), name, (name,))


def _remain_all(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    yield from say.count(say.text("remain-all"), len(line.inside()))


def _kinds_left(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    left = {name for name in say.names if line.inside(name)}
    yield say.kinds(say.text("kinds-left"), left)


def _out_share(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    must_go = _temporary(line.first_there())
    out = sum(len(line.outside(name)) for name in must_go)
    every = out + sum(len(line.inside(name)) for name in must_go)
    if every and not line.returned():
        share = round(100 * out / every)
        form = PercentageFormat(tolerance=_COUNTED_TOLERANCE)
        yield CandidateQuestion(say.text("out-share"), form, float(share), str(share))


def _all_out(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in _temporary(line.first_there()):
        yield say.yes_no(say.text("all-out", name), not line.inside(name), name, (name,))


def _nothing_left(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    must_go = _temporary(line.first_there())
    if must_go:
        left = any(line.inside(name) for name in must_go)
        yield say.yes_no(say.text("nothing-left"), not left, "", ())


# When, and how long
def _last_seen(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in say.names:
        shown = line.shown(name)
        known = shown and max(line.unseen, default=-1) < shown[-1]
        if known and any(sighting.class_name == name for sighting in line.in_view(shown[-1])):
            yield say.when(say.text("last-seen", name), line.end, [float(shown[-1])], (name,))


def _when_nth(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in line.first_in():
        moments = line.insertions(name)
        for nth, moment in list(zip(_ORDINALS, moments, strict=False))[1:]:
            question = say.text("when-nth", name, nth=nth)
            yield say.when(question, line.end, [moment.time], (name,))


def _stay(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in line.first_in():
        came, went = line.insertions(name), line.retrievals(name)
        if len(came) == len(went) == 1 and came[0].instance == went[0].instance:
            yield _duration(line, say, say.text("stay", name), went[0].time - came[0].time, name)


def _view_share(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    seconds = int(line.end)
    if line.unseen:
        return
    for name in say.names:
        shown = set(line.shown(name))
        some = len(shown)
        changes = sum((second in shown) != (second + 1 in shown) for second in range(-1, seconds + 1))
        clear = sum(
            any(sighting.class_name == name for sighting in line.in_view(second)) for second in range(seconds + 1)
        )
        share = 100 * some / (seconds + 1)
        unsure = 100 * (some - clear) / (seconds + 1) > _UNSURE
        coarse = 100 * changes / (seconds + 1) > say.share_tolerance  # a change is known to a second
        # closer to 0 or 100 than the tolerance, "never" or "always" would be right without looking
        telling = say.share_tolerance < round(share) < 100 - say.share_tolerance
        if telling and not unsure and not coarse:
            form = PercentageFormat(tolerance=say.share_tolerance)
            key = f"fifth {int(min(share, 99) / 20)}"
            question = say.text("view-share", name)
            yield CandidateQuestion(question, form, float(round(share)), key, name, mentions=(name,))


# Where, and which one
def _cell(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    video = line.annotation.video
    for second in line.times_to_ask():
        for name in say.names:
            seen = only_one(line, second, name)
            if seen is None or seen.box is None:
                continue
            x, y = seen.box.centre[0] / video.width, seen.box.centre[1] / video.height
            near = min(abs(row - edge) for row in (x, y) for edge in (1 / 3, 2 / 3))
            if near < _LINES_APART or not (0 <= x < 1 and 0 <= y < 1):
                continue
            answer = f"{int(3 * y) + 1}/{int(3 * x) + 1}"
            question = say.text("cell", name, time=clock_text(second))
            form = PatternFormat(pattern="[1-3]/[1-3]")
            yield CandidateQuestion(question, form, answer, answer, name, mentions=(name,))


def _numbered(line: Timeline, name: str) -> dict[str, int]:
    """The instances of a class numbered in order of insertion; empty where one was inserted twice, for a single instance,
    and for classes whose instances look alike."""
    moments: list[AnnotatedMoment] = [] if official_name(name) in _ALIKE else line.insertions(name)
    numbers = {moment.instance: number for number, moment in enumerate(moments, start=1)}
    return numbers if len(numbers) == len(moments) > 1 else {}


def _which_first_out(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in say.names:
        numbers, out = _numbered(line, name), line.retrievals(name)
        if out and out[0].instance in numbers:
            number = numbers[out[0].instance]
            question = say.text("which-first-out", name)
            yield CandidateQuestion(question, CountFormat(), number, str(number), name, mentions=(name,))


def _which_at(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in say.names:
        numbers = _numbered(line, name)
        for second in line.times_to_ask() if numbers else ():
            seen = only_one(line, second, name)
            number = numbers.get(seen.instance) if seen else None
            if number is not None:
                question = say.text("which-at", name, time=clock_text(second))
                cue = _part_of_the_video(second, line)
                yield CandidateQuestion(question, CountFormat(), number, str(number), cue, mentions=(name,))


def _same(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in say.names:
        if not _numbered(line, name):
            continue
        alone = [(t, seen.instance) for t in line.times_to_ask() if (seen := only_one(line, t, name))]
        for (one, a), (other, b) in combinations(alone, 2):
            if other - one < _A_WHILE_S:
                continue
            question = say.text("same", name, time=clock_text(one), later=clock_text(other))
            yield say.yes_no(question, a == b, _part_of_the_video(other - one, line), (name,))


_OWN_RULES = rules_by_name(
    _cell, _last_seen, _when_nth, _stay, _view_share, _remain, _remain_all, _kinds_left, _out_share, _all_out,
    _nothing_left, _which_first_out, _which_at, _same,
)  # fmt: skip

FOCUS_RULES = TRACK_RULES | _OWN_RULES | INSTANCE_RULES | ATTRIBUTE_RULES
"""All rules of FOCUS, the common ones first."""
