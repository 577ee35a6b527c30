"""MEDIQA-EVAL 2026: clinicians' ratings of answers to patients' questions, in English and Chinese."""

from proctor.tasks.mediqa_eval.answers import AnswerRow, answers_to_judge
from proctor.tasks.mediqa_eval.checks import Check, Count, Finding, check_submission
from proctor.tasks.mediqa_eval.native import Encounter, read_encounters, read_native_ratings, read_submission
from proctor.tasks.mediqa_eval.official import official
from proctor.tasks.mediqa_eval.reader import READER
from proctor.tasks.mediqa_eval.task import DATASETS, DIMENSIONS, SCHEME, dimensions

__all__ = [
    "DATASETS",
    "DIMENSIONS",
    "READER",
    "SCHEME",
    "AnswerRow",
    "Check",
    "Count",
    "Encounter",
    "Finding",
    "answers_to_judge",
    "check_submission",
    "dimensions",
    "official",
    "read_encounters",
    "read_native_ratings",
    "read_submission",
]
