"""ClinicalSkillQA 2026: shuffled key frames of clinical skills, to be put in order with a rationale.

Source: the overview of the shared task at BioNLP 2026.
"""

from proctor.tasks.clinicalskillqa.native import (
    SCENARIOS,
    NativePrediction,
    ReferenceOrder,
    labels_of,
    read_predictions,
    read_references,
)
from proctor.tasks.clinicalskillqa.reader import READER
from proctor.tasks.clinicalskillqa.scoring import (
    NO_RATIONALE_SCORE,
    Published,
    PublishedTeam,
    Rationales,
    ScoredPredictions,
    Slice,
    published,
    score_predictions,
)
from proctor.tasks.clinicalskillqa.submission import Cause, PredictionReport, validate_predictions

__all__ = [
    "NO_RATIONALE_SCORE", "READER", "SCENARIOS", "Cause", "NativePrediction", "PredictionReport", "Published",
    "PublishedTeam", "Rationales", "ReferenceOrder", "ScoredPredictions", "Slice", "labels_of", "published",
    "read_predictions", "read_references", "score_predictions", "validate_predictions",
]  # fmt: skip
