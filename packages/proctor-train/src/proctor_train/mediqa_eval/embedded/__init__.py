"""A judge that asks no model: it learns from rated answers how clinicians rate."""

from proctor.judges.dimensions import TRAINED_ON
from proctor_train.mediqa_eval.embedded.judge import EmbeddedJudge, build, refuse_taken
from proctor_train.mediqa_eval.embedded.learning import RatedAnswers, Recipe, Split
from proctor_train.mediqa_eval.embedded.measures import LANGUAGES
from proctor_train.mediqa_eval.embedded.validation import (
    Held,
    TrainingMaterial,
    beside_best,
    encounter_fold,
    leaving_each_fold,
    out_of_fold,
    out_of_fold_each,
    out_of_fold_from_part,
    read_rated,
    scores_of,
    split_encounters,
    splits_of,
)

__all__ = [
    "LANGUAGES", "TRAINED_ON", "EmbeddedJudge", "Held", "RatedAnswers", "Recipe", "Split", "TrainingMaterial", "beside_best",
    "build", "encounter_fold", "leaving_each_fold", "out_of_fold", "out_of_fold_each", "out_of_fold_from_part",
    "read_rated", "refuse_taken", "scores_of", "split_encounters", "splits_of",
]  # fmt: skip
