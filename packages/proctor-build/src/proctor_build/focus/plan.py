"""Which questions FOCUS asks of annotated videos: their wording, their times, the choice among candidates, and the
balance of answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from types import MappingProxyType

import numpy as np
from pydantic import JsonValue

from proctor import tracks
from proctor.core import InputError, generator
from proctor.core.formats import PatternFormat, option_letters
from proctor.tasks.focus import GROUP_OF, GROUPS, time_tolerance
from proctor_build.focus.rules import FOCUS_RULES, known_attributes

_MAX_COUNT = 20  # a larger number of events only tests patience


@dataclass(frozen=True)
class QuestionWording:
    """The question of a rule: its text, the primary and other capabilities of FOCUS's taxonomy, whether the answer is
    clinically relevant, whether it is about insertions (so not about what arises in the body), whether it is about
    retrieval (a specimen in a bag counts as taken out), and how much must be shown to answer it ("frame", "segment" or
    "procedure")."""

    text: str
    primary: str
    secondaries: tuple[str, ...] = ()
    clinical: bool = False
    inserted: bool = True
    retrieval: bool = False
    settled_by: str = "procedure"


def _asked() -> dict[str, QuestionWording]:
    import yaml

    read = yaml.safe_load(files(__package__).joinpath("questions.yaml").read_text(encoding="utf-8"))
    return {
        rule: QuestionWording(**fields | {"secondaries": tuple(fields.get("secondaries", ()))})
        for rule, fields in read.items()
    }


ASKED = MappingProxyType(_asked())
"""The wording of every rule by its name: rules for any annotated video, and those of FOCUS alone."""

_BAGGED = " (What lies in a specimen bag counts as taken out.)"


@dataclass(frozen=True)
class FocusTemplates(tracks.QuestionTemplates):
    """FOCUS has no format for orders, so they are patterns of letters; times are whole seconds. `arising` are the classes
    that come loose in the body and are not inserted; `shown_s` is the length of what is shown, where that is not the
    whole video up to the question's time."""

    arising: frozenset[str] = frozenset()
    shown_s: float | None = None

    def text(self, rule: str, a: str = "", b: str = "", **more: str) -> str:
        """The question of a rule (`{one}` is the class with its article); for what arises in the body it adds what counts
        as taken out."""
        bagged = _BAGGED if a in self.arising and ASKED[rule].retrieval else ""
        if a:
            more["one"] = tracks.with_article(self.phrase(a)).capitalize()
        return super().text(rule, a, b, **more) + bagged

    def tolerance(self, end: float) -> float:
        published = time_tolerance(end if self.shown_s is None else self.shown_s)
        return published if self.measured_s is None else self.measured_s

    def moments(self, times: list[float]) -> list[JsonValue]:
        """Times rounded to whole seconds."""
        return [float(int(time + 0.5)) for time in times]

    def order(self, question: str, times: dict[str, float]) -> Iterator[tracks.CandidateQuestion]:
        """Three or four classes with letters in alphabetical order; the answer is their letters in order of time."""
        for some in tracks.orders(times):
            listed = sorted(some)
            letters = dict(zip(listed, option_letters(len(listed)), strict=True))
            named = ", ".join(f"{letter}: {self.phrase(name)}" for name, letter in letters.items())
            answer = "-".join(letters[name] for name in sorted(some, key=lambda name: times[name]))
            last = letters[listed[-1]]
            form = PatternFormat(pattern=rf"[A-{last}](-[A-{last}]){{{len(some) - 1}}}")
            text = f"{question} {named}. Join the letters with hyphens."
            yield tracks.CandidateQuestion(text, form, answer, answer, "+".join(listed), choices=tuple(listed))


def focus_templates(
    names: Sequence[str],
    arising: Collection[str] = (),
    attributes: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType({}),
) -> FocusTemplates:
    """FOCUS's wording for these classes, of which `arising` come loose in the body, and for their attributes."""
    phrases = {name: name.casefold() for name in names}
    texts = {rule: asked.text for rule, asked in ASKED.items()}
    return FocusTemplates(
        names=tuple(sorted(names)),
        phrases=phrases,
        texts=texts,
        most=_MAX_COUNT,
        attributes=attributes,
        arising=frozenset(arising),
    )


RULES_OF_TRACK = {
    "frame": tuple(rule for rule, asked in ASKED.items() if asked.settled_by == "frame"),
    "segment": tuple(rule for rule, asked in ASKED.items() if asked.settled_by != "procedure"),
    "procedure": tuple(FOCUS_RULES),
}
"""The rules whose questions can be answered from what a track shows: a single frame, a segment (what is still inside
depends on what came before, so it is not asked there), or everything up to a time."""

_CALM_S = 1.0  # no object comes or goes this close to the time of a question or to a segment's ends
_SECONDS_ASKED = 8  # seconds of a video or segment that questions may name


