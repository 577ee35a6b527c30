"""ReXSonoVQA: what does the ultrasound operator do, and why? 249 choices and 265 free responses.

Source: Wang et al., ReXSonoVQA: A Video QA Benchmark for Procedure-Centric Ultrasound Understanding,
arXiv:2604.10916 (CC BY 4.0).
"""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.tasks.rexsonovqa.native import KINDS, METADATA, item_id
    from proctor.tasks.rexsonovqa.reader import READER
else:
    export_lazily(__name__)

__all__ = ["KINDS", "METADATA", "READER", "item_id"]

READER_SUMMARY = "ReXSonoVQA: ultrasound procedures, 249 choice and 265 free-response questions on clips"
"""As `proctor list` shows it, without loading the reader."""
