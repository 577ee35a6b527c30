"""MEDIQA-EVAL 2026: clinicians' ratings of answers to patients' questions, in English and Chinese."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.tasks.mediqa_eval.native import (
        DIMENSIONS,
        SCHEME,
        dimensions,
        read_encounters,
        read_native_ratings,
        read_submission,
    )
    from proctor.tasks.mediqa_eval.official import official
    from proctor.tasks.mediqa_eval.reader import READER
else:
    export_lazily(__name__)

__all__ = [
    "DIMENSIONS", "READER", "SCHEME", "dimensions", "official", "read_encounters",
    "read_native_ratings", "read_submission",
]  # fmt: skip

READER_SUMMARY = "MEDIQA-EVAL 2026: answers to patients' questions, rated by clinicians, in English and Chinese"
"""As `proctor list` shows it, without loading the reader."""
