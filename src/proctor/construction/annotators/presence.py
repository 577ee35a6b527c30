"""Which classes are present in each clip of five seconds, by several annotators: their votes, the majority, what is
probably true, who answers without looking, and which clips need another vote."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from proctor.construction.annotation import AnnotatedVideo, Annotation, official_name
from proctor.construction.annotators.decisions import Cells, read_rows
from proctor.stats import Estimate, LabelVotes, LatentLabels, Resampling, copying, dawid_skene, entropy

CLIP_S = 5
"""Seconds of a clip."""

RISK = 0.05
"""A clip needs another vote where its decision is wrong with a higher probability than this."""

FEWEST_VOTES = 2
"""A clip with fewer votes on a class needs another one, however reliable the annotator."""

UNINFORMATIVE = 0.2
"""An annotator whose reliability lies below this, at the high end of its interval, answers without looking."""

_WORDS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


def clip_name(video: str, start: int) -> str:
    """
    >>> clip_name("sim-000", 15)
    'sim-000@15'
    """
    return f"{video}@{start}"


def clips_of(video: str, seconds: float) -> list[str]:
    """The names of the clips of a video, the last of which may be shorter.

    >>> clips_of("v", 12.0)
    ['v@0', 'v@5', 'v@10']
    """
    return [clip_name(video, CLIP_S * number) for number in range(math.ceil(seconds / CLIP_S))]


@dataclass(frozen=True, slots=True)
class PresenceVote:
    """One annotator says whether a class is to be seen in the clip that starts at `start` seconds."""

    video: str
    start: int
    class_name: str
    annotator: str
    present: bool

    @property
    def clip(self) -> str:
        """The clip's name."""
        return clip_name(self.video, self.start)


def read_votes(file: Path) -> list[PresenceVote]:
    """The votes of a table with the columns clip (VIDEO@START, as `clips_of` names it), annotator, class and present
    (yes, no, true, false, 1, 0). Other columns are passed over.

    Raises one `InputError` that lists all faults: a cell that is empty or something else, a start that is no multiple
    of five, an annotator who votes twice on a class in a clip.
    """
    seen: dict[tuple[str, int, str, str], int] = {}

    def read(cells: Cells) -> PresenceVote | None:
        video, start = _clip(cells)
        annotator, class_name = cells.text("annotator"), cells.text("class")
        present = cells.choice("present", _WORDS)
        if not cells.sound or present is None:
            return None
        key = (video, start, class_name.casefold(), annotator)
        if key in seen:
            cells.fault("annotator", f"{annotator!r} again", f"one vote; row {seen[key]} has it")
        seen.setdefault(key, cells.number)
        return PresenceVote(video, start, class_name, annotator, present)

    return read_rows(file, ("clip", "annotator", "class", "present"), read)


def _clip(cells: Cells) -> tuple[str, int]:
    text = cells.text("clip", "a clip's name")
    video, at, start = text.rpartition("@")
    if cells.sound and not (at and video and start.isascii() and start.isdigit() and len(start) <= 6):
        cells.fault("clip", repr(text), "VIDEO@START, as in sim-000@15")
    elif cells.sound and int(start) % CLIP_S:
        cells.fault("clip", repr(text), f"a start that is a multiple of {CLIP_S} s")
    return video, int(start) if cells.sound else 0


@dataclass(frozen=True, slots=True)
class ClipPresence:
    """What is known of one class in one clip. `majority` is None for a tie. `probability` that it is present follows
    from all votes and the annotators' reliability; `low` and `high` are the ends of its interval over samples of
    videos (None with fewer than three). `entropy` is what is not known, in bits. `why` another vote is needed; ''
    where the clip is decided, and then `present` says how."""

    video: str
    start: int
    class_name: str
    yes: int
    votes: int
    majority: bool | None
    probability: float
    low: float | None
    high: float | None
    entropy: float
    why: str

    @property
    def clip(self) -> str:
        """The clip's name."""
        return clip_name(self.video, self.start)

    @property
    def present(self) -> bool | None:
        """Whether the class is there; None where another vote is needed."""
        return None if self.why else self.probability >= 0.5


AnnotatorFlag = Literal["", "inverted", "uninformative", "copies"]


@dataclass(frozen=True, slots=True)
class AnnotatorReliability:
    """One annotator: sensitivity and specificity as estimated, the reliability (sensitivity + specificity − 1) with its
    interval, the share of votes that say yes, and the share that agrees with what is probably true. `flag` and `why`
    say what is wrong with the votes."""

    annotator: str
    votes: int
    sensitivity: float
    specificity: float
    reliability: Estimate
    says_yes: float
    agrees: float
    flag: AnnotatorFlag
    why: str


