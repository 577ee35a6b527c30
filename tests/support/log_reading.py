"""A second reading of FOCUS questions: from the simulator's log of events and the question's text alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from proctor.tasks.focus.native import NativeReference, NativeRequest
from proctor.tracks import Annotation
from proctor_build.focus.builder import FocusBuilt


class Log:
    """What happened up to the time at which is asked; of a segment, from its start on."""

    def __init__(self, events: list[dict[str, Any]], end: float, start: float = 0.0) -> None:
        self.end = end
        self.came = [(e["start"], e["class_name"], e["instance"]) for e in events if e["kind"] == "inserted"]
        self.went = [(e["end"], e["class_name"], e["instance"]) for e in events if e["kind"] == "retrieved"]
        self.came = sorted(one for one in self.came if one[0] <= end)
        self.went = sorted(one for one in self.went if one[0] <= end)
        self.every = self.came, self.went
        self.came = [one for one in self.came if one[0] >= start]
        self.went = [one for one in self.went if one[0] >= start]
        self.covered = [(e["start"], e["end"], e["instance"]) for e in events if e["kind"] == "hidden"]

    def left(self, name: str = "") -> int:
        """How many came and did not go."""
        return sum(name in {"", one} for _, one, _ in self.came) - sum(name in {"", one} for _, one, _ in self.went)

    def view(self, time: float) -> list[tuple[str, str]]:
        """Instances and classes in view."""
        came, went = self.every
        gone = {instance for when, _, instance in went if when <= time}
        covered = {instance for start, stop, instance in self.covered if start <= time < stop}
        return [(i, name) for when, name, i in came if when <= time and i not in gone | covered]

    def stretch(self, name: str) -> list[float]:
        """All tenths of seconds at which something of a class is in view."""
        return [t / 10 for t in range(int(10 * self.end) + 1) if name in {one for _, one in self.view(t / 10)}]

    def first(self, moments: list[tuple[float, str, str]]) -> dict[str, float]:
        found: dict[str, float] = {}
        for time, name, _ in moments:
            found.setdefault(name, time)
        return found


def seconds_of(text: str) -> float:
    hours, minutes, seconds = map(int, text.split(":"))
    return float(3600 * hours + 60 * minutes + seconds)


def times(answer: str) -> list[float]:
    return [seconds_of(part.strip()) for part in answer.split(",")]


def near(answer: str, expected: list[float], tolerance: float) -> bool:
    given = times(answer)
    return len(given) == len(expected) and all(
        abs(a - b) <= tolerance for a, b in zip(given, sorted(expected), strict=True)
    )


def yes(answer: str) -> bool:
    return {"yes": True, "no": False}[answer]


def classes(answer: str) -> list[str]:
    return [] if answer == "none" else sorted(part.strip().casefold() for part in answer.split(","))


def options_of(question: str) -> dict[str, str]:
    return dict(re.findall(r"([A-D])\) ([^;.]+)", question))


def chosen(question: str, letter: str) -> str:
    return options_of(question)[letter]


def earliest(question: str, letter: str, first: dict[str, float]) -> bool:
    return chosen(question, letter) == min(options_of(question).values(), key=lambda name: first.get(name, 1e9))


def ordered(question: str, answer: str, first: dict[str, float]) -> bool:
    named: dict[str, str] = dict(re.findall(r"([A-D]): ([^,.]+)", question))
    in_time = sorted(named, key=lambda letter: first[named[letter]])
    return answer == "-".join(in_time)


def must_go(moments: list[tuple[float, str, str]]) -> int:
    """How many objects that may not stay; of the simulated ones all but clips."""
    return len({instance for _, name, instance in moments if name != "clip"})


def percent(part: float, whole: float) -> float:
    return 100 * part / whole


def number_of(log: Log, name: str, instance: str) -> int:
    return [i for _, one, i in log.came if one == name].index(instance) + 1


def alone(log: Log, name: str, time: str) -> str:
    (instance,) = [i for i, one in log.view(seconds_of(time)) if one == name]
    return instance


def the_one(log: Log, name: str, time: str) -> str:
    """The instance of a class that came at a time."""
    (instance,) = [i for when, one, i in log.came if one == name and abs(when - seconds_of(time)) <= 0.5]
    return str(instance)


def going(log: Log, instance: str) -> list[float]:
    return [when for when, _, i in log.went if i == instance]


def coming(log: Log, instance: str) -> float:
    (when,) = [when for when, _, i in log.came if i == instance]
    return float(when)


def happening(log: Log, name: str, time: str) -> str:
    """What happens to a class at a time, in the words of the options."""
    at = seconds_of(time)
    if any(one == name and abs(when - at) <= 0.5 for when, one, _ in log.came):
        return "one is brought into the patient"
    if any(one == name and abs(when - at) <= 0.5 for when, one, _ in log.went):
        return "one is taken out of the patient"
    there = name in {one for _, one in log.view(at)}
    return f"{'at least one' if there else 'none'} is in view, and none is brought in or taken out"


def at_that_time(moments: list[tuple[float, str, str]], time: str) -> set[str]:
    return {name for when, name, _ in moments if abs(when - seconds_of(time)) <= 0.5}


@dataclass(frozen=True)
class Case:
    """A question's log, how its text matched, its answer and its reference."""

    log: Log
    m: re.Match[str]
    a: str
    r: NativeReference


