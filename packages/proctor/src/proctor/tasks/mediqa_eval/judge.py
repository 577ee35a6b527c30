"""The organisers' judge."""

from __future__ import annotations

from proctor.judges.dimensions import DimensionJudge, JudgeSetup, RatesDimensions, rating_judge
from proctor.tasks.mediqa_eval.reader import NAME


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """Every dimension of MEDIQA-EVAL in one reply, pictures first, by the task's rules (the organisers' judge)."""
    return rating_judge(NAME, setup)