def _some(quiet: Sequence[int], rng: np.random.Generator) -> list[int]:
    """A few of the quiet seconds, drawn at random."""
    drawn = rng.choice(len(quiet), min(_SECONDS_ASKED, len(quiet)), replace=False) if quiet else ()
    return sorted(quiet[int(index)] for index in drawn)


def _one_of_each(seconds: Sequence[int], parts: int, rng: np.random.Generator) -> list[float]:
    """One second drawn from each of `parts` equal parts."""
    found = np.array_split(np.array(seconds, dtype=np.int64), parts) if parts else []
    return [float(part[int(rng.integers(len(part)))]) for part in found if len(part)]


class Window(tracks.Timeline):
    """A part of a video from `start` to `end` seconds on the video's own clock; what comes before is unknown, too.
    For a frame (`start` = `end`) the seconds beside it are known, which decide whether it is clear."""

    def __init__(self, annotation: tracks.Annotation, start: float, end: float, rng: np.random.Generator) -> None:
        beside = 1.0 if start == end else 0.0
        low, high = start - beside, end + beside
        part = annotation.model_copy(
            update={
                "sightings": tuple(sighting for sighting in annotation.sightings if low <= sighting.second <= high),
                "moments": tuple(moment for moment in annotation.moments if low <= moment.time <= high),
            }
        )
        super().__init__(part, high)
        quiet = [
            second
            for second in tracks.Timeline(annotation).quiet()
            if (second == start if beside else start + 1 <= second <= end - 1)
        ]
        self._asked = _some(quiet, rng)

    def times_to_ask(self) -> list[int]:
        """The quiet seconds of the part, or some of them."""
        return self._asked


def windows_of(
    annotation: tracks.Annotation, seconds: int, number: int, rng: np.random.Generator
) -> list[tuple[float, float]]:
    """The parts of a video to show, one drawn from each of `number` equal parts of the possible starts: frames in which
    it is clear what is in view (`seconds` 0), or segments at whose ends nothing comes or goes."""
    if seconds:
        first = annotation.video.first_second
        length = min(seconds, int(annotation.video.seconds) - first)
        changes = [annotated_moment.time for annotated_moment in (*tracks.arrivals(annotation), *annotation.moments)]
        starts = [
            start
            for start in range(first, int(annotation.video.seconds) - length + 1)
            if all(abs(time - cut) >= _CALM_S for time in changes for cut in (start, start + length))
        ]
    else:
        length, starts = 0, tracks.Timeline(annotation).quiet()
    return [(start, start + length) for start in _one_of_each(starts, number, rng)]


def window_templates(say: FocusTemplates, seconds: int) -> FocusTemplates:
    """The wording for a part of a video: for a frame without a time, for a segment "In this segment: …". The tolerance of
    times follows from the length of what is shown."""
    if not seconds:
        texts = {rule: text.replace(" at {time}", "") for rule, text in say.texts.items()}
        return replace(say, texts=texts)
    texts = {
        rule: text if rule in RULES_OF_TRACK["frame"] else f"In this segment: {text.replace(' so far', '')}"
        for rule, text in say.texts.items()
    }
    return replace(say, texts=texts, shown_s=float(seconds))


SEEN_IN_TRAINING = ("cholecystectomy", "proctocolectomy", "rectal resection", "sigmoid resection")
"""The kinds of procedure in the challenge's training data, as requests name them; all others are out of distribution."""

_FORMATS = ("choice", "count", "binary", "percentage", "classes", "timestamps", "pattern")
_OF_A_RULE = 24  # candidates of one rule and video among which to choose
_EARLIEST_S = 8.0
_APPROACHES = {"laparoscopic", "robotic", "robot-assisted", "minimally-invasive", "thoracoscopic"}
_MAX_SHARE = {"binary": 0.5}  # of one answer among those of a format
_MAX_SHARE_OF_OTHERS = 0.4
_ENOUGH = 10  # questions of a format from which on the limit applies
_NAMES = "a name without a comma, and not none"


