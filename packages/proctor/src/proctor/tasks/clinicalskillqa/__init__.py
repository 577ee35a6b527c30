"""ClinicalSkillQA 2026: shuffled key frames of clinical skills, to be put in order with a rationale.

Source: the overview of the shared task at BioNLP 2026.
"""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.tasks.clinicalskillqa.reader import READER
    from proctor.tasks.clinicalskillqa.scoring import Published, published, score_predictions
else:
    export_lazily(__name__)

__all__ = ["READER", "Published", "published", "score_predictions"]

READER_SUMMARY = "ClinicalSkillQA: shuffled key frames of CPR, AED and BMV, to be put in order"
"""As `proctor list` shows it, without loading the reader."""
