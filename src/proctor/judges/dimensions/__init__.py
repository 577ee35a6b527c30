"""Judges of dimensions: a score for each of a task's dimensions, one module per way of finding it."""

from proctor.judges.dimensions.case import Case, Dimension, RatedCase, ReferenceAnswer
from proctor.judges.dimensions.clients import ClientPool
from proctor.judges.dimensions.driving import NOT_JUDGED, Progress, judge_cases
from proctor.judges.dimensions.protocol import (
    DIMENSION_JUDGES,
    BuildDimensionJudge,
    DimensionJudge,
    JudgesAll,
    Materials,
    ReadsScores,
    read_options,
)
from proctor.judges.dimensions.scores import IMAGES_ABSENT, IMAGES_BROKEN, DimensionScores

__all__ = [
    "DIMENSION_JUDGES",
    "IMAGES_ABSENT",
    "IMAGES_BROKEN",
    "NOT_JUDGED",
    "BuildDimensionJudge",
    "Case",
    "ClientPool",
    "Dimension",
    "DimensionJudge",
    "DimensionScores",
    "JudgesAll",
    "Materials",
    "Progress",
    "RatedCase",
    "ReadsScores",
    "ReferenceAnswer",
    "judge_cases",
    "read_options",
]
