"""Marks beyond right and wrong: how far off counts, times and sets are, and what chance would do."""

from proctor.metrics.marks.counts import count_marks
from proctor.metrics.marks.mark import Mark
from proctor.metrics.marks.nominal import nominal_marks
from proctor.metrics.marks.percentages import percentage_marks
from proctor.metrics.marks.sets import set_marks
from proctor.metrics.marks.times import match_times, time_marks

__all__ = [
    "Mark",
    "count_marks",
    "match_times",
    "nominal_marks",
    "percentage_marks",
    "set_marks",
    "time_marks",
]
