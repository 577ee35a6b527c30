"""Training: judges that learn from rated answers, and answerers that are fine-tuned on a benchmark."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor_train.answerer import (
        PICTURES,
        AnswererRehearsal,
        AnswererTraining,
        TrainedAnswerer,
        fine_tune_answerer,
        rehearse_answerer,
    )
    from proctor_train.answerer_training import (
        AnswererOptions,
        ParityOptions,
        arrange_answerer,
        check_parity,
        train_answerer,
    )
    from proctor_train.fine_tuning import ChatExample, LoraSettings, data_hash, fine_tune, measure, merge, with_adapter
    from proctor_train.generative import (
        GenerativePlan,
        JudgeParts,
        TrainedGenerative,
        judge_card,
        majority,
        part_encounters,
        rehearse,
        train_generative,
    )
    from proctor_train.grpo import GrpoSettings
    from proctor_train.held_out import (
        HeldOutAgreement,
        encounter_folds,
        held_out_agreement,
        refuse_constant,
        refuse_leaks,
        shuffled_ratings,
    )
    from proctor_train.judge_comparison import AgreementOptions, ComparedJudges, judge_agreement
    from proctor_train.judge_fit import FitMethod, FitOptions, FittedJudge, fit_judge, fit_judge_async, prepare_fit
    from proctor_train.judge_training import (
        ClassifierOptions,
        GenerativeOptions,
        train_classifier_judge,
        train_generative_judge,
    )
    from proctor_train.parity import check_run, export_run
    from proctor_train.run_folder import CheckpointEvaluation, RunFolder
else:
    export_lazily(__name__)

__all__ = [
    "PICTURES", "AgreementOptions", "AnswererOptions", "AnswererRehearsal", "AnswererTraining", "ChatExample",
    "CheckpointEvaluation", "ClassifierOptions", "ComparedJudges", "FitMethod", "FitOptions", "FittedJudge",
    "GenerativeOptions", "GenerativePlan", "GrpoSettings", "HeldOutAgreement", "JudgeParts", "LoraSettings",
    "ParityOptions", "RunFolder", "TrainedAnswerer", "TrainedGenerative", "arrange_answerer", "check_parity",
    "check_run", "data_hash", "encounter_folds", "export_run", "fine_tune", "fine_tune_answerer", "fit_judge",
    "fit_judge_async", "held_out_agreement", "judge_agreement", "judge_card", "majority", "measure", "merge",
    "part_encounters", "prepare_fit", "refuse_constant", "refuse_leaks", "rehearse", "rehearse_answerer",
    "shuffled_ratings", "train_answerer", "train_classifier_judge", "train_generative", "train_generative_judge",
    "with_adapter",
]  # fmt: skip
