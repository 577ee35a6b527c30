"""MEDIQA-EVAL 2026: clinicians' ratings of answers to patients' questions, in English and Chinese."""

from proctor.benchmarks.mediqa_eval.checks import Check, Count, Finding, check_submission
from proctor.benchmarks.mediqa_eval.native import (
    Encounter,
    read_encounters,
    read_native_ratings,
    read_submission,
)
from proctor.benchmarks.mediqa_eval.similarity import text_scores
from proctor.benchmarks.mediqa_eval.task import DATASETS, DIMENSIONS

__all__ = [
    "DATASETS",
    "DIMENSIONS",
    "Check",
    "Count",
    "Encounter",
    "Finding",
    "check_submission",
    "read_encounters",
    "read_native_ratings",
    "read_submission",
    "text_scores",
]
