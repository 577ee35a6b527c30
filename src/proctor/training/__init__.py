"""Training: judges that learn from rated answers, and answerers that are fine-tuned on a benchmark."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.training.held_out import HeldOutAgreement, held_out_agreement
    from proctor.training.leaks import encounter_folds, refuse_leaks
    from proctor.training.run_folder import RunFolder
else:
    export_lazily(__name__)

__all__ = ["HeldOutAgreement", "RunFolder", "encounter_folds", "held_out_agreement", "refuse_leaks"]
