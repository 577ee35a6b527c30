"""Rules about one instance, singled out by when it was brought in or by being the one that is left; and about what
happens at a moment, and what would follow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from proctor.construction.tracks.annotation import AnnotatedMoment, Sighting, Timeline
from proctor.construction.tracks.rules import QUADRANTS, CandidateQuestion, QuestionTemplates, Rule, quadrant_of, third
from proctor.construction.tracks.vocabulary import STAYING, official_name
from proctor.core import clock_text
from proctor.core.formats import ChoiceFormat, TimestampsFormat

_APART_S = 6.0  # of two insertions of a class, so that a time in hh:mm:ss singles one of them out
_ALONE_S = 5.0  # around a moment nothing else happens to its class
_GONE_S = 3.0  # what was seen so shortly before the end may still be in view

HAPPENINGS = (
    "one is brought into the patient",
    "one is taken out of the patient",
    "at least one is in view, and none is brought in or taken out",
    "none is in view, and none is brought in or taken out",
)
"""What may happen to a class at a time."""


def _said(time: float) -> str:
    return clock_text(int(time + 0.5))


def brought_in(line: Timeline, name: str) -> list[AnnotatedMoment]:
    """The insertions of a class that a time singles out: each of an instance that came once, far from the others."""
    moments = line.insertions(name)
    once = [one for one in moments if sum(other.instance == one.instance for other in moments) == 1]
    return [one for one in once if all(abs(other.time - one.time) >= _APART_S for other in moments if other is not one)]


def _one_out(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in line.first_in():
        gone = set(line.outside(name))
        for moment in brought_in(line, name):
            question = say.text("one-out", name, time=_said(moment.time))
            yield say.yes_no(question, moment.instance in gone, name, (name,))


def _retrieval(line: Timeline, moment: AnnotatedMoment) -> float | None:
    """When the instance of an insertion left, where it did so once."""
    went = [one.time for one in line.retrievals(moment.class_name) if one.instance == moment.instance]
    return went[0] if len(went) == 1 and went[0] > moment.time else None


def _one_when_out(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in line.first_in():
        for moment in brought_in(line, name):
            went = _retrieval(line, moment)
            if went is not None:
                question = say.text("one-when-out", name, time=_said(moment.time))
                yield say.when(question, line.end, [went], (name,))


def _one_stay(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in line.first_in():
        for moment in brought_in(line, name):
            went = _retrieval(line, moment)
            if went is not None:
                seconds = went - moment.time
                form = TimestampsFormat(tolerance=2 * say.tolerance(line.end))  # either moment may be off
                key = f"quarter {int(4 * seconds / (line.end + 1))}"
                question = say.text("one-stay", name, time=_said(moment.time))
                yield CandidateQuestion(question, form, say.moments([seconds]), key, name, mentions=(name,))


def _one_where(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    """Only of a class of which there are several: else the class alone would single it out."""
    for name in line.first_in():
        moments = brought_in(line, name)
        if len({one.instance for one in line.insertions(name)}) < 2:
            continue
        for second in line.times_to_ask():
            clear = {one.instance: one for one in line.in_view(second) if one.class_name == name}
            for moment in moments:
                seen = clear.get(moment.instance)
                if seen is not None:
                    question = say.text("one-where", name, time=_said(moment.time), later=clock_text(second))
                    yield from _placed(line, question, seen, name)


def _last_place(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in line.first_there():
        seen = last_sighting(line, name)
        if seen is not None:
            yield from _placed(line, say.text("last-place", name), seen, name)


def last_sighting(line: Timeline, name: str) -> Sighting | None:
    """Where the only instance of a class that is still inside was last in view; None where it is in view yet, where
    several are inside, and where the last sighting is unclear or another instance's."""
    inside, shown = line.inside(name), line.shown(name)
    if len(inside) != 1 or not shown or shown[-1] > line.end - _GONE_S:
        return None
    last = [one for one in line.in_view(shown[-1]) if one.class_name == name]
    return last[0] if len(last) == 1 and last[0].instance == inside[0] else None


def _placed(line: Timeline, question: str, seen: Sighting, name: str) -> Iterator[CandidateQuestion]:
    quadrant = quadrant_of(line, seen)
    if quadrant is not None:
        options = (quadrant, *(other for other in QUADRANTS if other != quadrant))
        yield CandidateQuestion(question, ChoiceFormat(), quadrant, quadrant, name, options, mentions=(name,))


# What happens, and what would follow


def _happens(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    for name in line.first_in():
        moments = [*line.insertions(name), *line.retrievals(name)]
        found = [(int(one.time + 0.5), 0 if one.kind == "insertion" else 1) for one in moments if _alone(one, moments)]
        for second in line.times_to_ask():
            if all(abs(one.time - second) >= _ALONE_S for one in moments):
                there = any(one.class_name == name for one in line.in_view(second))
                found.append((second, 2 if there else 3))
        for second, which in found:
            if second < line.end - 1:
                right = HAPPENINGS[which]
                options = (right, *(other for other in HAPPENINGS if other != right))
                question = say.text("happens", name, time=clock_text(second))
                cue = third(second, line.end)
                yield CandidateQuestion(question, ChoiceFormat(), right, f"{which}", cue, options, mentions=(name,))


def _alone(moment: AnnotatedMoment, moments: list[AnnotatedMoment]) -> bool:
    return all(one is moment or abs(one.time - moment.time) >= _ALONE_S for one in moments)


def _which_happens(
    line: Timeline, say: QuestionTemplates, rule: str, moments: list[AnnotatedMoment]
) -> Iterator[CandidateQuestion]:
    """Which class it is; the others are not brought in or taken out around that time."""
    every = [*line.insertions(), *line.retrievals()]
    for moment in moments:
        if not _alone(moment, every) or moment.time > line.end - 1:
            continue
        others = [name for name in say.names if name != moment.class_name]
        for three in combinations(others, 3):
            question = say.text(rule, time=_said(moment.time))
            yield say.among(question, moment.class_name, (moment.class_name, *three))


def _which_in(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    yield from _which_happens(line, say, "which-in", line.insertions())


def _which_away(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    yield from _which_happens(line, say, "which-away", line.retrievals())


def _must_leave(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    if line.first_there():
        left = {name for name in say.names if official_name(name) not in STAYING and line.inside(name)}
        yield say.kinds(say.text("must-leave"), left)


def _left_behind(line: Timeline, say: QuestionTemplates) -> Iterator[CandidateQuestion]:
    if line.first_there():
        left = sum(len(line.inside(name)) for name in say.names if official_name(name) not in STAYING)
        yield from say.count(say.text("left-behind"), left)


INSTANCE_RULES: dict[str, Rule] = {
    "one-out": _one_out,
    "one-when-out": _one_when_out,
    "one-stay": _one_stay,
    "one-where": _one_where,
    "last-place": _last_place,
    "happens": _happens,
    "which-in": _which_in,
    "which-away": _which_away,
    "must-leave": _must_leave,
    "left-behind": _left_behind,
}
"""These rules by name."""
