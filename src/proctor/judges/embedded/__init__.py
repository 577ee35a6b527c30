"""A judge that asks no model: it learns from rated answers how clinicians rate."""

from proctor.judges.embedded.comparing import Held, beside_best, best_metric, scores_of
from proctor.judges.embedded.judge import IMAGES_UNSEEN, NO_OTHERS, TRAINED_ON, EmbeddedJudge, build
from proctor.judges.embedded.learning import Recipe
from proctor.judges.embedded.storage import refuse_taken
from proctor.judges.embedded.validation import RatedAnswers, out_of_fold, out_of_fold_each, read_rated, split_encounters

__all__ = [
    "IMAGES_UNSEEN",
    "NO_OTHERS",
    "TRAINED_ON",
    "EmbeddedJudge",
    "Held",
    "RatedAnswers",
    "Recipe",
    "beside_best",
    "best_metric",
    "build",
    "out_of_fold",
    "out_of_fold_each",
    "read_rated",
    "refuse_taken",
    "scores_of",
    "split_encounters",
]