@dataclass(frozen=True, slots=True)
class PresenceReport:
    """The clips in order of video, start and class, the annotators by name, and the share of clips in which each class
    is present, as estimated. `converged` is False where the fit did not settle: then no clip is decided."""

    clips: tuple[ClipPresence, ...]
    annotators: tuple[AnnotatorReliability, ...]
    prevalence: dict[str, float]
    converged: bool

    @property
    def due(self) -> list[ClipPresence]:
        """The clips that need another vote, the least known first."""
        return sorted((one for one in self.clips if one.why), key=lambda one: (-one.entropy, one.video, one.start))


def estimate_presence(
    votes: Sequence[PresenceVote], *, risk: float = RISK, plan: Resampling = Resampling(draws=500)
) -> PresenceReport:
    """Estimates by `dawid_skene`: an item is a class in a clip, each class has a prior of its own, and annotators have
    one sensitivity and one specificity over all classes; intervals are clustered by video.

    Votes of annotators flagged as inverted count as what they tell (the opposite); those of uninformative ones tell
    nothing. Of two who copy the later by name is left out. A clip needs another vote where
    the decision is wrong with a probability above `risk`, where the interval of the probability holds ½, or where
    fewer than two annotators voted. Raises `InputError` for no votes.
    """
    ordered = sorted(votes, key=lambda one: (one.video, one.start, one.class_name, one.annotator))
    table = _table(ordered)
    pairs = sorted(sorted((str(one), str(other))) for one, other, _ in copying(table, (False, True), plan))
    copies: dict[str, str] = {}
    for one, other in pairs:
        copies[other] = copies.get(one, one)
    fit = dawid_skene(table.without(*copies), (False, True), plan=plan)
    by_item: dict[tuple[str, int, str], list[PresenceVote]] = defaultdict(list)
    for vote in ordered:
        by_item[vote.video, vote.start, vote.class_name].append(vote)
    place = {item: number for number, item in enumerate(fit.items)}
    unknown = entropy(fit.posterior)
    clips = []
    for key, some in by_item.items():
        kept = [one for one in some if one.annotator not in copies]
        number = place.get(key)
        ends: tuple[float, float | None, float | None]
        if number is None:  # voted on by copies alone: by the class's prior
            prior = float(fit.prior[fit.strata.index(key[2]), 1]) if key[2] in fit.strata else 0.5
            ends, bits = (prior, None, None), float(entropy(np.array([[prior, 1 - prior]]))[0])
        else:
            low, high = (float(one[number, 1]) for one in (fit.low, fit.high))
            known = math.isfinite(low)
            ends = (float(fit.posterior[number, 1]), low if known else None, high if known else None)
            bits = float(unknown[number])
        yes = sum(one.present for one in kept)
        majority = None if 2 * yes == len(kept) else 2 * yes > len(kept)
        why = "the fit did not converge" if not fit.converged else _why(ends, len(kept), risk)
        clips.append(ClipPresence(*key, yes, len(kept), majority, *ends, bits, why))
    prevalence = {str(name): float(one[1]) for name, one in zip(fit.strata, fit.prior, strict=True)}
    return PresenceReport(tuple(clips), _annotators(ordered, fit, copies), prevalence, fit.converged)


def _table(votes: Sequence[PresenceVote]) -> LabelVotes:
    return LabelVotes(
        [(one.video, one.start, one.class_name) for one in votes],
        [one.annotator for one in votes],
        [one.present for one in votes],
        [one.class_name for one in votes],
        [one.video for one in votes],
    )


def _why(ends: tuple[float, float | None, float | None], votes: int, risk: float) -> str:
    probability, low, high = ends
    wrong = min(probability, 1 - probability)
    if votes < FEWEST_VOTES:
        return f"{votes} of {FEWEST_VOTES} votes"
    if wrong > risk:
        return f"wrong with a probability of {wrong:.2f}"
    if low is not None and high is not None and low < 0.5 < high:
        return f"the interval of its probability, {low:.2f} to {high:.2f}, holds 0.5"
    return ""