Check = Callable[[Case], bool]
CLOCK = r"(\d\d:\d\d:\d\d)"
A, T = r"an? ([a-z ]+?)", CLOCK
ONE = rf"the ([a-z ]+) that was brought into the patient at {CLOCK}"

POSITIONED = {
    "one-where": rf"In which part of the picture, at {T}, is {ONE}\?.*",
    "last-location": r"An? ([a-z ]+) is still inside the patient and out of view\. In which part of the picture .*",
    "cell": rf"Divide the picture .*column\) is the middle of the ([a-z ]+) at {T}\?.*",
    "where": rf"In which part of the picture is the ([a-z ]+) at {T}\?.*",
}
"""The rules whose answers are read from boxes, the log saying of which instance."""

READINGS: dict[str, tuple[str, Check]] = {
    "seen": (rf"Has {A} been brought into the patient(?: so far)?\?", lambda c: yes(c.a) == (c.m[1] in c.log.first(c.log.came))),
    "seen-at": (rf"Is {A} in view at {T}\?", lambda c: (
        yes(c.a) == (c.m[1] in {name for _, name in c.log.view(seconds_of(c.m[2]))}))),
    "kinds-seen": (r"Which kinds of foreign object have been brought .*\?",
                   lambda c: classes(c.a) == sorted(c.log.first(c.log.came))),
    "kinds-seen-at": (rf"Which kinds of foreign object are in view at {T}\?", lambda c: (
        classes(c.a) == sorted({name for _, name in c.log.view(seconds_of(c.m[1]))}))),
    "never": (r"Which of these has not been brought .*", lambda c: (
        chosen(c.m[0], c.a) not in c.log.first(c.log.came))),
    "how-many": (rf"How many times has {A} been brought .*\?", lambda c: (
        int(c.a) == sum(name == c.m[1] for _, name, _ in c.log.came))),
    "how-many-at": (rf"How many foreign objects are in view at {T}\?",
                    lambda c: int(c.a) == len(c.log.view(seconds_of(c.m[1])))),
    "plural": (r"Which of these has been brought .* more than once.*", lambda c: (
        Counter(name for _, name, _ in c.log.came)[chosen(c.m[0], c.a)] > 1)),
    "how-many-out": (r"How many foreign objects have been taken out .*\?", lambda c: (
        int(c.a) == len({instance for _, _, instance in c.log.went}))),
    "when-seen": (rf"When was {A} first brought into the patient\?", lambda c: (
        near(c.a, [c.log.first(c.log.came)[c.m[1]]], 0.5))),
    "when-each": (rf"At which times was {A} brought .*\?", lambda c: (
        near(c.a, [time for time, name, _ in c.log.came if name == c.m[1]], 0.5))),
    "when-out": (rf"When was {A} taken out of the patient\?", lambda c: (
        near(c.a, [time for time, name, _ in c.log.went if name == c.m[1]], 0.5))),
    "before": (rf"Was {A} brought into the patient before the first ([a-z ]+) was\?", lambda c: (
        yes(c.a) == (c.log.first(c.log.came)[c.m[1]] < c.log.first(c.log.came)[c.m[2]]))),
    "first-seen": (r"Which of these was brought into the patient first\? .*",
                   lambda c: earliest(c.m[0], c.a, c.log.first(c.log.came))),
    "first-out": (r"Which of these was taken out of the patient first\? .*",
                  lambda c: earliest(c.m[0], c.a, c.log.first(c.log.went))),
    "order-seen": (r"In which order were these first brought .*", lambda c: ordered(c.m[0], c.a, c.log.first(c.log.came))),
    "order-out": (r"In which order were these first taken out .*", lambda c: ordered(c.m[0], c.a, c.log.first(c.log.went))),
    "out": (rf"Has {A} been taken out of the patient so far\?", lambda c: yes(c.a) == (c.m[1] in c.log.first(c.log.went))),
    "kinds-out": (r"Which kinds of foreign object have been taken out .*\?",
                  lambda c: classes(c.a) == sorted(c.log.first(c.log.went))),
    "last-seen": (rf"When was {A} last in view\?", lambda c: (
        near(c.a, [c.log.stretch(c.m[1])[-1]], float(str(c.r.format_kwargs["threshold_seconds"]))))),
    "when-nth": (rf"When was {A} brought into the patient for the (second|third|fourth|fifth) time\?",
                 lambda c: near(c.a, [[time for time, name, _ in c.log.came if name == c.m[1]][
                     ("first", "second", "third", "fourth", "fifth").index(c.m[2])]], 0.5)),
    "stay": (r"How long did the ([a-z ]+) stay in the patient, as hh:mm:ss\?", lambda c: (
        near(c.a, [c.log.first(c.log.went)[c.m[1]] - c.log.first(c.log.came)[c.m[1]]], 0.5))),
    "view-share": (r"In what percentage of the video so far is at least one ([a-z ]+) in view\?", lambda c: (
        abs(float(c.a) - percent(len(c.log.stretch(c.m[1])), 10 * c.log.end + 1)) <= float(str(c.r.format_kwargs["threshold_pp"])))),
    "remain": (r"How many (?!foreign)([a-z ]+?)s are still inside the patient\?",
               lambda c: int(c.a) == c.log.left(c.m[1])),
    "remain-all": (r"How many foreign objects are still inside the patient\?",
                   lambda c: int(c.a) == c.log.left()),
    "kinds-left": (r"Of which kinds of foreign object .* still inside the patient\?", lambda c: (
        classes(c.a) == sorted(name for name in c.log.first(c.log.came) if c.log.left(name)))),
    "out-share": (r"What percentage of the foreign objects .* taken out so far\? .*", lambda c: (
        abs(float(c.a) - percent(must_go(c.log.went), must_go(c.log.came))) <= 0.5)),
    "all-out": (r"Have all (?!clip)([a-z ]+?)s that were in the patient been taken out\?",
                lambda c: yes(c.a) == (c.log.left(c.m[1]) == 0)),
    "nothing-left": (r"Has everything that must not stay in the patient been taken out\? .*",
                     lambda c: yes(c.a) == (not any(c.log.left(n) for n in c.log.first(c.log.came) if n != "clip"))),
    "which-first-out": (r"Number the ([a-z ]+?)s in the order .* Which number was taken out first\?",
                        lambda c: int(c.a) == number_of(c.log, c.m[1], next(i for _, n, i in c.log.went if n == c.m[1]))),
    "which-at": (rf"Number the ([a-z ]+?)s in the order .* Which number is in view at {T}\?",
                 lambda c: int(c.a) == number_of(c.log, c.m[1], alone(c.log, c.m[1], c.m[2]))),
    "same": (rf"Is the ([a-z ]+) in view at {T} the same one as the [a-z ]+ in view at {T}\?",
             lambda c: yes(c.a) == (alone(c.log, c.m[1], c.m[2]) == alone(c.log, c.m[1], c.m[3]))),
    "one-out": (rf"Has {ONE} been taken out so far\?", lambda c: (
        yes(c.a) == bool(going(c.log, the_one(c.log, c.m[1], c.m[2]))))),
    "one-when-out": (rf"When was {ONE} taken out\?", lambda c: (
        near(c.a, going(c.log, the_one(c.log, c.m[1], c.m[2])), 0.5))),
    "one-stay": (rf"How long did {ONE} stay inside, as hh:mm:ss\?", lambda c: (
        near(c.a, [going(c.log, the_one(c.log, c.m[1], c.m[2]))[0] - coming(c.log, the_one(c.log, c.m[1], c.m[2]))], 0.5))),
    "happens": (rf"What happens to ([a-z ]+)s at {T}\? .*", lambda c: (
        chosen(c.m[0], c.a) == happening(c.log, c.m[1], c.m[2]))),
    "which-in": (rf"Which of these is brought into the patient at {T}\? .*", lambda c: (
        {chosen(c.m[0], c.a)} == at_that_time(c.log.came, c.m[1]) & set(options_of(c.m[0]).values()))),
    "which-away": (rf"Which of these is taken out of the patient at {T}\? .*", lambda c: (
        {chosen(c.m[0], c.a)} == at_that_time(c.log.went, c.m[1]) & set(options_of(c.m[0]).values()))),
    "must-leave": (r"Which kinds of foreign object that are inside the patient must be taken out .*\?", lambda c: (
        classes(c.a) == sorted(n for n in c.log.first(c.log.came) if n != "clip" and c.log.left(n)))),
    "left-behind": (r"If the operation ended now, how many .* left behind that must not stay\? .*", lambda c: (
        int(c.a) == must_go(c.log.came) - must_go(c.log.went))),
}  # fmt: skip
"""Per rule: how its text is recognised, and whether the log agrees with the reference. Positions are read from boxes."""