@dataclass(frozen=True)
class FocusPlan:
    """How to make questions: how many for each video, at how many `times` besides its end they are asked, the kinds of
    procedure seen in training (whole names, without the approach), the rules whose questions count as unseen in
    training, whether the five groups of capabilities are asked equally often (each is a fifth of the ranking), and the
    seed. On the tracks `frame` and `segment`, `times` + 1 parts of the video are shown, of `segment_s` seconds.
    `time_tolerance` (seconds) and `share_tolerance` (percentage points) are those of the answers, as measured on two
    annotators; None: as published."""

    per_video: int = 40
    times: int = 4
    in_distribution: tuple[str, ...] = SEEN_IN_TRAINING
    unseen_questions: tuple[str, ...] = ()
    even_capabilities: bool = True
    seed: int = 0
    track: str = "procedure"
    segment_s: int = 60
    time_tolerance: float | None = None
    share_tolerance: float | None = None

    def __post_init__(self) -> None:
        bounds = (
            ("per_video", self.per_video, 1, 1000),
            ("times", self.times, 0, 100),
            ("segment_s", self.segment_s, 5, 300),
        )
        tracks.check_bounds(bounds)
        if self.track not in RULES_OF_TRACK:
            raise InputError("track", found=repr(self.track), expected=f"one of {', '.join(RULES_OF_TRACK)}")
        for name, value in (("time_tolerance", self.time_tolerance), ("share_tolerance", self.share_tolerance)):
            if value is not None and not 0 < value < math.inf:
                raise InputError(name, found=str(value), expected="above 0")
        for rule in self.unseen_questions:
            if rule not in ASKED:
                expected = f"one of {', '.join(sorted(ASKED))}"
                raise InputError("unseen_questions", found=repr(rule), expected=expected)

    def unseen(self, procedure: str, rule: str) -> str:
        """What is out of distribution: the "procedure", the "question", "both" or "nothing". An unknown procedure is
        unseen."""
        known = {plain_procedure(one) for one in self.in_distribution} - {""}
        found = [] if plain_procedure(procedure) in known else ["procedure"]
        found += ["question"] if rule in self.unseen_questions else []
        return "both" if len(found) == 2 else "".join(found) or "nothing"


def plain_procedure(name: str) -> str:
    """A kind of procedure without its approach, in lower case, for comparison.

    >>> plain_procedure("Laparoscopic  Cholecystectomy"), plain_procedure("colorectal resection")
    ('cholecystectomy', 'colorectal resection')
    """
    words = name.casefold().split()
    while words and words[0] in _APPROACHES:
        words = words[1:]
    return " ".join(words)


class _Asking(tracks.Timeline):
    """A video up to a question's time; questions name a few of its quiet seconds."""

    def __init__(self, annotation: tracks.Annotation, end: float, rng: np.random.Generator) -> None:
        super().__init__(annotation, end)
        self._asked = _some(self.quiet(), rng)

    def times_to_ask(self) -> list[int]:
        return self._asked


@dataclass(frozen=True)
class Chosen:
    """The questions of every video by its id, and how many were dropped so that no answer is too common."""

    candidates: dict[str, list[tracks.CandidateQuestion]]
    dropped: int


def choose_questions(
    annotations: Sequence[tracks.Annotation], plan: FocusPlan, *, progress: Callable[[int, int], None] | None = None
) -> Chosen:
    """The questions on all videos, chosen by the plan; `progress` is called with the numbers of steps done and of all.

    Raises `InputError` for a class whose name can't be in a list of classes.
    """
    for annotation in annotations:
        for name in annotation.classes:
            if "," in name or name.casefold() == "none":
                raise InputError(f"video {annotation.video.id!r}", found=f"the class {name!r}", expected=_NAMES)
    steps = len(annotations) + plan.per_video  # every video is analysed, then questions are chosen in turns

    def looked(done: int) -> None:
        if progress is not None:
            progress(done, steps)

    pool = _pool(annotations, plan, looked)
    rng = generator(plan.seed, "build focus", "questions")
    found = tracks.choose(
        pool,
        plan.per_video,
        rng,
        turns=_leaves(pool) if plan.even_capabilities else {"": _FORMATS},
        slot_of=_leaf if plan.even_capabilities else lambda candidate: ("", candidate.format.kind),
        progress=lambda done, _: looked(len(annotations) + done),
    )
    return _trimmed(found, generator(plan.seed, "build focus", "trim"))


def _leaf(candidate: tracks.CandidateQuestion) -> tuple[str, str]:
    """The group and the primary capability of a question."""
    primary = ASKED[candidate.rule].primary
    return GROUP_OF[primary], primary


def _leaves(pool: dict[str, list[tracks.CandidateQuestion]]) -> dict[str, list[str]]:
    """The groups with the capabilities for which there are candidates."""
    asked = {_leaf(candidate) for candidates in pool.values() for candidate in candidates}
    found = {group: [leaf for leaf in GROUPS[group]["leaves"] if (group, leaf) in asked] for group in GROUPS}
    return {group: leaves for group, leaves in found.items() if leaves} or {"": [""]}


