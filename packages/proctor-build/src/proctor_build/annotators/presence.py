"""Which classes are present in each clip of five seconds, from the votes of several annotators, and the boxes that this
requires.

Presence is estimated together with the annotators' reliability; clips that remain uncertain need another vote.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from proctor.core import InputError
from proctor.stats import Estimate, LabelVotes, LatentLabels, Resampling, copying, dawid_skene, entropy
from proctor.tracks import AnnotatedVideo, Annotation, official_name

CLIP_S = 5
"""Seconds of a clip."""

RISK = 0.05
"""A clip needs another vote if its decision is wrong with a higher probability."""

FEWEST_VOTES = 2
"""A clip with fewer votes on a class needs another one."""

UNINFORMATIVE = 0.2
"""An annotator is uninformative if the upper end of the reliability's interval is lower."""


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
    """An annotator's vote on whether a class is visible in the clip that starts at `start` seconds."""

    video: str
    start: int
    class_name: str
    annotator: str
    present: bool

    @property
    def clip(self) -> str:
        """The clip's name."""
        return clip_name(self.video, self.start)


def clip_start(name: str, videos: Mapping[str, float], file: Path | None = None) -> tuple[str, int]:
    """The video and the start of a clip by its name, VIDEO@START. Raises `InputError` for a clip that none of `videos`
    (seconds by name) has.

    >>> clip_start("sim-000@15", {"sim-000": 40.0})
    ('sim-000', 15)
    """
    video, _, start = name.rpartition("@")
    if video not in videos:
        expected = f"VIDEO@START with the id of a source: {', '.join(sorted(videos)[:8])}"
        raise InputError(file, "item", found=repr(name)[:80], expected=expected)
    clips = clips_of(video, videos[video])
    if name not in clips:
        expected = (
            f"a start that is a multiple of {CLIP_S} s, {clips[-1]} at most: the video lasts {videos[video]:.1f} s"
        )
        raise InputError(file, "item", found=repr(name)[:80], expected=expected)
    return video, int(start)


@dataclass(frozen=True, slots=True)
class ClipPresence:
    """The estimate for one class in one clip. `majority` is None for a tie. `probability` of presence given all votes
    and the annotators' reliability, with a bootstrap interval over videos from `low` to `high` (None with fewer than
    three); `entropy` is its uncertainty in bits. `why` is the reason for another vote, '' if the clip is decided."""

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
        """Whether the class is present; None if another vote is needed."""
        return None if self.why else self.probability >= 0.5


AnnotatorFlag = Literal["", "inverted", "uninformative", "copies"]


@dataclass(frozen=True, slots=True)
class AnnotatorReliability:
    """One annotator: estimated sensitivity and specificity, reliability (sensitivity + specificity − 1) with its
    interval, the share of yes votes, and the share of votes that agree with the estimated presence. `flag` and `why`
    name a problem with the votes."""

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
    """The clips in order of video, start and class, the annotators by name, and the estimated share of clips with each
    class. If the fit has not `converged`, no clip is decided."""

    clips: tuple[ClipPresence, ...]
    annotators: tuple[AnnotatorReliability, ...]
    prevalence: dict[str, float]
    converged: bool

    @property
    def due(self) -> list[ClipPresence]:
        """The clips that need another vote, the most uncertain first."""
        return sorted(
            (clip for clip in self.clips if clip.why),
            key=lambda clip_presence: (-clip_presence.entropy, clip_presence.video, clip_presence.start),
        )