def plain(request: NativeRequest) -> str:
    """A question as it would be asked of the whole procedure: of a frame with its time, of a segment without saying
    so."""
    question = request.question.removeprefix("In this segment: ")
    if request.start_time == request.end_time:
        at = int(request.end_time)
        question = question.replace("?", f" at {at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d}?", 1)
    return question


def disagreements(
    built: FocusBuilt, events: dict[str, list[dict[str, Any]]], boxes: dict[str, Annotation]
) -> tuple[list[str], Counter[str]]:
    wrong, read = [], Counter[str]()
    for request, reference in zip(built.requests, built.references, strict=True):
        assert request.qID == reference.qID
        video = request.videoID.removesuffix(".mp4")
        log = Log(events[video], request.end_time, request.start_time)
        question = plain(request)
        kept_rows = [(name, hit) for name, text in POSITIONED.items() if (hit := re.fullmatch(text, question))]
        if kept_rows:
            ((rule, where),) = kept_rows
            agrees = at_its_position(boxes[video], log, where, rule, reference.answer)
        else:
            hits = [(name, hit) for name, (text, _) in READINGS.items() if (hit := re.fullmatch(text, question))]
            ((rule, match),) = hits
            agrees = READINGS[rule][1](Case(log, match, reference.answer, reference))
        read[rule] += 1
        if not agrees:
            wrong.append(f"{rule}: {request.question} at {request.end_time}: {reference.answer}")
    return wrong, read


