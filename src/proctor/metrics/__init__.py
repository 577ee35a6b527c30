"""From parsed answers to numbers, without asking a model."""

from proctor.metrics.accuracy import MISSING, AccuracyScorer, cause_of, is_right
from proctor.metrics.code import code_scorers
from proctor.metrics.marks import (
    Mark,
    count_marks,
    match_times,
    nominal_marks,
    percentage_marks,
    set_marks,
    time_marks,
)

__all__ = [
    "MISSING",
    "AccuracyScorer",
    "Mark",
    "cause_of",
    "code_scorers",
    "count_marks",
    "is_right",
    "match_times",
    "nominal_marks",
    "percentage_marks",
    "set_marks",
    "time_marks",
]
