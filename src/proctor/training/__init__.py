"""Training: judges that learn from rated answers, and answerers that are fine-tuned on a benchmark."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.training.answerer import AnswererTraining, TrainedAnswerer, train_answerer
    from proctor.training.answerer_rehearsal import PICTURES, AnswererRehearsal, rehearse_answerer
    from proctor.training.chat_examples import ChatExample, measure
    from proctor.training.checkpoints import CheckpointEvaluation
    from proctor.training.classifier import (
        ClassifierRecipe,
        TrainedClassifier,
        classifier_settings,
        shuffled_ratings,
        train_classifier,
    )
    from proctor.training.generative import (
        GenerativePlan,
        JudgeParts,
        TrainedGenerative,
        majority,
        part_encounters,
        rehearse,
        train_generative,
    )
    from proctor.training.grpo import GrpoSettings
    from proctor.training.held_out import HeldOutAgreement, held_out_agreement
    from proctor.training.judge_card import judge_card
    from proctor.training.leaks import encounter_folds, refuse_leaks
    from proctor.training.lora import LoraSettings, data_hash, fine_tune, merge, with_adapter
    from proctor.training.parity_paths import check_run, export_run
    from proctor.training.pipeline import fit_pipeline
    from proctor.training.run_folder import RunFolder
else:
    export_lazily(__name__)

__all__ = [
    "PICTURES", "AnswererRehearsal", "AnswererTraining", "ChatExample", "CheckpointEvaluation", "ClassifierRecipe",
    "GenerativePlan", "GrpoSettings", "HeldOutAgreement", "JudgeParts", "LoraSettings", "RunFolder", "TrainedAnswerer",
    "TrainedClassifier", "TrainedGenerative", "check_run", "classifier_settings", "data_hash", "encounter_folds",
    "export_run", "fine_tune", "fit_pipeline", "held_out_agreement", "judge_card", "majority", "measure", "merge",
    "part_encounters", "refuse_leaks", "rehearse", "rehearse_answerer", "shuffled_ratings", "train_answerer",
    "train_classifier", "train_generative", "with_adapter",
]  # fmt: skip
