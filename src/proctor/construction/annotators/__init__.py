"""Annotation by several people: votes on presence, boxes, a detector's proposals, the comparison of two annotators, and
decisions on what remains open."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.construction.annotators.decisions import Cells, read_rows, table_of
    from proctor.construction.annotators.pairs import DIFFERENCE_COLUMNS
    from proctor.construction.annotators.presence import due_seconds
    from proctor.construction.annotators.proposals import PROPOSAL_COLUMNS, with_proposals
    from proctor.construction.annotators.stages import (
        STAGES,
        Adjudication,
        AnnotatedRecord,
        Boxes,
        Corrections,
        DifferenceRecord,
        Presence,
        Proposals,
        Tracks,
        clips_to_vote_on,
        given_files,
        videos_of,
    )
else:
    export_lazily(__name__)

__all__ = [
    "DIFFERENCE_COLUMNS", "PROPOSAL_COLUMNS", "STAGES", "Adjudication", "AnnotatedRecord", "Boxes", "Cells",
    "Corrections", "DifferenceRecord", "Presence", "Proposals", "Tracks", "clips_to_vote_on", "due_seconds",
    "given_files", "read_rows", "table_of", "videos_of", "with_proposals",
]  # fmt: skip
