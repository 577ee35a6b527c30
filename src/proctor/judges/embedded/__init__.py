"""A judge that asks no model: it learns from rated answers how clinicians rate."""

from proctor.judges.embedded.judge import EmbeddedJudge, build, refuse_taken
from proctor.judges.embedded.learning import Recipe
from proctor.judges.embedded.validation import (
    Held,
    beside_best,
    out_of_fold,
    out_of_fold_each,
    read_rated,
    scores_of,
    split_encounters,
)

__all__ = [
    "EmbeddedJudge", "Held", "Recipe", "beside_best", "build", "out_of_fold", "out_of_fold_each", "read_rated",
    "refuse_taken", "scores_of", "split_encounters",
]  # fmt: skip
