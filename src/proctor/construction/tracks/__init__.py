"""Annotated videos: boxes second by second with class and instance, and moments of importance; their import,
export, checks and completion; and the questions that they answer."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.construction.tracks.annotation import (
        AnnotatedBox,
        AnnotatedMoment,
        AnnotatedVideo,
        Annotation,
        Given,
        Sighting,
        Timeline,
        arrivals,
    )
    from proctor.construction.tracks.balance import choose, foregone, gives_away
    from proctor.construction.tracks.checks import Completion, Filled, TrackFinding, complete, find
    from proctor.construction.tracks.coco import read_coco, to_coco
    from proctor.construction.tracks.commands import Fps, ProcedureName, TrackFiles, completed, counted
    from proctor.construction.tracks.cvat_reading import read_cvat
    from proctor.construction.tracks.cvat_writing import to_cvat
    from proctor.construction.tracks.reading import (
        KINDS,
        TrackFormat,
        files_of,
        read_annotations,
        write_annotations,
        write_folder,
    )
    from proctor.construction.tracks.rules import (
        QUADRANTS,
        TRACK_RULES,
        CandidateQuestion,
        QuestionTemplates,
        Rule,
        only_one,
        orders,
        quadrant_of,
        third,
    )
    from proctor.construction.tracks.vocabulary import ARISING, STAYING, official_name, with_article
else:
    export_lazily(__name__)

__all__ = [
    "ARISING",
    "KINDS",
    "QUADRANTS",
    "STAYING",
    "TRACK_RULES",
    "AnnotatedBox",
    "AnnotatedMoment",
    "AnnotatedVideo",
    "Annotation",
    "CandidateQuestion",
    "Completion",
    "Filled",
    "Fps",
    "Given",
    "ProcedureName",
    "QuestionTemplates",
    "Rule",
    "Sighting",
    "Timeline",
    "TrackFiles",
    "TrackFinding",
    "TrackFormat",
    "arrivals",
    "choose",
    "complete",
    "completed",
    "counted",
    "files_of",
    "find",
    "foregone",
    "gives_away",
    "official_name",
    "only_one",
    "orders",
    "quadrant_of",
    "read_annotations",
    "read_coco",
    "read_cvat",
    "third",
    "to_coco",
    "to_cvat",
    "with_article",
    "write_annotations",
    "write_folder",
]
