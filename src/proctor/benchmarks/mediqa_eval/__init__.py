"""MEDIQA-EVAL 2026: clinicians' ratings of answers to patients' questions, in English and Chinese."""

from proctor.benchmarks.mediqa_eval.answers import (
    AnswerRow,
    answers_to_judge,
    cases_of,
    rated_cases,
)
from proctor.benchmarks.mediqa_eval.checks import Check, Count, Finding, check_submission
from proctor.benchmarks.mediqa_eval.judged import Judged, rated_scores
from proctor.benchmarks.mediqa_eval.native import (
    Encounter,
    read_encounters,
    read_native_ratings,
    read_submission,
)
from proctor.benchmarks.mediqa_eval.recorded import recorded_scores
from proctor.benchmarks.mediqa_eval.similarity import text_scores
from proctor.benchmarks.mediqa_eval.task import DATASETS, DIMENSIONS, dimensions

__all__ = [
    "DATASETS",
    "DIMENSIONS",
    "AnswerRow",
    "Check",
    "Count",
    "Encounter",
    "Finding",
    "Judged",
    "answers_to_judge",
    "cases_of",
    "check_submission",
    "dimensions",
    "rated_cases",
    "rated_scores",
    "read_encounters",
    "read_native_ratings",
    "read_submission",
    "recorded_scores",
    "text_scores",
]
