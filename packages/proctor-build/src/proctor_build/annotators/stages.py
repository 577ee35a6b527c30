"""Annotation as stages of a project: presence, boxes, proposals, corrections, tracks, adjudication. Each waits for files
from people in the project folder."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator

from proctor.core import InputError, count_of
from proctor.media import MediaLibrary, Picture
from proctor.tracks import OBJECTS, AnnotatedVideo, Annotation, ReadDefaults, official_name
from proctor_build.annotators.detector import DetectorNetwork, DetectorPlan, held_out_detections
from proctor_build.annotators.pairs import CHOICES, MOMENT_S, TrackDifference, adjudicated, agreement_of, compare_tracks
from proctor_build.annotators.presence import (
    RISK,
    AnnotatorReliability,
    ClipPresence,
    check_boxes,
    clips_of,
    due_seconds,
    estimate_presence,
)
from proctor_build.annotators.proposals import (
    ACCEPT,
    REJECT,
    BoxDetection,
    BoxProposal,
    asked_back,
    corrected,
    propose,
    read_detections,
    sure_score,
    with_proposals,
)
from proctor_build.annotators.review import (
    CHOICE_FORM,
    PRESENCE_FORM,
    ChoiceLine,
    PresenceLine,
    choices_of,
    clips_to_review,
    difference_to_review,
    proposal_to_review,
    version_of,
)
from proctor_build.annotators.tables import csv_of
from proctor_build.annotators.tolerances import (
    AnnotatedPair,
    MeasuredTolerances,
    estimate_text,
    measured_tolerances,
    tolerance_lines,
)
from proctor_build.files import files_of, read_annotations
from proctor_build.pipeline import (
    ConsensusSettings,
    Made,
    Project,
    Record,
    RecordToReview,
    SourceVideo,
    Stage,
    StageSettings,
    StageTable,
    ToReview,
    WaitingError,
    Work,
    consensus_files,
    read_consensus,
    records_of,
    settled_lines,
    stage_settings,
    waiting_for_readers,
)

if TYPE_CHECKING:
    from PIL.Image import Image


class PresenceRecord(Record):
    """One class in one clip; `present` is None (with a flag) if another vote is needed. `read_by` is how many read it."""

    clip: ClipPresence
    present: bool | None
    read_by: int = 0


class AnnotatedRecord(Record):
    """The annotation of one video after a stage."""

    annotation: Annotation


class ProposalRecord(Record):
    """A correction that the detector proposes."""

    proposal: BoxProposal


class DifferenceRecord(Record):
    """Where two annotators differ."""

    difference: TrackDifference


class PresenceSettings(ConsensusSettings):
    """The consensus of the study of clips, the classes that annotators look for, and the highest acceptable probability of
    a wrong decision."""

    consensus: str = "sources/presence.jsonl"
    classes: tuple[str, ...] = Field(default=(*OBJECTS,), min_length=1, max_length=60)
    risk: float = Field(default=RISK, gt=0, lt=0.5)

    @model_validator(mode="after")
    def _different(self) -> Self:
        names = [(official_name(name) or name).casefold() for name in self.classes]
        if len({*names}) < len(names):
            raise ValueError("each class once is expected")
        return self


class TracksInSettings(StageSettings):
    """A file or folder of tracks (CVAT, COCO, Proctor's own), and the frame rate for files without one."""

    tracks: str = "sources/boxes"
    fps: float | None = None


class ProposalsSettings(StageSettings):
    """The source of detections: a table (`detections`), an exported network with its classes in order (`network`,
    `classes`), or networks trained here (see `DetectorPlan`; `weights` is a folder). `score` is the threshold (default:
    the one that agrees best with the boxes)."""

    detections: str = ""
    network: str = ""
    classes: tuple[str, ...] = ()
    weights: str = ""
    folds: int = 3
    steps: int = 1000
    batch: int = 8
    width: int = 224
    height: int = 128
    score: float | None = Field(default=None, ge=0, le=1)


class CorrectionsSettings(ConsensusSettings):
    """The consensus of the study of proposals; or the CVAT files that showed them (`cvat`), with the decisions."""

    consensus: str = "sources/corrections.jsonl"
    cvat: str = ""


class AdjudicationSettings(ConsensusSettings):
    """The consensus of the study of differences."""

    consensus: str = "sources/adjudication.jsonl"


class PairSettings(StageSettings):
    """The tracks of two annotators, as files or folders, and the frame rate for files without one."""

    a: str = "sources/tracks-a"
    b: str = "sources/tracks-b"
    fps: float | None = None


def given_files(project: Project, named: str) -> list[Path]:
    """The file at a path of the settings, or the files of tracks in a folder; none if nothing is there. Raises
    `InputError` for a path outside the project."""
    path = project.folder / named
    if Path(named).is_absolute() or ".." in Path(named).parts:
        raise InputError(project.file, found=repr(named)[:80], expected="a path inside the project folder")
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return []
    return files_of([path]) if path.is_dir() else [path]


def _tracks(project: Project, sources: Sequence[SourceVideo], named: str, fps: float | None) -> list[Annotation]:
    """The annotations of the project's sources. Raises `InputError` for an unknown video."""
    found = read_annotations(given_files(project, named), ReadDefaults(fps))
    known = [source.id for source in sources]
    strange = next((annotation.video.id for annotation in found if annotation.video.id not in known), None)
    if strange is not None:
        expected = f"the id of a source: {', '.join(known[:8])}"
        raise InputError(project.folder / named, found=f"video {strange!r}", expected=expected)
    return found


def _records(annotations: Iterable[Annotation]) -> list[AnnotatedRecord]:
    return [AnnotatedRecord(id=annotation.video.id, annotation=annotation) for annotation in annotations]


class Presence(Stage[PresenceRecord]):
    """Presence of classes in clips of five seconds, from the votes of several annotators."""

    name, summary, whole = "presence", "Which classes are present in each clip, by votes", True
    record, settings = PresenceRecord, PresenceSettings

    def reads(self, work: Work) -> Sequence[Path]:
        return consensus_files(work, work.settings(PresenceSettings).consensus)

    async def make(self, work: Work) -> Made[PresenceRecord]:
        settings = work.settings(PresenceSettings)
        videos = {video.id: video.seconds for video in videos_of(work.project)}
        lines = [line for line in read_consensus(self.reads(work), PresenceLine) if line.current]
        clips = [clip for name, seconds in videos.items() for clip in clips_of(name, seconds)]
        if not lines:
            raise waiting_for_readers(work, settings.consensus, f"{count_of(len(clips), 'clip')} to read")
        votes = [vote for line in lines for vote in line.votes(videos, self.reads(work)[0])]
        settled = {key: there for line in lines for key, there in line.settled(videos).items()}
        report = estimate_presence(votes, settled=settled, risk=settings.risk)
        read_by = {line.item: len(line.readings) for line in lines}
        records = [
            PresenceRecord(
                id=f"{clip.video}@{clip.start}:{clip.class_name}", flags=("another vote",) if clip.why else (),
                present=clip.present,
                clip=clip,
                read_by=read_by[clip.clip],
            )
            for clip in report.clips
        ]  # fmt: skip
        left = len({*clips} - read_by.keys())
        notes = [f"{left} of {count_of(len(clips), 'clip')} to read"] if left else []
        return Made(records, notes=[*notes, *(_reliability_line(annotator) for annotator in report.annotators)])


def _reliability_line(reliability: AnnotatorReliability) -> str:
    flag = (
        f": {reliability.flag}, {reliability.why}"
        if reliability.flag
        else f" ({reliability.why})"
        if reliability.why
        else ""
    )
    return (
        f"{reliability.annotator}: {count_of(reliability.votes, 'vote')}, sensitivity {reliability.sensitivity:.2f}, "
        f"specificity {reliability.specificity:.2f}, reliability {estimate_text(reliability.reliability)}{flag}"
    )


class Boxes(Stage[AnnotatedRecord]):
    """Boxes once a second in the clips in which a class is present."""

    name, summary, whole, after = "boxes", "Boxes once a second where a class is present", True, ("presence",)
    record, settings, has_table, tracks_as = AnnotatedRecord, TracksInSettings, True, "cvat"

    def reads(self, work: Work) -> Sequence[Path]:
        return given_files(work.project, work.settings(TracksInSettings).tracks)

    async def make(self, work: Work) -> Made[AnnotatedRecord]:
        settings = work.settings(TracksInSettings)
        clips = [record.clip for record in work.records("presence", PresenceRecord)]
        if not self.reads(work):
            present = sum(bool(clip.present) for clip in clips)
            raise WaitingError(f"boxes in {settings.tracks}: {count_of(present, 'clip')} with a class that is present")
        annotations = _tracks(work.project, work.sources, settings.tracks, settings.fps)
        findings = check_boxes(clips, annotations)
        kinds = {
            annotation.video.id: sorted({finding.kind for finding in findings if finding.video == annotation.video.id})
            for annotation in annotations
        }
        due = len(due_seconds(clips, [annotation.video for annotation in annotations]))
        notes = [f"{count_of(due, 'second')} due in {count_of(len(annotations), 'annotated video')}"]
        notes += [f"{finding.id}: {finding.kind}: {finding.detail}" for finding in findings]
        records = [
            AnnotatedRecord(id=annotation.video.id, annotation=annotation, flags=tuple(kinds[annotation.video.id]))
            for annotation in annotations
        ]
        return Made(records, notes=notes)

    def table(self, project: Project) -> StageTable:
        """The seconds at which boxes are needed."""
        clips = [one.clip for one in records_of(project, Presence())]
        due = due_seconds(clips, videos_of(project))
        rows = [(second.video, second.second, ", ".join(second.classes)) for second in due]
        return StageTable(csv_of(("video", "second", "classes"), rows), len(rows), "second")

    def tracks(self, project: Project) -> Sequence[Annotation]:
        """The boxes as they were read."""
        return [one.annotation for one in records_of(project, self)]


class Proposals(Stage[ProposalRecord]):
    """Corrections proposed by a detector that has not seen the video."""

    name, summary, whole, after = "proposals", "Corrections that a detector proposes", True, ("presence", "boxes")
    record, settings, tracks_as = ProposalRecord, ProposalsSettings, "cvat"

    def reads(self, work: Work) -> Sequence[Path]:
        settings = work.settings(ProposalsSettings)
        if settings.detections:
            found = given_files(work.project, settings.detections)
            if not found:
                raise InputError(work.project.folder / settings.detections, found="no such file", expected="detections")
            return found
        weights = work.project.folder / settings.weights
        named = [*sorted(weights.glob("*.safetensors")), weights / "config.json"] if settings.weights else []
        named += [work.project.folder / settings.network] if settings.network else []
        return [*named, *(work.project.path(source, "video") for source in work.sources)]

    async def make(self, work: Work) -> Made[ProposalRecord]:
        settings = work.settings(ProposalsSettings)
        annotations = [record.annotation for record in work.records("boxes", AnnotatedRecord)]
        clips = [record.clip for record in work.records("presence", PresenceRecord)]
        seconds = {annotation.video.id: sorted(annotation.by_second()) for annotation in annotations}
        for due in due_seconds(clips, [annotation.video for annotation in annotations]):
            seconds[due.video] = sorted({*seconds[due.video], due.second})
        found = await asyncio.to_thread(_detections, work, settings, annotations, seconds)
        score = sure_score(annotations, found) if settings.score is None else settings.score
        proposals = [
            box_proposal
            for annotation in annotations
            for box_proposal in propose(annotation, found, score, seconds[annotation.video.id])
        ]
        note = f"{count_of(len(found), 'detection')}, counted from a score of {score:.2f} on"
        return Made([ProposalRecord(id=proposal.id, proposal=proposal) for proposal in proposals], notes=[note])

    def tracks(self, project: Project) -> Sequence[Annotation]:
        """The boxes as they stand, with each proposal as a track of its own."""
        proposed = [one.proposal for one in records_of(project, self)]
        return [with_proposals(one.annotation, proposed) for one in records_of(project, Boxes())]


def _detections(
    work: Work, settings: ProposalsSettings, annotations: Sequence[Annotation], seconds: dict[str, list[int]]
) -> list[BoxDetection]:
    if settings.detections:
        return read_detections(given_files(work.project, settings.detections)[0])
    files = {source.id: _video(work.project, source) for source in work.sources}

    def frames(video: str, wanted: Sequence[int]) -> Iterable[Image]:
        from PIL.Image import open as opened

        for start in range(0, len(wanted), 64):
            library, name = files[video]
            some = [Picture(name, float(second)) for second in wanted[start : start + 64]]
            for jpeg in library.jpegs(some):
                yield opened(io.BytesIO(jpeg)).convert("RGB")

    if settings.network:
        network = DetectorNetwork(work.project.folder / settings.network, settings.classes)
        shown = {name: zip(some, frames(name, some), strict=True) for name, some in seconds.items()}
        return [detection for name, pictures in shown.items() for detection in network.detections(name, pictures)]
    plan = DetectorPlan(
        settings.folds, settings.steps, settings.batch, settings.width, settings.height,
        work.project.folder / settings.weights if settings.weights else None, work.project.settings.seed,
    )  # fmt: skip
    return held_out_detections(
        annotations, seconds, frames, plan, {source.id: source.patient for source in work.sources}
    )


class Corrections(Stage[AnnotatedRecord]):
    """The boxes with the proposals that a person accepted."""

    name, summary, whole, after = "corrections", "Boxes with the accepted proposals", True, ("boxes", "proposals")
    record, settings, tracks_as = AnnotatedRecord, CorrectionsSettings, "cvat"

    def reads(self, work: Work) -> Sequence[Path]:
        settings = work.settings(CorrectionsSettings)
        return given_files(work.project, settings.cvat) if settings.cvat else consensus_files(work, settings.consensus)

    async def make(self, work: Work) -> Made[AnnotatedRecord]:
        proposals = [record.proposal for record in work.records("proposals", ProposalRecord)]
        annotations = [record.annotation for record in work.records("boxes", AnnotatedRecord)]
        decisions = _decisions(work, proposals, self.reads(work)) if proposals else {}
        accepted = sum(choice == ACCEPT for choice in decisions.values())
        notes = [f"{accepted} of {count_of(len(proposals), 'proposal')} accepted"]
        return Made(_records(corrected(annotation, proposals, decisions) for annotation in annotations), notes=notes)

    def tracks(self, project: Project) -> Sequence[Annotation]:
        """The corrected boxes, for two annotators who give each object its own track."""
        return [one.annotation for one in records_of(project, self)]


def _decisions(work: Work, proposals: Sequence[BoxProposal], files: Sequence[Path]) -> dict[str, str]:
    """The decision on each proposal, from the review, or the CVAT files that showed them. Raises `WaitingError` where one
    is open."""
    settings = work.settings(CorrectionsSettings)
    if not settings.cvat:
        versions = {proposal.id: version_of(proposal) for proposal in proposals}
        lines = read_consensus(files, ChoiceLine)
        return choices_of(
            settled_lines(work, settings.consensus, "proposal", versions, lines), (ACCEPT, REJECT), settings.consensus
        )
    found = {name: one for annotation in read_annotations(files) for name, one in asked_back(annotation)[1].items()}
    known = {proposal.id for proposal in proposals}
    strange = next((name for name in found if name not in known), None)
    if strange is not None:
        raise InputError(files[0].parent, found=f"proposal {strange!r}", expected="one that is open: show them again")
    if known - found.keys():
        left = count_of(len(known - found.keys()), "proposal")
        raise WaitingError(f"{left} to decide in {settings.cvat} (the attributes decision and by)")
    return found


class Tracks(Stage[DifferenceRecord]):
    """The differences between two annotators' tracks."""

    name, summary, whole, after = "tracks", "Where two annotators' tracks differ", True, ("corrections",)
    record, settings = DifferenceRecord, PairSettings

    def reads(self, work: Work) -> Sequence[Path]:
        return pair_files(work.project)

    async def make(self, work: Work) -> Made[DifferenceRecord]:
        pairs = _pairs(work)
        compared = [comparison for _, _, comparison in _with_measured_moments(pairs)]
        agreement = agreement_of(compared)
        measured = measured_tolerances(pairs)
        note = f"F1 of boxes {estimate_text(agreement.boxes)}, same class {estimate_text(agreement.classes)}, "
        note += f"F1 of identity {estimate_text(agreement.identity)}, overlap {estimate_text(agreement.overlap)}, "
        note += count_of(len(compared), "video")
        return Made(
            [
                DifferenceRecord(id=difference.id, difference=difference)
                for each in compared
                for difference in each.differences
            ],
            notes=[note, *tolerance_lines(measured)],
        )


def annotators_tolerances(project: Project) -> MeasuredTolerances | None:
    """The tolerances from a project's two annotators; None before both have given tracks of all videos."""
    try:
        pairs = _pairs_of(project, project.settings.sources)
    except WaitingError:
        return None
    return measured_tolerances(pairs)


def pair_files(project: Project) -> list[Path]:
    """The files of a project's two annotators; none before they are there."""
    settings = stage_settings(project, Tracks.name, PairSettings)
    return [*given_files(project, settings.a), *given_files(project, settings.b)]


def _with_measured_moments(pairs: Sequence[AnnotatedPair]) -> list[AnnotatedPair]:
    """The comparisons in which moments are the same up to what 95 of 100 of the annotators' pairs stay within, at least
    `MOMENT_S`."""
    return _compared(pairs, max(MOMENT_S, measured_tolerances(pairs).moment_apart or 0.0))


def _compared(pairs: Sequence[AnnotatedPair], moment_s: float) -> list[AnnotatedPair]:
    return [(a, b, compare_tracks(a, b, moment_s=moment_s)) for a, b, _ in pairs]


def _pairs(work: Work) -> list[AnnotatedPair]:
    return _pairs_of(work.project, work.sources)


def _pairs_of(project: Project, sources: Sequence[SourceVideo]) -> list[AnnotatedPair]:
    settings = stage_settings(project, Tracks.name, PairSettings)
    lacking = [one for one in (settings.a, settings.b) if not given_files(project, one)]
    if lacking:
        raise WaitingError(f"tracks of instances by two annotators: {' and '.join(lacking)}")
    first, second = (
        {track.video.id: track for track in _tracks(project, sources, named, settings.fps)}
        for named in (settings.a, settings.b)
    )
    alone = sorted(first.keys() ^ second.keys())
    if alone:
        raise WaitingError(f"the other annotator's tracks of {', '.join(alone[:8])}")
    return [(one, second[name], compare_tracks(one, second[name])) for name, one in first.items()]


class Adjudication(Stage[AnnotatedRecord]):
    """Merges two annotations by the decisions of a third person."""

    name, summary, whole, after = "adjudication", "Tracks as a third person decided", True, ("tracks",)
    record, settings, tracks_as = AnnotatedRecord, AdjudicationSettings, "json"

    def reads(self, work: Work) -> Sequence[Path]:
        return [*consensus_files(work, work.settings(AdjudicationSettings).consensus), *pair_files(work.project)]

    async def make(self, work: Work) -> Made[AnnotatedRecord]:
        named = work.settings(AdjudicationSettings).consensus
        pairs = _pairs(work)
        asked, known = (
            {one.id: version_of(one) for _, _, each in some for one in each.differences}
            # More videos may change what counts as the same moment: decisions on any difference stand.
            for some in (_with_measured_moments(pairs), _compared(pairs, 0.0))
        )
        lines = read_consensus(consensus_files(work, named), ChoiceLine)
        settled = settled_lines(work, named, "difference", asked, lines, known)
        decisions = choices_of(settled, CHOICES, named)
        return Made(_records(adjudicated(a, b, each, decisions)[0] for a, b, each in _compared(pairs, 0.0)))

    def tracks(self, project: Project) -> Sequence[Annotation]:
        """The tracks as decided."""
        return [one.annotation for one in records_of(project, self)]


STAGES = (Presence(), Boxes(), Proposals(), Corrections(), Tracks(), Adjudication())
"""The stages of annotation, in order."""


def videos_of(project: Project) -> list[AnnotatedVideo]:
    """The project's videos, to be annotated."""
    found = []
    for source in project.settings.sources:
        library, name = _video(project, source)
        info = library.probe(name)
        found.append(
            AnnotatedVideo(
                id=source.id, file=source.video, width=info.width, height=info.height, seconds=info.duration_s,
                fps=info.fps, procedure=source.procedure,
            )
        )  # fmt: skip
    return found


def _video(project: Project, source: SourceVideo) -> tuple[MediaLibrary, str]:
    """The library with a source's video (a link may lead out of the project), and its name there."""
    file = project.path(source, "video").resolve()
    return MediaLibrary(file.parent), file.name


# -- what people read in a review


def _clips(project: Project) -> list[RecordToReview]:
    made = records_of(project, Presence())
    read_by = {record.clip.clip: record.read_by for record in made if record.clip.why}
    classes = stage_settings(project, Presence.name, PresenceSettings).classes
    return clips_to_review(videos_of(project), classes, read_by)


def _proposals(project: Project) -> list[RecordToReview]:
    stand = {record.id: record.annotation for record in records_of(project, Boxes())}
    regions = {source.id: source.region for source in project.settings.sources}
    proposals = [record.proposal for record in records_of(project, Proposals())]
    return [
        proposal_to_review(one, stand[one.video], regions.get(one.video)) for one in proposals if one.video in stand
    ]


def _differences(project: Project) -> list[RecordToReview]:
    found = {record.difference.id for record in records_of(project, Tracks())}
    regions = {source.id: source.region for source in project.settings.sources}
    pairs = _with_measured_moments(_pairs_of(project, project.settings.sources)) if found else []
    return [
        difference_to_review(difference, a, b, regions.get(a.video.id))
        for a, b, comparison in pairs
        for difference in comparison.differences
        if difference.id in found
    ]


TO_REVIEW = (
    ToReview(PRESENCE_FORM, _clips, Presence.name),
    ToReview(CHOICE_FORM, _proposals, Corrections.name),
    ToReview(CHOICE_FORM, _differences, Adjudication.name),
)
"""What people read of a project in a review; nothing of a stage that was not run yet."""
