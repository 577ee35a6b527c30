"""`simulated`: rendered procedures with exact ground truth, questions that their pixels answer, and a system for them.

Script of events → state of the scene at a time → frame → video; and ground truth → questions. No frame shows a real
patient, and all files say so: a unit test for models.
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
