"""MEDIQA-EVAL 2026: clinicians' ratings of answers to patients' questions, in English and Chinese."""

from proctor.tasks.mediqa_eval.native import (
    AnswerRow,
    Encounter,
    answers_to_judge,
    read_encounters,
    read_native_ratings,
    read_submission,
)
from proctor.tasks.mediqa_eval.reader import READER, official
from proctor.tasks.mediqa_eval.submission import Check, Count, Finding, check_submission
from proctor.tasks.mediqa_eval.task import DATASETS, DIMENSIONS, SCHEME, dimensions

__all__ = [
    "DATASETS", "DIMENSIONS", "READER", "SCHEME", "AnswerRow", "Check", "Count", "Encounter", "Finding",
    "answers_to_judge", "check_submission", "dimensions", "official", "read_encounters", "read_native_ratings",
    "read_submission",
]  # fmt: skip
