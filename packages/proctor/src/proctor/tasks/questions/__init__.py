"""`own-questions`: a benchmark from a folder or a file of one's own questions, without code.

Columns are recognised by their names and answer formats by the references; notes say how. All errors are listed at
once, with file, row and column.
"""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.tasks.questions.columns import FIELDS, MEANING
    from proctor.tasks.questions.folder import Settings
    from proctor.tasks.questions.reader import READER
else:
    export_lazily(__name__)

__all__ = ["FIELDS", "MEANING", "READER", "Settings"]

READER_SUMMARY = "Your own questions: a folder, a spreadsheet, CSV, JSON Lines or a Hugging Face dataset"
"""As `proctor list` shows it, without loading the reader."""