def _annotators(
    votes: Sequence[PresenceVote], fit: LatentLabels, copies: dict[str, str]
) -> tuple[AnnotatorReliability, ...]:
    true = {item: bool(row[1] >= 0.5) for item, row in zip(fit.items, fit.posterior, strict=True)}
    own: dict[str, list[PresenceVote]] = defaultdict(list)
    for vote in votes:
        own[vote.annotator].append(vote)
    found = []
    for name, some in sorted(own.items()):
        says_yes = sum(one.present for one in some) / len(some)
        judged = [one.present == true[key] for one in some if (key := (one.video, one.start, one.class_name)) in true]
        agrees = sum(judged) / len(judged) if judged else math.nan
        at = fit.annotators.index(copies.get(name, name))
        sensitivity, specificity = float(fit.confusion[at, 1, 1]), float(fit.confusion[at, 0, 0])
        estimate = fit.reliability[at]
        flag, why = _flag(estimate, says_yes, copies.get(name))
        found.append(
            AnnotatorReliability(name, len(some), sensitivity, specificity, estimate, says_yes, agrees, flag, why)
        )
    return tuple(found)


def _flag(reliability: Estimate, says_yes: float, copied: str | None) -> tuple[AnnotatorFlag, str]:
    if copied is not None:
        return "copies", f"agrees with {copied} more often than two who work alone would"
    if reliability.ci_high is None:
        return (
            "",
            "too few videos for an interval" if reliability.groups < 3 else "no interval: the videos do not differ",
        )
    shown = f"reliability {reliability.ci_low:.2f} to {reliability.ci_high:.2f}"
    if reliability.ci_high < 0:
        return "inverted", f"{shown}: answers the opposite"
    if reliability.ci_high < UNINFORMATIVE:
        always = f", {'yes' if says_yes > 0.5 else 'no'} in {max(says_yes, 1 - says_yes):.0%}"
        return "uninformative", f"{shown}: answers do not depend on the clip{always}"
    return "", ""


BoxFindingKind = Literal["no-box", "unexpected-box", "outside-clips"]


@dataclass(frozen=True, slots=True)
class DueSecond:
    """A second of a video at which boxes are drawn, and the classes that are present in its clip."""

    video: str
    second: int
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BoxFinding:
    """Where boxes and presence disagree: a clip in which a class is present and has no box and is not said to be
    covered (`no-box`), a box of a class that is not present in its clip (`unexpected-box`), or of a clip that nobody
    has decided (`outside-clips`)."""

    id: str
    video: str
    start: int
    class_name: str
    kind: BoxFindingKind
    detail: str


def due_seconds(clips: Iterable[ClipPresence], videos: Sequence[AnnotatedVideo]) -> list[DueSecond]:
    """The whole seconds of all clips in which a class is decided to be present, in order. Clips that need another vote
    are not due yet; a clip ends with its video."""
    ends = {one.id: one.whole_seconds for one in videos}
    present: dict[tuple[str, int], set[str]] = defaultdict(set)
    for one in clips:
        if one.present and one.video in ends:
            present[one.video, one.start].add(one.class_name)
    return [
        DueSecond(video, second, tuple(sorted(names)))
        for (video, start), names in sorted(present.items())
        for second in range(start, min(start + CLIP_S, ends[video]))
    ]


def check_boxes(clips: Sequence[ClipPresence], annotations: Sequence[Annotation]) -> list[BoxFinding]:
    """Every disagreement of boxes with presence, clip by clip, in order. Videos without annotation have all their
    boxes missing; classes are compared as `official_name` has them."""
    decided = {(one.video, one.start, _class(one.class_name)): one for one in clips}
    drawn: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    for annotation in annotations:
        for one in annotation.sightings:
            start = one.second - one.second % CLIP_S
            drawn[annotation.video.id, start, _class(one.class_name)].append(one.second)
    found = []
    for key in sorted({*decided, *drawn}):
        clip, seconds = decided.get(key), drawn.get(key, [])
        kind: BoxFindingKind
        if clip is not None and clip.present and not seconds:
            kind, detail = "no-box", f"present with a probability of {clip.probability:.2f}, and no box in {CLIP_S} s"
        elif clip is not None and clip.present is False and seconds:
            kind, detail = (
                "unexpected-box",
                f"{_boxes(seconds)}, first at {seconds[0]} s; presence {clip.yes} of {clip.votes} votes",
            )
        elif seconds and (clip is None or clip.present is None):
            kind, detail = "outside-clips", f"{_boxes(seconds)}; {clip.why if clip else 'nobody voted on this clip'}"
        else:
            continue
        found.append(BoxFinding(f"{key[0]}@{key[1]}:{key[2]}", *key, kind, detail))
    return found


def _boxes(seconds: Sequence[int]) -> str:
    return f"{len(seconds)} box{'' if len(seconds) == 1 else 'es'}"


def _class(name: str) -> str:
    return official_name(name) or name
