"""ClinicalSkillQA 2026: shuffled key frames of clinical skills, to be put in order with a rationale.

Source: the overview of the shared task at BioNLP 2026.
"""

from proctor.benchmarks.clinicalskillqa.lint import Cause, PredictionLint, lint_predictions
from proctor.benchmarks.clinicalskillqa.native import (
    SCENARIOS,
    NativePrediction,
    NativeReference,
    labels_of,
    read_predictions,
    read_references,
)
from proctor.benchmarks.clinicalskillqa.published import Published, PublishedRow, published
from proctor.benchmarks.clinicalskillqa.rationales import NO_RATIONALE_SCORE, Rationales
from proctor.benchmarks.clinicalskillqa.reader import READER
from proctor.benchmarks.clinicalskillqa.scoring import Scored, Slice, score_predictions

__all__ = [
    "NO_RATIONALE_SCORE",
    "READER",
    "SCENARIOS",
    "Cause",
    "NativePrediction",
    "NativeReference",
    "PredictionLint",
    "Published",
    "PublishedRow",
    "Rationales",
    "Scored",
    "Slice",
    "labels_of",
    "lint_predictions",
    "published",
    "read_predictions",
    "read_references",
    "score_predictions",
]
