"""Annotation by several people: votes on presence, boxes, a detector's proposals, the comparison of two annotators, and
decisions on what remains open."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor_build.annotators.detector import DetectorNetwork, DetectorPlan, Frames, folds_of, held_out_detections
    from proctor_build.annotators.pairs import (
        CHOICES,
        TrackAgreement,
        TrackComparison,
        TrackDifference,
        adjudicated,
        agreement_of,
        compare_tracks,
    )
    from proctor_build.annotators.presence import (
        BoxFinding,
        ClipPresence,
        DueSecond,
        PresenceReport,
        PresenceVote,
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
    from proctor_build.annotators.stages import (
        STAGES,
        TO_REVIEW,
        Adjudication,
        AnnotatedRecord,
        Boxes,
        Corrections,
        DifferenceRecord,
        Presence,
        Proposals,
        Tracks,
        annotators_tolerances,
        given_files,
        pair_files,
        videos_of,
    )
    from proctor_build.annotators.tables import Cells, csv_of, read_rows
    from proctor_build.annotators.tolerances import MeasuredTolerances, measured_tolerances, tolerance_lines
else:
    export_lazily(__name__)

__all__ = [
    "ACCEPT", "CHOICES", "REJECT", "STAGES", "TO_REVIEW", "Adjudication", "AnnotatedRecord", "BoxDetection",
    "BoxFinding", "BoxProposal", "Boxes", "Cells", "ClipPresence", "Corrections", "DetectorNetwork", "DetectorPlan",
    "DifferenceRecord", "DueSecond", "Frames", "MeasuredTolerances", "Presence", "PresenceReport", "PresenceVote",
    "Proposals", "TrackAgreement", "TrackComparison", "TrackDifference", "Tracks", "adjudicated", "agreement_of",
    "annotators_tolerances", "asked_back", "check_boxes", "clips_of", "compare_tracks", "corrected", "csv_of",
    "due_seconds", "estimate_presence", "folds_of", "given_files", "held_out_detections", "measured_tolerances",
    "pair_files", "propose", "read_detections", "read_rows", "sure_score", "tolerance_lines", "videos_of",
    "with_proposals",
]  # fmt: skip
