"""`own-questions`: a person's own questions become a benchmark without code, by the path of a folder or a file.

Columns are recognised by their names, answer formats by the references; what was decided is said, and everything that is
wrong is listed at once, with file, row and column.
"""

from proctor.tasks.questions.reader import READER

__all__ = ["READER"]
"""What other packages may use."""
