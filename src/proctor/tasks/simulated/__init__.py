"""`simulated`: procedures that are rendered, with questions that the pixels answer, and a reader of pixels.

Script of events → state of the scene at a time → picture → video; and ground truth → questions. Nothing here shows a
real patient, and everything that is written says so: a unit test for models, with exact ground truth.
"""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.tasks.simulated.narration import narrate_folder
    from proctor.tasks.simulated.reader import READER
    from proctor.tasks.simulated.simulation import RULES, ask, candidates, simulate
else:
    export_lazily(__name__)

__all__ = ["READER", "RULES", "ask", "candidates", "narrate_folder", "simulate"]

READER_SUMMARY = "SIMULATED procedure videos with exact ground truth: a unit test for models"
"""As `proctor list` shows it, without loading the reader."""
