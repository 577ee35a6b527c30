"""Judges of dimensions: a score for each of a benchmark's dimensions, one module per way of finding it."""

from proctor.core import Dimension
from proctor.judges.dimensions.case import (
    IMAGES_ABSENT,
    IMAGES_BROKEN,
    Case,
    DimensionScores,
    RatedCase,
    ReferenceAnswer,
    case_of,
)
from proctor.judges.dimensions.scorer import (
    ClientPool,
    DimensionJudge,
    DimensionScorer,
    JudgesAll,
    JudgeSetup,
    RatesDimensions,
    RecordedBy,
    candidate_of,
    read_options,
)

__all__ = [
    "IMAGES_ABSENT",
    "IMAGES_BROKEN",
    "Case",
    "ClientPool",
    "Dimension",
    "DimensionJudge",
    "DimensionScorer",
    "DimensionScores",
    "JudgeSetup",
    "JudgesAll",
    "RatedCase",
    "RatesDimensions",
    "RecordedBy",
    "ReferenceAnswer",
    "candidate_of",
    "case_of",
    "read_options",
]