def at_its_position(annotation: Annotation, log: Log, match: re.Match[str], rule: str, answer: str) -> bool:
    """Whether the box of the instance that is meant lies where the reference says."""
    drawn = [one for one in annotation.model_dump(mode="json")["sightings"] if one["box"]]
    if rule == "one-where":
        instance, second = the_one(log, match[2], match[3]), seconds_of(match[1])
    elif rule == "last-location":
        gone = {i for _, _, i in log.went}
        (instance,) = {i for _, name, i in log.came if name == match[1]} - gone
        second = max(one["second"] for one in drawn if one["instance"] == instance and one["second"] <= log.end)
        assert second < log.end - 2, "it is out of view"
    else:
        second = seconds_of(match[2])
        (instance,) = {one["instance"] for one in drawn if one["second"] == second and one["class_name"] == match[1]}
    (box,) = [one["box"] for one in drawn if (one["second"], one["instance"]) == (second, instance)]
    x = (box["x"] + box["width"] / 2) / annotation.video.width
    y = (box["y"] + box["height"] / 2) / annotation.video.height
    if rule == "cell":
        return answer == f"{1 + (y > 1 / 3) + (y > 2 / 3)}/{1 + (x > 1 / 3) + (x > 2 / 3)}"
    quarter = f"{'upper' if y < 0.5 else 'lower'} {'left' if x < 0.5 else 'right'}"
    return chosen(match[0], answer) == quarter
