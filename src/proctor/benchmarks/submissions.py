"""Benchmarks whose answers can be handed in as a file of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from proctor.core import Answer

__all__ = ["WritesSubmissions"]


@runtime_checkable
class WritesSubmissions(Protocol):
    """A reader that writes a run's answers as the benchmark's organisers take them."""

    @property
    def submission_formats(self) -> tuple[str, ...]:
        """The names of the formats."""

    def write_submission(self, form: str, answers: Sequence[Answer], file: Path) -> int:
        """Writes the answers that there are and returns how many: what failed, or is missing, is left out.
        Raises `InputError` where the file can't be written."""
