"""Judges of MEDIQA-EVAL's participants and judges that learn from its ratings, found by entry points as any judge is.

`embedded` (a learned judge that asks no model), `classifier` (an encoder with a head for each dimension), `pipeline`
(`local-pipeline`: what encoders measure) and `agent` (a model with tools, which may ask the other two). They rate the
dimensions of any benchmark that has them; `proctor.judges` holds what is common to all judges that ask a model.

A trainer stands beside its judge (`classifier.training`, `pipeline_fit`), since it writes what the judge reads, and
`proctor_train`, which is below the tasks, keeps what all trainings share: held-out encounters, run folders, and
fine-tuning. `proctor.api` calls them for `proctor judge fit`, `judge compare` and `train classifier-judge`.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor_train.mediqa_eval.pipeline import SignalReader
    from proctor_train.mediqa_eval.pipeline_fit import fit_pipeline
else:
    export_lazily(__name__)

__all__ = ["PROMPTS", "SignalReader", "fit_pipeline"]

PROMPTS = Path(__file__).parent / "prompts"
"""The prompts of these judges, for any task and language; those in a benchmark's `judge_prompts` take precedence."""
