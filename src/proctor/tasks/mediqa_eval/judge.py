"""The organisers' judge (Ben Abacha and Yim 2026, section 4.2) under its own name, with the task's own prompts."""

from __future__ import annotations

from proctor.judges.dimensions import DimensionJudge, JudgeSetup, RatesDimensions
from proctor.judges.dimensions.rating import rating_judge

NAME = "mediqa-judge"


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """Every dimension of MEDIQA-EVAL in one reply, pictures first, by the task's rules (the organisers' judge)."""
    return rating_judge(NAME, setup)
