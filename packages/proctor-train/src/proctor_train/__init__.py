"""Training: judges that learn from rated answers, and answerers that are fine-tuned on a benchmark."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.training.answerer import (
        PICTURES,
        AnswererRehearsal,
        AnswererTraining,
        TrainedAnswerer,
        rehearse_answerer,
        train_answerer,
    )
    from proctor.training.fine_tuning import (
        ChatExample,
        LoraSettings,
        data_hash,
        fine_tune,
        measure,
        merge,
        with_adapter,
    )
    from proctor.training.generative import (
        GenerativePlan,
        JudgeParts,
        TrainedGenerative,
        judge_card,
        majority,
        part_encounters,
        rehearse,
        train_generative,
    )
    from proctor.training.grpo import GrpoSettings
    from proctor.training.held_out import (
        HeldOutAgreement,
        encounter_folds,
        held_out_agreement,
        refuse_constant,
        refuse_leaks,
        shuffled_ratings,
    )
    from proctor.training.parity import check_run, export_run
    from proctor.training.run_folder import CheckpointEvaluation, RunFolder
else:
    export_lazily(__name__)

__all__ = [
    "PICTURES", "AnswererRehearsal", "AnswererTraining", "ChatExample", "CheckpointEvaluation",
    "GenerativePlan", "GrpoSettings", "HeldOutAgreement", "JudgeParts", "LoraSettings", "RunFolder", "TrainedAnswerer",
    "TrainedGenerative", "check_run", "data_hash", "encounter_folds",
    "export_run", "fine_tune", "held_out_agreement", "judge_card", "majority", "measure", "merge",
    "part_encounters", "refuse_constant", "refuse_leaks", "rehearse", "rehearse_answerer", "shuffled_ratings", "train_answerer",
    "train_generative", "with_adapter",
]  # fmt: skip
