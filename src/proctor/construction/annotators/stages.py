"""Annotation as stages of a project: presence, boxes, proposals, corrections, tracks, adjudication. Each waits for files
from people in the project folder."""

from __future__ import annotations

import asyncio
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from proctor.construction.annotation import AnnotatedVideo, Annotation, ReadDefaults
from proctor.construction.annotators.decisions import RecordDecision, csv_of, read_decisions, table_of
from proctor.construction.annotators.detector import DetectorNetwork, DetectorPlan, held_out_detections
from proctor.construction.annotators.pairs import (
    CHOICES,
    DIFFERENCE_COLUMNS,
    MOMENT_S,
    TrackDifference,
    adjudicated,
    agreement_of,
    compare_tracks,
)
from proctor.construction.annotators.presence import (
    RISK,
    AnnotatorReliability,
    ClipPresence,
    PresenceVote,
    check_boxes,
    clips_of,
    due_seconds,
    estimate_presence,
    read_votes,
)
from proctor.construction.annotators.proposals import (
    ACCEPT,
    PROPOSAL_COLUMNS,
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
from proctor.construction.annotators.tolerances import (
    AnnotatedPair,
    MeasuredTolerances,
    estimate_text,
    measured_tolerances,
    tolerance_lines,
)
from proctor.construction.files import files_of, read_annotations
from proctor.construction.pipeline import (
    Made,
    Project,
    Record,
    SourceVideo,
    Stage,
    StageSettings,
    StageTable,
    WaitingError,
    Work,
    records_of,
)
from proctor.construction.pipeline.stage import stage_settings
from proctor.core import InputError, count_of
from proctor.media import MediaLibrary, Picture

if TYPE_CHECKING:
    from PIL.Image import Image


class PresenceRecord(Record):
    """One class in one clip; `present` is None (with a flag) if another vote is needed."""

    clip: ClipPresence
    present: bool | None


class AnnotatedRecord(Record):
    """The annotation of one video after a stage."""

    annotation: Annotation


class ProposalRecord(Record):
    """A correction that the detector proposes."""

    proposal: BoxProposal


class DifferenceRecord(Record):
    """Where two annotators differ."""

    difference: TrackDifference


class PresenceSettings(StageSettings):
    """The table of votes, and the highest acceptable probability of a wrong decision."""

    votes: str = "sources/votes.csv"
    risk: float = Field(default=RISK, gt=0, lt=0.5)


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


class DecisionSettings(StageSettings):
    """The table of decisions; for proposals also a folder of the CVAT files that showed them."""

    decisions: str = ""


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
    record, settings, has_table = PresenceRecord, PresenceSettings, True

    def reads(self, work: Work) -> Sequence[Path]:
        return given_files(work.project, work.settings(PresenceSettings).votes)

    async def make(self, work: Work) -> Made[PresenceRecord]:
        settings = work.settings(PresenceSettings)
        if not self.reads(work):
            raise WaitingError(f"votes in {settings.votes} (columns clip, annotator, class, present)")
        votes = read_votes(self.reads(work)[0])
        known = {source.id for source in work.sources}
        strange = next((vote.clip for vote in votes if vote.video not in known), None)
        if strange is not None:
            expected = f"VIDEO@START with the id of a source: {', '.join(sorted(known)[:8])}"
            raise InputError(self.reads(work)[0], "column 'clip'", found=repr(strange), expected=expected)
        _check_ends(self.reads(work)[0], votes, videos_of(work.project))
        report = estimate_presence(votes, risk=settings.risk)
        records = [
            PresenceRecord(
                id=f"{clip.video}@{clip.start}:{clip.class_name}", flags=("another vote",) if clip.why else (),
                present=clip.present,
                clip=clip,
            )
            for clip in report.clips
        ]  # fmt: skip
        return Made(records, notes=[_reliability_line(annotator) for annotator in report.annotators])

    def table(self, project: Project) -> StageTable:
        """The clips that need another vote, the most uncertain first; before any vote, all clips."""
        records = records_of(project, self)
        clips = sorted(
            (one.clip for one in records if one.clip.why), key=lambda clip: (-clip.entropy, clip.video, clip.start)
        )
        rows = [(clip.clip, clip.class_name, clip.yes, clip.votes, f"{clip.probability:.3f}") for clip in clips]
        if not records:
            rows = [(name, "", "", "", "") for name in clips_to_vote_on(project)]
        return StageTable(csv_of(("clip", "class", "yes", "votes", "probability"), rows), len(rows), "clip")


def _check_ends(file: Path, votes: Sequence[PresenceVote], videos: Sequence[AnnotatedVideo]) -> None:
    """Raises `InputError` for a vote on a clip that begins after its video's end."""
    seconds = {video.id: video.seconds for video in videos}
    late = next((vote for vote in votes if vote.start >= seconds.get(vote.video, math.inf)), None)
    if late is not None:
        last = clips_of(late.video, seconds[late.video])[-1]
        expected = f"{last} at most: the video lasts {seconds[late.video]:.1f} s"
        raise InputError(file, "column 'clip'", found=repr(late.clip), expected=expected)


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
    record, settings, has_table, tracks_as = ProposalRecord, ProposalsSettings, True, "cvat"

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

    def table(self, project: Project) -> StageTable:
        """The proposals, with empty columns decision and by."""
        made = [one.proposal for one in records_of(project, self)]
        return StageTable(table_of(made, PROPOSAL_COLUMNS, decided=True), len(made), "proposal")

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
    record, settings, tracks_as = AnnotatedRecord, DecisionSettings, "cvat"
    default = "sources/proposals.csv"

    def reads(self, work: Work) -> Sequence[Path]:
        return given_files(work.project, work.settings(DecisionSettings).decisions or self.default)

    async def make(self, work: Work) -> Made[AnnotatedRecord]:
        proposals = [record.proposal for record in work.records("proposals", ProposalRecord)]
        annotations = [record.annotation for record in work.records("boxes", AnnotatedRecord)]
        decisions = _decisions(self.reads(work), proposals) if proposals else {}
        _all_decided(work, self.default, "proposal", len(proposals) - len(decisions))
        accepted = sum(decision.choice == ACCEPT for decision in decisions.values())
        notes = [f"{accepted} of {count_of(len(proposals), 'proposal')} accepted"]
        return Made(_records(corrected(annotation, proposals, decisions) for annotation in annotations), notes=notes)

    def tracks(self, project: Project) -> Sequence[Annotation]:
        """The corrected boxes, for two annotators who give each object its own track."""
        return [one.annotation for one in records_of(project, self)]


def _decisions(files: Sequence[Path], proposals: Sequence[BoxProposal]) -> dict[str, RecordDecision]:
    """The decisions in a table, or in the CVAT files that showed the proposals."""
    if not files or files[0].suffix.lower() != ".xml":
        return read_decisions(files[0], proposals, (ACCEPT, REJECT)) if files else {}
    found = {name: one for annotation in read_annotations(files) for name, one in asked_back(annotation)[1].items()}
    strange = next((name for name in found if name not in {proposal.id for proposal in proposals}), None)
    if strange is not None:
        raise InputError(files[0].parent, found=f"proposal {strange!r}", expected="one that is open: show them again")
    return found


def _all_decided(work: Work, default: str, what: str, undecided: int) -> None:
    if undecided:
        where = work.settings(DecisionSettings).decisions or default
        raise WaitingError(f"{count_of(undecided, what)} to decide in {where} (columns id, decision, by)")


class Tracks(Stage[DifferenceRecord]):
    """The differences between two annotators' tracks."""

    name, summary, whole, after = "tracks", "Where two annotators' tracks differ", True, ("corrections",)
    record, settings, has_table = DifferenceRecord, PairSettings, True

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

    def table(self, project: Project) -> StageTable:
        """Every difference, with empty columns decision (a or b) and by, for a third person."""
        made = [one.difference for one in records_of(project, self)]
        return StageTable(table_of(made, DIFFERENCE_COLUMNS, decided=True), len(made), "difference")


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
    limit = max(MOMENT_S, measured_tolerances(pairs).moment_apart or 0.0)
    return [(a, b, compare_tracks(a, b, moment_s=limit)) for a, b, _ in pairs]


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
    record, settings, tracks_as = AnnotatedRecord, DecisionSettings, "json"
    default = "sources/differences.csv"

    def reads(self, work: Work) -> Sequence[Path]:
        table = given_files(work.project, work.settings(DecisionSettings).decisions or self.default)
        return [*table, *pair_files(work.project)]

    async def make(self, work: Work) -> Made[AnnotatedRecord]:
        pairs = _pairs(work)
        asked = {one.id for _, _, each in _with_measured_moments(pairs) for one in each.differences}
        # More videos may change what counts as the same moment: decisions on any difference stand.
        every = [(a, b, compare_tracks(a, b, moment_s=0.0)) for a, b, _ in pairs]
        differences: list[TrackDifference] = [difference for _, _, each in every for difference in each.differences]
        table = given_files(work.project, work.settings(DecisionSettings).decisions or self.default)
        decisions = read_decisions(table[0], differences, CHOICES) if table and differences else {}
        _all_decided(work, self.default, "difference", len(asked - decisions.keys()))
        return Made(_records(adjudicated(a, b, each, decisions)[0] for a, b, each in every))

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


def clips_to_vote_on(project: Project) -> list[str]:
    """The names of all clips of the project's videos."""
    return [
        name for annotated_video in videos_of(project) for name in clips_of(annotated_video.id, annotated_video.seconds)
    ]


def _video(project: Project, source: SourceVideo) -> tuple[MediaLibrary, str]:
    """The library with a source's video (a link may lead out of the project), and its name there."""
    file = project.path(source, "video").resolve()
    return MediaLibrary(file.parent), file.name