def _pool(
    annotations: Sequence[tracks.Annotation], plan: FocusPlan, looked: Callable[[int], None]
) -> dict[str, list[tracks.CandidateQuestion]]:
    """All candidates of every video whose answers do not leak."""
    names = sorted({name for annotation in annotations for name in annotation.classes})
    inserted = {moment.class_name for some in annotations for moment in some.moments if moment.kind == "insertion"}
    arising = {name for name in names if tracks.official_name(name) in tracks.ARISING and name not in inserted}
    if not names:
        return {annotation.video.id: [] for annotation in annotations}
    say = replace(focus_templates(names, arising, known_attributes(annotations)), measured_s=plan.time_tolerance)
    if plan.share_tolerance is not None:
        say = replace(say, share_tolerance=plan.share_tolerance)
    if plan.track != "procedure":
        say = window_templates(say, plan.segment_s if plan.track == "segment" else 0)
    pool: dict[str, list[tracks.CandidateQuestion]] = {}
    for number, one in enumerate(annotations, start=1):
        pool[one.video.id] = _candidates(one, say, arising, plan)
        looked(number)
    known = tracks.constant_answers(pool)
    return {
        video: [candidate for candidate in candidates if (candidate.rule, candidate.mentions) not in known]
        for video, candidates in pool.items()
    }


def _candidates(
    annotation: tracks.Annotation, say: FocusTemplates, arising: set[str], plan: FocusPlan
) -> list[tracks.CandidateQuestion]:
    video = annotation.video.id
    found: list[tracks.CandidateQuestion] = []
    for start, end, line in _lines(annotation, plan):
        part = plan.track == "procedure" and start > 0  # what came before is unknown: the rest is a segment
        shown = (start, end) if part or plan.track != "procedure" else (end,)
        wording = window_templates(say, int(end - start)) if part else say
        for rule in RULES_OF_TRACK["segment" if part else plan.track]:
            for candidate in FOCUS_RULES[rule](line, wording):
                foreign = ASKED[rule].inserted and arising & {*candidate.mentions, *candidate.choices}
                if not foreign and not tracks.leaks_answer(candidate, *shown):
                    found.append(replace(candidate, rule=rule, start=start, end=end))
    lots = generator(plan.seed, "build focus", "lots", video)
    kept: list[tracks.CandidateQuestion] = []
    for rule in FOCUS_RULES:
        some = [question for question in found if question.rule == rule]
        drawn = lots.choice(len(some), min(_OF_A_RULE, len(some)), replace=False) if some else ()
        kept += [some[index] for index in sorted(int(one) for one in drawn)]
    return kept


def _lines(annotation: tracks.Annotation, plan: FocusPlan) -> Iterator[tuple[float, float, tracks.Timeline]]:
    """The parts of a video to show: start, end, and what is known of each."""
    video = annotation.video.id
    if plan.track == "procedure":
        for end in _times(annotation, plan):
            rng = generator(plan.seed, "build focus", "seconds", video, f"{end:g}")
            begins = annotation.video.begins
            line = Window(annotation, begins, end, rng) if begins else _Asking(annotation, end, rng)
            yield begins, end, line
        return
    seconds = plan.segment_s if plan.track == "segment" else 0
    drawn = generator(plan.seed, "build focus", plan.track, video)
    for start, end in windows_of(annotation, seconds, plan.times + 1, drawn):
        rng = generator(plan.seed, "build focus", "seconds", video, f"{start:g}-{end:g}")
        yield start, end, Window(annotation, start, end, rng)


def _times(annotation: tracks.Annotation, plan: FocusPlan) -> list[float]:
    """The times of questions: the end of the video, and one calm second from each of `plan.times` equal parts of those
    after the first arrival."""
    video = annotation.video
    changes = sorted(
        {annotated_moment.time for annotated_moment in (*tracks.arrivals(annotation), *annotation.moments)}
    )
    earliest = max(video.begins + _EARLIEST_S, changes[0]) if changes else video.seconds
    calm = [
        second
        for second in range(math.ceil(earliest), int(video.seconds))
        if not any(abs(time - second) < _CALM_S for time in changes)
    ]
    rng = generator(plan.seed, "build focus", "times", video.id)
    return [*_one_of_each(calm, plan.times, rng), video.seconds]


def _trimmed(chosen: dict[str, list[tracks.CandidateQuestion]], rng: np.random.Generator) -> Chosen:
    """Drops questions with a format's most common answer until always giving it would not pay."""
    kept = {video: list(candidates) for video, candidates in chosen.items()}
    dropped = 0
    for form in _FORMATS:
        most = _MAX_SHARE.get(form, _MAX_SHARE_OF_OTHERS)
        while True:
            asked = [(v, question) for v, some in kept.items() for question in some if question.format.kind == form]
            keys = Counter(one.key for _, one in asked)
            if len(asked) < _ENOUGH or max(keys.values()) <= max(most * len(asked), 1):
                break
            key = keys.most_common(1)[0][0]
            common = [pair for pair in asked if pair[1].key == key]
            video, candidate = common[int(rng.integers(len(common)))]
            kept[video].remove(candidate)
            dropped += 1
    return Chosen(kept, dropped)