def estimate_presence(
    votes: Sequence[PresenceVote],
    *,
    settled: Mapping[tuple[str, int, str], bool] = {},
    risk: float = RISK,
    plan: Resampling = Resampling(draws=500),
) -> PresenceReport:
    """Estimates presence by `dawid_skene`: items are classes in clips, each class has its own prior, and annotators have
    one sensitivity and one specificity for all classes; intervals are clustered by video.

    The estimate inverts the votes of inverted annotators and ignores uninformative ones. Of two annotators who copy, the
    later by name is left out. A clip needs another vote if its decision is wrong with a probability above `risk`, if
    the interval of the probability contains ½, or with fewer than two votes. What an adjudicator `settled` (by video, start
    and class) is decided. Raises `InputError` without votes.
    """
    ordered = sorted(
        votes,
        key=lambda presence_vote: (
            presence_vote.video,
            presence_vote.start,
            presence_vote.class_name,
            presence_vote.annotator,
        ),
    )
    table = _table(ordered)
    pairs = sorted(sorted((str(one), str(other))) for one, other, _ in copying(table, (False, True), plan))
    copies: dict[str, str] = {}
    for one, other in pairs:
        copies[other] = copies.get(one, one)
    fit = dawid_skene(table.without(*copies), (False, True), plan=plan)
    by_item: dict[tuple[str, int, str], list[PresenceVote]] = defaultdict(list)
    for vote in ordered:
        by_item[vote.video, vote.start, vote.class_name].append(vote)
    row = {item: number for number, item in enumerate(fit.items)}
    unknown = entropy(fit.posterior)
    clips = []
    for key, some in by_item.items():
        kept = [presence_vote for presence_vote in some if presence_vote.annotator not in copies]
        number = row.get(key)
        ends: tuple[float, float | None, float | None]
        if number is None:  # only copies voted on it: the class's prior
            prior = float(fit.prior[fit.strata.index(key[2]), 1]) if key[2] in fit.strata else 0.5
            ends, bits = (prior, None, None), float(entropy(np.array([[prior, 1 - prior]]))[0])
        else:
            low, high = (float(one[number, 1]) for one in (fit.low, fit.high))
            known = math.isfinite(low)
            ends = (float(fit.posterior[number, 1]), low if known else None, high if known else None)
            bits = float(unknown[number])
        yes = sum(presence_vote.present for presence_vote in kept)
        majority = None if 2 * yes == len(kept) else 2 * yes > len(kept)
        why = "the fit did not converge" if not fit.converged else _why(ends, len(kept), risk)
        if key in settled:
            ends, bits, why = (float(settled[key]), None, None), 0.0, ""
        clips.append(ClipPresence(*key, yes, len(kept), majority, *ends, bits, why))
    prevalence = {str(name): float(one[1]) for name, one in zip(fit.strata, fit.prior, strict=True)}
    return PresenceReport(tuple(clips), _annotators(ordered, fit, copies), prevalence, fit.converged)


def _table(votes: Sequence[PresenceVote]) -> LabelVotes:
    return LabelVotes(
        [(vote.video, vote.start, vote.class_name) for vote in votes],
        [vote.annotator for vote in votes],
        [vote.present for vote in votes],
        [vote.class_name for vote in votes],
        [vote.video for vote in votes],
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
        says_yes = sum(presence_vote.present for presence_vote in some) / len(some)
        judged = [
            presence_vote.present == true[key]
            for presence_vote in some
            if (key := (presence_vote.video, presence_vote.start, presence_vote.class_name)) in true
        ]
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
    """A second of a video that needs boxes, and the classes present in its clip."""

    video: str
    second: int
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BoxFinding:
    """A disagreement of boxes and presence: a class is present in a clip and has neither a box nor is covered
    (`no-box`), a box of a class that is not present (`unexpected-box`), or a box in an undecided clip
    (`outside-clips`)."""

    id: str
    video: str
    start: int
    class_name: str
    kind: BoxFindingKind
    detail: str


def due_seconds(clips: Iterable[ClipPresence], videos: Sequence[AnnotatedVideo]) -> list[DueSecond]:
    """The whole seconds of all clips with a class that is decided to be present, in order."""
    ends = {video.id: video.whole_seconds for video in videos}
    present: dict[tuple[str, int], set[str]] = defaultdict(set)
    for clip in clips:
        if clip.present and clip.video in ends:
            present[clip.video, clip.start].add(clip.class_name)
    return [
        DueSecond(video, second, tuple(sorted(names)))
        for (video, start), names in sorted(present.items())
        for second in range(start, min(start + CLIP_S, ends[video]))
    ]


def check_boxes(clips: Sequence[ClipPresence], annotations: Sequence[Annotation]) -> list[BoxFinding]:
    """All disagreements of boxes and presence, in order of clips. Classes are compared by `official_name`."""
    decided = {
        (clip_presence.video, clip_presence.start, _class(clip_presence.class_name)): clip_presence
        for clip_presence in clips
    }
    drawn: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    for annotation in annotations:
        for sighting in annotation.sightings:
            start = sighting.second - sighting.second % CLIP_S
            drawn[annotation.video.id, start, _class(sighting.class_name)].append(sighting.second)
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
