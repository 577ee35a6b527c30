"""What participants start with: how to hand in, and a file of answers that is valid."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import proctor
from proctor.challenges.packs.figures import RATINGS_FILE
from proctor.challenges.packs.guesses import write_guesses
from proctor.challenges.packs.parts import PhaseSource
from proctor.challenges.packs.texts import filled
from proctor.core import reader_of


def write_starting_kit(source: PhaseSource, folder: Path) -> None:
    """Writes the kit of a phase: `README.md`, and an example by the system that guesses, where the benchmark has a
    format for answers; of a benchmark with ratings the answers to be scored."""
    folder.mkdir(parents=True)
    example = _example(source, folder)
    settings, phase = source.settings, source.phase
    how: dict[str, Any] = {"settings": settings, "phase": phase, "example": example, "version": proctor.__version__}
    (folder / "README.md").write_text(filled("starting_kit.md.j2", **how), encoding="utf-8")


def _example(source: PhaseSource, folder: Path) -> str:
    if reader_of(source.settings.benchmark, source.settings.track).ratings:
        shutil.copyfile(source.folder / source.phase.questions / RATINGS_FILE, folder / "template.csv")
        return "template.csv"
    written = write_guesses(source.handed_out().benchmark, source.settings, folder)
    return "" if written is None else written.name
