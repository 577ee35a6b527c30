"""`simulated`: procedures that are rendered, with questions that the pixels answer, and a reader of pixels."""

from proctor.tasks.simulated.reader import READER

__all__ = ["READER"]
